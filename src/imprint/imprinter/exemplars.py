"""Exemplars: for each proxy, the nearest training input, stored so that the model can explain its answers."""

from typing import Any, NamedTuple

import numpy as np

from imprint.core.types import Array
from imprint.head import Decider, Head
from imprint.imprinter.items import Embedded
from imprint.kernels.neighbours import nearest
from imprint.kernels.rows import squared_norms

BLOCK = 1024  # proxies compared with the inputs of a class at once
SMALL = 1 << 18  # distances up to which comparing all pairs is faster than preparing a neighbour search


class Reason(NamedTuple):
    """A proxy that contributes to a prediction: its class, its contribution, and its exemplar.

    `value` is a similarity, a distance or a signed weight; see `Imprinter.measure`. `picture` names the exemplar, the
    nearest training input of that class.
    `picture` is None if the class was imprinted from embeddings without names.
    """

    label: Any
    value: float
    picture: str | None


class Exemplars(NamedTuple):
    """The training inputs stored for one class: names, embeddings, and for each proxy the index of the nearest."""

    names: tuple[str, ...]
    X: Array  # (e, d)
    nearest: Array  # (p_c,) index into names


ExemplarsByClass = dict[Any, Exemplars]


def choose_exemplars(head: Head, stored: ExemplarsByClass, new: Embedded) -> ExemplarsByClass:
    """The exemplars of every class, chosen among the stored ones and the new inputs.

    A class without new inputs keeps its exemplars if its proxies depend on its own rows only.
    """
    y = np.empty(0) if new.y is None else new.y
    rows_of = {label: np.flatnonzero(y == label) for label in np.unique(y).tolist()}
    edges = np.append(head.proxies.starts, len(head.proxies.labels))
    chosen = {}
    for c, label in enumerate(head.classes.tolist()):
        old, rows = stored.get(label), rows_of.get(label, np.empty(0, dtype=np.intp))
        if old and not len(rows) and head.method.per_class:
            chosen[label] = old
        elif old or len(rows):
            X = np.concatenate([*([old.X] if old else []), np.asarray(new.X[rows])])
            names = [*(old.names if old else ()), *(new.names[int(i)] for i in rows)]
            chosen[label] = _exemplars(head, head.proxies.weights[edges[c] : edges[c + 1]], X, names)
    return chosen


def _exemplars(head: Head, weights: Array, X: Array, names: list[str]) -> Exemplars:
    inputs = head.method.norm_inf.apply(X)
    closest = [_closest(head, weights[i : i + BLOCK], inputs) for i in range(0, len(weights), BLOCK)]
    used, nearest_used = np.unique(np.concatenate(closest), return_inverse=True)
    return Exemplars(tuple(names[i] for i in used), X[used], nearest_used)


def _closest(head: Head, weights: Array, inputs: Array) -> Array:
    """The input nearest to each proxy; for similarities, the one with the largest inner product."""
    if head.method.generator.points and head.method.aggregator.measure != "similarity":
        if len(weights) * len(inputs) <= SMALL:
            W, X = weights.astype(np.float64), inputs.astype(np.float64)
            return np.asarray(np.argmin(squared_norms(X) - 2 * W @ X.T, axis=1))
        return nearest(weights, inputs.astype(weights.dtype), 1)[1][:, 0]
    return np.asarray(np.argmax(weights @ inputs.T, axis=1))


def reasons(head: Decider, exemplars: ExemplarsByClass, x: Array, n: int) -> list[Reason]:
    """The `n` proxies that contribute most to one prediction; positive weights come before negative ones.

    # x: (d,)
    """
    proxies, measure = head.proxies, head.aggregator.measure
    values = head.evidence(x.astype(proxies.weights.dtype))
    strength = -values if measure == "distance" else values if measure == "similarity" else np.abs(values)
    against = (values <= 0) & (measure == "weight")
    starts, labels = proxies.starts, head.owners.tolist()
    strongest = []
    for i in np.lexsort((-strength, against))[:n].tolist():
        label, proxy = labels[proxies.labels[i]], i - starts[proxies.labels[i]]
        of_class = exemplars.get(label)
        name = of_class.names[of_class.nearest[proxy]] if of_class else None
        strongest.append(Reason(label, float(values[i]), name))
    return strongest
