"""Models that keep the pre-trained classes of their backbone: options, construction and storage."""

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
from imprint.estimator.persistence import head_from_parts, head_to_parts
from imprint.head import Decider, Head
from imprint.imprinter.embedder import ROWS
from imprint.pretrained_classes import STRATEGIES, PretrainedClasses, PretrainedHead
from imprint.tags import TagHead

RECIPES = {"qi": "qi2018", "done": "hosoda2024"}
"""The published methods that define a strategy; `done` matches proxies to the weights of the head."""


class PretrainedOptions(NamedTuple):
    """A strategy, the backbone whose classes are kept, and the parts of the method."""

    strategy: str
    spec: str
    parts: dict[str, str]

    @classmethod
    def of(
        cls, keep_head: bool | str, spec: str | None, recipe: str | None, parts: Mapping[str, Any], calibrate: bool
    ) -> Self | None:
        """The options for `Imprinter(keep_head=...)`; None if it is False."""
        if keep_head is False:
            return None
        strategy = "margin" if keep_head is True else keep_head
        call = f"Imprinter(keep_head={keep_head!r})"
        if strategy not in STRATEGIES:
            raise unknown("way to keep the head", keep_head, STRATEGIES)
        if spec == ROWS:
            raise ParameterError(f"{call}: embeddings come without a network, so there is no head to keep.")
        spec = spec or backbones.default("image")
        backbones.head(spec)
        if strategy in RECIPES:
            other = ["recipe"] if recipe is not None else [name for name in parts if name != "generator"]
            if other:
                raise ParameterError(f"{call}: this strategy is a complete method; it takes no {other[0]}.")
        elif not calibrate:
            raise ParameterError(f"{call}: the margin is computed from held-out pictures; it needs calibrate=True.")
        described = recipes.describe(RECIPES.get(strategy, recipe or "kernel")).parts()
        method = {**described, **({"norm_post": "none"} if strategy == "done" else {})}
        if strategy != "qi" and not generators.family.resolve(parts.get("generator", method["generator"])).points:
            raise ParameterError(f"{call}: new classes need proxies that are points, not directions.")
        return cls(strategy, spec, method)

    @classmethod
    def of_loaded(cls, head: Decider, spec: str) -> Self | None:
        """The options of a loaded model."""
        return cls(head.strategy, spec, {}) if isinstance(head, PretrainedHead) else None

    def with_head(self, new: Head) -> PretrainedHead:
        """The pre-trained classes and a head of new ones."""
        if self.strategy != "margin":
            new = Head(new.method, new.seed, new.dtype)
        return PretrainedHead(self.strategy, PretrainedClasses.of(backbones.head(self.spec)), new)


def to_parts(head: Decider) -> tuple[dict[str, Any], dict[str, Array]]:
    """A head as a JSON document and named arrays. Pre-trained classes are stored by name, without those forgotten."""
    document, arrays = head_to_parts(head if isinstance(head, TagHead) else head.imprinted)
    if isinstance(head, PretrainedHead):
        document["kept"] = {
            "way": head.strategy,
            "classes": list(head.pretrained.labels),
            "digest": _digest(head.pretrained),
        }
    return document, arrays


def from_parts(document: dict[str, Any], arrays: dict[str, Array], source: str | os.PathLike[str]) -> Decider:
    """The head from the parts of `to_parts`; raises `FileError` for anything else."""
    rest = {key: value for key, value in document.items() if key != "kept"}
    new = head_from_parts(rest, arrays, source)
    if "kept" not in document or not isinstance(new, Head):
        return new
    try:
        spec, pretrained = document["backbone"]["spec"], document["kept"]
        strategy, labels, expected = pretrained["way"], pretrained["classes"], pretrained["digest"]
        every = PretrainedClasses.of(backbones.head(str(spec)))
        classes = every.without({*every.labels} - {*map(str, labels)})
        if strategy not in STRATEGIES or list(classes.labels) != labels or not labels or {*labels} & {*new.labels}:
            raise ValueError
        if strategy == "margin" and not isinstance(new.folds, CrossValidation):
            raise ValueError
    except ParameterError as e:
        raise FileError(f"{source}: {e}") from None
    except (KeyError, TypeError, ValueError):
        raise foreign(source) from None
    if _digest(classes) != expected:
        raise FileError(f"{source} was fitted next to another head of {spec} than the one here: fit the model again.")
    return PretrainedHead(str(strategy), classes, new)


def _digest(classes: PretrainedClasses) -> str:
    return digest([classes.weights, classes.bias, *classes.labels])
