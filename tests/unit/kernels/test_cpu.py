"""Thread limits: for a block, for nested blocks, and permanent."""

import os
import subprocess
import sys

from imprint.kernels.cpu import (
    MALLOC_SETTINGS,
    ONE_THREAD,
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


def test_one_thread_sets_the_environment_and_restores_it(monkeypatch):
    settings = [*ONE_THREAD, *MALLOC_SETTINGS]
    for name in settings:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "5")
    before = dict(os.environ)
    with one_thread():
        assert {os.environ[name] for name in ONE_THREAD} == {"1"}
        assert os.environ["MALLOC_TRIM_THRESHOLD_"] == "5"  # set by the user
        assert "MALLOC_MMAP_THRESHOLD_" in os.environ
    assert dict(os.environ) == before
