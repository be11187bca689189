"""List backbones, data sets, recipes and other components."""

import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, fields
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from typer import Argument, Option

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
    footnote: str = ""
    optional: Sequence[str] = ()
    """Columns that a narrow terminal leaves out, the last first."""

    def print(self) -> None:
        """Print the table and the footnote; columns of numbers are right-aligned."""
        rows = [[_text(column, o[column]) for column in self.columns] for o in self.objects]
        heads = ["here" if column == "installed" else column for column in self.columns]
        numbers = [c for c in self.columns if {type(o[c]) for o in self.objects} <= {int, float, type(None)}]
        terminal.table(heads, rows, right=numbers, optional=self.optional)
        if self.footnote:
            terminal.note(self.footnote)


def _text(column: str, value: Any) -> str:
    if column == "size" and value is not None:
        return f"{value / 1e6:.0f} MB"
    if column == "licence":
        return re.split(r"[ ;]|-Clause", str(value))[0]
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case list():
            return ", ".join(value)
        case int():
            return f"{value:,}"
        case float():
            return f"{value:.1f}"
    return str(value)


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
    return Inventory(objects, columns, "\n".join(notes), optional=["modality", "top1", "input", "licence"])


def _input(record: "Record") -> str:
    if record.tokens is not None:
        return f"{record.tokens} tokens"
    if record.seconds is not None:
        return f"{record.seconds} s"
    return f"{record.input_size[0]} px" if record.input_size else ""


def _not_installed(records: Sequence["Record"]) -> list[str]:
    """Sentences about backbones that are not installed: the extra to install, or where to put the weights."""
    from imprint.backbones.record import EXTRAS, lacks_extra, lacks_weights, location

    def names(chosen: Iterable["Record"]) -> str:
        return ", ".join(r.name for r in chosen)

    notes = []
    for extra in sorted({e for r in records if (e := lacks_extra(r))}):
        notes.append(f"{names(r for r in records if EXTRAS.get(r.adapter) == extra)}: {install_hint(extra)}.")
    missing = [r for r in records if lacks_weights(r)]
    if downloaded := [r for r in missing if r.adapter == "torchvision"]:
        notes.append(f"{names(downloaded)}: the weights are downloaded on first use.")
    if manual := [r for r in missing if r.adapter != "torchvision"]:
        folder = location(manual[0]).parent
        notes.append(f"{names(manual)}: put the weights into {folder}; --json names files, sources.")
    return notes


def _measured(listed: Inventory) -> Inventory:
    """The installed backbones, with the number of inputs per second that each embeds on this machine."""
    from imprint import backbones
    from imprint.backbones.backbone import inputs_per_second

    objects = [
        o | {"per_second": round(inputs_per_second(backbones.load(o["name"])), 1)}
        for o in listed.objects
        if o["installed"]
    ]
    columns = [c for c in listed.columns if c not in ("licence", "installed")]
    note = "per_second: pictures of 500 x 375 pixels, texts of 3 to 16 words, sounds of 5 seconds; all cores."
    return Inventory(objects, [*columns, "per_second"], note)


def list_datasets() -> Inventory:
    from imprint import datasets

    objects = [{"name": name, **asdict(datasets.record(name))} for name in datasets.names()]
    also = "Also: a folder with one sub-folder per class, a .npz pack, a .csv or .jsonl file of texts."
    columns = ["name", "modality", "classes", "train", "test", "title"]
    return Inventory(objects, columns, also, optional=["modality", "train", "test"])


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

    described = [recipes.describe(name) for name in recipes.names()]
    objects = [{**asdict(recipe), "parts": " / ".join(recipe.parts().values())} for recipe in described]
    return Inventory(objects, ["name", "parts", "title"])


def list_studies() -> Inventory:
    from imprint.paper import listing  # takes as long to import as everything else here

    return Inventory(listing(), ["name", "title"])


LISTS: dict[str, Callable[[], Inventory]] = {
    "backbones": list_backbones,
    "datasets": list_datasets,
    **{family: partial(list_components, family) for family in ("generators", "normalisers", "aggregators")},
    "recipes": list_recipes,
    "studies": list_studies,
}


def list_all() -> Inventory:
    """The names of everything that can be listed, except studies."""
    kinds = [kind for kind in LISTS if kind != "studies"]
    objects = [{"name": kind, "members": [o["name"] for o in LISTS[kind]().objects]} for kind in kinds]
    return Inventory(objects, ["name", "members"], "Details: `imprint list NAME`; also `imprint list studies`.")


def command(
    what: str | None = Argument(
        None,
        metavar="WHAT",
        help=f"What to list: {', '.join(LISTS)}. [default: the names of everything]",
        autocompletion=lambda: list(LISTS),
    ),
    measure: bool = Option(False, "--measure", help="With backbones: measure the speed of each installed one."),
    json: bool = options.JSON,
) -> None:
    if what is not None and what not in LISTS:
        raise unknown("list", what, LISTS)
    if measure and what != "backbones":
        raise ParameterError(f"list {what or ''} --measure: only backbones can be measured.")
    listed = LISTS[what]() if what else list_all()
    if measure:
        listed = _measured(listed)
    terminal.emit(listed.objects) if json else listed.print()
