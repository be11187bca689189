"""Loops that NumPy cannot express, compiled by numba; imported only if
`kernels.cpu.use_numba` returns True.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

from imprint.core.arrays import digest

F = TypeVar("F", bound=Callable[..., Any])
SOURCES = digest(
    file.read_bytes() for file in sorted(Path(__file__).parents[1].rglob("*.py"))
)[:16]


def jit(function: F, **options: Any) -> F:
    """Compile on first use, cache the machine code on disk, and release the GIL while
    running.

    numba names the cache file by the function. The digest of all kernels is added to
    the name, because numba does not notice that a called function has changed, or that
    a class of an argument has moved.
    """
    name = function.__qualname__
    function.__qualname__ = f"{name}-{SOURCES}"
    compiled = numba.njit(nogil=True, cache=True, error_model="numpy", **options)(
        function
    )
    function.__qualname__ = name
    return cast(F, compiled)


def jit_sums(function: F) -> F:
    """The same, for sums that may be vectorised; their order is fixed when the function
    is compiled.
    """
    return jit(function, fastmath={"reassoc", "contract", "nsz", "nnan"})
