"""The model of a project and its answers. Only classes that have changed are fitted
again.

In a model of tags, a class of the page is a label set, such as `joy + love`.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from imprint.calibration.estimates import SIGNIFICANCE_LEVEL
from imprint.core.arrays import Array
from imprint.core.errors import NotFittedError
from imprint.core.label_sets import as_text
from imprint.head import Head
from imprint.imprinter import Embedded
from imprint.imprinter.predictor import predictions
from imprint.imprinter.state import (
    Exemplars,
    ExemplarsByClass,
    choose_exemplars,
    reasons,
)
from imprint.serve.imported import JOINER, NO_LABEL, ImportedModel, ModelBasis
from imprint.serve.labelled import History, LabelledItem, LabelledSet, Origin
from imprint.tags import TagHead
from imprint.tags.head import with_label_sets

MAX_REASONS = 6  # items that are listed as reasons of an answer
EmbeddingTable = Mapping[str, Array]  # embeddings by the digest of their input


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
    only = _unchanged_import(labelled, basis)
    if only is not None:
        return ServedModel(history, basis, only.head, only.exemplars, only.tags)
    head = before.head.with_folds(None) if before.head is not None else None
    for label in changed:
        if head is not None and label in head:
            head = head.forget(label) if len(head) > 1 else None
    head = head or basis.empty
    imported = {
        label: basis.imported_class(label, origins)
        for label, origins in basis.sorted_labels(labelled, changed)
    }
    if imported:
        head = replace(
            head,
            labels=(*head.labels, *imported),
            states=(*head.states, *(one.state for one in imported.values())),
        )
    items = fitted_items(labelled, changed, rows)
    X, y = rows_of(items, rows)
    head = head.learn(X, y) if len(y) else head
    if not len(head):
        return ServedModel(history, basis)
    stored = {
        k: of_class for k, of_class in before.exemplars.items() if k not in changed
    }
    parts = {label: one.exemplars for label, one in imported.items() if one.exemplars}
    stored |= {label: of_class[0] for label, of_class in parts.items()}
    width = head.proxies.weights.shape[1]
    new = Embedded(X.reshape(len(items), width), [item.path for item in items], (), y)
    for label, (_, *others) in parts.items():
        new = _with_exemplars(new, label, others)
    tags = _tag_head(head) if basis.has_tags else None
    return ServedModel(history, basis, head, choose_exemplars(head, stored, new), tags)


def _unchanged_import(labelled: LabelledSet, basis: ModelBasis) -> ImportedModel | None:
    """The imported model, if it has all classes and nothing was added to it."""
    if len(basis.models) != 1 or labelled.items:
        return None
    ((digest, model),) = basis.models.items()
    classes = {label: (Origin(digest, label),) for label in model.head.labels}
    return model if labelled.classes == classes else None


def _with_exemplars(rows: Embedded, label: str, parts: Sequence[Exemplars]) -> Embedded:
    """Rows, followed by the stored inputs of a class."""
    X = np.concatenate([rows.X, *(part.X for part in parts)])
    names = [name for part in parts for name in part.names]
    labels = [*np.asarray(rows.y).tolist(), *[label] * len(names)]
    return rows._replace(
        X=X, names=[*rows.names, *names], y=np.array(labels, dtype=str)
    )


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
