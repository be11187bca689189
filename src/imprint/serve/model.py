"""The model of a project and its answers. Only classes that have changed are fitted again.

In a model of tags, a class of the page is a label set, such as `joy + love`.
"""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from imprint.backbones import Backbone
from imprint.calibration import Calibration, CrossValidation
from imprint.core.errors import FileError, NotFittedError, ParameterError
from imprint.core.files import container
from imprint.core.label_sets import as_text, texts_of
from imprint.core.types import Array
from imprint.head import Head
from imprint.imprinter import Embedded, exemplars
from imprint.imprinter.exemplars import Exemplars
from imprint.imprinter.predictions import predictions
from imprint.imprinter.state import ImprinterState
from imprint.method import ClassState, Method
from imprint.serve.labelled import History, LabelledItem, LabelledSet, clean_label
from imprint.tags import TagHead
from imprint.tags.head import with_label_sets

MAX_REASONS = 6  # items that are listed as reasons of an answer
ITEM, IMPORTED = "item ", "file "
"""Prefixes of the names of exemplars, before the number of an item or a name in the imported model file."""
JOINER, NO_LABEL = " + ", "no label"  # between the labels of a label set, and the class of the set without labels
WITHOUT_BACKBONE = "is a classifier of embeddings, without a backbone; the page needs a model with one."
EmbeddingTable = Mapping[str, Array]  # embeddings by the digest of their input


class ModelBasis(NamedTuple):
    """What a model is fitted with: a method and, if a model file was imported, its classes."""

    method: Method
    seed: int = 0
    width: int | None = None
    states: dict[str, ClassState] = {}  # noqa: RUF012 - never changed
    exemplars: dict[str, Exemplars] = {}  # noqa: RUF012
    folds: CrossValidation | None = None  # the cross-validation of the imported model; None if it was not calibrated
    flat: bool = False  # whether it was fitted with `tree=False`: labels with a slash do not form a tree
    tags: TagHead | None = None  # the imported model if it is one of tags; its label sets are the classes
    classes: tuple[str, ...] = ()  # the imported classes, in the order of the page


def imported_basis(raw: bytes, name: str, backbone: Backbone) -> ModelBasis:
    """The method, classes and calibration of a model file, with labels as texts. Unsuitable files are refused."""
    document, arrays = container.parse(raw, name)
    stated = document.get("backbone")
    if not isinstance(stated, dict):
        raise FileError(f"{name} {WITHOUT_BACKBONE}")
    if "kept" in document:
        raise FileError(
            f"{name} keeps the pre-trained classes of its backbone, which the page does not show; use imprint predict, "
            f"or fit it without --keep-head."
        )
    if stated.get("fingerprint") != backbone.fingerprint:
        raise FileError(
            f"{name} was fitted with the backbone {stated.get('spec')}, and this page runs with "
            f"{backbone.record.name}; start another page with it: imprint serve {name}."
        )
    decider, stored, _ = ImprinterState.from_parts(document, arrays, name)
    head, tags = decider.imprinted, decider if isinstance(decider, TagHead) else None
    if head.dtype != np.float32:
        raise FileError(f"{name} was fitted with double-precision embeddings, which this page does not compute.")
    text_of = {k: (JOINER.join(texts_of(k)) or NO_LABEL) if decider.tags else str(k) for k in decider.owners.tolist()}
    labels = set(map(str, decider.classes.tolist()))
    ambiguous = {label for label in labels if decider.tags and (JOINER in label or label == NO_LABEL)}
    for text in (*labels, *text_of.values()):
        with suppress(ParameterError):
            if clean_label(text) == text and text not in ambiguous:
                continue
        raise FileError(
            f"{name} has a class {text!r}, which cannot name a folder or a set of labels, as a class of the page must; "
            f"fit the model again with another name for it, or remove it: imprint forget {name} {text!r}."
        )
    states = {text_of[label]: state for label, state in zip(head.labels, head.states)}
    named = {
        text_of[label]: of_class._replace(names=tuple(f"{IMPORTED}{n}" for n in of_class.names))
        for label, of_class in stored.items()
    }
    folds = head.folds if isinstance(head.folds, CrossValidation) else None
    if folds is not None and not all(isinstance(label, str) for label in head.labels):
        empty = CrossValidation(Head(head.method, head.seed, head.dtype))
        renamed = empty.with_classes(folds, {str(label): label for label in head.labels})
        renamed.derived.put("calibration", folds.calibration)
        folds = renamed
    is_flat, classes = document.get("flat") is True, tuple(text_of.values())
    return ModelBasis(head.method, head.seed, head.width, states, named, folds, is_flat, tags, classes)


