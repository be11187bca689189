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
from typing import NamedTuple, TypeVar

from threadpoolctl import ThreadpoolController, threadpool_limits

T = TypeVar("T")
R = TypeVar("R")
ONE_THREAD = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
KEEP_MEMORY = {"MALLOC_TRIM_THRESHOLD_": str(2**28), "MALLOC_MMAP_THRESHOLD_": str(2**25)}
"""For the C library of Linux: arrays of one unit after another reuse memory, which need not be cleared again."""


class Policy(NamedTuple):
    """How the kernels of this process run."""

    compiled_from: float = 200_000
    """Multiplications from which a problem repays the import of numba."""
    one_blas_thread: bool = False
    """Whether BLAS is limited to one thread for the whole process."""


policy = Policy()
"""The policy of this process; `limit_for_good` replaces it."""


@cache
def numba_installed() -> bool:
    return find_spec("numba") is not None


def use_numba(work: float) -> bool:
    """Whether a problem of so many multiplications runs in compiled loops; if so, the BLAS that they call is loaded."""
    if work < policy.compiled_from or not numba_installed():
        return False
    load_scipy_blas()
    return True


def available_cpus() -> int:
    """CPUs that the system grants this process."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def cores() -> int:
    """CPUs that kernels use: those available, and no more than OMP_NUM_THREADS where that is set."""
    limit = os.environ.get("OMP_NUM_THREADS", "")
    return min(available_cpus(), int(limit)) if limit.isdigit() and int(limit) else available_cpus()


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


class _OneBlasThread:
    """Keeps BLAS to one thread while there are callers inside; the first sets the limit, the last lifts it."""

    def __init__(self) -> None:
        self.lock, self.depth, self.limits = Lock(), 0, ExitStack()

    def limit(self) -> None:
        """Limit every BLAS that is loaded now."""
        if not policy.one_blas_thread:
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
    """Keep BLAS to one thread: its rounding may depend on how many share a product. May be nested at no cost."""
    return _blas_limit


def load_scipy_blas() -> None:
    """Import `scipy.linalg`, which loads another BLAS, and limit that to one thread too where a limit is set."""
    if "scipy.linalg" not in sys.modules:
        with _blas_limit.lock:
            import_module("scipy.linalg")
            if _blas_limit.depth:
                _blas_limit.limit()


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
    """Keep BLAS to one thread for the life of this process; libraries loaded later find it in the environment."""
    global policy
    threadpool_limits(1)
    policy = policy._replace(one_blas_thread=True)
