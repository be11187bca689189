"""The model of a project and its answers. Only classes that have changed are fitted
again.

In a model of tags, a class of the page is a label set, such as `joy + love`.
"""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from imprint.backbones import Backbone
from imprint.calibration import CrossValidation
from imprint.calibration.estimates import SIGNIFICANCE_LEVEL
from imprint.core.arrays import Array
from imprint.core.errors import FileError, NotFittedError, ParameterError
from imprint.core.files import container
from imprint.core.label_sets import as_text, texts_of
from imprint.head import Head
from imprint.imprinter import Embedded
from imprint.imprinter.predictor import predictions
from imprint.imprinter.state import (
    ExemplarsByClass,
    ImprinterState,
    choose_exemplars,
    reasons,
)
from imprint.serve.labelled import History, LabelledItem, LabelledSet, clean_label
from imprint.tags import TagHead
from imprint.tags.head import with_label_sets

MAX_REASONS = 6  # items that are listed as reasons of an answer
# between the labels of a label set, and the class of the set without labels
JOINER, NO_LABEL = " + ", "no label"
WITHOUT_BACKBONE = (
    "is a classifier of embeddings, without a backbone; the page needs a model with"
    " one."
)
EmbeddingTable = Mapping[str, Array]  # embeddings by the digest of their input


class ModelBasis(NamedTuple):
    """What a model is fitted with: a head without classes or, if a model file was
    imported, the head of that file.
    """

    # with labels as texts, and with a cross-validation if the imported model is
    # calibrated
    head: Head
    exemplars: ExemplarsByClass = {}  # noqa: RUF012 - never changed
    # the imported model if it is one of tags; its label sets are the classes
    tags: TagHead | None = None

    @property
    def empty(self) -> Head:
        """The head without its classes."""
        return replace(self.head, labels=(), states=(), folds=None)


def imported_basis(raw: bytes, name: str, backbone: Backbone) -> ModelBasis:
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
    decider, stored = state.head, state.exemplars
    head = decider.imprinted
    if head.dtype != np.float32:
        raise FileError(
            f"{name} was fitted with double-precision embeddings, which this page does"
            " not compute."
        )
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
    folds = None
    if head.folds is not None and not head.folds.has_rows:
        raise FileError(
            f"{name} was shared without the rows that the page needs to calibrate it;"
            " use the original file, or imprint predict."
        )
    if head.folds is not None:
        empty = CrossValidation(Head(head.method, head.seed, head.dtype))
        folds = empty.with_classes(
            head.folds, {text_of[label]: label for label in head.labels}
        )
        folds.derived.put("calibration", head.folds.calibration)
    texts = tuple(text_of[label] for label in head.labels)
    return ModelBasis(
        head=replace(head, labels=texts, folds=folds),
        exemplars={text_of[label]: of_class for label, of_class in stored.items()},
        tags=decider if isinstance(decider, TagHead) else None,
    )


class ServedModel(NamedTuple):
    """The model of one state of the project, and that state."""

    history: History
    basis: ModelBasis
    # calibrated only if it is an imported one to which nothing was added
    head: Head | None = None
    exemplars: ExemplarsByClass = {}  # noqa: RUF012
    # the head that scores labels, if the classes are label sets
    tags: TagHead | None = None

    @property
    def decider(self) -> Head | TagHead | None:
        """The head that answers; None if there is no model yet."""
        return self.tags or self.head


def changed_labels(before: LabelledSet, after: LabelledSet) -> set[str]:
    """The classes that differ between two states: those that must be fitted again."""
    was, now = before.by_class(), after.by_class()
    labels = was.keys() | now.keys()
    return {
        k
        for k in labels
        if was.get(k) != now.get(k) or before.classes.get(k) != after.classes.get(k)
    }


