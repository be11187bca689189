"""List backbones, data sets, recipes and other components."""

import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, fields
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from typer import Argument, Option

from imprint.cli import options, terminal
from imprint.core.errors import ParameterError, unknown
from imprint.core.extras import install_hint

if TYPE_CHECKING:
    from imprint.backbones.record import Record

MEASURED_NOTE = (
    "per_second: images of 500 x 375 pixels, texts of 3 to 16 words, sounds of 5"
    " seconds; all cores."
)


class Inventory(NamedTuple):
    """What `imprint list` prints: objects for programs, and some of their keys as the
    columns of a table.
    """

    objects: list[dict[str, Any]]
    columns: Sequence[str]
    footnote: str | None = None
    # columns that a narrow terminal leaves out, the last first
    optional: Sequence[str] = ()

    def print(self) -> None:
        """Print the table and the footnote; columns of numbers are right-aligned."""
        if not self.objects:
            terminal.note(self.footnote)
            return
        rows = [
            [_text(column, row[column]) for column in self.columns]
            for row in self.objects
        ]
        titles = [
            "here" if column == "installed" else column for column in self.columns
        ]
        types = {
            column: {type(row[column]) for row in self.objects}
            for column in self.columns
        }
        numbers = [
            column
            for column in self.columns
            if types[column] <= {int, float, type(None)}
        ]
        terminal.table(titles, rows, right=numbers, optional=self.optional)
        terminal.note(self.footnote)


def _text(column: str, value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "", True: "yes", False: "no"}[value]
    if column == "size":
        return f"{value / 1e6:.0f} MB"
    if column == "licence":
        return re.split(r"[ ;]|-Clause", value)[0]
    if isinstance(value, int | float):
        return f"{value:,}" if isinstance(value, int) else f"{value:.1f}"
    return ", ".join(value) if isinstance(value, list) else str(value)


def list_backbones(measure: bool = False) -> Inventory:
    """Every backbone with a name; with `measure`, the installed ones, and how many
    inputs per second each embeds.
    """
    from imprint import backbones, modalities
    from imprint.backbones.backbone import inputs_per_second
    from imprint.backbones.record import is_installed, missing_extra

    defaults = [kind.backbone for kind in modalities.family if kind.backbone]
    records = [backbones.record(name) for name in backbones.names()]
    objects = []
    for r in records:
        duration = (
            f"{r.tokens} tokens" if r.tokens else f"{r.seconds} s" if r.seconds else ""
        )
        size = f"{r.input_size[0]} px" if r.input_size else duration
        facts = {
            "input": size,
            "default": r.name in defaults,
            "installed": is_installed(r),
            "needs": missing_extra(r),
        }
        objects.append({**r.as_json(), **facts, "download": r.download})
    also = ", ".join(f"{prefix}:{rest}" for prefix, rest in backbones.PREFIXES.items())
    notes = [
        f"Defaults: {', '.join(defaults)}. Also: {also}.",
        *_not_installed(records),
    ]
    columns = ["name", "modality", "width", "input", "size", "top1"]
    if not measure:
        optional = ["modality", "top1", "input", "licence"]
        return Inventory(
            objects, [*columns, "licence", "installed"], "\n".join(notes), optional
        )
    measured = [o for o in objects if o["installed"]]
    for o in measured:
        o["per_second"] = round(inputs_per_second(backbones.load(o["name"])), 1)
    return Inventory(measured, [*columns, "per_second"], MEASURED_NOTE)


def _not_installed(records: Sequence["Record"]) -> list[str]:
    """Sentences about backbones that are not installed: the extra to install, or where
    to put the weights.
    """
    from imprint.backbones.record import EXTRAS, lacks_weights, location, missing_extra

    extras = sorted({extra for r in records if (extra := missing_extra(r))})
    advice = {
        f"{install_hint(extra)}.": [
            r for r in records if EXTRAS.get(r.adapter) == extra
        ]
        for extra in extras
    }
    missing = [r for r in records if lacks_weights(r)]
    advice["the weights are downloaded on first use."] = [
        r for r in missing if r.adapter == "torchvision"
    ]
    if manual := [r for r in missing if r.adapter != "torchvision"]:
        advice[
            f"put the weights into {location(manual[0]).parent}; --json names files,"
            " sources."
        ] = manual
    return [
        f"{', '.join(r.name for r in group)}: {what_to_do}"
        for what_to_do, group in advice.items()
        if group
    ]


def list_datasets() -> Inventory:
    from imprint import datasets

    objects = [
        {"name": name, **asdict(datasets.record(name))} for name in datasets.names()
    ]
    also = (
        "Also: a folder with one sub-folder per class, a .npz pack, a .csv or .jsonl"
        " file of texts."
    )
    columns = ["name", "modality", "classes", "train", "test", "title"]
    return Inventory(objects, columns, also, ["modality", "train", "test"])


def list_components(package: str) -> Inventory:
    """The members of a family: name, text with default parameters, and meaning."""
    family = import_module(f"imprint.{package}").family
    objects = [
        {
            "name": name,
            "text": str(cls()),
            "meaning": inspect.cleandoc(cls.__doc__ or "").partition("\n")[0],
            "parameters": {f.name: f.default for f in fields(cls)},
        }
        for name, cls in zip(family.names(), family)
    ]
    return Inventory(objects, ["name", "text", "meaning"])


def list_recipes() -> Inventory:
    from imprint import recipes

    described = map(recipes.describe, recipes.names())
    objects = [
        {**asdict(recipe), "parts": " / ".join(recipe.parts().values())}
        for recipe in described
    ]
    return Inventory(objects, ["name", "parts", "title"])


def list_studies() -> Inventory:
    """The named studies of installed packages."""
    from imprint.study import collections  # a slow import

    objects: list[dict[str, Any]] = []
    for collection in collections().values():
        objects += collection.listing()
    footnote = None
    if not objects:
        footnote = (
            "No installed package has named studies. Those of the paper are in the"
            " distribution weight-imprinting-reproduction."
        )
    return Inventory(objects, ["name", "title"], footnote)


LISTS: dict[str, Callable[[], Inventory]] = {
    "backbones": list_backbones,
    "datasets": list_datasets,
    **{
        family: partial(list_components, family)
        for family in ("generators", "normalisers", "aggregators")
    },
    "recipes": list_recipes,
    "studies": list_studies,
}


def list_all() -> Inventory:
    """The names of everything that can be listed, except studies."""
    kinds = [kind for kind in LISTS if kind != "studies"]
    objects = [
        {"name": kind, "members": [o["name"] for o in LISTS[kind]().objects]}
        for kind in kinds
    ]
    return Inventory(
        objects,
        ["name", "members"],
        "Details: `imprint list NAME`; also `imprint list studies`.",
    )


def command(
    what: str | None = Argument(
        None,
        metavar="WHAT",
        help=f"What to list: {', '.join(LISTS)}. [default: the names of everything]",
        autocompletion=lambda: list(LISTS),
    ),
    measure: bool = Option(
        False,
        "--measure",
        help="With backbones: measure the speed of each installed one.",
    ),
    json: bool = options.JSON,
) -> None:
    if what is not None and what not in LISTS:
        raise unknown("list", what, LISTS)
    if measure and what != "backbones":
        raise ParameterError(
            f"list {what or ''} --measure: only backbones can be measured."
        )
    inventory = (
        list_backbones(measure) if measure else LISTS[what]() if what else list_all()
    )
    terminal.emit(inventory.objects) if json else inventory.print()
