"""A study on a Ray cluster of two nodes on this machine, one of them killed on the way: the same table."""

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from imprint.embeddings import write_pack
from imprint.study import Grid, Packs, Study, run
from imprint.study.evaluate import MEASUREMENTS

pytestmark = [
    pytest.mark.skipif(find_spec("ray") is None, reason="ray is not installed: pip install 'weight-imprinting[ray]'"),
    pytest.mark.skipif(sys.platform != "linux", reason="a node is found and killed by /proc"),
]
STUDY = Study(
    backbones=["a", "b", "c", "d"],
    datasets=["one", "two"],
    tasks=["all", "even"],
    seeds=[1, 2],
    grid=Grid(norm_pre=["none", "l2"], generator=["mean", "random", "kmeans", "kmedoids"], k=[1, 4, 9]),
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


class Cluster:
    """`ray start` processes bound to 127.0.0.1, each in its own session."""

    def __init__(self, folder):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.folder, self.nodes = folder, []
        self.env = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0", "PYTHONPATH": os.pathsep.join(sys.path)}
        self.add("--head", f"--port={self.port}", "--include-dashboard=false", f"--temp-dir={folder}")
        self.add(f"--address=127.0.0.1:{self.port}")

    def add(self, *options):
        ray = Path(sys.executable).parent / "ray"
        common = "--node-ip-address=127.0.0.1", "--num-cpus=1", "--object-store-memory=100000000", "--block"
        with open(self.folder / f"node{len(self.nodes)}.log", "wb") as log:
            node = subprocess.Popen(
                [ray, "start", *options, *common], env=self.env, stdout=log, stderr=log, start_new_session=True
            )
        self.nodes.append(node)

    def wait(self):
        import ray

        deadline = time.monotonic() + 120
        while True:
            try:
                ray.init(log_to_driver=False, logging_level="ERROR")
                break
            except ConnectionError:
                assert time.monotonic() < deadline, self.logs()
                time.sleep(0.5)
        while ray.cluster_resources().get("CPU") != 2:
            assert time.monotonic() < deadline, self.logs()
            time.sleep(0.2)

    def logs(self):
        return [p.read_text()[-2000:] for p in sorted(self.folder.glob("node*.log"))]

    def kill(self, node):
        """All processes of a node at once, as when a machine goes down."""
        for pid in sorted(int(p.name) for p in Path("/proc").iterdir() if p.name.isdigit()):
            with suppress(ProcessLookupError):
                if os.getsid(pid) == node.pid:
                    os.kill(pid, signal.SIGKILL)
        node.wait()


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    import ray

    short = Path(f"/tmp/r{os.getpid()}")  # sockets live in it, and their paths must be short
    short.mkdir()
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")  # a token in the home folder would bind the nodes but not us
    made = Cluster(short)
    monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.1:{made.port}")
    try:
        made.wait()
        yield made
    finally:
        ray.shutdown()
        for node in reversed(made.nodes):
            made.kill(node)
        subprocess.run(["rm", "-rf", str(short)], check=True)


def repeatable(folder):
    return STUDY.results(folder).drop_columns(list(MEASUREMENTS))


@pytest.mark.filterwarnings("default")  # ray's own
def test_a_node_killed_on_the_way_changes_nothing(packs, cluster, tmp_path):
    run(STUDY, tmp_path / "local", source=packs, workers=1)
    seen = []

    def progress(p):
        seen.append(p.done)
        if len(seen) == 6:
            cluster.kill(cluster.nodes[1])

    summary = run(STUDY, tmp_path / "ray", source=packs, engine="ray", progress=progress)
    import ray

    assert len(seen) > 10
    deadline = time.monotonic() + 60
    while sum(node["Alive"] for node in ray.nodes()) != 1:
        assert time.monotonic() < deadline, "the second node is still there"
        time.sleep(0.2)
    assert summary.failures == ()
    assert summary.computed == summary.experiments
    assert repeatable(tmp_path / "ray").equals(repeatable(tmp_path / "local"))


def test_no_cluster_is_said_in_one_sentence(packs, tmp_path, monkeypatch):
    from imprint.core.errors import ImprintError

    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.1:{s.getsockname()[1]}")
        with pytest.raises(ImprintError, match="no Ray cluster answers there"):
            run(STUDY, tmp_path, source=packs, engine="ray")
