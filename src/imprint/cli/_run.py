"""From words on the command line to an exit code; the one place where errors become sentences."""

import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pkgutil import iter_modules
from types import TracebackType
from typing import Annotated

import typer
from typer.main import get_command

from imprint import cli
from imprint.cli import _terminal
from imprint.core.errors import ImprintError, UnreadableInput
from imprint.core.extras import clash
from imprint.core.version import __version__, environment

FAILED, REFUSED = 1, 2
"""Exit codes besides 0 and `cli.STOPPED`: something failed although it was asked for rightly, wrong usage or input."""
DEBUG = "--debug"


def run(args: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    words, debug = _without_debug(sys.argv[1:] if args is None else args)
    _write_anything()
    if not debug:
        sys.excepthook = _one_line
    try:
        return _call(words)
    except ImprintError as e:
        if debug:
            raise
        _terminal.fail(str(e))
        return FAILED if isinstance(e, UnreadableInput) else REFUSED


def _call(words: list[str]) -> int:
    code = 0
    try:
        get_command(application())(args=words, prog_name="imprint")  # calling a Typer would set its own excepthook
    except SystemExit as e:
        code = e.code if isinstance(e.code, int) else FAILED
    code = _flush(code)
    if code == cli.STOPPED:  # how typer ends a command after Ctrl-C
        raise KeyboardInterrupt
    return code


def application() -> typer.Typer:
    """All commands found in this folder: `command` is a function, `app` a group of several."""
    app = typer.Typer(
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(invoke_without_command=True)(_whole)
    for name in sorted(m.name for m in iter_modules(cli.__path__) if not m.name.startswith("_")):
        module = import_module(f"imprint.cli.{name}")
        if hasattr(module, "app"):
            app.add_typer(module.app, name=name)
        else:
            app.command(name)(module.command)
    return app


def _whole(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="With --version: print what a bug report needs.", show_default=False)
    ] = False,
    debug: Annotated[bool, typer.Option(DEBUG, help="Show where an error comes from.")] = False,
) -> None:
    """Make classifiers from pictures, texts or embeddings, without training.

    Start with `imprint demo`, or with a folder that has one sub-folder of pictures per class:

    \b
      imprint fit photos/ -o model.imprint
      imprint predict model.imprint new.jpg
    """
    if version:
        _terminal.write(f"imprint {__version__}\n" + (environment() if verbose else ""))
        if (sentence := clash()) is not None:
            _terminal.note(sentence)
        raise typer.Exit
    if verbose:
        raise typer.BadParameter("it goes with --version.", context, param_hint="--verbose")
    if context.invoked_subcommand is None:
        raise typer.BadParameter("name a command; `imprint --help` lists them.", context, param_hint="COMMAND")


def _without_debug(args: Sequence[str]) -> tuple[list[str], bool]:
    """`--debug` may stand anywhere before a `--`."""
    words = list(args)
    end = words.index("--") if "--" in words else len(words)
    kept = [w for w in words[:end] if w != DEBUG]
    return kept + words[end:], len(kept) < end


def _write_anything() -> None:
    """A name that the terminal's encoding cannot show is escaped, not fatal."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _flush(code: int) -> int:
    """Write what is left; whoever reads may have gone (`imprint ... | head`), which is no news."""
    try:
        sys.stdout.flush()
        return code
    except OSError as e:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(e, BrokenPipeError):
            _terminal.fail(f"Cannot write to standard output: {e.strerror}.")
        return code or FAILED


def _one_line(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """What Python prints for an error that nobody foresaw: a sentence in the place of a traceback."""
    if isinstance(error, OSError) and error.strerror:
        place = f"{error.filename}: " if error.filename else ""
        _terminal.fail(f"{place}{error.strerror}.")
    elif isinstance(error, MemoryError):
        _terminal.fail("There is not enough memory for this.")
    else:
        first = next(iter(str(error).splitlines()), "")
        if isinstance(error, ImportError) and (sentence := clash()) is not None:
            _terminal.note(sentence)
        _terminal.fail(f"{kind.__name__}: {first} (this may be a fault in imprint; {DEBUG} shows where)")
