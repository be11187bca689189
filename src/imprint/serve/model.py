"""From labelled items to the model and its answers: a class that changed is fitted again, the others stay."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np

from imprint.calibration import Calibration, CrossValidation
from imprint.core.errors import NotFittedError
from imprint.core.tree import LabelTree
from imprint.core.types import Array
from imprint.head import Head
from imprint.imprinter import Embedded, exemplars
from imprint.imprinter.exemplars import Exemplars
from imprint.kernels.softmax import keep_winners
from imprint.method import ClassState, Method
from imprint.serve.history import History
from imprint.serve.labelled import LabelledItem, LabelledSet, changed_labels
from imprint.serve.tags import tag_answer, tag_head
from imprint.tags import TagHead

REASONS = 6
OWN, IMPORTED = "item ", "file "
"""How names of exemplars begin: the number of an item of the project follows, or a name in the imported file."""


class EmbeddingTable(Protocol):
    """Embeddings by the digest of what was embedded."""

    def __getitem__(self, digest: str, /) -> Array: ...
    def __contains__(self, digest: Any, /) -> bool: ...


class ModelBasis(NamedTuple):
    """What a model is fitted with: a method and, where a model file was imported, its classes."""

    method: Method
    seed: int = 0
    width: int | None = None
    states: dict[str, ClassState] = {}  # noqa: RUF012 - never changed
    exemplars: dict[str, Exemplars] = {}  # noqa: RUF012
    folds: CrossValidation | None = None
    """The cross-validation of the imported model, None where it was not calibrated."""
    flat: bool = False
    """Whether labels with a slash form no tree, as the imported model says."""
    tags: TagHead | None = None
    """The imported model, where it is one of tags; the classes are its label sets."""


class ServedModel(NamedTuple):
    """The model of one state of the project, and that state."""

    history: History
    basis: ModelBasis
    head: Head | None = None
    exemplars: dict[Any, Exemplars] = {}  # noqa: RUF012
    tags: TagHead | None = None
    """The head that scores labels, where the classes are label sets."""

    @property
    def unchanged(self) -> bool:
        """Whether this is an imported model to which nothing was added."""
        labelled = self.history.labelled
        same = not labelled.items and labelled.classes == {k: k for k in self.basis.states}
        return labelled.model is not None and same

    @property
    def folds(self) -> CrossValidation | None:
        """The cross-validation of an imported model to which nothing was added; of others the evaluator computes it."""
        return self.basis.folds if self.unchanged else None


def refitted(before: ServedModel, history: History, basis: ModelBasis, rows: EmbeddingTable) -> ServedModel:
    """The model after changes: each class that changed is fitted again from its own items.

    It equals a model fitted from scratch, because a class depends only on its own rows and its label.
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
        head = with_states(head or empty, {k: basis.states[origin] for k, origin in origins.items()}, basis.width)
    X, y = _rows(by_class, rows)
    head = (head or empty).learn(X, y) if len(y) else head
    if head is None:
        return ServedModel(history, basis)
    shelves = {k: shelf for k, shelf in before.exemplars.items() if k not in by_class}
    shelves |= {k: basis.exemplars[origin] for k, origin in origins.items() if origin in basis.exemplars}
    names = [f"{OWN}{item.id}" for items in by_class.values() for item in items]
    X = X if len(y) else np.empty((0, head.proxies.weights.shape[1]), np.float32)
    chosen = exemplars.choose_exemplars(head, shelves, Embedded(X, names, (), y))
    model = ServedModel(history, basis, head, chosen)
    return model if basis.tags is None else model._replace(tags=tag_head(head, basis.tags, model.unchanged))


