"""Run one command line and return its exit code; errors become one sentence here."""

import re
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any

import typer
from typer import Option
from typer.main import get_command

from imprint import cli
from imprint.cli import terminal
from imprint.cli.help import CommandHelp, GroupHelp, write_section
from imprint.cli.streams import OutputError, discard_output
from imprint.core import __version__
from imprint.core.errors import ImprintError, UnreadableInput
from imprint.core.extras import conflict_warning, environment

FILES = sorted(Path(__file__).with_name("commands").glob("[!_]*.py"))
SUMMARIES = {
    file.stem: file.read_text("utf-8").partition("\n")[0].strip('"') for file in FILES
}
"""Every command, and the first line of its file: the first sentence of its help."""
TASKS = {
    "Start here": ("demo", "sample", "serve"),
    "Make a model": ("fit", "add", "forget", "rename", "merge", "split"),
    "Use a model": ("predict", "evaluate", "watch", "api", "export"),
    "Pass a model on": ("card", "share"),
    "Improve the data": ("check", "suggest"),
    "Experiments": ("embed", "collapse", "study", "list"),
}
"""The commands in the order of the help. A test checks that each is in one task."""
EXIT_FAILURE, EXIT_USAGE = 1, 2
"""Exit codes besides 0 and `cli.EXIT_INTERRUPTED`: some inputs failed; invalid usage or
input.
"""
DEBUG = "--debug"
UsageError: Any = typer.BadParameter.__base__  # typer does not export it


