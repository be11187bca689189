"""Embeddings from a Ray cluster of two nodes with killed processes: equal to those of one machine, byte for byte."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from imprint.embeddings.ray_engine import BUFFER

pytestmark = [
    pytest.mark.skipif(
        find_spec("ray") is None,
        reason="ray is not installed: pip install 'weight-imprinting[ray]'",
    ),
    pytest.mark.skipif(
        sys.platform != "linux", reason="a node is found and killed by /proc"
    ),
]
CHILD = Path(__file__).with_name("extraction_child.py")
BATCHES, PAUSE, NODES = 250, 0.03, 2
AHEAD = 2 * NODES
"""Batches handed out: two for each node of one core."""
IN_FLIGHT = AHEAD + BUFFER * NODES
"""Batches not written yet: those handed out, and results that wait for an earlier one."""


def start(store, log, engine="ray"):
    return subprocess.Popen(
        [sys.executable, str(CHILD), str(store), str(log), str(PAUSE), engine]
    )


def lines(log):
    """Digest and session of every embedded batch."""
    return (
        [tuple(line.split()) for line in log.read_text().splitlines()]
        if log.exists()
        else []
    )


def wait_for(count, log, child):
    deadline = time.monotonic() + 120
    while len(lines(log)) < count:
        assert child.poll() is None, "it ended before it was disturbed"
        assert time.monotonic() < deadline
        time.sleep(0.01)


def store_bytes(folder):
    (done,) = (p for p in folder.iterdir() if p.is_dir())
    assert done.suffix == "", "it is not finished"
    return {p.name: p.read_bytes() for p in done.iterdir()}


@pytest.mark.filterwarnings("default")  # warnings of ray
def test_killed_processes_and_nodes_cost_at_most_their_batches(cluster, tmp_path):
    with start(tmp_path / "one machine", tmp_path / "log0", "local") as child:
        assert child.wait(120) == 0
    store, stored = tmp_path / "cluster", 0

    for engine in ("local", "ray"):  # the second continues where the first stopped
        log, before = tmp_path / f"log of {engine}", stored
        with start(store, log, engine) as child:
            wait_for(40 if engine == "local" else 60, log, child)
            child.kill()
            assert child.wait(60) == -signal.SIGKILL
        (journal,) = store.glob("*.partial/journal.sqlite")
        with closing(sqlite3.connect(journal)) as database:
            ((stored,),) = database.execute(
                "SELECT count(*) - 1 FROM batches"
            )  # row 0 is the identity
        assert stored - before >= (40 - AHEAD if engine == "local" else 60 - IN_FLIGHT)
        finished = {digest for digest, _ in lines(tmp_path / "log0")[:before]}
        assert not finished & {digest for digest, _ in lines(log)}

    with start(store, tmp_path / "log2") as child:
        wait_for(40, tmp_path / "log2", child)
        cluster.kill(cluster.nodes[1])
        assert child.wait(120) == 0
    assert store_bytes(store) == store_bytes(tmp_path / "one machine")
    second = lines(tmp_path / "log2")
    assert {int(session) for _, session in second} == {
        node.pid for node in cluster.nodes
    }
    digests = [digest for digest, _ in second]
    assert set(digests) == {
        digest for digest, _ in lines(tmp_path / "log0")[stored:]
    }  # not stored before
    assert (
        len(digests) <= BATCHES - stored + AHEAD
    )  # only the batches of the killed node are repeated


@pytest.mark.filterwarnings("default")  # warnings of ray
def test_the_command_writes_the_same_file(cluster, tmp_path):
    rng = np.random.default_rng(0)
    for i in range(150):
        place = tmp_path / "photos" / f"class {i % 3}" / f"{i}.png"
        place.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (40, 50, 3), np.uint8)).save(place)
    (tmp_path / "photos" / "class 0" / "broken.png").write_bytes(b"no image")

    def embed(name, *options):
        env = {**os.environ, "IMPRINT_HOME": str(tmp_path / f"home of {name}")}
        command = [
            sys.executable,
            "-m",
            "imprint",
            "embed",
            "photos",
            "-o",
            f"{name}.npz",
            "-b",
            "tinynet",
            *options,
        ]
        return subprocess.run(
            command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False
        )

    local, ray = embed("local"), embed("ray", "--engine", "ray")
    assert (local.returncode, ray.returncode) == (1, 1), (
        ray.stderr
    )  # one image cannot be read
    assert "broken.png" in ray.stderr
    assert ray.stderr.replace("ray.npz", "local.npz") == local.stderr
    assert (tmp_path / "ray.npz").read_bytes() == (tmp_path / "local.npz").read_bytes()
    stores = [
        store_bytes(tmp_path / f"home of {name}" / "embeddings")
        for name in ("local", "ray")
    ]
    assert stores[0] == stores[1]
    refused = embed("none", "--engine", "spark")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "Unknown engine 'spark'" in refused.stderr
