"""Which training picture stands beside a proxy: the few that a model remembers in order to explain itself."""

from typing import Any, NamedTuple

import numpy as np

from imprint.aggregators.nearest import Nearest
from imprint.classifier import PARTS, ImprintClassifier
from imprint.core.types import Array
from imprint.imprinter.items import Embedded
from imprint.kernels.neighbours import nearest
from imprint.method import Method

PREFIX = "pictures."  # of the names of arrays in a model file
BLOCK = 1024  # proxies that are compared with a class's pictures at once


class Reason(NamedTuple):
    """A proxy near a query: its class, how near, and the training picture of that class nearest to the proxy.

    `value` is what the model compares: an inner product under `max` (the cosine, where all is L2-normalised), a
    distance under `nearest`. `picture` is None where the class was imprinted from embeddings without names.
    """

    label: Any
    value: float
    picture: str | None


class Shelf(NamedTuple):
    """The pictures kept of one class: their names, their embeddings, and for each proxy which of them is nearest."""

    names: tuple[str, ...]
    X: Array  # (e, d)
    beside: Array  # (p_c,) index into names


def method_of(classifier: ImprintClassifier) -> Method:
    """The fitted method of a classifier."""
    return Method.of(**{part: getattr(classifier, part) for part in PARTS})


def closest(method: Method, Q: Array, rows: Array, n: int) -> tuple[Array, Array]:
    """The `n` rows nearest to every query by the model's own measure: its values, and the rows' indices."""
    if isinstance(method.aggregator, Nearest):
        return nearest(Q, rows, n, method.aggregator.metric)
    S = Q @ rows.T
    order = np.argsort(-S, axis=1, kind="stable")[:, :n]
    return np.take_along_axis(S, order, axis=1), order


def shelve(classifier: ImprintClassifier, before: dict[Any, Shelf], new: Embedded) -> dict[Any, Shelf]:
    """For every class the pictures nearest to its proxies, out of those kept before and the new ones."""
    method, (weights, owners) = method_of(classifier), classifier.proxies_
    shelves = {}
    for c, label in enumerate(classifier.classes_.tolist()):
        old, mine = before.get(label), np.flatnonzero(new.y == label)
        X = np.concatenate([*([old.X] if old else []), np.asarray(new.X[mine])])
        names = [*(old.names if old else ()), *(new.names[int(i)] for i in mine)]
        if names:
            shelves[label] = _shelf(method, weights[owners == c], X, names)
    return shelves


def _shelf(method: Method, weights: Array, X: Array, names: list[str]) -> Shelf:
    pictures = method.norm_inf.apply(X)
    found = [closest(method, weights[i : i + BLOCK], pictures, 1)[1][:, 0] for i in range(0, len(weights), BLOCK)]
    kept, beside = np.unique(np.concatenate(found), return_inverse=True)
    return Shelf(tuple(names[i] for i in kept), X[kept], beside)


def reasons(classifier: ImprintClassifier, shelves: dict[Any, Shelf], x: Array, n: int) -> list[Reason]:
    """The `n` proxies nearest to one embedding.  # x: (d,)"""
    method, (weights, owners) = method_of(classifier), classifier.proxies_
    values, indices = closest(method, method.norm_inf.apply(x[None, :].astype(weights.dtype)), weights, n)
    starts, labels = np.searchsorted(owners, np.arange(len(classifier.classes_))), classifier.classes_.tolist()
    found = []
    for value, i in zip(values[0].tolist(), indices[0].tolist()):
        label, place = labels[owners[i]], i - starts[owners[i]]
        shelf = shelves.get(label)
        found.append(Reason(label, value, shelf.names[shelf.beside[place]] if shelf else None))
    return found


def to_parts(labels: list[Any], shelves: dict[Any, Shelf]) -> tuple[list[list[str]], dict[str, Array]]:
    """Shelves as JSON and named arrays, in the order of the labels."""
    kept = {i: shelves[label] for i, label in enumerate(labels) if label in shelves}
    names = [list(kept[i].names) if i in kept else [] for i in range(len(labels))]
    arrays = {f"{PREFIX}{i}.{k}": v for i, s in kept.items() for k, v in (("X", s.X), ("beside", s.beside))}
    return names, arrays


def from_parts(classifier: ImprintClassifier, names: list[list[str]], arrays: dict[str, Array]) -> dict[Any, Shelf]:
    """The shelves that `to_parts` described; raises KeyError, TypeError or ValueError for anything else."""
    shelves, proxies = {}, np.bincount(classifier.proxies_.labels)
    for i, (label, own) in enumerate(zip(classifier.classes_.tolist(), names, strict=True)):
        if own:
            shelf = Shelf(tuple(map(str, own)), arrays[f"{PREFIX}{i}.X"], arrays[f"{PREFIX}{i}.beside"])
            if not _sound(shelf, int(proxies[i]), classifier.n_features_in_):
                raise ValueError
            shelves[label] = shelf
    if 2 * len(shelves) != sum(name.startswith(PREFIX) for name in arrays):
        raise ValueError
    return shelves


def _sound(shelf: Shelf, proxies: int, width: int) -> bool:
    return (
        shelf.X.shape == (len(shelf.names), width)
        and shelf.X.dtype.kind == "f"
        and shelf.beside.shape == (proxies,)
        and shelf.beside.dtype.kind == "i"
        and bool(((shelf.beside >= 0) & (shelf.beside < len(shelf.names))).all())
    )
