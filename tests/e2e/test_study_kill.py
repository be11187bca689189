"""Kill a study at random moments: its files are intact, and the final table is the same, bit for bit."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from imprint.embeddings import write_pack
from imprint.study import Grid, Packs, Study, run
from imprint.study.evaluate import MEASUREMENTS
from imprint.study.store import Store

KILLS = 20
STUDY = Study(
    backbones=list("abcdefgh"),  # many units, so that kills fall between two of them
    datasets=["one", "two"],
    tasks=["all", "even"],
    seeds=[1, 2],
    grid=Grid(
        norm_pre=["none", "l2"],
        generator=["mean", "random", "kmeans", "fps", "covmax"],
        k=[1, 4, 9],
        aggregator=["max", "nearest(m=3)"],
    ),
    rules="enough_proxies",
)


@pytest.fixture(scope="module")
def packs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("packs")
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(6), 60)
    for backbone in STUDY.backbones:
        for dataset in STUDY.datasets:
            centres = rng.normal(size=(6, 24))
            X, Q = (centres[y] + rng.normal(size=(len(y), 24)) * 1.5 for _ in range(2))
            write_pack(folder / f"{backbone}-{dataset}.npz", X, y, Q, y)
    return folder


def source(packs):
    return Packs(str(packs), str(packs / "cache"))


def repeatable(folder):
    return STUDY.results(folder).drop_columns(list(MEASUREMENTS))


@pytest.fixture(scope="module")
def undisturbed(packs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    start = time.monotonic()
    summary = run(STUDY, folder, source=source(packs), workers=1)
    assert summary.computed == summary.experiments
    return repeatable(folder), time.monotonic() - start


def work(packs, folder):
    run(STUDY, folder, source=source(packs), workers=1)


@pytest.mark.timeout(900)  # for twenty starts on a busy machine
def test_twenty_kills_at_random_moments(packs, undisturbed, tmp_path):
    expected, seconds = undisturbed
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["imprint.study.run", __name__])
    rng = np.random.default_rng()
    kills = rounds = halves = 0
    while kills < KILLS or rounds == 0:
        folder = tmp_path / str(rounds)
        for left in range(KILLS - kills + 1, 0, -1):
            child = context.Process(target=work, args=(packs, folder))
            child.start()
            if left == 1:
                child.join(120)
            elif left % 2:
                child.join(rng.uniform(0, 0.5 * seconds))
            else:  # as soon as one more unit is stored
                stored = len(Store(folder).shards())
                while child.is_alive() and len(Store(folder).shards()) == stored:
                    time.sleep(0.001)
            if child.is_alive():
                with suppress(ProcessLookupError):  # it has just finished
                    os.kill(child.pid, signal.SIGKILL)
                    kills += 1
            child.join()
            if child.exitcode == 0:
                break
            assert child.exitcode == -signal.SIGKILL
            found = [
                pq.read_table(p).num_rows for p in Store(folder).shards()
            ]  # readable after every kill
            halves += 0 < sum(found) < len(expected)
        assert child.exitcode == 0
        assert repeatable(folder).equals(expected)
        stored = sum(pq.read_table(p).num_rows for p in Store(folder).shards())
        assert stored == len(expected), "an experiment was stored twice"
        rounds += 1
    assert kills >= KILLS
    assert halves, "no kill hit a study under way"


def test_killed_command_leaves_no_worker_and_goes_on(packs, undisturbed, tmp_path):
    expected, _ = undisturbed
    file, out = tmp_path / "study.yaml", tmp_path / "out"
    file.write_text(_yaml(packs))
    command = [
        sys.executable,
        "-m",
        "imprint",
        "study",
        "run",
        str(file),
        "--out",
        str(out),
        "--workers",
        "2",
    ]
    env = {**os.environ, "IMPRINT_HOME": str(tmp_path / "home")}
    first = subprocess.Popen(
        command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    deadline = time.monotonic() + 120
    while not Store(out).shards():
        assert first.poll() is None, first.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    second = subprocess.run(command, env=env, capture_output=True, text=True)
    if first.poll() is None:
        assert second.returncode == 2
        assert "another run is at work in this folder" in second.stderr
    children = _children(first.pid)
    first.kill()
    first.communicate()
    deadline = time.monotonic() + 20
    while any(Path(f"/proc/{pid}").exists() for pid in children):
        assert time.monotonic() < deadline, "workers outlived the run"
        time.sleep(0.05)
    final = subprocess.run(command, env=env, capture_output=True, text=True)
    assert final.returncode == 0, final.stderr
    assert repeatable(out).equals(expected)


def _children(pid):
    path = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(p) for p in path.read_text().split()] if path.exists() else []


def _yaml(packs):
    import yaml

    return yaml.safe_dump({**STUDY.to_json(), "embeddings": str(packs)})
