"""`imprint list`."""

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from importlib import import_module
from importlib.util import find_spec
from typing import Annotated, Any, NamedTuple

import typer

from imprint.cli import _options as options
from imprint.cli import _terminal as terminal

KINDS = ("backbones", "datasets", "generators", "normalisers", "aggregators", "recipes", "studies")


def command(
    what: Annotated[
        str | None,
        typer.Argument(
            metavar="|".join(KINDS),
            help="What to list. [default: the names of everything]",
            autocompletion=lambda: list(KINDS),
        ),
    ] = None,
    measure: Annotated[
        bool, typer.Option("--measure", help="With backbones: measure the speed of each installed one.")
    ] = False,
    json: options.Json = False,
) -> None:
    """List backbones, datasets, recipes and other parts."""
    from imprint.core.errors import ParameterError
    from imprint.core.family import unknown

    if what is not None and what not in KINDS:
        raise unknown("list", what, KINDS)
    if measure and what != "backbones":
        raise ParameterError(f"list {what or ''} --measure: only backbones can be measured.")
    listed = LISTS[what]() if what else overview()
    if measure:
        listed = measured(listed)
    if json:
        terminal.emit(listed.objects)
    else:
        terminal.table(listed.heads(), listed.rows(), right=listed.right)
        if listed.footnote:
            terminal.note(listed.footnote)


BACKBONE_COLUMNS = ["name", "modality", "width", "input", "size", "top1", "licence", "installed"]


class Inventory(NamedTuple):
    """What `imprint list` prints: objects for programs, and some of their keys as the columns of a table."""

    objects: list[dict[str, Any]]
    columns: Sequence[str]
    right: Sequence[str] = ()
    footnote: str = ""
    titles: Mapping[str, str] = {}
    """Shorter headings, so that a table fits 80 columns."""

    def heads(self) -> list[str]:
        """The headings of the columns."""
        return [self.titles.get(c, c) for c in self.columns]

    def rows(self) -> list[list[str]]:
        """The columns of every object as text."""
        return [[_text(c, o[c]) for c in self.columns] for o in self.objects]


def _text(column: str, value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if column == "size" and isinstance(value, int):
        return f"{value / 1e6:.0f} MB"
    if column == "top1" and isinstance(value, float):
        return f"{value:.1f}"
    if isinstance(value, list):
        return ", ".join(value)
    if column == "licence":
        return re.split(r"[ ;]|-Clause", str(value))[0]
    return "" if value is None else f"{value:,}" if isinstance(value, int) else str(value)


def backbones() -> Inventory:
    """Every backbone with a name; `--measure` adds the column `per_second`."""
    from imprint import modalities
    from imprint.backbones import PREFIXES, names, record
    from imprint.backbones.record import is_installed, lacks_extra

    defaults = [kind.backbone for kind in modalities.family if kind.backbone]
    records = [record(name) for name in names()]
    objects = [
        {
            **r.as_json(),
            "input": _input(r),
            "default": r.name in defaults,
            "installed": is_installed(r),
            "needs": lacks_extra(r),
            "download": r.download,
        }
        for r in records
    ]
    also = ", ".join(f"{prefix}:{what}" for prefix, what in PREFIXES.items())
    notes = [f"Defaults: {', '.join(defaults)}. Also: {also}.", *_absent(records)]
    return Inventory(objects, BACKBONE_COLUMNS, ["width", "size", "top1"], "\n".join(notes), {"installed": "here"})


def _input(record: Any) -> str:
    if record.tokens is not None:
        return f"{record.tokens} tokens"
    if record.seconds is not None:
        return f"{record.seconds} s"
    return f"{record.input_size[0]} px" if record.input_size else ""


def _absent(records: Sequence[Any]) -> list[str]:
    """Sentences about backbones that are not installed: the extra to install, or where to put the weights."""
    from imprint.backbones.record import EXTRAS, lacks_extra, lacks_weights, location
    from imprint.core.extras import install_hint

    notes = []
    for extra in sorted({e for r in records if (e := lacks_extra(r))}):
        notes.append(f"{_names(r for r in records if EXTRAS.get(r.adapter) == extra)}: {install_hint(extra)}.")
    away = [r for r in records if lacks_weights(r)]
    if fetched := [r for r in away if r.adapter == "torchvision"]:
        notes.append(f"{_names(fetched)}: the weights are downloaded on first use.")
    if placed := [r for r in away if r.adapter != "torchvision"]:
        notes.append(
            f"{_names(placed)}: put the weights into {location(placed[0]).parent}; --json names files, sources."
        )
    return notes


def _names(records: Iterable[Any]) -> str:
    return ", ".join(r.name for r in records)


def measured(listed: Inventory) -> Inventory:
    """The installed backbones, with the number of inputs per second that each embeds on this machine."""
    from imprint.backbones import load
    from imprint.backbones.backbone import inputs_per_second

    here = [o for o in listed.objects if o["installed"]]
    objects = [o | {"per_second": round(inputs_per_second(load(o["name"])), 1)} for o in here]
    shown = [c for c in listed.columns if c not in ("licence", "installed")]
    note = "per_second: pictures of 500 x 375 pixels, texts of 3 to 16 words, sounds of 5 seconds; all cores."
    return Inventory(objects, [*shown, "per_second"], [*listed.right, "per_second"], note)


def datasets() -> Inventory:
    from imprint.datasets import names, record

    objects = [{"name": name, **asdict(record(name))} for name in names()]
    numbers = ["classes", "train", "test"]
    also = "Also: a folder with one sub-folder per class, a .npz pack, a .csv or .jsonl file of texts."
    return Inventory(objects, ["name", "modality", *numbers, "title"], numbers, also)


def components(package: str) -> Inventory:
    """The members of a family: name, text with default parameters, and meaning."""
    family = import_module(f"imprint.{package}").family
    objects = [
        {
            "name": name,
            "text": str(cls()),
            "meaning": next(iter(inspect.cleandoc(cls.__doc__ or "").splitlines()), ""),
            "parameters": {f.name: f.default for f in fields(cls)},
        }
        for name, cls in zip(family.names(), family)
    ]
    return Inventory(objects, ["name", "text", "meaning"])


def recipes() -> Inventory:
    from imprint.recipes import describe, names

    objects = [{**asdict(describe(name)), "parts": " / ".join(describe(name).parts().values())} for name in names()]
    return Inventory(objects, ["name", "parts", "title"])


def studies() -> Inventory:
    if find_spec("imprint.paper") is None:
        return Inventory([], ["name", "title"])
    return Inventory(import_module("imprint.paper").listing(), ["name", "title"])


def overview() -> Inventory:
    """The names of everything that can be listed."""
    from imprint import aggregators, backbones, datasets, generators, normalisers, recipes

    names = {
        "backbones": backbones.names,
        "datasets": datasets.names,
        "recipes": recipes.names,
        "generators": generators.family.names,
        "normalisers": normalisers.family.names,
        "aggregators": aggregators.family.names,
    }
    objects = [{"name": kind, "members": list(of())} for kind, of in names.items()]
    return Inventory(
        objects, ["name", "members"], footnote="Details: `imprint list NAME`; also `imprint list studies`."
    )


LISTS: dict[str, Callable[[], Inventory]] = {
    "backbones": backbones,
    "datasets": datasets,
    "generators": lambda: components("generators"),
    "normalisers": lambda: components("normalisers"),
    "aggregators": lambda: components("aggregators"),
    "recipes": recipes,
    "studies": studies,
}