def run(args: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    words = list(sys.argv[1:] if args is None else args)
    end = words.index("--") if "--" in words else len(words)
    debug = DEBUG in words[:end]  # it may be anywhere before a `--`
    words = [word for word in words[:end] if word != DEBUG] + words[end:]
    if not debug:
        sys.excepthook = _print_one_line
    try:  # calling a Typer would set its own excepthook
        code = (
            application().main(args=words, prog_name="imprint", standalone_mode=False)
            or 0
        )
    except UsageError as e:
        _print_usage_error(e)
        return EXIT_USAGE
    except OutputError as e:
        discard_output()
        terminal.fail(str(e))
        return EXIT_FAILURE
    except UnicodeEncodeError as e:
        # Surrogates have no UTF-8 in any locale, which would be a fault of imprint.
        if debug or e.encoding.lower().replace("-", "") == "utf8":
            raise
        terminal.fail(_unencodable(e))
        return EXIT_USAGE
    except ImprintError as e:
        if debug:
            raise
        terminal.fail(_in_cli_terms(str(e), words))
        is_failure = isinstance(e, UnreadableInput | MemoryError)
        return EXIT_FAILURE if is_failure else EXIT_USAGE
    if code == cli.EXIT_INTERRUPTED:  # typer's exit code after Ctrl-C
        raise KeyboardInterrupt
    try:
        sys.stdout.flush()
    except OSError as e:
        discard_output()
        # a closed pipe (`imprint ... | head`) is not reported
        if not isinstance(e, BrokenPipeError):
            terminal.fail(str(e))
        code = code or EXIT_FAILURE
    return int(code)


def _print_usage_error(error: Any) -> None:
    """Print how a command is used and what is wrong with this use of it."""
    context, kind = error.ctx, type(error).__name__
    sentence = error.format_message().rstrip(".")
    if kind == "NoArgsIsHelpError":
        sys.stderr.write(f"{context.get_help()}\n")
        return
    parameter, option = (
        getattr(error, "param", None),
        getattr(error, "option_name", None),
    )
    if context is not None:  # it is None if an option lacks its value
        sys.stderr.write(
            f"{context.get_usage()}\nTry '{context.command_path} -h' for help.\n\n"
        )
        if option in ("-o", "--output") and "csv" in {
            p.name for p in context.command.params
        }:
            sentence = (
                f"No such option: {option}. To write a table: {context.command_path}"
                " ... --csv > FILE"
            )
    if kind == "MissingParameter" and parameter is not None:
        option_name = (
            parameter.opts[:1] if parameter.param_type_name == "option" else []
        )
        name = " ".join(filter(None, [*option_name, parameter.metavar]))
        sentence = (
            f"{name} is missing:"
            f" {parameter.help[:1].lower()}{parameter.help[1:].rstrip('.')}"
        )
    terminal.fail(sentence if sentence.endswith("?") else f"{sentence}.")


def _in_cli_terms(sentence: str, words: Sequence[str]) -> str:
    """An error in the terms of the command line: `--level 3` for `level=3`,
    `--label-column` for `label_column`.
    """
    name = next((word for word in words if word in SUMMARIES), None)
    command = load_command(name) if name else None
    commands = [command, *getattr(command, "commands", {}).values()] if command else []
    parameters = [parameter for command in commands for parameter in command.params]
    options = {p.name: p.opts[0] for p in parameters if p.param_type_name == "option"}
    if not options:
        return sentence
    # known names stay, even if equal to that of a parameter
    rule, known, listed = sentence.partition(" Known: ")
    call = rf"^(?:\w+\((?:.*, )?)?({'|'.join(options)})='?(.*?)'?\)?: "
    rule = re.sub(call, lambda match: f"{options[match[1]]} {match[2]}: ", rule)
    for parameter in (name for name in options if "_" in name):
        rule = re.sub(rf"\b{parameter}\b(?!=)", options[parameter], rule)
    return rule + known + listed


def load_command(name: str) -> Any:
    """A command, or a group of commands, for typer."""
    from imprint.cli.options import expand_groups  # loads recipes

    module = import_module(f"imprint.cli.commands.{name}")
    app = typer.Typer(
        cls=GroupHelp,
        add_completion=False,
        rich_markup_mode=None,
        no_args_is_help=True,
        help=module.__doc__,
    )
    for function in getattr(module, "COMMANDS", None) or [module.command]:
        register = app.command(cls=CommandHelp, help=function.__doc__ or module.__doc__)
        register(expand_groups(function))
    command = get_command(app)
    command.name = name
    return command


class _Group(GroupHelp):
    """All commands. A command is imported when it is used, so that others start
    fast.
    """

    def get_command(self, ctx: Any, name: str) -> Any:
        return load_command(name) if name in SUMMARIES else None

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        for task, names in TASKS.items():
            entries = [(name, SUMMARIES[name]) for name in names]
            write_section(formatter, task, entries)


def application() -> Any:
    """The command `imprint`, a group of all commands."""
    context = {"help_option_names": ["-h", "--help"]}
    app = typer.Typer(
        cls=_Group,
        no_args_is_help=True,
        rich_markup_mode=None,
        context_settings=context,
    )
    app.callback(invoke_without_command=True)(_main)
    group: Any = get_command(app)
    group.commands = dict.fromkeys(SUMMARIES)
    return group


def _main(
    context: typer.Context,
    version: bool = Option(False, "--version", help="Print the version."),
    verbose: bool = Option(
        False, "--verbose", help="With --version: print what a bug report needs."
    ),
    debug: bool = Option(False, DEBUG, help="Show where an error comes from."),
) -> None:
    """Make classifiers from images, texts, sounds or embeddings, without training.

    Start with `imprint demo`, or with a folder that has one sub-folder of images per
    class:

    \b
      imprint fit photos/ -o model.imprint
      imprint predict model.imprint new.jpg
    """
    if version:
        terminal.write(f"imprint {__version__}\n" + (environment() if verbose else ""))
        terminal.note(conflict_warning())
        raise typer.Exit
    if verbose:
        raise typer.BadParameter(
            "it goes with --version.", context, param_hint="--verbose"
        )
    if context.invoked_subcommand is None:
        raise typer.BadParameter(
            "name a command; `imprint --help` lists them.",
            context,
            param_hint="COMMAND",
        )


def _print_one_line(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """One line instead of a traceback for an unexpected error."""
    if isinstance(error, OSError) and error.strerror:
        path = f"{error.filename}: " if error.filename else ""
        terminal.fail(f"{path}{error.strerror}.")
    elif isinstance(error, MemoryError):
        terminal.fail("There is not enough memory for this.")
    else:
        if isinstance(error, ImportError):
            terminal.note(conflict_warning())
        first = str(error).partition("\n")[0]
        terminal.fail(
            f"{kind.__name__}: {first} (this may be a fault in imprint; {DEBUG} shows"
            " where)"
        )


def _unencodable(error: UnicodeEncodeError) -> str:
    """The sentence about a file name that the encoding of the file system lacks."""
    name = terminal.printable(error.object.rpartition("/")[2])
    return (
        f"The locale's encoding, {error.encoding}, has no name for the file {name}:"
        " set PYTHONUTF8=1, or a locale such as LC_ALL=C.UTF-8."
    )
