"""The command line. Every file in `commands` is one command; the other files are what
they share.
"""

import sys
from collections.abc import Sequence

__all__ = ["main"]

EXIT_INTERRUPTED = 130  # after Ctrl-C


def main(args: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 done, 1 some inputs failed, 2 wrong
    usage or input, 130 stopped.
    """
    try:
        from imprint.cli.run import run

        return run(args)
    except KeyboardInterrupt:  # also while libraries are imported
        sys.stderr.write("Stopped.\n")
        return EXIT_INTERRUPTED
