"""Run one command line and return its exit code; errors become one sentence here."""

import io
import os
import re
import sys
from collections.abc import Sequence
from importlib import import_module
from types import TracebackType
from typing import Any

import typer
from typer import Option
from typer.core import TyperGroup
from typer.main import get_command

from imprint import cli
from imprint.cli import _terminal
from imprint.core import __version__
from imprint.core.errors import ImprintError, UnreadableInput
from imprint.core.extras import clash, environment

SUMMARIES = {
    "add": "Add classes, or more inputs of known classes, to a model.",
    "card": "Write the model card of a model.",
    "check": "Find problems in labelled data.",
    "collapse": "Measure the neural collapse of a data set's embeddings.",
    "demo": "Demonstrate the methods on handwritten digits.",
    "embed": "Write the embeddings of a data set to a .npz file.",
    "evaluate": "Measure the accuracy of a model on labelled data.",
    "export": "Export a model for use without imprint.",
    "fit": "Fit a model to pictures, texts, sounds or embeddings.",
    "forget": "Remove a class from a model.",
    "list": "List backbones, data sets, recipes and other components.",
    "predict": "Classify pictures, texts, sounds or embeddings.",
    "serve": "Label examples and test a model on a page in the browser.",
    "study": "Run many experiments at once, and report on them.",
    "suggest": "Choose which unlabelled inputs to label next.",
    "watch": "Classify new files in a folder, and report drift.",
}
"""Every command, a module of this folder, and the first sentence of its docstring, which is its help."""
FAILED, REFUSED = 1, 2
"""Exit codes in addition to 0 and `cli.STOPPED`: some inputs failed; invalid usage or input."""
DEBUG = "--debug"
CONTEXT = {"help_option_names": ["-h", "--help"]}
UsageError: Any = typer.BadParameter.__base__  # typer does not export it


def run(args: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    words, debug = _without_debug(sys.argv[1:] if args is None else args)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # characters that the terminal's encoding does not have
    if not debug:
        sys.excepthook = _print_one_line
    try:
        return _call(words)
    except ImprintError as e:
        if debug:
            raise
        _terminal.fail(_with_options(str(e), words))
        return FAILED if isinstance(e, UnreadableInput) else REFUSED


def _without_debug(args: Sequence[str]) -> tuple[list[str], bool]:
    """Remove `--debug`, which may be anywhere before a `--`."""
    words = list(args)
    end = words.index("--") if "--" in words else len(words)
    others = [w for w in words[:end] if w != DEBUG]
    return others + words[end:], len(others) < end


def _call(words: list[str]) -> int:
    try:  # calling a Typer would set its own excepthook
        result = application().main(args=words, prog_name="imprint", standalone_mode=False)
        code = result if isinstance(result, int) else 0
    except SystemExit as e:
        code = e.code if isinstance(e.code, int) else FAILED
    except UsageError as e:
        _explain(e)
        code = REFUSED
    code = _flush(code)
    if code == cli.STOPPED:  # typer's exit code after Ctrl-C
        raise KeyboardInterrupt
    return code


def _explain(error: Any) -> None:
    """Print how a command is used and what is wrong with this use of it."""
    context, sentence = error.ctx, error.format_message()
    if type(error).__name__ == "NoArgsIsHelpError":
        sys.stderr.write(f"{context.get_help()}\n")
        return
    option: Any = getattr(error, "option_name", None)
    parameter: Any = getattr(error, "param", None)
    if context is not None:
        sys.stderr.write(f"{context.get_usage()}\nTry '{context.command_path} -h' for help.\n\n")
    if option in ("-o", "--output") and context is not None and "csv" in {p.name for p in context.command.params}:
        sentence = f"No such option: {option}. To write a table: {context.command_path} ... --csv > FILE"
    elif type(error).__name__ == "MissingParameter" and getattr(parameter, "help", None):
        option_name = parameter.opts[:1] if _is_option(parameter) else []
        name = " ".join(filter(None, [*option_name, parameter.metavar]))
        meaning = parameter.help.rstrip(".")
        sentence = f"{name} is missing: {meaning[:1].lower()}{meaning[1:]}"
    _terminal.fail(sentence if sentence.endswith("?") else f"{sentence.rstrip('.')}.")


def _is_option(parameter: Any) -> bool:
    """Whether a parameter of a command is written with dashes."""
    return str(parameter.opts[0]).startswith("-")


def _with_options(sentence: str, words: Sequence[str]) -> str:
    """An error in the terms of the command line: `--label-column` for `label_column`, `--level 3` for `level=3`."""
    name = next((word for word in words if word in SUMMARIES), None)
    options = [p.name for p in getattr(load_command(name), "params", ()) if _is_option(p)] if name else []
    sentence = re.sub(rf"^({'|'.join(options) or '-'})=(\w+): ", r"--\1 \2: ", sentence)
    names = [name for name in options if "_" in name]
    if not names:
        return sentence
    rule, known, listed = sentence.partition(" Known: ")  # known names stay, even if equal to that of a parameter
    parameters = re.compile(rf"\b({'|'.join(names)})\b(?!=)")
    return parameters.sub(lambda match: f"--{match[1].replace('_', '-')}", rule) + known + listed


def load_command(name: str) -> Any:
    """A command, or a group of commands, for typer."""
    from imprint.cli._options import expanded  # loads recipes

    module = import_module(f"imprint.cli.{name}")
    app = typer.Typer(add_completion=False, rich_markup_mode=None, no_args_is_help=True, help=module.__doc__)
    for function in getattr(module, "COMMANDS", None) or [module.command]:
        app.command(help=function.__doc__ or module.__doc__)(expanded(function))
    command = get_command(app)
    command.name = name
    return command


class _Group(TyperGroup):
    """All commands. A command is imported when it is used, so that others start fast."""

    def get_command(self, ctx: Any, name: str) -> Any:
        return load_command(name) if name in SUMMARIES else None

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(SUMMARIES.items()))


def application() -> Any:
    """The command `imprint`, a group of all commands."""
    app = typer.Typer(cls=_Group, no_args_is_help=True, rich_markup_mode=None, context_settings=CONTEXT)
    app.callback(invoke_without_command=True)(_main)
    group: Any = get_command(app)
    group.commands = dict.fromkeys(SUMMARIES)
    return group


def _main(
    context: typer.Context,
    version: bool = Option(False, "--version", help="Print the version."),
    verbose: bool = Option(False, "--verbose", help="With --version: print what a bug report needs."),
    debug: bool = Option(False, DEBUG, help="Show where an error comes from."),
) -> None:
    """Make classifiers from pictures, texts, sounds or embeddings, without training.

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


def _flush(code: int) -> int:
    """Flush standard output; a closed pipe (`imprint ... | head`) is not reported."""
    try:
        sys.stdout.flush()
        return code
    except OSError as e:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(e, BrokenPipeError):
            _terminal.fail(f"Cannot write to standard output: {e.strerror}.")
        return code or FAILED


def _print_one_line(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """One line instead of a traceback for an unexpected error."""
    if isinstance(error, OSError) and error.strerror:
        path = f"{error.filename}: " if error.filename else ""
        _terminal.fail(f"{path}{error.strerror}.")
    elif isinstance(error, MemoryError):
        _terminal.fail("There is not enough memory for this.")
    else:
        first = next(iter(str(error).splitlines()), "")
        if isinstance(error, ImportError) and (sentence := clash()) is not None:
            _terminal.note(sentence)
        _terminal.fail(f"{kind.__name__}: {first} (this may be a fault in imprint; {DEBUG} shows where)")
