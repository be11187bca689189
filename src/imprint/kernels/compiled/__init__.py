"""Loops that NumPy cannot express, compiled by numba; imported only where `kernels.cpu` says so."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])


def jit(function: F) -> F:
    """Compile on first use, keep on disk, release the interpreter while running."""
    return cast(F, numba.njit(nogil=True, cache=True, error_model="numpy")(function))


def jit_sums(function: F) -> F:
    """The same, where sums may be taken in several lanes: the order is fixed when compiled."""
    flags = {"reassoc", "contract", "nsz", "nnan"}
    return cast(F, numba.njit(nogil=True, cache=True, error_model="numpy", fastmath=flags)(function))
