"""The model of a project and its answers. Only classes that have changed are fitted again.

In a model of tags, a class of the page is a label set, such as `joy + love`.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from imprint.calibration import Calibration, CrossValidation
from imprint.core.errors import NotFittedError
from imprint.core.label_sets import as_text, texts_of
from imprint.core.types import Array
from imprint.head import Head
from imprint.imprinter import Embedded, exemplars
from imprint.imprinter.exemplars import Exemplars
from imprint.imprinter.predictions import predictions
from imprint.method import ClassState, Method
from imprint.serve.history import History
from imprint.serve.labelled import LabelledItem, LabelledSet, changed_labels
from imprint.tags import TagHead
from imprint.tags.head import with_label_sets

REASONS = 6
ITEM, IMPORTED = "item ", "file "
"""Prefixes of the names of exemplars, before the number of an item or a name in the imported model file."""
AND = " + "
EmbeddingTable = Mapping[str, Array]
"""Embeddings by the digest of their input."""


class ModelBasis(NamedTuple):
    """What a model is fitted with: a method and, if a model file was imported, its classes."""

    method: Method
    seed: int = 0
    width: int | None = None
    states: dict[str, ClassState] = {}  # noqa: RUF012 - never changed
    exemplars: dict[str, Exemplars] = {}  # noqa: RUF012
    folds: CrossValidation | None = None
    """The cross-validation of the imported model; None if it was not calibrated."""
    flat: bool = False
    """Whether the imported model was fitted with `tree=False`: labels with a slash do not form a tree."""
    tags: TagHead | None = None
    """The imported model if it is one of tags; its label sets are the classes."""


class ServedModel(NamedTuple):
    """The model of one state of the project, and that state."""

    history: History
    basis: ModelBasis
    head: Head | None = None
    exemplars: dict[Any, Exemplars] = {}  # noqa: RUF012
    tags: TagHead | None = None
    """The head that scores labels, if the classes are label sets."""

    @property
    def decider(self) -> Head | TagHead | None:
        """The head that answers; None if there is no model yet."""
        return self.head if self.tags is None else self.tags

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


def refitted(before: ServedModel, history: History, basis: ModelBasis, rows: EmbeddingTable) -> ServedModel:
    """The model after changes: each class that changed is fitted again from its items.

    It equals a model fitted from scratch, because a class depends only on its rows and its label.
    """
    labelled = history.labelled
    if basis is not before.basis:
        before = ServedModel(History(), basis)
    by_class = in_order(labelled, changed_labels(before.history.labelled, labelled), rows)
    if not by_class:
        return before._replace(history=history)
    origins, empty = _origins(labelled, by_class, basis), Head(basis.method, basis.seed, np.float32)
    head = _without(before.head, by_class)
    if origins:
        head = _with_states(head or empty, {k: basis.states[origin] for k, origin in origins.items()}, basis.width)
    X, y = _rows(by_class, rows)
    head = (head or empty).learn(X, y) if len(y) else head
    if head is None:
        return ServedModel(history, basis)
    stored = {k: of_class for k, of_class in before.exemplars.items() if k not in by_class}
    stored |= {k: basis.exemplars[origin] for k, origin in origins.items() if origin in basis.exemplars}
    names = [f"{ITEM}{item.id}" for items in by_class.values() for item in items]
    X = X if len(y) else np.empty((0, head.proxies.weights.shape[1]), np.float32)
    chosen = exemplars.choose_exemplars(head, stored, Embedded(X, names, (), y))
    model = ServedModel(history, basis, head, chosen)
    return model if basis.tags is None else model._replace(tags=_tag_head(head, basis.tags, model.unchanged))


def page_label(label: Any, is_set: bool) -> str:
    """The name of a class on the page: a label, or the labels of a label set.

    >>> page_label("joy|love", True), page_label("joy|love", False)
    ('joy + love', 'joy|love')
    """
    return AND.join(texts_of(label)) if is_set else str(label)


def _tag_head(sets: Head, imported: TagHead, unchanged: bool) -> TagHead:
    """The head of tags over the classes of the page; the imported one if nothing has changed since."""
    if unchanged:
        return imported
    names = [sorted(str(label).split(AND)) for label in sets.labels]
    labels = tuple(sorted({label for one in names for label in one}))
    return TagHead(with_label_sets(sets, list(map(as_text, names))), labels)


def refitted_folds(
    folds: CrossValidation | None,
    basis: ModelBasis,
    labelled: LabelledSet,
    rows: EmbeddingTable,
    labels: Collection[str],
) -> CrossValidation:
    """The cross-validation after these classes are fitted again, each from its items and its imported rows."""
    folds = folds or CrossValidation.new(basis.method, basis.seed, np.float32)
    for label in labels:
        folds = folds.forget(label) if label in folds.held else folds
    by_class = in_order(labelled, labels, rows)
    if basis.folds is not None:
        folds = folds.with_classes(basis.folds, _origins(labelled, by_class, basis))
    X, y = _rows(by_class, rows)
    return folds.learn(X, y) if len(y) else folds


def in_order(labelled: LabelledSet, labels: Iterable[str], rows: EmbeddingTable) -> dict[str, list[LabelledItem]]:
    """The items to fit, by class and in order; without those that are held out or have lost file and embedding."""
    items_of: dict[str, list[LabelledItem]] = {label: [] for label in sorted(labels)}
    for item in labelled.items.values():
        if item.label in items_of and item.digest in rows and not item.held_out:
            items_of[item.label].append(item)
    return {label: sorted(items, key=lambda i: i.file) for label, items in items_of.items()}


def _rows(by_class: Mapping[str, list[LabelledItem]], rows: EmbeddingTable) -> tuple[Array, Array]:
    items = [item for items in by_class.values() for item in items]
    X = np.stack([rows[item.digest] for item in items]) if items else np.empty((0, 0), np.float32)
    return X, np.array([item.label for item in items], dtype=str)


def _origins(labelled: LabelledSet, labels: Collection[str], basis: ModelBasis) -> dict[str, str]:
    """The imported classes among these and their labels in the file, in the order of imprinting there."""
    position = {origin: i for i, origin in enumerate(basis.states)}
    imported = {k: origin for k in labels if (origin := labelled.classes.get(k)) is not None}
    return dict(sorted(imported.items(), key=lambda pair: position[pair[1]]))


def _without(head: Head | None, labels: Collection[str]) -> Head | None:
    if head is None or all(label in labels for label in head.labels):
        return None
    for label in head.labels:
        head = head.forget(label) if label in labels else head
    return head


def _with_states(head: Head, states: Mapping[str, ClassState], width: int | None) -> Head:
    """A head with more classes, whose states are known."""
    labels, all_states = (*head.labels, *states), (*head.states, *states.values())
    return Head(head.method, head.seed, head.dtype, labels, all_states, np.dtype("U1"), width)


def answer(
    model: ServedModel,
    row: Array,
    path: str,
    *,
    top: int = 3,
    unknown: float = 0.0,
    level: int | None = None,
    why: bool = False,
) -> dict[str, Any]:
    """What `imprint predict --json` prints for one embedding; also `doubt`, and whether the model is calibrated."""
    head = model.decider
    if head is None:
        raise NotFittedError("There is no model yet: add examples of a class first.")
    rows, tree = Embedded(row[None, :], [path], ()), head.tree(flat=model.basis.flat)
    threshold = unknown if head.calibrated else None
    (predicted,) = predictions(head, tree, rows, top=top, unknown=threshold, level=level, with_doubt=True)
    predicted["calibrated"] = head.calibrated
    if predicted["label"] is not None and "labels" in predicted:
        predicted["label"] = AND.join(str(one["label"]) for one in predicted["labels"]) or "no label"
    elif why and not head.tags:
        predicted |= {"why": _reasons(model, row), "measure": head.measure}
    return predicted


def item_number(exemplar: str) -> int | None:
    """The number of the project's item that an exemplar names, None for one of an imported file."""
    return int(exemplar.removeprefix(ITEM)) if exemplar.startswith(ITEM) else None


def _reasons(model: ServedModel, row: Array) -> list[dict[str, Any]]:
    """The items that contribute most to the answer; those of an imported model have a name and no number."""
    assert model.head is not None
    reasons = []
    for reason in exemplars.reasons(model.head, model.exemplars, row, REASONS):
        exemplar = reason.picture or ""
        item = model.history.labelled.items.get(item_number(exemplar) or 0)
        name = item.name if item else exemplar.removeprefix(IMPORTED) or None
        reasons.append({"id": item.id if item else None, "name": name, "label": reason.label, "value": reason.value})
    return reasons
