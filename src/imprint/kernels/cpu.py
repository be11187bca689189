"""How a kernel runs: as NumPy alone or in loops compiled by numba, and on how many
threads.
"""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ContextDecorator, ExitStack, contextmanager
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from threading import Lock
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController, threadpool_limits

T = TypeVar("T")
R = TypeVar("R")
ONE_THREAD = {
    name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
}
MALLOC_SETTINGS = {
    "MALLOC_TRIM_THRESHOLD_": str(2**28),
    "MALLOC_MMAP_THRESHOLD_": str(2**25),
}
"""For the C library of Linux: freed memory is kept and used again, instead of returned
and cleared.
"""
# multiplications; for less, importing numba takes longer than it saves
MIN_COMPILED_WORK = 200_000
HAS_NUMBA = find_spec("numba") is not None
MAX_HELD_RESULTS = 16  # of `sum_on_all_cores`, in memory at a time


def use_numba(work: float) -> bool:
    """Whether a problem with this number of multiplications runs in compiled loops;
    loads the BLAS that they call.
    """
    if work < MIN_COMPILED_WORK or not HAS_NUMBA:
        return False
    load_scipy_blas()
    return True


def available_cpus() -> int:
    """CPUs that the system grants this process."""
    return (
        len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count() or 1
    )


def cores() -> int:
    """CPUs that kernels use: those available, at most OMP_NUM_THREADS if that is
    set.
    """
    limit = os.environ.get("OMP_NUM_THREADS", "")
    return (
        min(available_cpus(), int(limit))
        if limit.isdigit() and int(limit)
        else available_cpus()
    )


def on_all_cores(
    function: Callable[[T], R], items: Iterable[T], *, parallel: bool = True
) -> list[R]:
    """The results of a function that releases the GIL, in the order of the items, with
    one BLAS thread per call.
    """
    threads, inputs = cores(), list(items)
    with one_blas_thread():
        if threads == 1 or len(inputs) < 2 or not parallel:
            return [function(item) for item in inputs]
        with ThreadPoolExecutor(min(threads, len(inputs))) as pool:
            return list(pool.map(function, inputs))


def sum_on_all_cores(
    function: Callable[[T], Any],
    items: Sequence[T],
    *,
    total: Any = 0,
    parallel: bool = True,
) -> Any:
    """`total` plus all results, added in the order of the items; few results are in
    memory at a time.
    """
    for start in range(0, len(items), MAX_HELD_RESULTS):
        for result in on_all_cores(
            function, items[start : start + MAX_HELD_RESULTS], parallel=parallel
        ):
            total += result
    return total


def blocks(count: int, step: int) -> list[slice]:
    """Consecutive slices of `step` rows that cover `count` rows; the last may reach
    beyond.
    """
    return [slice(start, start + step) for start in range(0, count, step)]


@cache
def _controller(with_scipy: bool) -> ThreadpoolController:
    """The BLAS libraries that are loaded: NumPy's and, once that is imported,
    SciPy's.
    """
    return ThreadpoolController()


class _OneBlasThread(ContextDecorator):
    """Limits BLAS to one thread while at least one caller is inside: the first sets the
    limit, the last lifts it.
    """

    def __init__(self) -> None:
        self.lock, self.depth, self.limits = Lock(), 0, ExitStack()

    def limit(self) -> None:
        """Limit every BLAS that is loaded now."""
        controller = _controller("scipy.linalg" in sys.modules)
        self.limits.enter_context(controller.limit(limits=1, user_api="blas"))

    def __enter__(self) -> None:
        with self.lock:
            if self.depth == 0:
                self.limit()
            self.depth += 1

    def __exit__(self, *_: object) -> None:
        with self.lock:
            self.depth -= 1
            if self.depth == 0:
                self.limits.close()


_blas_limit = _OneBlasThread()


def one_blas_thread() -> _OneBlasThread:
    """Limit BLAS to one thread, because rounding may depend on the number of threads.
    Nesting it costs nothing.
    """
    return _blas_limit


def load_scipy_blas() -> None:
    """Import `scipy.linalg`, which loads another BLAS; if BLAS is limited to one thread
    now, limit that one too.
    """
    if "scipy.linalg" not in sys.modules:
        with _blas_limit.lock:
            import_module("scipy.linalg")
            if _blas_limit.depth:
                _blas_limit.limit()


@contextmanager
def one_thread() -> Iterator[None]:
    """Use one thread for BLAS and kernels, here and in processes started in the block,
    which also keep freed memory.
    """
    settings = ONE_THREAD | MALLOC_SETTINGS
    before = {name: os.environ[name] for name in settings if name in os.environ}
    os.environ.update(MALLOC_SETTINGS | before | ONE_THREAD)
    try:
        with threadpool_limits(1):
            yield
    finally:
        for name in settings:
            os.environ.pop(name, None)
        os.environ.update(before)


def limit_permanently() -> None:
    """Limit BLAS to one thread for the life of this process; libraries loaded later
    read it from the environment.
    """
    threadpool_limits(1)
    _blas_limit.__enter__()