def refitted_folds(
    folds: CrossValidation | None,
    basis: ModelBasis,
    labelled: LabelledSet,
    rows: EmbeddingTable,
    labels: Collection[str],
) -> CrossValidation:
    """The cross-validation after these classes are fitted again, each from its own items and its imported rows."""
    folds = folds or CrossValidation.new(basis.method, basis.seed, np.float32)
    for label in labels:
        folds = folds.forget(label) if label in folds.held else folds
    by_class = in_order(labelled, labels, rows)
    if basis.folds is not None:
        folds = folds.with_classes(basis.folds, _origins(labelled, by_class, basis))
    X, y = _rows(by_class, rows)
    return folds.learn(X, y) if len(y) else folds


def in_order(labelled: LabelledSet, labels: Iterable[str], rows: EmbeddingTable) -> dict[str, list[LabelledItem]]:
    """The items to fit, by class and in order, without held-out ones and those whose file and embedding were lost."""
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
    """The imported ones among these classes with their labels in the file, in the order of imprinting there."""
    position = {origin: i for i, origin in enumerate(basis.states)}
    imported = {k: origin for k in labels if (origin := labelled.classes.get(k)) is not None}
    return dict(sorted(imported.items(), key=lambda pair: position[pair[1]]))


def _without(head: Head | None, labels: Collection[str]) -> Head | None:
    if head is None or all(label in labels for label in head.labels):
        return None
    for label in head.labels:
        head = head.forget(label) if label in labels else head
    return head


def with_states(head: Head, states: Mapping[str, ClassState], width: int | None) -> Head:
    """A head with more classes, whose states are known."""
    if not states:
        return head
    labels, all_states = (*head.labels, *states), (*head.states, *states.values())
    return Head(head.method, head.seed, head.dtype, labels, all_states, np.dtype("U1"), width)


def probabilities(head: Head, calibration: Calibration | None, S: Array) -> Array:
    """Probabilities of scores, calibrated where the model is.  # (n, C)"""
    if calibration is None:
        return np.asarray(head.probabilities(S))
    shares = head.method.aggregator.probabilities(S, head.prepared)
    return np.asarray(keep_winners(calibration.probabilities(shares), S))


def answer(
    model: ServedModel,
    calibration: Calibration | None,
    row: Array,
    path: str,
    *,
    top: int = 3,
    unknown: float = 0.0,
    level: int | None = None,
    why: bool = False,
) -> dict[str, Any]:
    """What `imprint predict --json` prints for one embedding, and whether it is calibrated.

    The label is None where the p-value `known` is below `unknown`; in a tree, `node` is then the deepest likely node.
    """
    head = model.head
    if head is None:
        raise NotFittedError("There is no model yet: add examples of a class first.")
    if model.tags is not None:
        return tag_answer(model, row, path, top, unknown)
    Q = row[None, :].astype(head.dtype)
    S, doubt = head.scores(Q), head.doubt(Q)
    P = probabilities(head, calibration, S)[0]
    known = None if calibration is None else float(calibration.p_values(S, doubt)[0])
    labels = head.classes.tolist()
    tree, rejected = LabelTree.of(labels, flat=model.basis.flat), known is not None and known < unknown
    node = tree.instead(P[None, :], np.array([1.0 if known is None else known]), unknown, level)[0]
    if level is not None:
        labels, (P,) = tree.at(P[None, :], level)
    best = [{"label": labels[c], "probability": float(P[c])} for c in np.argsort(-P, kind="stable")[:top].tolist()]
    predicted: dict[str, Any] = {
        "path": path,
        "label": None if rejected else best[0]["label"],
        "probability": best[0]["probability"],
        "known": known,
        "doubt": None if doubt is None else float(doubt[0]),
        "calibrated": calibration is not None,
        "top": best,
        **({"node": node._asdict() if node else None} if tree.grouped_levels else {}),
    }
    return predicted | ({"why": _reasons(model, row), "measure": head.method.aggregator.measure} if why else {})


def item_number(exemplar: str) -> int | None:
    """The number of the project's item that an exemplar names, None for one of an imported file."""
    return int(exemplar.removeprefix(OWN)) if exemplar.startswith(OWN) else None


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
