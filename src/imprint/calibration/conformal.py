"""How familiar a query looks, and the p-value that it belongs to a class the model knows."""

from dataclasses import dataclass

import numpy as np

from imprint.core.types import Array

PSEUDO_ROWS = 5
"""What is usual for a class counts against what is usual for all as its rows do against so many."""


@dataclass(frozen=True, eq=False)
class Familiarity:
    """The largest score less the doubt, each over its spread, and less what is usual for the class that won."""

    score_spread: float
    doubt_spread: float
    usual: Array  # (C,)
    reference: Array  # (n,) how familiar known rows look, ascending
    below: Array  # (n + 1,) the weight of the first 0, 1, ... of them
    heaviest: float

    def of(self, S: Array, doubt: Array | None) -> Array:
        """How familiar queries look.  # (q,)"""
        found = S.max(axis=1).astype(np.float64) / self.score_spread
        if doubt is not None:
            found -= doubt / self.doubt_spread
        return np.asarray(found - self.usual[S.argmax(axis=1)])

    def p_values(self, S: Array, doubt: Array | None) -> Array:
        """The weight of known rows that look no more familiar than the query, itself among them, in (0, 1].  # (q,)"""
        places = np.searchsorted(self.reference, self.of(S, doubt), side="right")
        return np.asarray((self.below[places] + self.heaviest) / (self.below[-1] + self.heaviest))


def familiarity(S: Array, doubt: Array | None, own: Array, weight: Array) -> Familiarity:
    """What known rows look like, from scores that leave them out; `own` are their classes.  # (n, C), (n,), (n,), (n,)

    >>> S, own = np.array([[0.9, 0.1], [0.8, 0.2], [0.3, 0.6]]), np.array([0, 0, 1])
    >>> familiarity(S, None, own, np.ones(3)).p_values(np.array([[0.85, 0.0], [0.0, 0.1]]), None).tolist()
    [0.75, 0.25]
    """
    spreads = _spread(S.max(axis=1)) if len(S) else 1.0, 1.0 if doubt is None else _spread(doubt)
    plain = Familiarity(*spreads, np.zeros(S.shape[1]), np.empty(0), np.zeros(1), 1.0).of(S, doubt)
    usual = _usual(plain, own, S.shape[1])
    found = plain - usual[S.argmax(axis=1)]
    order = np.argsort(found, kind="stable")
    below = np.concatenate([[0.0], np.cumsum(weight[order])])
    return Familiarity(*spreads, usual, found[order], below, float(weight.max(initial=1.0)))


def _spread(values: Array) -> float:
    return float(np.std(values, dtype=np.float64)) or 1.0 if len(values) else 1.0


def _usual(found: Array, own: Array, n_classes: int) -> Array:
    """The median of every class, drawn to the median of all where a class has few rows.  # (C,)"""
    overall = float(np.median(found)) if len(found) else 0.0
    usual = np.full(n_classes, overall)
    for c in np.unique(own):
        mine = found[own == c]
        usual[c] = (len(mine) * np.median(mine) + PSEUDO_ROWS * overall) / (len(mine) + PSEUDO_ROWS)
    return usual
