"""A study on a Ray cluster of two nodes on this machine, one of which is killed during the run: the same table."""

import shutil
import socket
import sys
import time
from importlib.util import find_spec

import numpy as np
import pytest

from imprint.embeddings import write_pack
from imprint.study import Grid, Packs, Study, run
from imprint.study.evaluate import MEASUREMENTS

pytestmark = [
    pytest.mark.skipif(
        find_spec("ray") is None,
        reason="ray is not installed: pip install 'weight-imprinting[ray]'",
    ),
    pytest.mark.skipif(
        sys.platform != "linux", reason="a node is found and killed by /proc"
    ),
]
STUDY = Study(
    backbones=["a", "b", "c", "d"],
    datasets=["one", "two"],
    tasks=["all", "even"],
    seeds=[1, 2],
    grid=Grid(
        norm_pre=["none", "l2"],
        generator=["mean", "random", "kmeans", "kmedoids"],
        k=[1, 4, 9],
    ),
)


@pytest.fixture(scope="module")
def packs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("packs")
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(6), 120)
    for backbone in STUDY.backbones:
        for dataset in STUDY.datasets:
            centres = rng.normal(size=(6, 32))
            X, Q = (centres[y] + rng.normal(size=(len(y), 32)) * 1.5 for _ in range(2))
            write_pack(folder / f"{backbone}-{dataset}.npz", X, y, Q, y)
    return Packs(str(folder), str(folder / "cache"))


def repeatable(folder):
    return STUDY.results(folder).drop_columns(list(MEASUREMENTS))


@pytest.mark.filterwarnings("default")  # warnings of ray
def test_a_node_killed_on_the_way_changes_nothing(packs, cluster, tmp_path):
    run(STUDY, tmp_path / "local", source=packs, workers=1)
    seen = []

    def progress(p):
        seen.append(p.done)
        if len(seen) == 6:
            cluster.kill(cluster.nodes[1])

    summary = run(
        STUDY, tmp_path / "ray", source=packs, engine="ray", progress=progress
    )
    import ray

    assert len(seen) > 10
    deadline = time.monotonic() + 60
    while sum(node["Alive"] for node in ray.nodes()) != 1:
        assert time.monotonic() < deadline, "the second node is still there"
        time.sleep(0.2)
    assert summary.failures == ()
    assert summary.computed == summary.experiments
    assert repeatable(tmp_path / "ray").equals(repeatable(tmp_path / "local"))


@pytest.mark.filterwarnings("default")  # warnings of ray
def test_a_failing_unit_is_recorded_with_its_reason(packs, cluster, tmp_path):
    folder = shutil.copytree(packs.folder, tmp_path / "packs")

    def progress(p):
        (folder / "d-two.npz").unlink(
            missing_ok=True
        )  # exists when planned, deleted when its units are evaluated

    summary = run(
        STUDY,
        tmp_path / "ray",
        source=Packs(str(folder)),
        engine="ray",
        progress=progress,
    )
    assert (summary.computed, summary.failed) == (
        summary.experiments * 7 // 8,
        summary.experiments // 8,
    )
    assert len(summary.failures) == 4
    assert all(
        ": ParameterError: Unknown pack 'd-two.npz'." in line
        for line in summary.failures
    )


def test_a_missing_cluster_is_reported_in_one_sentence(packs, tmp_path, monkeypatch):
    from imprint.core.errors import ImprintError

    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.1:{s.getsockname()[1]}")
        with pytest.raises(ImprintError, match="no Ray cluster answers there"):
            run(STUDY, tmp_path, source=packs, engine="ray")
