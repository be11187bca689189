"""Peak memory of this process, memory of the machine, garbage collection, and how much
is decoded at once.
"""

import ctypes
import gc
import mmap
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Condition, local

from imprint.core.errors import OutOfMemoryError

# pixels of an image after which freed memory is returned to the system; it takes
# milliseconds, less than decoding so many
LARGE_IMAGE = 1 << 22
# Of the GNU C library (malloc.h): how much free memory stays at the end of the heap,
# and from which size on an array has a mapping of its own, which is returned when it is
# freed. Each with the environment variable by which users set it.
MALLOC_PARAMETERS = (
    ("MALLOC_TRIM_THRESHOLD_", -1, 2**28),
    ("MALLOC_MMAP_THRESHOLD_", -3, 2**25),
)


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


def usable_memory() -> int:
    """Memory that this process may use in bytes: that of the machine, or the limit of
    its container; 0 if it cannot be measured.
    """
    machine = physical_memory()
    with suppress(OSError, ValueError):  # "max" without a limit
        limit = int(Path("/sys/fs/cgroup/memory.max").read_text())
        return min(machine or limit, limit)
    return machine


def require_memory(size: int, what: str) -> None:
    """Refuse what needs so many bytes if the system does not grant them now.

    For libraries that end the process where memory is missing. The bytes are only
    asked for, not used, which takes microseconds.

    Parameters
    ----------
    size : int
        How many bytes.
    what : str
        What needs them, as the beginning of a sentence.
    """
    if not hasattr(mmap, "MAP_ANONYMOUS"):  # Windows
        return
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    try:
        mmap.mmap(-1, size, flags=flags).close()
    except (OSError, MemoryError):
        raise OutOfMemoryError(
            f"{what}: less than {size >> 20} MB of memory are left."
        ) from None


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


def release_memory() -> None:
    """Return freed memory to the system, where the C library can: without it, the
    blocks of large images that several threads have freed stay with the process.
    """
    with suppress(OSError, AttributeError, TypeError):  # only in the GNU C library
        ctypes.CDLL(None).malloc_trim(0)


def keep_freed_memory() -> None:
    """Let the C library of Linux keep freed memory and use it again, for the life of
    this process: large arrays that come and go are then not cleared each time.
    """
    with suppress(OSError, AttributeError, TypeError):  # only in the GNU C library
        mallopt = ctypes.CDLL(None).mallopt
        for variable, parameter, size in MALLOC_PARAMETERS:
            if variable not in os.environ:  # a user's own setting
                mallopt(parameter, size)


class DecodingBudget:
    """Limits the pixels of the images that threads hold at the same time while they
    decode and prepare them, and with them the memory.

    Parameters
    ----------
    limit : int
        Maximum number of pixels. A larger image is decoded alone.
    """

    def __init__(self, limit: int):
        self.limit = limit
        self.used = 0
        self._largest = 0  # since memory was last returned
        self._changed = Condition()
        self._thread = local()

    @contextmanager
    def holding(self) -> Iterator[None]:
        """A block in which this thread decodes one image; its pixels count until the
        outermost such block ends.
        """
        if getattr(self._thread, "is_holding", False):
            yield
            return
        self._thread.is_holding = True
        self._thread.pixels = 0
        try:
            yield
        finally:
            self._thread.is_holding = False
            self._give_back(self._thread.pixels)

    def take(self, pixels: int) -> None:
        """Wait until an image of so many pixels fits next to those being decoded.

        Without a block, nothing says when the image is dropped, so it does not count. A
        thread that holds an image already does not wait, so no two wait for each other.
        """
        if not getattr(self._thread, "is_holding", False):
            return
        with self._changed:
            if not self._thread.pixels:
                self._changed.wait_for(
                    lambda: not self.used or self.used + pixels <= self.limit
                )
            self.used += pixels
            self._largest = max(self._largest, pixels)
        self._thread.pixels += pixels

    def _give_back(self, pixels: int) -> None:
        if not pixels:
            return
        with self._changed:
            self.used -= pixels
            self._changed.notify_all()
            returns_memory = not self.used and self._largest >= LARGE_IMAGE
            if returns_memory:
                self._largest = 0
        if returns_memory:
            release_memory()
