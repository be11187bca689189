"""The command line: every file here that does not start with `_` is one command."""

from collections.abc import Sequence

__all__ = ["main"]


def main(args: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 done, 1 failed, 2 wrong usage, 130 stopped by Ctrl-C."""
    from imprint.cli._run import run

    return run(args)
