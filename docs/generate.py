"""Write the reference pages from the code: `python docs/generate.py`. A test checks that they are current."""

import inspect
import runpy
from collections.abc import Iterator
from dataclasses import Field, fields
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from imprint import backbones, datasets, recipes
from imprint.cli.run import SUMMARIES, application, load_command
from imprint.core.component import Family, rule

FOLDER = Path(__file__).resolve().parent / "reference"
api = runpy.run_path(str(FOLDER.parent / "api.py"))
NOTES = FOLDER.parent / "examples" / "commands.md"
"""What the page of commands says about all of them: written by hand."""
NOTE = "<!-- Written by docs/generate.py from the code: change the code, then run `make docs`. -->"
FAMILIES = {
    "generators": "How the proxies of a class are computed from its embeddings.",
    "normalisers": "How embeddings (`norm_pre`), proxies (`norm_post`) and queries (`norm_inf`) are scaled.",
    "aggregators": "How proxies score the classes of a query.",
    "tasks": "Which rows take part, under which labels.",
}


def table(header: str, rows: list[list[str]]) -> Iterator[str]:
    """A Markdown table and an empty line; nothing for no rows."""
    if rows:
        columns = header.split(", ")
        yield from ("| " + " | ".join(columns) + " |", "|" + "---|" * len(columns))
        yield from (
            "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"
            for row in rows
        )
        yield ""


def prose(text: str | None) -> Iterator[str]:
    """Paragraphs of a docstring, each on one line; what is indented becomes a block of code."""
    for part in inspect.cleandoc((text or "").replace("\b\n", "")).split("\n\n"):
        if part.startswith("  "):
            yield from ("```sh", inspect.cleandoc(part), "```", "")
        elif part:
            yield from (" ".join(part.split()), "")


# Components


def parameter(f: Field[Any]) -> list[str]:
    return [f"`{f.name}`", f"`{f.default!r}`", rule(f), f.metadata["doc"]]


def family_section(name: str) -> Iterator[str]:
    """Every member of a family: its text, its docstring and its parameters."""
    family: Family[Any] = import_module(f"imprint.{name}").family
    yield from (f"## {name.capitalize()}", "", FAMILIES[name], "")
    for member, cls in zip(family.names(), family):
        yield from (f"### `{member}`", "")
        yield from prose(cls.__doc__)
        yield from table(
            "parameter, default, takes, meaning", [parameter(f) for f in fields(cls)]
        )


def recipe_section() -> Iterator[str]:
    yield from (
        "## Recipes",
        "",
        "Methods by name, for `recipe(NAME)` and `--recipe NAME`.",
        "",
    )
    for name in recipes.names():
        about = recipes.describe(name)
        yield from (
            f"### `{name}`",
            "",
            f"{about.title}: `{' / '.join(about.parts().values())}`",
            "",
        )
        yield from (f"{about.citation} {about.differs}", "")


def backbone_section() -> Iterator[str]:
    found = {name: backbones.record(name) for name in backbones.names()}
    rows = [
        [
            f"`{n}`",
            r.modality,
            str(r.width),
            input_of(r),
            r.pretraining or "",
            r.licence or "unknown",
        ]
        for n, r in found.items()
    ]
    also = ", ".join(
        f"`{prefix}:{what}`" for prefix, what in backbones.PREFIXES.items()
    )
    yield from (
        "## Backbones",
        "",
        f"By name; also {also}. [More about backbones](../backbones.md).",
        "",
    )
    yield from table("name, reads, width, input, pre-training, licence", rows)


def input_of(record: backbones.Record) -> str:
    """How much a network sees at a time."""
    if record.tokens is not None:
        return f"{record.tokens} tokens"
    size = record.input_size
    return f"{record.seconds} s" if size is None else " x ".join(map(str, size))


def dataset_section() -> Iterator[str]:
    found = {name: datasets.record(name) for name in datasets.names()}
    rows = [
        [
            f"`{n}`",
            r.modality,
            str(r.classes),
            f"{r.train:,} + {r.test:,}",
            r.title,
            r.licence,
        ]
        for n, r in found.items()
    ]
    yield from (
        "## Data sets",
        "",
        "By name; folders and files too. [More about data sets](../datasets.md).",
        "",
    )
    yield from table("name, inputs, classes, rows, title, licence", rows)


def components() -> str:
    """The page with everything that has a name."""
    lines = [
        "# Components",
        "",
        NOTE,
        "",
        "What `imprint list` prints, with every parameter, and the tasks.",
        "",
    ]
    for name in ("generators", "normalisers", "aggregators"):
        lines += family_section(name)
    lines += [
        *recipe_section(),
        *family_section("tasks"),
        *backbone_section(),
        *dataset_section(),
    ]
    return "\n".join(lines).rstrip() + "\n"


# Commands
# The parameters are Any: newer releases of Typer carry a Click of their own.


def names(p: Any) -> str:
    """How a parameter is written: `FOLDER`, or `--output FILE`, `-o`."""
    if p.param_type_name == "argument":
        return f"`{(p.metavar or p.name.upper()).rstrip('.')}{'...' if p.nargs == -1 else ''}`"
    value = "" if p.is_flag else f" {p.metavar or p.name.upper()}"
    return ", ".join(
        f"`{o}{value if o.startswith('--') else ''}`"
        for o in (*p.opts, *p.secondary_opts)
    )


def option(p: Any) -> list[str]:
    default = p.opts[0] if p.default is True else p.default
    shown = (
        "required"
        if p.required
        else ""
        if default in (None, False, "")
        else f"`{default}`"
    )
    return [names(p), getattr(p, "help", "") or "", shown]


def command_section(path: str, command: Any) -> Iterator[str]:
    """A command, or every command of a group."""
    for name in sorted(getattr(command, "commands", ())):
        yield from command_section(f"{path} {name}", command.commands[name])
    if not hasattr(command, "commands"):
        words = [
            names(p).strip("`")
            for p in command.params
            if p.param_type_name == "argument"
        ]
        yield from (
            f"## `{path}`",
            "",
            "```",
            " ".join([path, *words, "[OPTIONS]"]),
            "```",
            "",
        )
        yield from prose(command.help)
        yield from table(
            "option, meaning, default", [option(p) for p in command.params]
        )


def commands() -> str:
    """The page with every command and option."""
    whole = application()
    lines = ["# Commands", "", NOTE, "", *prose(whole.help)]
    lines += table(
        "option, meaning, default",
        [option(p) for p in whole.params if not p.name.endswith("_completion")],
    )
    lines += [NOTES.read_text(encoding="utf-8")]
    for name in SUMMARIES:
        lines += command_section(f"imprint {name}", load_command(name))
    return "\n".join(lines).rstrip() + "\n"


PAGES = {
    "components.md": components,
    "commands.md": commands,
    "python.md": api["index"],
    **{
        api["page_name"](module): partial(api["module_page"], module)
        for module in api["MODULES"]
    },
}

if __name__ == "__main__":
    (FOLDER / "python").mkdir(parents=True, exist_ok=True)
    for page, write in PAGES.items():
        (FOLDER / page).write_text(write(), encoding="utf-8", newline="\n")
