"""Models that were imported into a project, and what its own model is fitted with.

A class of the page may come from several model files. It is then merged as `imprint
merge` does it, and the examples of the page are added to the result.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from imprint.backbones import Backbone
from imprint.calibration import CrossValidation
from imprint.core.errors import FileError, ParameterError
from imprint.core.files import container
from imprint.core.label_sets import texts_of
from imprint.core.tree import SEPARATOR
from imprint.head import Decider, Head
from imprint.head.merging import (
    ClassFit,
    ClassPart,
    DigestsByClass,
    fingerprint,
    held_digests,
    merged_state,
    settings_of,
    stored_rows,
)
from imprint.imprinter.state import Exemplars, ExemplarsByClass, ImprinterState
from imprint.method import ClassState
from imprint.serve.labelled import LabelledSet, Origin, clean_label
from imprint.tags import TagHead

# between the labels of a label set, and the class of the set without labels
JOINER, NO_LABEL = " + ", "no label"
WITHOUT_BACKBONE = (
    "is a classifier of embeddings, without a backbone; the page needs a model with"
    " one."
)
# settings that need not be equal: all models of a project have the backbone, and with
# it the width; labels are texts here, and a tree counts only where labels have a slash
IGNORED_SETTINGS = ("the width", "labels of the kind", "tree")
ADVICE = "import it into a new project, or fit it with the settings of this one"


class ImportedModel(NamedTuple):
    """The content of a model file, with labels as texts."""

    # with a cross-validation if the model is calibrated
    head: Head
    exemplars: ExemplarsByClass
    # the model if it is one of tags; its label sets are the classes
    tags: TagHead | None
    # as the file states it, and its labels by the texts of `head`
    original: Head
    label_of: Mapping[str, object]
    has_names: bool = False  # whether one row of each class is its name

    @property
    def has_levels(self) -> bool:
        """Whether some labels have a slash, which may stand between levels of a
        tree.
        """
        return any(SEPARATOR in label for label in self.head.labels)

    def part(self, label: str) -> ClassPart:
        """A class, to be merged with others."""
        state = self.head.states[self.head.labels.index(label)]
        # renamed rows of `head` may be a sample; those of the file know that they are
        return ClassPart(state, stored_rows(self.original, self.label_of[label]))

    def digests(self) -> DigestsByClass:
        """The digests of the rows of each class, where the file states them."""
        by_label = held_digests(self.original)
        return {
            text: by_label[label]
            for text, label in self.label_of.items()
            if label in by_label
        }


class ImportedClass(NamedTuple):
    """A class of the page as it comes from one or several model files."""

    state: ClassState
    is_exact: bool  # whether it is the state of one fit, up to rounding
    folds: CrossValidation | None  # of this class; None if a model is not calibrated
    exemplars: tuple[Exemplars, ...] = ()


@dataclass(frozen=True, eq=False)
class ModelBasis:
    """What the model of a project is fitted with: its settings and imported models."""

    # a head without classes
    empty: Head
    # by the digest of the file, in the order in which they were imported
    models: Mapping[str, ImportedModel] = field(default_factory=dict)
    _merged: dict[tuple[str, tuple[Origin, ...]], ImportedClass] = field(
        default_factory=dict, repr=False
    )

    @classmethod
    def of(cls, plain: Head, models: Mapping[str, ImportedModel]) -> "ModelBasis":
        """The basis of some models, which must have equal settings; without any, that
        of the `plain` head.
        """
        if not models:
            return cls(plain)
        first, *others = models.values()
        for other in others:
            check_settings(first.head, other, "an imported model")
            check_names(first, other)
        with_levels = [model for model in models.values() if model.has_levels]
        is_tree = (
            with_levels[0].head.tree_of_labels if with_levels else plain.tree_of_labels
        )
        for other in with_levels:
            check_levels(bool(is_tree), other, "an imported model")
        empty = replace(
            first.head, labels=(), states=(), folds=None, tree_of_labels=is_tree
        )
        return cls(empty, models)

    @property
    def has_tags(self) -> bool:
        """Whether the classes of the page are label sets."""
        return any(model.tags is not None for model in self.models.values())

    def is_calibrated(self, labelled: LabelledSet) -> bool:
        """Whether all imported models that the classes come from are calibrated."""
        return all(
            self.models[origin.model].head.folds is not None
            for origin in labelled.origins()
        )

    def sorted_labels(
        self, labelled: LabelledSet, labels: Iterable[str]
    ) -> list[tuple[str, tuple[Origin, ...]]]:
        """The imported ones among these labels with their origins, in the order of
        imprinting in the files.
        """
        position: dict[Origin, int] = {}
        for digest, model in self.models.items():
            for label in model.head.labels:
                position[Origin(digest, label)] = len(position)
        present = [(k, labelled.classes[k]) for k in labels if k in labelled.classes]
        imported = [(label, origins) for label, origins in present if origins]
        return sorted(imported, key=lambda one: position[one[1][0]])

    def imported_class(self, label: str, origins: Sequence[Origin]) -> ImportedClass:
        """A class of the page from its parts in the files; computed once."""
        key = (label, tuple(origins))
        if key not in self._merged:
            self._merged[key] = self._merge(label, origins)
        return self._merged[key]

    def _merge(self, label: str, origins: Sequence[Origin]) -> ImportedClass:
        models = [self.models[origin.model] for origin in origins]
        parts = [model.part(origin.label) for model, origin in zip(models, origins)]
        fit = ClassFit(self.empty.method, self.empty.seed, label)
        state, is_exact = merged_state(fit, parts)
        folds = None
        if all(model.head.folds is not None for model in models):
            empty = CrossValidation(self.empty)
            renamed = [
                empty.with_classes(model.head.folds, {label: origin.label})
                for model, origin in zip(models, origins)
            ]
            folds = renamed[0] if len(renamed) == 1 else empty.merge(renamed)
        exemplars = [
            model.exemplars[origin.label]
            for model, origin in zip(models, origins)
            if origin.label in model.exemplars
        ]
        return ImportedClass(state, is_exact, folds, tuple(exemplars))

    def with_imported(
        self, folds: CrossValidation, labelled: LabelledSet, labels: Iterable[str]
    ) -> CrossValidation:
        """The cross-validation with the imported ones among these classes."""
        for label, origins in self.sorted_labels(labelled, labels):
            source = self.imported_class(label, origins).folds
            if source is not None:
                folds = folds.with_classes(source, {label: label})
        return folds

    def check_merging(self, labelled: LabelledSet) -> list[str]:
        """Refuse classes that cannot be merged from their parts; returns those whose
        proxies differ from those of one fit by more than rounding.
        """
        merged = {
            label: self.imported_class(label, origins)
            for label, origins in labelled.classes.items()
            if len(origins) > 1
        }
        return [label for label, one in merged.items() if not one.is_exact]


def read_model(raw: bytes, name: str, backbone: Backbone) -> ImportedModel:
    """The method, classes and calibration of a model file, with labels as texts.
    Unsuitable files are refused.
    """
    document, arrays = container.parse(raw, name)
    stated = document.get("backbone")
    if not isinstance(stated, dict):
        raise FileError(f"{name} {WITHOUT_BACKBONE}")
    if "kept" in document:
        raise FileError(
            f"{name} keeps the pre-trained classes of its backbone, which the page does"
            " not show; use imprint predict, or fit it without --keep-head."
        )
    if stated.get("fingerprint") != backbone.fingerprint:
        raise FileError(
            f"{name} was fitted with the backbone {stated.get('spec')}, and this page"
            f" runs with {backbone.record.name}; start another page with it: imprint"
            f" serve {name}."
        )
    state = ImprinterState.from_parts(document, arrays, name)
    original = state.head.imprinted
    if original.dtype != np.float32:
        raise FileError(
            f"{name} was fitted with double-precision embeddings, which this page does"
            " not compute."
        )
    if original.folds is not None and not original.folds.has_rows:
        raise FileError(
            f"{name} was shared without the rows that the page needs to calibrate it;"
            " use the original file, or imprint predict."
        )
    return _with_texts(state, name)


def _with_texts(state: ImprinterState, name: str) -> ImportedModel:
    """A model with its labels as texts, as the page has them."""
    decider = state.head
    original = decider.imprinted
    text_of = _texts_of_labels(decider, name)
    folds = None
    if original.folds is not None:
        empty = CrossValidation(Head(original.method, original.seed, original.dtype))
        names = {text_of[label]: label for label in original.labels}
        folds = empty.with_classes(original.folds, names)
        folds.derived.put("calibration", original.folds.calibration)
    texts = tuple(text_of[label] for label in original.labels)
    return ImportedModel(
        head=replace(original, labels=texts, folds=folds),
        exemplars={text_of[k]: of_class for k, of_class in state.exemplars.items()},
        tags=decider if isinstance(decider, TagHead) else None,
        original=original,
        label_of=dict(zip(texts, original.labels)),
        has_names=state.named,
    )


def _texts_of_labels(decider: Decider, name: str) -> dict[object, str]:
    """The labels as texts; those that cannot name a class of the page are refused."""
    text_of = {
        k: (JOINER.join(texts_of(k)) or NO_LABEL) if decider.tags else str(k)
        for k in decider.owners.tolist()
    }
    labels = set(map(str, decider.classes.tolist()))
    ambiguous = {
        label
        for label in labels
        if decider.tags and (JOINER in label or label == NO_LABEL)
    }
    for text in (*labels, *text_of.values()):
        with suppress(ParameterError):
            if clean_label(text) == text and text not in ambiguous:
                continue
        raise FileError(
            f"{name} has a class {text!r}, which cannot name a folder or a set of"
            " labels, as a class of the page must; fit the model again with another"
            f" name for it, or remove it: imprint forget {name} {text!r}."
        )
    return text_of


def check_settings(head: Head, other: ImportedModel, name: str) -> None:
    """Refuse a model whose settings are not those of `head`."""
    settings = settings_of(other.head)
    for setting, value in settings_of(head).items():
        if setting not in IGNORED_SETTINGS and settings[setting] != value:
            raise ParameterError(
                f"{name} has {setting} {settings[setting]} and this project has"
                f" {value}, so it cannot be merged into it; {ADVICE}."
            )


def check_tags(has_tags: bool, other: ImportedModel, name: str) -> None:
    """Refuse tags next to classes."""
    if has_tags != (other.tags is not None):
        first, second = ("this project", name) if has_tags else (name, "this project")
        raise ParameterError(
            f"The classes of {first} are tags, and those of {second} are not, so"
            f" {name} cannot be merged into it; import it into a new project."
        )


def check_levels(is_tree: bool, other: ImportedModel, name: str) -> None:
    """Refuse labels with a slash that form a tree in one place only."""
    if other.has_levels and bool(other.head.tree_of_labels) != is_tree:
        raise ParameterError(
            f"The labels of {name} and of this project have slashes, which separate"
            " the levels of a tree in one of them only, so it cannot be merged into"
            " it; fit both with tree=True or both with tree=False."
        )


def check_names(first: ImportedModel, other: ImportedModel) -> None:
    """Refuse class names as examples in one model only."""
    if first.has_names != other.has_names:
        raise ParameterError(
            "Only some of the imported models have class names as examples; fit all"
            " with names=True or all with names=False."
        )


def is_copy(head: Head | None, other: ImportedModel) -> bool:
    """Whether a model has the classes of a head and their states."""
    return head is not None and fingerprint(head) == fingerprint(other.head)
