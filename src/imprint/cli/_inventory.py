"""What `imprint list` lists."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import asdict, fields
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple


class Inventory(NamedTuple):
    """Objects for programs; for people some of their keys as columns."""

    objects: list[dict[str, Any]]
    columns: Sequence[str]
    right: Sequence[str] = ()
    footnote: str = ""

    def rows(self) -> list[list[str]]:
        """The columns of every object as text."""
        return [[_text(o[c]) for c in self.columns] for o in self.objects]


def _text(value: object) -> str:
    if isinstance(value, list | tuple):
        return " x ".join(map(str, value))
    return "" if value is None else f"{value:,}" if isinstance(value, int) else str(value)


def backbones() -> Inventory:
    from imprint.backbones import PREFIXES, names, record

    objects = [{**record(name).as_json(), "name": name, "input": record(name).input_size} for name in names()]
    also = ", ".join(f"{prefix}:{what}" for prefix, what in PREFIXES.items())
    return Inventory(
        objects, ["name", "width", "input", "top1", "pretraining", "licence"], ["width", "top1"], f"Also: {also}."
    )


def datasets() -> Inventory:
    from imprint.datasets import names, record

    objects = [{"name": name, **asdict(record(name))} for name in names()]
    return Inventory(
        objects,
        ["name", "title", "modality", "classes", "train", "test", "licence"],
        ["classes", "train", "test"],
        "Also: a folder with one sub-folder per class, a .npz pack, a .csv or .jsonl file of texts.",
    )


def components(package: str) -> Inventory:
    """The members of one family: its text with default parameters, and what it does."""
    family = import_module(f"imprint.{package}").family
    objects = [
        {
            "name": name,
            "text": str(cls()),
            "meaning": inspect.cleandoc(cls.__doc__ or "").splitlines()[0],
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


LISTS: dict[str, Callable[[], Inventory]] = {
    "backbones": backbones,
    "datasets": datasets,
    "generators": lambda: components("generators"),
    "normalisers": lambda: components("normalisers"),
    "aggregators": lambda: components("aggregators"),
    "recipes": recipes,
    "studies": studies,
}
