"""`imprint list`."""

import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, fields
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from imprint.cli import _options as options
from imprint.cli import _terminal as terminal
from imprint.core.errors import ParameterError
from imprint.core.extras import install_hint
from imprint.core.family import unknown

if TYPE_CHECKING:
    from imprint.backbones.record import Record


class Inventory(NamedTuple):
    """What `imprint list` prints: objects for programs, and some of their keys as the columns of a table."""

    objects: list[dict[str, Any]]
    columns: Sequence[str]
    right: Sequence[str] = ()
    footnote: str = ""
    optional: Sequence[str] = ()
    """Columns that a narrow terminal leaves out, the last first."""

    def print(self) -> None:
        """Print the table and the footnote."""
        rows = [[_text(column, o[column]) for column in self.columns] for o in self.objects]
        heads = ["here" if column == "installed" else column for column in self.columns]
        terminal.table(heads, rows, right=self.right, optional=self.optional)
        if self.footnote:
            terminal.note(self.footnote)


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


def list_backbones() -> Inventory:
    """Every backbone with a name; `--measure` adds the column `per_second`."""
    from imprint import backbones, modalities
    from imprint.backbones.record import is_installed, lacks_extra

    defaults = [kind.backbone for kind in modalities.family if kind.backbone]
    records = [backbones.record(name) for name in backbones.names()]
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
    also = ", ".join(f"{prefix}:{what}" for prefix, what in backbones.PREFIXES.items())
    notes = [f"Defaults: {', '.join(defaults)}. Also: {also}.", *_not_installed(records)]
    columns = ["name", "modality", "width", "input", "size", "top1", "licence", "installed"]
    optional = ["modality", "top1", "input", "licence"]
    return Inventory(objects, columns, ["width", "size", "top1"], "\n".join(notes), optional)


def _input(record: "Record") -> str:
    if record.tokens is not None:
        return f"{record.tokens} tokens"
    if record.seconds is not None:
        return f"{record.seconds} s"
    return f"{record.input_size[0]} px" if record.input_size else ""


def _not_installed(records: Sequence["Record"]) -> list[str]:
    """Sentences about backbones that are not installed: the extra to install, or where to put the weights."""
    from imprint.backbones.record import EXTRAS, lacks_extra, lacks_weights, location

    notes = []
    for extra in sorted({e for r in records if (e := lacks_extra(r))}):
        notes.append(f"{_names(r for r in records if EXTRAS.get(r.adapter) == extra)}: {install_hint(extra)}.")
    missing = [r for r in records if lacks_weights(r)]
    if downloaded := [r for r in missing if r.adapter == "torchvision"]:
        notes.append(f"{_names(downloaded)}: the weights are downloaded on first use.")
    if manual := [r for r in missing if r.adapter != "torchvision"]:
        folder = location(manual[0]).parent
        notes.append(f"{_names(manual)}: put the weights into {folder}; --json names files, sources.")
    return notes


def _names(records: Iterable["Record"]) -> str:
    return ", ".join(r.name for r in records)


def _measured(listed: Inventory) -> Inventory:
    """The installed backbones, with the number of inputs per second that each embeds on this machine."""
    from imprint import backbones
    from imprint.backbones.backbone import inputs_per_second

    installed = [o for o in listed.objects if o["installed"]]
    rate = {o["name"]: round(inputs_per_second(backbones.load(o["name"])), 1) for o in installed}
    shown = [c for c in listed.columns if c not in ("licence", "installed")]
    note = "per_second: pictures of 500 x 375 pixels, texts of 3 to 16 words, sounds of 5 seconds; all cores."
    objects = [o | {"per_second": rate[o["name"]]} for o in installed]
    return Inventory(objects, [*shown, "per_second"], [*listed.right, "per_second"], note)


def list_datasets() -> Inventory:
    from imprint import datasets

    objects = [{"name": name, **asdict(datasets.record(name))} for name in datasets.names()]
    numbers = ["classes", "train", "test"]
    also = "Also: a folder with one sub-folder per class, a .npz pack, a .csv or .jsonl file of texts."
    return Inventory(objects, ["name", "modality", *numbers, "title"], numbers, also, ["modality", "train", "test"])


def list_components(package: str) -> Inventory:
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


def list_recipes() -> Inventory:
    from imprint import recipes

    described = [recipes.describe(name) for name in recipes.names()]
    objects = [{**asdict(recipe), "parts": " / ".join(recipe.parts().values())} for recipe in described]
    return Inventory(objects, ["name", "parts", "title"])


def list_studies() -> Inventory:
    from imprint.paper import listing  # takes as long to import as everything else here

    return Inventory(listing(), ["name", "title"])


LISTS: dict[str, Callable[[], Inventory]] = {
    "backbones": list_backbones,
    "datasets": list_datasets,
    "generators": lambda: list_components("generators"),
    "normalisers": lambda: list_components("normalisers"),
    "aggregators": lambda: list_components("aggregators"),
    "recipes": list_recipes,
    "studies": list_studies,
}


def list_all() -> Inventory:
    """The names of everything that can be listed, except studies."""
    objects = [
        {"name": kind, "members": [o["name"] for o in listed().objects]}
        for kind, listed in LISTS.items()
        if kind != "studies"
    ]
    footnote = "Details: `imprint list NAME`; also `imprint list studies`."
    return Inventory(objects, ["name", "members"], footnote=footnote)


def command(
    what: Annotated[
        str | None,
        typer.Argument(
            metavar="WHAT",
            help=f"What to list: {', '.join(LISTS)}. [default: the names of everything]",
            autocompletion=lambda: list(LISTS),
        ),
    ] = None,
    measure: Annotated[
        bool, typer.Option("--measure", help="With backbones: measure the speed of each installed one.")
    ] = False,
    json: options.Json = False,
) -> None:
    """List backbones, data sets, recipes and other components."""
    if what is not None and what not in LISTS:
        raise unknown("list", what, LISTS)
    if measure and what != "backbones":
        raise ParameterError(f"list {what or ''} --measure: only backbones can be measured.")
    listed = LISTS[what]() if what else list_all()
    if measure:
        listed = _measured(listed)
    terminal.emit(listed.objects) if json else listed.print()
