"""`suggest`: the rows of an unlabelled pool that are most useful to label next, with a reason for each."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from imprint.active.selection import NOISE, SAME, SPREAD, CandidatePool, Observations, near_any
from imprint.core.arrays import all_finite, to_numpy
from imprint.core.errors import ParameterError
from imprint.core.types import Array
from imprint.head import Decider
from imprint.kernels.rows import squared_norms, unit_rows

if TYPE_CHECKING:
    from imprint.embeddings import Skipped

TARGETS = 5_000
"""Rows over which the variance is reduced; a larger pool is represented by a random sample of this size."""
CANDIDATES = 20_000
"""Rows that can be chosen; from a larger pool, a random sample of this size that contains the targets."""
UNKNOWN = "far from what is known"


class Suggestions(np.ndarray):
    """Row numbers of the pool, most useful to label first.

    `reasons` holds one reason for each of them; `unreadable` lists the inputs of the pool that could not be read.
    """

    reasons: tuple[str, ...]
    unreadable: tuple["Skipped", ...]

    @classmethod
    def of(cls, rows: Any, reasons: Sequence[str], unreadable: Sequence["Skipped"] = ()) -> "Suggestions":
        """Row numbers, their reasons, and the inputs without a row."""
        suggestions = np.asarray(rows, dtype=np.int64).view(cls)
        suggestions.reasons, suggestions.unreadable = tuple(reasons), tuple(unreadable)
        return suggestions

    def __array_finalize__(self, source: Any) -> None:
        self.reasons, self.unreadable = (), ()

    def among(self, rows: int, unreadable: Sequence["Skipped"]) -> "Suggestions":
        """The same suggestions as indices of inputs, some of which are unreadable and have none of the `rows` rows."""
        readable = np.delete(np.arange(rows + len(unreadable)), [s.index for s in unreadable])
        return Suggestions.of(readable[np.asarray(self)], self.reasons, unreadable)


def suggest(X_pool: Any, n: int = 10, *, head: Decider | None = None, random_state: int = 0) -> Suggestions:
    """The n rows of an unlabelled pool that are most useful to label next, best first.

    The rows chosen reduce the posterior variance of a Gaussian process over the pool the most. With a fitted `head`,
    the process has observed its proxies, and the row j of the pool counts with the weight (1 - margin_j)^2, where the
    margin is the difference of the two largest class probabilities. Near-duplicates of a chosen or labelled row are not
    chosen, so fewer than n rows are returned where the pool has fewer distinct rows.

    A pool of more than 5,000 rows is represented by a random sample of 5,000, and the rows are chosen from a random
    sample of 20,000: time and memory do not grow further. `random_state` is the seed of these samples.

    >>> rows = suggest(np.array([[1, 0], [0.99, 0.01], [0, 1], [-1, 0.1]]), n=2)
    >>> rows.tolist(), rows.reasons
    ([1, 3], ('far from what is known', 'far from what is known'))
    """
    return PreparedPool(X_pool, random_state).suggest(n, head)


class PreparedPool:
    """An unlabelled pool whose distances are computed once, for suggestions after every few labels."""

    def __init__(self, X_pool: Any, random_state: int = 0):
        X = _pool_rows(X_pool)
        sampled = len(X) > TARGETS
        order = np.random.default_rng(random_state).permutation(len(X))[:CANDIDATES] if sampled else np.arange(len(X))
        self.index, self.rows, self.targets = order, X[order] if sampled else X, min(len(X), TARGETS)
        self._pool = CandidatePool.of(unit_rows(self.rows.astype(np.float32, copy=False)), self.targets)

    def suggest(self, n: int = 10, head: Decider | None = None, excluded: Array | None = None) -> Suggestions:
        """The n rows to label next; `excluded` marks rows of the pool never to choose."""
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
            raise ParameterError(f"suggest(n={n!r}): n must be int >= 1.")
        if head is not None and head.tags:
            raise ParameterError("suggest(head=...): suggestions are for one label per input; leave the tag model out.")
        closed = np.zeros(len(self.rows), bool) if excluded is None else excluded[self.index]
        if head is None:
            given, weights = self._pool.condition(None), np.ones(self.targets)
        else:
            observed, labelled = _observations(head)
            given, weights = self._pool.condition(observed), _weights(head, self.rows[: self.targets])
            closed = closed | near_any(self._pool, labelled)
        chosen = given.select(min(int(n), len(self.rows)), weights, closed)
        far = given.variance[chosen] >= np.median(given.variance)
        return Suggestions.of(self.index[chosen], _reasons(head, self.rows[chosen], far))


def _pool_rows(X_pool: Any) -> Array:
    X = to_numpy(X_pool)
    if not isinstance(X, np.ndarray):
        X = np.asarray(X)
    if X.ndim != 2 or X.dtype.kind not in "fiu" or not X.size:
        raise ParameterError(f"suggest(X_pool): X_pool must be rows of numbers (n, d), not {X.dtype} of {X.shape}.")
    X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float32)
    if not all_finite(X):
        row = int(np.flatnonzero(~np.isfinite(X).all(axis=1))[0])
        raise ParameterError(f"suggest(X_pool): all values must be finite; row {row} is not. Leave it out.")
    return X


def _observations(head: Decider) -> tuple[Observations | None, Array]:
    """The proxies as observations, if they are points, and those of them whose rows are all equal: labelled rows."""
    imprinted = head.imprinted
    if not imprinted.method.generator.points:
        return None, np.empty((0, 1))
    proxies = imprinted.proxies
    rows = unit_rows(proxies.weights.astype(np.float32))
    scale = 1 - float(np.square(rows.mean(axis=0, dtype=np.float64)).sum()) or 1.0
    noise = NOISE / proxies.mass + SPREAD * proxies.spread / (2 * scale)
    labelled = proxies.spread <= SAME**2 * squared_norms(proxies.weights)
    return Observations(rows, noise), rows[labelled]


def _weights(head: Decider, rows: Array) -> Array:
    """(1 - margin)^2 of every row, 1 where the model has a single class.  # (t,)"""
    P = _probabilities(head, rows)
    if P.shape[1] < 2:
        return np.ones(len(rows))
    top = np.sort(np.partition(P, -2, axis=1)[:, -2:], axis=1)
    return np.asarray((1 - (top[:, 1] - top[:, 0])) ** 2)


def _probabilities(head: Decider, rows: Array) -> Array:
    return np.asarray(head.probabilities(head.scores(rows.astype(head.imprinted.dtype, copy=False))), dtype=np.float64)


def _reasons(head: Decider | None, rows: Array, far: Array) -> list[str]:
    """One reason per row: its posterior variance is large for the pool, or two classes compete for it."""
    if head is None or len(head.classes) < 2 or not len(rows):
        return [UNKNOWN] * len(rows)
    top = np.argsort(-_probabilities(head, rows), axis=1, kind="stable")[:, :2]
    names = [" and ".join(str(head.classes[c]) for c in pair) for pair in top]
    return [UNKNOWN if is_far else f"between {name}" for is_far, name in zip(far, names)]
