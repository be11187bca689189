"""Loops that NumPy cannot express, compiled by numba; imported only where `kernels.cpu` says so."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

from imprint.core.digest import digest

F = TypeVar("F", bound=Callable[..., Any])
SOURCES = digest(file.read_bytes() for file in sorted(Path(__file__).parents[1].rglob("*.py")))[:16]


def jit(function: F, **options: Any) -> F:
    """Compile on first use, keep the machine code on disk, release the interpreter while running.

    numba names the file by the function. The digest of all kernels is added to the name, because numba notices neither
    that a function has changed which this one calls, nor that a class of its arguments has moved.
    """
    name = function.__qualname__
    function.__qualname__ = f"{name}-{SOURCES}"
    compiled = numba.njit(nogil=True, cache=True, error_model="numpy", **options)(function)
    function.__qualname__ = name
    return cast(F, compiled)


def jit_sums(function: F) -> F:
    """The same, where sums may be taken in several lanes: the order is fixed when compiled."""
    return jit(function, fastmath={"reassoc", "contract", "nsz", "nnan"})
