"""An out-of-distribution score and its conformal p-values: does a query belong to one of the model's classes?"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from imprint.core.errors import require
from imprint.core.types import Array

SMALLEST_SPREAD = 1e-12  # the minimum spread to divide by, relative to the values and absolute
RAISE = 0.4
"""How much higher the model scores new rows than its fold models: in spreads, over the root of a class's rows.
Chosen on 24 sets of embeddings with 2 to 20 rows per class, then lowered from 0.6 for the test texts of CLINC150."""


@dataclass(frozen=True, eq=False)
class ConformalScore:
    """The largest class score minus the doubt, each divided by its spread, and its values on held-out rows."""

    score_spread: float
    doubt_spread: float
    heaviest: float  # the largest weight of a held-out row, and at least 1
    reference: Array  # (n,) of held-out rows, ascending
    below: Array  # (n + 1,) the total weight of the first 0, 1, ... of them

    def __post_init__(self) -> None:
        require(min(self.score_spread, self.doubt_spread) >= SMALLEST_SPREAD and self.heaviest > 0)
        require(self.reference.ndim == 1 and self.below.shape == (len(self.reference) + 1,) and self.below[0] == 0)
        for array in (self.reference, self.below):
            require(array.dtype == np.float64 and np.isfinite(array).all() and (np.diff(array) >= 0).all())

    def of(self, S: Array, doubt: Array | None) -> Array:
        """The score of queries; large for those that look like the training rows.  # (q,)"""
        score = S.max(axis=1).astype(np.float64) / self.score_spread
        return score if doubt is None else np.asarray(score - doubt / self.doubt_spread)

    def p_values(self, S: Array, doubt: Array | None) -> Array:
        """The share of held-out rows whose score is not larger, the query counted as one of them, in (0, 1].  # (q,)"""
        index = np.searchsorted(self.reference, self.of(S, doubt), side="right")
        return np.asarray((self.below[index] + self.heaviest) / (self.below[-1] + self.heaviest))

    def graph(self, g: Any, S: str, doubt: str | None) -> str:
        """The p-values of the scores `S` and doubts as nodes of an ONNX graph `g`, in float64.  # (q,)"""
        double = np.float64
        score = g.add("Div", g.reduce("ReduceMax", g.cast(S, double), 1), g.constant(self.score_spread, double))
        if doubt is not None:
            score = g.add("Sub", score, g.add("Div", g.cast(doubt, double), g.constant(self.doubt_spread, double)))
        total = float(self.below[-1]) + self.heaviest
        if not len(self.reference):
            return str(g.add("Exp", g.add("Mul", score, g.constant(0.0, double))))  # no row to compare with: 1
        reached = g.cast(g.add("GreaterOrEqual", g.unsqueeze(score, 1), g.constant(self.reference, double)), double)
        weight = g.add("MatMul", reached, g.constant(np.diff(self.below), double))
        return str(g.add("Div", g.add("Add", weight, g.constant(self.heaviest, double)), g.constant(total, double)))


def conformal_score(S: Array, doubt: Array | None, weight: Array, rows: Array | None = None) -> ConformalScore:
    """The score with its values on held-out rows, from predictions by models without them.  # (n, C), (n,), (n,), (n,)

    Models of folds have fewer rows of a class than the model, so they score new rows lower. `rows`, the number of rows
    of each row's class, corrects this: every part of the score is raised by a share of its spread that falls with it.
    None, for leave-one-out predictions, raises nothing.

    >>> S = np.array([[0.9, 0.1], [0.8, 0.2], [0.3, 0.6]])
    >>> conformal_score(S, None, np.ones(3)).p_values(np.array([[0.85, 0.0], [0.0, 0.1]]), None).tolist()
    [0.75, 0.25]
    """
    spreads = _spread(S.max(axis=1)) if len(S) else 1.0, 1.0 if doubt is None else _spread(doubt)
    empty = ConformalScore(*spreads, float(weight.max(initial=1.0)), np.empty(0), np.zeros(1))
    scores = empty.of(S, doubt) if len(S) else np.empty(0)
    if rows is not None:
        scores = scores + (1 if doubt is None else 2) * RAISE / np.sqrt(np.maximum(rows, 1))
    order = np.argsort(scores, kind="stable")
    below = np.concatenate([[0.0], np.cumsum(weight[order])])
    return replace(empty, reference=scores[order], below=below)


def _spread(values: Array) -> float:
    """The standard deviation; 1 where it is zero, or too small to divide by."""
    largest = float(np.abs(values).max(initial=0.0))
    spread = largest * float(np.std(values / largest, dtype=np.float64)) if largest > 0 else 0.0
    return spread if spread > SMALLEST_SPREAD * max(1.0, largest) else 1.0
