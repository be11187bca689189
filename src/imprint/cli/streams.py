"""The standard streams of a command, also where they are closed or a disk is full."""

import errno
import io
import os
import sys
from contextlib import suppress

from imprint.core.errors import FileError

__all__ = ["OutputError", "discard_output", "prepare_streams"]

STREAMS = ("stdin", "stdout", "stderr")  # by their file descriptors: 0, 1 and 2


class OutputError(FileError):
    """Standard output cannot be written."""


class _Output(io.TextIOWrapper):
    """Standard output. A failure to write it names it."""

    def write(self, text: str) -> int:
        try:
            return super().write(text)
        except OSError as e:
            raise _reported(e) from None

    def flush(self) -> None:
        try:
            super().flush()
        except OSError as e:
            raise _reported(e) from None


class _Messages(io.TextIOWrapper):
    """Standard error. A message that cannot be written is lost; the command goes on."""

    def write(self, text: str) -> int:
        with suppress(OSError):
            return super().write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            super().flush()


def _reported(error: OSError) -> OSError:
    """The error for standard output; a closed pipe (`imprint ... | head`) stays one."""
    if isinstance(error, BrokenPipeError):
        return error
    reason = "it is closed" if error.errno == errno.EBADF else error.strerror
    return OutputError(f"Cannot write to standard output: {reason}.")


def prepare_streams() -> None:
    """Replace the standard streams of this process by ones that fail in one sentence
    (output) or not at all (messages). Characters that their encoding lacks are escaped.
    """
    for descriptor, name in enumerate(STREAMS):
        if getattr(sys, name) is None:
            _open_closed(descriptor, name)
    for name, kind in (("stdout", _Output), ("stderr", _Messages)):
        stream = getattr(sys, name)
        if not isinstance(stream, io.TextIOWrapper):
            continue
        encoding = stream.encoding
        line_buffering = stream.line_buffering
        write_through = stream.write_through
        # The replaced stream would close the shared buffer when it is collected.
        buffer = stream.detach()
        replacement = kind(
            buffer, encoding, "backslashreplace", None, line_buffering, write_through
        )
        setattr(sys, name, replacement)
        setattr(sys, f"__{name}__", replacement)


def _open_closed(descriptor: int, name: str) -> None:
    """Open a stream that the caller closed.

    Otherwise the next file that is opened, such as a model, would get its descriptor,
    and what a library writes to standard output or error would end in that file.
    Reading the input and writing the output fail, as with a closed descriptor.
    Messages are discarded.
    """
    flags = {0: os.O_WRONLY, 1: os.O_RDONLY, 2: os.O_WRONLY}[descriptor]
    handle = os.open(os.devnull, flags)
    mode = "r" if descriptor == 0 else "w"
    setattr(sys, name, os.fdopen(handle, mode, encoding="utf-8"))


def discard_output() -> None:
    """Discard what is still in the buffer of standard output. Otherwise Python would
    try to write it once more when it exits, and fail with exit code 120.
    """
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