class ServedModel(NamedTuple):
    """The model of one state of the project, and that state."""

    history: History
    basis: ModelBasis
    head: Head | None = None
    exemplars: dict[Any, Exemplars] = {}  # noqa: RUF012
    tags: TagHead | None = None  # the head that scores labels, if the classes are label sets

    @property
    def decider(self) -> Head | TagHead | None:
        """The head that answers; None if there is no model yet."""
        return self.tags or self.head

    @property
    def calibration(self) -> Calibration | None:
        """The calibration of the head; None if it has none, and for tags."""
        folds = self.head.folds if self.head is not None and self.tags is None else None
        return folds.calibration if isinstance(folds, CrossValidation) else None

    @property
    def unchanged(self) -> bool:
        """Whether this is an imported model to which nothing was added."""
        labelled = self.history.labelled
        same = not labelled.items and labelled.classes == {k: k for k in self.basis.states}
        return labelled.model is not None and same

    @property
    def folds(self) -> CrossValidation | None:
        """The cross-validation of an unchanged imported model; the evaluator computes that of other models."""
        return self.basis.folds if self.unchanged else None


def changed_labels(before: LabelledSet, after: LabelledSet) -> set[str]:
    """The classes that differ between two states: those that must be fitted again."""
    ids = before.items.keys() | after.items.keys()
    pairs = ((before.items.get(i), after.items.get(i)) for i in ids)
    labels = {item.label for pair in pairs if pair[0] != pair[1] for item in pair if item}
    both = before.classes.keys() | after.classes.keys()
    return labels | {k for k in both if before.classes.get(k, "") != after.classes.get(k, "")}


def refitted(before: ServedModel, history: History, basis: ModelBasis, rows: EmbeddingTable) -> ServedModel:
    """The model after changes: each class that changed is fitted again from its items.

    It equals a model fitted from scratch, because a class depends only on its rows and its label.
    """
    labelled = history.labelled
    if basis is not before.basis:
        before = ServedModel(History(), basis)
    changed, head = changed_labels(before.history.labelled, labelled), before.head
    if not changed:
        return before._replace(history=history)
    for label in changed:
        if head is not None and label in head:
            head = head.forget(label) if len(head) > 1 else None
    head, origins = head or Head(basis.method, basis.seed, np.float32), _origins(labelled, changed, basis)
    if origins:
        labels, states = (*head.labels, *origins), (*head.states, *(basis.states[k] for k in origins.values()))
        head = replace(head, labels=labels, states=states, label_type=np.dtype("U1"), width=basis.width)
    items = fitted_items(labelled, changed, rows)
    X, y = rows_of(items, rows)
    head = head.learn(X, y) if len(y) else head
    if not len(head):
        return ServedModel(history, basis)
    stored = {k: of_class for k, of_class in before.exemplars.items() if k not in changed}
    stored |= {k: basis.exemplars[origin] for k, origin in origins.items() if origin in basis.exemplars}
    names, width = [f"{ITEM}{item.id}" for item in items], head.proxies.weights.shape[1]
    new = Embedded(X.reshape(len(items), width), names, (), y)
    model = ServedModel(history, basis, head, exemplars.choose_exemplars(head, stored, new))
    return model if basis.tags is None else model._replace(tags=basis.tags if model.unchanged else _tag_head(head))


