"""Thread limits: for a block, for nested blocks, and permanent."""

import os
import re
import subprocess
import sys
import threading
from pathlib import Path

from threadpoolctl import threadpool_info

import imprint
from imprint.kernels import cpu
from imprint.kernels.cpu import (
    one_blas_thread,
    one_thread,
    sum_on_all_cores,
)

CODE = """if True:
    import numpy
    from threadpoolctl import threadpool_info
    from imprint.kernels import cpu

    def threads():
        return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}

    cpu.limit_permanently()
    with cpu.one_blas_thread():
        pass
    assert threads() == {1}
    cpu.load_scipy_blas()
    assert threads() == {1}
    assert cpu.cores() == 1
"""


def test_a_permanent_thread_limit_outlasts_blocks_and_holds_for_a_blas_loaded_later():
    two = {
        **os.environ,
        **dict.fromkeys(
            ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "2"
        ),
    }
    done = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, env=two
    )
    assert done.returncode == 0, done.stderr


def test_the_limit_decorates_functions():
    assert one_blas_thread()(lambda: 3)() == 3


def test_sums_are_added_in_order():
    values = [1e16, 1.0, -1e16, *range(100)]
    expected = 0.0
    for value in values:
        expected += value
    for parallel in (True, False):
        assert (
            sum_on_all_cores(lambda value: value, values, total=0.0, parallel=parallel)
            == expected
        )


def blas_threads():
    pools = threadpool_info()
    return {pool["num_threads"] for pool in pools if pool["user_api"] == "blas"}


def test_overlapping_blocks_of_one_thread_leave_everything_as_it_was(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(cpu, "available_cpus", lambda: 3)
    environment = dict(os.environ)
    threads = blas_threads()
    inside = threading.Barrier(4)
    leaving = [threading.Event() for _ in range(3)]

    def work(i):
        with one_thread():
            inside.wait(20)
            leaving[i].wait(20)

    running = [threading.Thread(target=work, args=(i,)) for i in range(3)]
    for thread in running:
        thread.start()
    inside.wait(20)
    # they leave in the order in which they came
    for i, thread in enumerate(running):
        assert (cpu.cores(), blas_threads(), dict(os.environ)) == (1, {1}, environment)
        leaving[i].set()
        thread.join(20)
    assert (cpu.cores(), blas_threads(), dict(os.environ)) == (3, threads, environment)


def test_only_the_command_line_writes_to_the_environment():
    writes = re.compile(
        r"os\.environ(\[[^\]]*\]\s*=[^=]|\.(update|pop|setdefault|clear|popitem))"
        r"|os\.(putenv|unsetenv)|del os\.environ|environ \|="
    )
    assert writes.search("os.environ['A'] = 'b'")
    root = Path(imprint.__file__).parent
    # ONNX Runtime reports its use unless a variable, once and for all, says otherwise.
    without_reports = {
        root / "backbones" / "adapters" / "onnx.py",
        root / "export" / "programs" / "classify.py",
    }
    files = {path for path in root.rglob("*.py") if root / "cli" not in path.parents}
    assert len(files) > 100
    writing = {path for path in files if writes.search(path.read_text("utf-8"))}
    assert writing == without_reports
