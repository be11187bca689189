"""From what is taught to the model: a class that changed is learnt again from its items, the others stay."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from imprint.core.types import Array
from imprint.head import Head
from imprint.imprinter import Embedded, exemplars
from imprint.method import ClassState, Method
from imprint.serve.taught import Item, Taught


class Rows(Protocol):
    """Embeddings by the digest of what was embedded."""

    def __getitem__(self, digest: str, /) -> Array: ...


class Basis(NamedTuple):
    """What the model is made with: a method and, where a model was opened, what that knows of its classes."""

    method: Method
    seed: int = 0
    states: dict[str, ClassState] = {}  # noqa: RUF012 - never changed
    shelves: dict[str, exemplars.Exemplars] = {}  # noqa: RUF012


class Learnt(NamedTuple):
    """A head, and for every class the items that stand beside its proxies, named by their numbers."""

    head: Head | None = None
    shelves: dict[Any, exemplars.Exemplars] = {}  # noqa: RUF012


def relearnt(before: Learnt, basis: Basis, taught: Taught, rows: Rows, labels: Iterable[str]) -> Learnt:
    """What is learnt once these classes are learnt again, each from its own items alone.

    It equals what a fresh start would give, since a class depends on its own rows and label alone.
    """
    by_class = in_order(taught, labels)
    head = relearnt_head(before.head, basis, taught.classes, by_class, rows)
    if head is None:
        return Learnt()
    return Learnt(head, _shelves(head, before, basis, taught.classes, by_class, rows))


def relearnt_head(
    head: Head | None, basis: Basis, classes: Mapping[str, str | None], by_class: Mapping[str, list[Item]], rows: Rows
) -> Head | None:
    """A head in which the classes named in `by_class` are learnt again from these items."""
    head = _without(head, by_class.keys()) if head is not None else None
    opened = {k: basis.states[origin] for k in by_class if (origin := classes.get(k)) is not None}
    if opened:
        head = _with_states(head, basis, opened)
    items = [item for own in by_class.values() for item in own]
    if not items:
        return head
    X = np.stack([rows[item.digest] for item in items])
    return (head or Head(basis.method, basis.seed, X.dtype)).learn(X, np.array([item.label for item in items]))


def in_order(taught: Taught, labels: Iterable[str]) -> dict[str, list[Item]]:
    """The items of classes, in the order in which they are learnt."""
    found: dict[str, list[Item]] = {label: [] for label in sorted(labels)}
    for item in taught.items.values():
        if item.label in found:
            found[item.label].append(item)
    return {label: sorted(own, key=lambda i: i.file) for label, own in found.items()}


def _without(head: Head, labels: Collection[str]) -> Head | None:
    gone = [label for label in labels if label in head]
    if len(gone) == len(head):
        return None
    for label in gone:
        head = head.forget(label)
    return head


def _with_states(head: Head | None, basis: Basis, opened: Mapping[str, ClassState]) -> Head:
    labels: Sequence[Any] = head.labels if head else []
    states = head.states if head else []
    dtype = head.dtype if head else np.float32
    return Head(basis.method, basis.seed, dtype, (*labels, *opened), (*states, *opened.values()), np.dtype("U1"))


def _shelves(
    head: Head,
    before: Learnt,
    basis: Basis,
    classes: Mapping[str, str | None],
    by_class: Mapping[str, list[Item]],
    rows: Rows,
) -> dict[Any, exemplars.Exemplars]:
    kept = {k: shelf for k, shelf in before.shelves.items() if k not in by_class}
    origins = {k: origin for k in by_class if (origin := classes.get(k)) is not None}
    kept |= {k: basis.shelves[origin] for k, origin in origins.items() if origin in basis.shelves}
    items = [item for own in by_class.values() for item in own]
    X = np.stack([rows[i.digest] for i in items]) if items else np.empty((0, head.proxies.weights.shape[1]), np.float32)
    y = np.array([i.label for i in items], dtype=str)
    return exemplars.shelve(head, kept, Embedded(X, [str(i.id) for i in items], (), y))
