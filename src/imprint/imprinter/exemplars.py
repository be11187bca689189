"""Which training picture stands beside a proxy: the few that a model remembers in order to explain itself."""

from typing import Any, NamedTuple

import numpy as np

from imprint.core.types import Array
from imprint.head import Decider, Head
from imprint.imprinter.items import Embedded
from imprint.kernels.neighbours import nearest
from imprint.kernels.rows import squared_norms
from imprint.persistence import PICTURES

BLOCK = 1024  # proxies that are compared with a class's pictures at once
FEW = 1 << 18  # distances up to which a search for neighbours takes longer to prepare than to compare all


class Reason(NamedTuple):
    """A proxy that counts for a query: its class, how much, and the training picture of that class nearest to it.

    `value` is what the aggregator compares, see `Imprinter.measure`: an inner product, a distance, or a weight with
    its sign. `picture` is None where the class was imprinted from embeddings without names.
    """

    label: Any
    value: float
    picture: str | None


class Exemplars(NamedTuple):
    """The pictures kept of one class: their names, their embeddings, and for each proxy which of them is nearest."""

    names: tuple[str, ...]
    X: Array  # (e, d)
    beside: Array  # (p_c,) index into names


def shelve(head: Head, before: dict[Any, Exemplars], new: Embedded) -> dict[Any, Exemplars]:
    """For every class the pictures nearest to its proxies, out of those kept before and the new ones.

    Classes without new pictures keep their shelf where their proxies cannot have moved.
    """
    y = np.empty(0) if new.y is None else new.y
    arrived = {label: np.flatnonzero(y == label) for label in np.unique(y).tolist()}
    edges = np.append(head.proxies.starts, len(head.proxies.labels))
    shelves = {}
    for c, label in enumerate(head.classes.tolist()):
        old, mine = before.get(label), arrived.get(label, np.empty(0, dtype=np.intp))
        if old and not len(mine) and head.method.per_class:
            shelves[label] = old
        elif old or len(mine):
            X = np.concatenate([*([old.X] if old else []), np.asarray(new.X[mine])])
            names = [*(old.names if old else ()), *(new.names[int(i)] for i in mine)]
            shelves[label] = _shelf(head, head.proxies.weights[edges[c] : edges[c + 1]], X, names)
    return shelves


def _shelf(head: Head, weights: Array, X: Array, names: list[str]) -> Exemplars:
    pictures = head.method.norm_inf.apply(X)
    found = [_closest(head, weights[i : i + BLOCK], pictures) for i in range(0, len(weights), BLOCK)]
    kept, beside = np.unique(np.concatenate(found), return_inverse=True)
    return Exemplars(tuple(names[i] for i in kept), X[kept], beside)


def _closest(head: Head, weights: Array, pictures: Array) -> Array:
    """The picture that is most like each proxy: the nearest one, or where lengths mean nothing the one along it."""
    if head.method.generator.points and head.method.aggregator.measure != "similarity":
        if len(weights) * len(pictures) <= FEW:
            W, X = weights.astype(np.float64), pictures.astype(np.float64)
            return np.asarray(np.argmin(squared_norms(X) - 2 * W @ X.T, axis=1))
        return nearest(weights, pictures.astype(weights.dtype), 1)[1][:, 0]
    return np.asarray(np.argmax(weights @ pictures.T, axis=1))


def reasons(head: Decider, shelves: dict[Any, Exemplars], x: Array, n: int) -> list[Reason]:
    """The `n` proxies that count most for one embedding; weights for the answer come before those against it.

    # x: (d,)
    """
    proxies, measure = head.proxies, head.measure
    values = head.evidence(x.astype(proxies.weights.dtype))
    strength = -values if measure == "distance" else values if measure == "similarity" else np.abs(values)
    against = (values <= 0) & (measure == "weight")
    starts, labels = proxies.starts, head.owners.tolist()
    found = []
    for i in np.lexsort((-strength, against))[:n].tolist():
        label, place = labels[proxies.labels[i]], i - starts[proxies.labels[i]]
        shelf = shelves.get(label)
        found.append(Reason(label, float(values[i]), shelf.names[shelf.beside[place]] if shelf else None))
    return found


def to_parts(labels: list[Any], shelves: dict[Any, Exemplars]) -> tuple[list[list[str]], dict[str, Array]]:
    """Shelves as JSON and named arrays, in the order of the labels."""
    kept = {i: shelves[label] for i, label in enumerate(labels) if label in shelves}
    names = [list(kept[i].names) if i in kept else [] for i in range(len(labels))]
    arrays = {f"{PICTURES}{i}.{k}": v for i, s in kept.items() for k, v in (("X", s.X), ("beside", s.beside))}
    return names, arrays


def from_parts(head: Head, names: list[list[str]], arrays: dict[str, Array]) -> dict[Any, Exemplars]:
    """The shelves that `to_parts` described; raises KeyError, TypeError or ValueError for anything else."""
    shelves, proxies = {}, np.bincount(head.proxies.labels)
    for i, (label, own) in enumerate(zip(head.classes.tolist(), names, strict=True)):
        if own:
            shelf = Exemplars(tuple(map(str, own)), arrays[f"{PICTURES}{i}.X"], arrays[f"{PICTURES}{i}.beside"])
            if not _sound(shelf, int(proxies[i]), head.proxies.weights.shape[1]):
                raise ValueError
            shelves[label] = shelf
    if 2 * len(shelves) != sum(name.startswith(PICTURES) for name in arrays):
        raise ValueError
    return shelves


def _sound(shelf: Exemplars, proxies: int, width: int) -> bool:
    return (
        shelf.X.shape == (len(shelf.names), width)
        and shelf.X.dtype.kind == "f"
        and bool(np.isfinite(shelf.X).all())
        and shelf.beside.shape == (proxies,)
        and shelf.beside.dtype.kind == "i"
        and bool(((shelf.beside >= 0) & (shelf.beside < len(shelf.names))).all())
    )
