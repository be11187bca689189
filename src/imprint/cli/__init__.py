"""The command line. Every file in `commands` is one command; the other files are what
they share.
"""

import signal
import sys
from collections.abc import Sequence
from types import FrameType

__all__ = ["main"]

EXIT_INTERRUPTED = 130  # after Ctrl-C


def main(args: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 done, 1 some inputs failed, 2 wrong
    usage or input, 130 stopped.

    Without `args`, the command is that of this process, whose standard streams and
    handling of Ctrl-C it may change.
    """
    interrupted: list[int] = []
    try:
        if args is None:
            from imprint.cli.streams import prepare_streams

            prepare_streams()
            _note_interrupts(interrupted)
        from imprint.cli.run import run

        return run(args)
    except KeyboardInterrupt:  # also while libraries are imported
        return _stopped()
    except Exception:
        # Extension modules turn a KeyboardInterrupt into an ImportError or another one.
        if not interrupted:
            raise
        return _stopped()


def _note_interrupts(interrupted: list[int]) -> None:
    """Record each Ctrl-C in `interrupted`, unless this process ignores them."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        interrupted.append(number)
        signal.default_int_handler(number, frame)

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupt)


def _stopped() -> int:
    sys.stderr.write("Stopped.\n")
    return EXIT_INTERRUPTED