def _tag_head(sets: Head) -> TagHead | None:
    """The head of tags over the classes of the page; None if no class has a label."""
    names = [sorted(label.split(JOINER)) if label != NO_LABEL else [] for label in map(str, sets.labels)]
    labels = tuple(sorted({label for one in names for label in one}))
    return TagHead(with_label_sets(sets, list(map(as_text, names))), labels) if labels else None


def refitted_folds(
    folds: CrossValidation | None, model: ServedModel, rows: EmbeddingTable, labels: Collection[str]
) -> CrossValidation:
    """The cross-validation after these classes are fitted again, each from its items and its imported rows."""
    labelled, basis = model.history.labelled, model.basis
    folds = folds or CrossValidation(Head(basis.method, basis.seed, np.float32))
    for label in labels:
        folds = folds.forget(label) if label in folds.held else folds
    if basis.folds is not None:
        folds = folds.with_classes(basis.folds, _origins(labelled, labels, basis))
    X, y = rows_of(fitted_items(labelled, labels, rows), rows)
    return folds.learn(X, y) if len(y) else folds


def fitted_items(labelled: LabelledSet, labels: Collection[str], rows: EmbeddingTable) -> list[LabelledItem]:
    """The items of these classes to fit, by class and file; without those that are held out or have no embedding."""
    items = (i for i in labelled.items.values() if i.label in labels and i.digest in rows and not i.held_out)
    return sorted(items, key=lambda item: (item.label, item.file))


def rows_of(items: Sequence[LabelledItem], rows: EmbeddingTable) -> tuple[Array, Array]:
    """The embeddings and labels of items.  # (n, d), (n,)"""
    X = np.stack([rows[item.digest] for item in items]) if items else np.empty((0, 0), np.float32)
    return X, np.array([item.label for item in items], dtype=str)


def _origins(labelled: LabelledSet, labels: Collection[str], basis: ModelBasis) -> dict[str, str]:
    """The imported classes among these and their labels in the file, in the order of imprinting there."""
    position = {origin: i for i, origin in enumerate(basis.states)}
    imported = {k: origin for k in labels if (origin := labelled.classes.get(k)) is not None}
    return dict(sorted(imported.items(), key=lambda pair: position[pair[1]]))


def answer(
    model: ServedModel, row: Array, path: str, *, unknown: float = 0.0, why: bool = False, **options: Any
) -> dict[str, Any]:
    """What `imprint predict --json` prints for an embedding, with `doubt` and `calibrated`. Options: `top`, `level`."""
    head = model.decider
    if head is None:
        raise NotFittedError("There is no model yet: add examples of a class first.")
    rows, tree = Embedded(row[None, :], [path], ()), head.tree(flat=model.basis.flat)
    threshold = unknown if head.calibrated else None
    (predicted,) = predictions(head, tree, rows, unknown=threshold, with_doubt=True, **options)
    predicted["calibrated"] = head.calibrated
    if predicted["label"] is not None and "labels" in predicted:
        predicted["label"] = JOINER.join(str(one["label"]) for one in predicted["labels"]) or NO_LABEL
    elif why and not head.tags:
        predicted |= {"why": _reasons(model, row), "measure": head.aggregator.measure}
    return predicted


def item_of(exemplar: str, labelled: LabelledSet) -> LabelledItem | None:
    """The item that an exemplar is; None if it is of an imported file, or the item was deleted."""
    return labelled.items.get(int(exemplar.removeprefix(ITEM))) if exemplar.startswith(ITEM) else None


def _reasons(model: ServedModel, row: Array) -> list[dict[str, Any]]:
    """The items that contribute most to the answer; those of an imported model have a name and no number."""
    assert model.head is not None
    reasons = []
    for reason in exemplars.reasons(model.head, model.exemplars, row, MAX_REASONS):
        exemplar = reason.picture or ""
        item = item_of(exemplar, model.history.labelled)
        name = item.name if item else exemplar.removeprefix(IMPORTED) or None
        reasons.append({"id": item.id if item else None, "name": name, "label": reason.label, "value": reason.value})
    return reasons
