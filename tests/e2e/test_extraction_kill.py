"""Ten kills at random moments: the finished store equals that of an undisturbed run, byte for byte."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

CHILD = Path(__file__).with_name("extraction_child.py")
BATCHES, KILLS = 250, 10


def start(folder, pause):
    command = [
        sys.executable,
        str(CHILD),
        str(folder / "store"),
        str(folder / "log"),
        str(pause),
    ]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "ready\n"
    return child


def finish(folder, pause=0):
    with start(folder, pause) as child:
        assert child.wait(60) == 0
    (done,) = (p for p in (folder / "store").iterdir() if p.is_dir())
    assert done.suffix == ""
    return {p.name: p.read_bytes() for p in done.iterdir()}


def embedded(folder):
    """The digests of all embedded batches, with repetitions."""
    return (folder / "log").read_text().split()[::2]


@pytest.fixture
def folders(tmp_path):
    for name in ("undisturbed", "killed"):
        (tmp_path / name).mkdir()
    return tmp_path / "undisturbed", tmp_path / "killed"


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_ten_kills_do_not_change_the_store(folders):
    expected, folder, moments = finish(folders[0]), folders[1], random.Random(0)
    for _ in range(KILLS):
        with start(folder, 0.005) as child:
            time.sleep(moments.uniform(0.005, 0.1))
            child.kill()
            assert child.wait(60) == -signal.SIGKILL, "it finished before it was killed"
    assert finish(folder) == expected
    assert len(set(embedded(folder))) == BATCHES
    assert (
        len(embedded(folder)) <= BATCHES + KILLS
    )  # each kill repeats at most one batch


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGINT for one child")
def test_ctrl_c_does_not_change_the_store(folders):
    expected, folder = finish(folders[0]), folders[1]
    with start(folder, 0.005) as child:
        time.sleep(0.2)
        child.send_signal(signal.SIGINT)
        assert child.wait(60) not in (0, -signal.SIGKILL)
    assert (folder / "log").read_text()
    assert finish(folder) == expected


def test_two_processes_share_one_extraction(folders):
    expected, folder = finish(folders[0]), folders[1]
    with start(folder, 0.001) as first:
        assert finish(folder, 0.001) == expected
        assert first.wait(60) == 0
    assert len(embedded(folder)) == BATCHES


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_a_waiting_process_takes_over_from_a_killed_one(folders):
    expected, folder = finish(folders[0]), folders[1]
    with start(folder, 0.01) as first, start(folder, 0) as second:
        time.sleep(0.3)
        first.kill()
        assert second.wait(60) == 0
    assert finish(folder) == expected
    assert BATCHES <= len(embedded(folder)) <= BATCHES + 1