def refitted(
    before: ServedModel, history: History, basis: ModelBasis, rows: EmbeddingTable
) -> ServedModel:
    """The model after changes: each class that changed is fitted again from its items.

    It equals a model fitted from scratch, because a class depends only on its rows and
    its label.
    """
    labelled = history.labelled
    if basis is not before.basis:
        before = ServedModel(History(), basis)
    changed = changed_labels(before.history.labelled, labelled)
    if not changed:
        return before._replace(history=history)
    if (
        not labelled.items
        and labelled.classes
        and labelled.classes == {label: label for label in basis.head.labels}
    ):
        return ServedModel(history, basis, basis.head, basis.exemplars, basis.tags)
    head = before.head.with_folds(None) if before.head is not None else None
    for label in changed:
        if head is not None and label in head:
            head = head.forget(label) if len(head) > 1 else None
    head, origins = head or basis.empty, imported_labels(labelled, changed, basis)
    if origins:
        states = dict(zip(basis.head.labels, basis.head.states))
        labels = (*head.labels, *origins)
        head = replace(
            head,
            labels=labels,
            states=(*head.states, *(states[origin] for origin in origins.values())),
        )
    items = fitted_items(labelled, changed, rows)
    X, y = rows_of(items, rows)
    head = head.learn(X, y) if len(y) else head
    if not len(head):
        return ServedModel(history, basis)
    stored = {
        k: of_class for k, of_class in before.exemplars.items() if k not in changed
    }
    stored |= {
        k: basis.exemplars[origin]
        for k, origin in origins.items()
        if origin in basis.exemplars
    }
    new = Embedded(
        X.reshape(len(items), head.proxies.weights.shape[1]),
        [item.path for item in items],
        (),
        y,
    )
    tags = _tag_head(head) if basis.tags is not None else None
    return ServedModel(history, basis, head, choose_exemplars(head, stored, new), tags)


def _tag_head(sets: Head) -> TagHead | None:
    """The head of tags over the classes of the page; None if no class has a label."""
    names = [
        sorted(label.split(JOINER)) if label != NO_LABEL else []
        for label in map(str, sets.labels)
    ]
    labels = tuple(sorted({label for one in names for label in one}))
    return (
        TagHead(with_label_sets(sets, list(map(as_text, names))), labels)
        if labels
        else None
    )


def fitted_items(
    labelled: LabelledSet, labels: Collection[str], rows: EmbeddingTable
) -> list[LabelledItem]:
    """The items of these classes to fit, by class and file; without those that are held
    out or have no embedding.
    """
    items = (
        i
        for i in labelled.items.values()
        if i.label in labels and i.digest in rows and not i.held_out
    )
    return sorted(items, key=lambda item: (item.label, item.file))


def rows_of(items: Sequence[LabelledItem], rows: EmbeddingTable) -> tuple[Array, Array]:
    """The embeddings and labels of items.  # (n, d), (n,)"""
    X = (
        np.stack([rows[item.digest] for item in items])
        if items
        else np.empty((0, 0), np.float32)
    )
    return X, np.array([item.label for item in items], dtype=str)


def imported_labels(
    labelled: LabelledSet, labels: Collection[str], basis: ModelBasis
) -> dict[str, str]:
    """The imported classes among these and their labels in the file, in the order of
    imprinting there.
    """
    current = {
        origin: label for label, origin in labelled.classes.items() if label in labels
    }
    return {
        current[origin]: origin for origin in basis.head.labels if origin in current
    }


def answer(
    model: ServedModel,
    row: Array,
    path: str,
    *,
    unknown: float = 0.0,
    why: bool = False,
    **options: Any,
) -> dict[str, Any]:
    """What `imprint predict --json` prints for an embedding, with `doubt` and
    `calibrated`. Options: `top`, `level`.
    """
    head = model.decider
    if head is None:
        raise NotFittedError("There is no model yet: add examples of a class first.")
    rows, threshold = (
        Embedded(row[None, :], [path], ()),
        unknown if head.calibrated else None,
    )
    (predicted,) = predictions(
        head, rows, unknown=threshold, with_doubt=True, **options
    )
    predicted["calibrated"] = head.calibrated
    if head.calibrated:
        # the page says "cannot tell yet" where no p-value can be small
        missing = head.calibration.missing_rows(SIGNIFICANCE_LEVEL)
        predicted["missing_rows"] = missing
    if predicted["label"] is not None and "labels" in predicted:
        predicted["label"] = (
            JOINER.join(str(one["label"]) for one in predicted["labels"]) or NO_LABEL
        )
    elif why and not head.tags:
        predicted |= {"why": _reasons(model, row), "measure": head.aggregator.measure}
    return predicted


def _reasons(model: ServedModel, row: Array) -> list[dict[str, Any]]:
    """The items that contribute most to the answer; those of an imported model have a
    name and no number.
    """
    assert model.head is not None
    items = {item.path: item for item in model.history.labelled.items.values()}
    described = []
    for reason in reasons(model.head, model.exemplars, row, MAX_REASONS):
        item = items.get(reason.image or "")
        id, name = (item.id, item.name) if item is not None else (None, reason.image)
        described.append(
            {"id": id, "name": name, "label": reason.label, "value": reason.value}
        )
    return described
