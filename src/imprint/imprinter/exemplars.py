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
    nearest training input of that class. It is None if the class was imprinted from embeddings without names.
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

    A class without new inputs keeps its exemplars if its proxies depend on its rows only.
    """
    y = np.asarray(new.y)
    rows_of = {label: np.flatnonzero(y == label) for label in np.unique(y).tolist()}
    weights = np.split(head.proxies.weights, head.proxies.starts[1:])
    chosen = {}
    for label, weights_of_class in zip(head.classes.tolist(), weights):
        old, rows = stored.get(label), rows_of.get(label, np.empty(0, dtype=np.intp))
        if old and not len(rows) and head.method.per_class:
            chosen[label] = old
        elif old or len(rows):
            X = np.concatenate([*([old.X] if old else []), np.asarray(new.X[rows])])
            names = [*(old.names if old else ()), *(new.names[i] for i in rows.tolist())]
            inputs, blocks = head.method.norm_inf.apply(X), range(0, len(weights_of_class), BLOCK)
            closest = np.concatenate([_closest(head, weights_of_class[i : i + BLOCK], inputs) for i in blocks])
            used, nearest_used = np.unique(closest, return_inverse=True)
            chosen[label] = Exemplars(tuple(names[i] for i in used), X[used], nearest_used)
    return chosen


def _closest(head: Head, weights: Array, inputs: Array) -> Array:
    """The input nearest to each proxy; for similarities, the one with the largest inner product."""
    if not head.method.generator.points or head.method.aggregator.measure == "similarity":
        return np.asarray(np.argmax(weights @ inputs.T, axis=1))
    if len(weights) * len(inputs) > SMALL:
        return nearest(weights, inputs.astype(weights.dtype), 1)[1][:, 0]
    W, X = weights.astype(np.float64), inputs.astype(np.float64)
    return np.asarray(np.argmin(squared_norms(X) - 2 * W @ X.T, axis=1))


def reasons(head: Decider, exemplars: ExemplarsByClass, x: Array, n: int) -> list[Reason]:
    """The `n` proxies that contribute most to the prediction for a row x (d,); positive weights come first."""
    proxies, measure = head.proxies, head.aggregator.measure
    values = head.evidence(x.astype(proxies.weights.dtype))
    strength = -values if measure == "distance" else values if measure == "similarity" else np.abs(values)
    against = (values <= 0) & (measure == "weight")
    owners, starts, strongest = head.owners, proxies.starts, []
    for i in np.lexsort((-strength, against))[:n].tolist():
        c = proxies.labels[i]
        label = owners[c].item()
        of_class = exemplars.get(label)
        name = of_class.names[of_class.nearest[i - starts[c]]] if of_class else None
        strongest.append(Reason(label, float(values[i]), name))
    return strongest
