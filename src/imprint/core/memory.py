"""Peak memory of this process, memory of the machine, and garbage collection."""

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def reset_peak() -> None:
    """Reset the peak if the system can; otherwise `peak_memory` counts from the start
    of the process.
    """
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_memory() -> int:
    """Peak memory of this process in bytes since `reset_peak`; 0 if it cannot be
    measured.
    """
    with suppress(OSError, IndexError):
        return 1024 * int(
            Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]
        )
    with suppress(ImportError):  # not on Windows
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (
            1 if sys.platform == "darwin" else 1024
        )
    return 0


def physical_memory() -> int:
    """Memory of the machine in bytes; 0 if it cannot be measured."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 0


@contextmanager
def without_collection() -> Iterator[None]:
    """Disable cyclic garbage collection while many objects are allocated that all stay
    alive.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
