"""The command line: every file here that does not start with `_` is one command."""

from collections.abc import Sequence

__all__ = ["main"]


def main(args: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 done, 1 some inputs failed, 2 wrong usage or input, 130 stopped."""
    from imprint.cli._run import run

    return run(args)
