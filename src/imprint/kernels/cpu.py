"""How a kernel runs: as NumPy alone or in loops compiled by numba, and on how many threads."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from threading import Lock
from typing import TypeVar

from threadpoolctl import ThreadpoolController, threadpool_limits

T = TypeVar("T")
R = TypeVar("R")
_limited: list[bool] = []
ONE_THREAD = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
KEEP_MEMORY = {"MALLOC_TRIM_THRESHOLD_": str(2**28), "MALLOC_MMAP_THRESHOLD_": str(2**25)}
"""For the C library of Linux: arrays of one unit after another use the same memory, which need not be cleared anew."""
COMPILED_FROM = 200_000
"""Multiplications from which compiled loops repay the import of numba."""


@cache
def numba_installed() -> bool:
    return find_spec("numba") is not None


def compiled(work: float) -> bool:
    """Whether a problem of so many multiplications runs in compiled loops; if so, the BLAS that they call is loaded."""
    if work < COMPILED_FROM or not numba_installed():
        return False
    load_scipy_blas()
    return True


def loaded() -> bool:
    """Whether compiled loops cost no import any more; for kernels where both ways agree bit for bit."""
    return sys.modules.get("numba") is not None


def granted() -> int:
    """Cores that the system grants this process."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def cores() -> int:
    """Cores that kernels use: those granted, and no more than OMP_NUM_THREADS where that is set."""
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return min(granted(), int(asked)) if asked.isdigit() and int(asked) else granted()


def on_all_cores(function: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """Results of a function that releases the interpreter, in the order of the items; several at a time."""
    count, todo = cores(), list(items)
    if count == 1 or len(todo) < 2:
        return [function(item) for item in todo]
    with ThreadPoolExecutor(min(count, len(todo))) as pool:
        return list(pool.map(function, todo))


@cache
def _controller(with_scipy: bool) -> ThreadpoolController:
    """The BLAS libraries that are loaded: NumPy's and, once that is imported, SciPy's."""
    return ThreadpoolController()


class _Held:
    """How many callers want one thread at the moment; the first sets the limit, the last lifts it."""

    def __init__(self) -> None:
        self.lock, self.depth, self.limits = Lock(), 0, ExitStack()

    def limit(self) -> None:
        """Keep every BLAS that is loaded to one thread until the last caller has gone."""
        if not _limited:
            loaded = _controller("scipy.linalg" in sys.modules)
            self.limits.enter_context(loaded.limit(limits=1, user_api="blas"))


_held = _Held()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep BLAS to one thread: its rounding may depend on how many share a product. May be nested at no cost."""
    with _held.lock:
        if _held.depth == 0:
            _held.limit()
        _held.depth += 1
    try:
        yield
    finally:
        with _held.lock:
            _held.depth -= 1
            if _held.depth == 0:
                _held.limits.close()


def load_scipy_blas() -> None:
    """Import `scipy.linalg`, which brings a BLAS of its own; one thread is kept to there as well where it is wanted."""
    if "scipy.linalg" not in sys.modules:
        with _held.lock:
            import_module("scipy.linalg")
            if _held.depth:
                _held.limit()


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread of BLAS and of kernels, here and in processes started meanwhile, which also keep freed memory."""
    before = {name: os.environ.get(name) for name in ONE_THREAD | KEEP_MEMORY}
    os.environ.update(KEEP_MEMORY | os.environ | ONE_THREAD)
    try:
        with threadpool_limits(1):
            yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def limit_for_good() -> None:
    """Keep BLAS to one thread as long as this process lives; libraries loaded later find that in the environment."""
    threadpool_limits(1)
    _limited.append(True)
