"""Which engine runs a kernel, NumPy alone or loops compiled by numba, and on how many threads."""

import os
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import TypeVar

from threadpoolctl import ThreadpoolController, threadpool_limits

T = TypeVar("T")
R = TypeVar("R")
_limited: list[bool] = []
COMPILED_FROM = 200_000
"""Multiplications from which compiled loops repay the import of numba."""


@cache
def numba_installed() -> bool:
    return find_spec("numba") is not None


def compiled(work: float) -> bool:
    """Whether a problem of so many multiplications runs in compiled loops."""
    return work >= COMPILED_FROM and numba_installed()


def loaded() -> bool:
    """Whether compiled loops cost no import any more; for kernels whose engines agree bit for bit."""
    return "numba" in sys.modules


def cores() -> int:
    """Cores this process may use: those the system grants, and no more than OMP_NUM_THREADS where that is set."""
    granted = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return min(granted, int(asked)) if asked.isdigit() and int(asked) else granted


def on_all_cores(function: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """Results of a function that releases the interpreter, in the order of the items; several at a time."""
    count = cores()
    if count == 1:
        return [function(item) for item in items]
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(function, items))


@cache
def _controller() -> ThreadpoolController:
    import_module("scipy.linalg")  # compiled loops use its BLAS, which can be limited once it is loaded
    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[object]:
    """Keep BLAS to one thread: its rounding may depend on how many share a product."""
    if _limited:
        return nullcontext()
    limit: AbstractContextManager[object] = _controller().limit(limits=1, user_api="blas")
    return limit


def limit_for_good() -> None:
    """Keep BLAS to one thread as long as this process lives; libraries loaded later find that in the environment."""
    threadpool_limits(1)
    _limited.append(True)
