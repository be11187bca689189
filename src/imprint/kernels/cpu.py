"""How a kernel runs: as NumPy alone or in loops compiled by numba, and on how many
threads.
"""

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ContextDecorator, ExitStack
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from threading import Lock
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController, threadpool_limits

T = TypeVar("T")
R = TypeVar("R")
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
    """CPUs that kernels use: one within `one_thread`, otherwise those available, at
    most OMP_NUM_THREADS if that is set.
    """
    if _thread_limit.depth:
        return 1
    limit = os.environ.get("OMP_NUM_THREADS", "")
    return (
        min(available_cpus(), int(limit))
        if limit.isdigit() and int(limit)
        else available_cpus()
    )


def on_all_cores(
    function: Callable[[T], R],
    items: Iterable[T],
    *,
    parallel: bool = True,
) -> list[R]:
    """The results of a function that releases the GIL, in the order of the items, with
    one BLAS thread per call.
    """
    threads = cores()
    inputs = list(items)
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
            function,
            items[start : start + MAX_HELD_RESULTS],
            parallel=parallel,
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


class _OneThread(ContextDecorator):
    """Limits libraries to one thread while at least one caller is inside: the first
    sets the limit, the last lifts it, in whatever order they leave.
    """

    def __init__(self, user_api: str | None) -> None:
        self.user_api = user_api  # None: every library with threads
        self.lock = Lock()
        self.depth = 0
        self.limits = ExitStack()

    def limit(self) -> None:
        """Limit every library that is loaded now."""
        controller = _controller("scipy.linalg" in sys.modules)
        self.limits.enter_context(controller.limit(limits=1, user_api=self.user_api))

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


_blas_limit = _OneThread("blas")
_thread_limit = _OneThread(None)


def one_blas_thread() -> _OneThread:
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


def one_thread() -> _OneThread:
    """Use one thread for BLAS, OpenMP and kernels in this process.

    The environment stays as it is: it belongs to the whole process, and blocks of
    several threads overlap.
    """
    return _thread_limit


def limit_permanently() -> None:
    """Use one thread for the life of this process, also in a BLAS loaded later."""
    threadpool_limits(1)
    _blas_limit.__enter__()
    _thread_limit.__enter__()
