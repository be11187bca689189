"""The most memory that this process held, and how it is made in large amounts."""

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def reset_peak() -> None:
    """Forget the peak so far, where the system can; elsewhere `peak_memory` is that of the whole process."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_memory() -> int:
    """Most bytes of memory that this process held since `reset_peak`; 0 where it cannot be measured.

    >>> peak_memory() > 1_000_000
    True
    """
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    if sys.platform == "win32":
        return 0
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def physical_memory() -> int:
    """Bytes of memory that the machine has; 0 where the system does not tell."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 0


@contextmanager
def growing() -> Iterator[None]:
    """While millions of values are made that all stay, Python does not look among them for some to drop.

    It would look at all of them again and again, which takes as long as making them.
    """
    looking = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if looking:
            gc.enable()
