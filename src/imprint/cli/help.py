"""The help of commands: options under the name of their task, in 80 columns.

An option names its section by `rich_help_panel`. Sections are lines of text, not boxes:
in 80 columns, a box and a column of types leave 30 for the meaning.
"""

import os
import sys
from copy import copy
from enum import Enum
from inspect import Parameter
from pathlib import Path
from types import NoneType
from typing import Any, get_args

from typer.core import TyperCommand, TyperGroup
from typer.models import ParameterInfo

OTHER_OPTIONS = "Options"  # without a section of their own, at the end
BOLD, CYAN, PLAIN = "\x1b[1m", "\x1b[36m", "\x1b[0m"
# what the help writes for a value whose option does not name it
PLACEHOLDERS = {str: "NAME", int: "N", float: "NUMBER", Path: "FILE"}


def with_placeholder(parameter: Parameter) -> Parameter:
    """The parameter of a command, with a word for its value in the help."""
    info = parameter.default
    if not isinstance(info, ParameterInfo) or info.metavar is not None:
        return parameter
    kinds = get_args(parameter.annotation) or (parameter.annotation,)
    kind = next((one for one in kinds if one is not NoneType), None)
    if isinstance(kind, type) and issubclass(kind, Enum):
        placeholder: str | None = "|".join(str(member.value) for member in kind)
    else:
        placeholder = PLACEHOLDERS.get(kind)  # type: ignore[arg-type]
    if placeholder is None:
        return parameter
    named = copy(info)
    named.metavar = placeholder
    return parameter.replace(default=named)


class CommandHelp(TyperCommand):
    """A command whose help lists options by task."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        arguments = [p for p in self.get_params(ctx) if is_argument(p)]
        return ["[OPTIONS]", *map(in_usage, arguments)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        write_sections(self, ctx, formatter)


class GroupHelp(TyperGroup):
    """A group of commands, in the order of their tasks."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        self.format_commands(ctx, formatter)
        write_sections(self, ctx, formatter)


def is_argument(parameter: Any) -> bool:
    """Whether a parameter is given by its place, and not by a name."""
    return bool(parameter.param_type_name == "argument")


def in_usage(argument: Any) -> str:
    """An argument in the line of usage, such as `[DATA]` or `INPUT...`."""
    name: str = argument.metavar or argument.name.upper()
    # a name such as "[FILE] POOL" says itself what may be left out
    states_how_many = name.startswith("[") or name.endswith("...")
    if argument.nargs != 1 and not states_how_many:
        name += "..."
    return name if argument.required or states_how_many else f"[{name}]"


def write_sections(command: Any, ctx: Any, formatter: Any) -> None:
    """The arguments of a command, then its options by task."""
    sections: dict[str, list[tuple[str, str]]] = {"Arguments": []}
    others = []
    for parameter in command.get_params(ctx):
        if parameter.hidden:
            continue
        if is_argument(parameter):
            name = parameter.metavar or parameter.name.upper()
            sections["Arguments"].append((name, parameter.help or ""))
            continue
        entry = option_entry(parameter, ctx)
        section = parameter.rich_help_panel
        if section is None:
            others.append(entry)
        else:
            sections.setdefault(section, []).append(entry)
    sections[OTHER_OPTIONS] = others
    for title, entries in sections.items():
        if entries:
            write_section(formatter, title, entries)


def write_section(formatter: Any, title: str, entries: list[tuple[str, str]]) -> None:
    """A title, in bold on a terminal, and names with their meanings below it."""
    formatter.write_paragraph()
    formatter.write(f"{coloured(f'{title}:', BOLD)}\n")
    formatter.indent()
    formatter.write_dl([(coloured(name, CYAN), text) for name, text in entries])
    formatter.dedent()


def coloured(text: str, colour: str) -> str:
    """A text in a colour, on a terminal whose user has not turned colours off."""
    if os.environ.get("NO_COLOR") or not sys.stdout.isatty():
        return text
    return f"{colour}{text}{PLAIN}"


def option_entry(option: Any, ctx: Any) -> tuple[str, str]:
    """An option as it is typed, and its meaning with its default."""
    short_first = sorted(option.opts, key=lambda name: name.startswith("--"))
    names = ", ".join(short_first)
    if option.secondary_opts:
        names += " / " + ", ".join(option.secondary_opts)
    if not option.is_flag and option.metavar:
        names += f" {option.metavar}"
    facts = []
    if option.envvar:
        facts.append(f"environment: {option.envvar}")
    default = default_of(option, ctx)
    if default:
        facts.append(f"default: {default}")
    if option.required:
        facts.append("required")
    meaning = option.help or ""
    return names, " ".join([meaning, *(f"[{fact}]" for fact in facts)])


def default_of(option: Any, ctx: Any) -> str:
    """The default of an option, in words; empty if it says nothing."""
    value = option.get_default(ctx, call=False)
    if value is None or value == "" or option.show_default is False:
        return ""
    if option.is_flag:
        has_two_names = bool(option.secondary_opts)
        names = option.opts if value else option.secondary_opts
        return names[0] if has_two_names else ""
    return f"{value:,}" if isinstance(value, int) else str(value)
