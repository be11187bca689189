"""What an `Imprinter` needs to keep the classes of its backbone's own head: how it is asked for, made, and stored."""

import os
from collections.abc import Mapping
from typing import Any, NamedTuple, Self

from imprint import backbones, generators, recipes
from imprint.calibration import CrossValidation
from imprint.core.digest import digest
from imprint.core.errors import FileError, ParameterError
from imprint.core.family import unknown
from imprint.core.files.container import foreign
from imprint.core.types import Array
from imprint.head import Decider, Head
from imprint.imprinter.embedder import ROWS
from imprint.persistence import head_from_parts, head_to_parts
from imprint.pretrained_classes.head import PretrainedClasses, PretrainedHead
from imprint.pretrained_classes.strategy import STRATEGIES

RECIPES = {"qi": "qi2018", "done": "hosoda2024"}
"""The published methods that have a way of their own; `done` finishes proxies by the head, not by one another."""


class Keep(NamedTuple):
    """A way, the backbone whose head it is, and the parts of the method."""

    way: str
    spec: str
    parts: dict[str, str]

    @classmethod
    def of(
        cls, asked: bool | str, spec: str | None, recipe: str | None, parts: Mapping[str, Any], calibrate: bool
    ) -> Self | None:
        """What `Imprinter(keep_head=asked)` means; None where no head is to be kept."""
        if asked is False:
            return None
        way = "margin" if asked is True else asked
        call = f"Imprinter(keep_head={asked!r})"
        if way not in STRATEGIES:
            raise unknown("way to keep the head", asked, STRATEGIES)
        if spec == ROWS:
            raise ParameterError(f"{call}: embeddings come without a network, so there is no head to keep.")
        spec = spec or backbones.default("image")
        backbones.head(spec)
        if way in RECIPES:
            other = ["recipe"] if recipe is not None else [name for name in parts if name != "generator"]
            if other:
                raise ParameterError(f"{call}: this way is a method of its own and takes no {other[0]}.")
        elif not calibrate:
            raise ParameterError(f"{call}: the margin comes from pictures that are left out; it needs calibrate=True.")
        described = recipes.describe(RECIPES.get(way, recipe or "kernel")).parts()
        found = {**described, **({"norm_post": "none"} if way == "done" else {})}
        if way != "qi" and not generators.family.resolve(parts.get("generator", found["generator"])).points:
            raise ParameterError(f"{call}: new classes need proxies that are points, not directions.")
        return cls(way, spec, found)

    @classmethod
    def again(cls, head: Decider, spec: str) -> Self | None:
        """How a loaded model was asked for."""
        return cls(head.strategy, spec, {}) if isinstance(head, PretrainedHead) else None

    def beside(self, new: Head) -> PretrainedHead:
        """The network's classes and a head of new ones."""
        if self.way != "margin":
            new = Head(new.method, new.seed, new.dtype)
        return PretrainedHead(self.way, PretrainedClasses.of(backbones.head(self.spec)), new)


def to_parts(head: Decider) -> tuple[dict[str, Any], dict[str, Array]]:
    """A head as a JSON document and named arrays. Of a network's own classes it says which have been forgotten."""
    document, arrays = head_to_parts(head.imprinted)
    if isinstance(head, PretrainedHead):
        document["kept"] = {
            "way": head.strategy,
            "classes": list(head.pretrained.labels),
            "digest": _digest(head.pretrained),
        }
    return document, arrays


def from_parts(document: dict[str, Any], arrays: dict[str, Array], source: str | os.PathLike[str]) -> Decider:
    """The head that `to_parts` described; anything else is refused in one sentence."""
    rest = {key: value for key, value in document.items() if key != "kept"}
    new = head_from_parts(rest, arrays, source)
    if "kept" not in document or not isinstance(new, Head):
        return new
    try:
        spec, kept = document["backbone"]["spec"], document["kept"]
        way, labels, made_with = kept["way"], kept["classes"], kept["digest"]
        whole = PretrainedClasses.of(backbones.head(str(spec)))
        own = whole.without({*whole.labels} - {*map(str, labels)})
        if way not in STRATEGIES or list(own.labels) != labels or not labels or {*labels} & {*new.labels}:
            raise ValueError
        if way == "margin" and not isinstance(new.folds, CrossValidation):
            raise ValueError
    except ParameterError as e:
        raise FileError(f"{source}: {e}") from None
    except (KeyError, TypeError, ValueError):
        raise foreign(source) from None
    if _digest(own) != made_with:
        raise FileError(f"{source} was made with another head of {spec} than there is here: fit the model again.")
    return PretrainedHead(str(way), own, new)


def _digest(own: PretrainedClasses) -> str:
    return digest([own.weights, own.bias, *own.labels])
