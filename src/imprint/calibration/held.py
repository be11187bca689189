"""The rows of a class that cross-validation holds: distinct rows with their folds and weights."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from imprint.core.arrays import to_numpy
from imprint.core.digest import class_entropy
from imprint.core.layout import COUNTED, SMALLEST_MASS, Entry, Layout
from imprint.core.types import Array, State

FOLDS = 5
HELD = 100
"""The maximum number of distinct rows that are held of a class."""
NEAR = 0.08
"""The squared distance of near copies, as a share of twice the variance of the rows. About 30 % of the nearest
neighbours in the training texts of CLINC150 are nearer, and under 3 % of those in the packs of pictures."""
LAYOUT: Layout = {
    "rows": Entry("m d"),
    "index": Entry("m", least=0, whole=True),
    "weight": Entry("m", least=SMALLEST_MASS, most=COUNTED),
    "digests": Entry("n", whole=True),
    "total": Entry("1", least=SMALLEST_MASS, most=COUNTED),
}
"""The arrays of a class in a file; the folds are computed from `index`."""
EARLIER_ROWS = 4_000_000
"""The maximum number of rows, of a class and in all, in a file that does not hold their digests."""
EARLIER_LAYOUT: Layout = {
    "rows": Entry("m d"),
    "fold": Entry("m", least=0, most=FOLDS - 1, whole=True),
    "keys": Entry("m", least=0, most=1),
    "seen": Entry("1", least=1, most=EARLIER_ROWS, whole=True),
}
"""The same in files of earlier versions, which did not count copies of a row."""


@dataclass(frozen=True, eq=False)
class HeldRows:
    """Some distinct rows of a class: those with the smallest random keys, in the order of their keys.

    Equal rows count as one row with their total weight, so that copies are never on both sides of a fold. Key and fold
    of a row follow from the seed, the label and the number of distinct rows of the class before it.
    """

    rows: Array  # (m, d)
    index: Array  # (m,) how many distinct rows of the class came before
    weight: Array  # (m,)
    fold: Array  # (m,)
    digests: Array  # (n,) uint64, of all distinct rows of the class, in the order of arrival
    total: float  # the weight of all rows

    @property
    def complete(self) -> bool:
        """Whether every distinct row of the class is held."""
        return len(self.index) == len(self.digests)

    def in_order(self) -> tuple[Array, Array, Array]:
        """Rows, weights and folds in the order of arrival."""
        order = np.argsort(self.index)
        return self.rows[order], self.weight[order], self.fold[order]

    def to_state(self) -> State:
        """Named arrays as `LAYOUT` describes them."""
        return {
            "rows": self.rows,
            "index": self.index,
            "weight": self.weight,
            "digests": self.digests,
            "total": np.array([self.total]),
        }


def from_state(state: State, seed: int, label: Any) -> HeldRows:
    """The held rows from the arrays of `to_state`, or of an earlier version; ValueError if they are inconsistent."""
    if "seen" in state:
        return _from_earlier(state, seed, label)
    index, digests = state["index"].astype(np.int64), state["digests"].astype(np.uint64)
    held = _select(state["rows"], index, state["weight"], digests, seed, label)
    total = float(state["total"][0])
    if len(set(index.tolist())) != min(len(digests), HELD) or not np.array_equal(held.index, index):
        raise ValueError
    return replace(held, total=total)


def absorb(before: HeldRows | None, X: Any, weight: Array, seed: int, label: Any) -> tuple[HeldRows, Array]:
    """The held rows of a class after more rows have arrived, and the fold of each new row.  # (n, d), (n,)"""
    X = np.asarray(to_numpy(X))
    known = np.empty(0, dtype=np.uint64) if before is None else before.digests
    index, first, digests = _distinct(known, row_digests(X))
    added = np.bincount(index, weight, minlength=len(digests))
    new = np.arange(len(known), len(digests))
    rows, held_index, held_weight, total = X[first], new, added[new], float(weight.sum())
    if before is not None:
        rows, held_index = np.concatenate([before.rows, rows]), np.concatenate([before.index, new])
        held_weight = np.concatenate([before.weight + added[before.index], held_weight])
        total += before.total
    held = _select(rows, held_index, held_weight, digests, seed, label)
    return replace(held, total=total), folds_of(seed, label, len(digests))[index]


def known_folds(held: HeldRows, X: Array, seed: int, label: Any) -> Array:
    """The folds of rows that the class already has.  # (n,)"""
    index, _, digests = _distinct(held.digests, row_digests(X))
    return folds_of(seed, label, len(digests))[index]


def distinct_folds(X: Array, seed: int, label: Any, folds: int) -> Array:
    """The fold of every row of a class; equal rows share one.  # (n,)"""
    index, _, digests = _distinct(np.empty(0, dtype=np.uint64), row_digests(X))
    return folds_of(seed, label, len(digests), folds)[index]


def near_copies(parts: list[HeldRows], taken: list[Array], normalise: Callable[[Array], Array]) -> Array:
    """Which of the taken rows almost equal a row of their class in another fold.  # (n,)"""
    from scipy.spatial.distance import cdist

    rows, nearest = [normalise(held.rows[t]) for held, t in zip(parts, taken)], []
    with np.errstate(over="ignore", invalid="ignore"):  # distances of extreme rows are infinite: not near
        limit = 2 * NEAR * float(np.concatenate(rows).var(axis=0, dtype=np.float64).sum())
        for held, t, queries in zip(parts, taken, rows):
            gaps = cdist(queries, normalise(held.rows), "sqeuclidean")
            nearest.append(np.where(held.fold[t][:, None] == held.fold, np.inf, gaps).min(axis=1))
    return np.concatenate(nearest) < limit


def folds_of(seed: int, label: Any, count: int, folds: int = FOLDS) -> Array:
    """The folds of the distinct rows of a class: each run of `folds` rows is spread over all folds.  # (count,)

    If there are fewer rows than folds, the first folds have one row each; see `is_fitted`.
    """
    folds = min(count, folds)
    random = _stream(seed, label, "folds").random((-(-count // folds), folds))
    return np.asarray(random.argsort(axis=1).ravel()[:count])


def is_fitted(fold: Array, f: int) -> Array:
    """Whether the model of fold `f` is fitted on each row of a class with these folds.  # (n,)

    Every model lacks some rows of every class: of a class of two to four rows, one. So classes of equal size stay
    equal in every fold. A single row is missing in the first fold only.
    """
    used = int(fold.max()) + 1
    return np.asarray(fold != (f % used if used > 1 else f))


def row_digests(X: Array) -> Array:
    """A 64-bit digest of every row; equal rows have equal ones.  # (n,) uint64"""
    rows = np.ascontiguousarray(X + X.dtype.type(0))  # minus zero becomes zero
    parts = (hashlib.blake2b(row.data, digest_size=8).digest() for row in rows)
    return np.frombuffer(b"".join(parts), dtype="<u8").astype(np.uint64)


def _distinct(known: Array, digests: Array) -> tuple[Array, Array, Array]:
    """The index of every row's distinct row, the first row of each new one, and all distinct digests in order."""
    both = np.concatenate([known, digests])
    _, first, inverse = np.unique(both, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    starts = first[order]
    return rank[inverse][len(known) :], starts[starts >= len(known)] - len(known), both[starts]


def _select(rows: Array, index: Array, weight: Array, digests: Array, seed: int, label: Any) -> HeldRows:
    """The rows with the smallest keys, in the order of their keys."""
    if len(index) and int(index.max()) >= len(digests):
        raise ValueError
    keys = _stream(seed, label, "keys").random(len(digests))[index]
    best = np.argsort(keys, kind="stable")[:HELD]
    fold = folds_of(seed, label, len(digests))[index[best]]
    return HeldRows(np.array(rows[best]), index[best], weight[best], fold, digests, 0.0)


def _from_earlier(state: State, seed: int, label: Any) -> HeldRows:
    """The held rows of an earlier file; the keys identify the rows among all rows of the class."""
    seen = int(state["seen"][0])
    keys = _stream(seed, label, "keys").random(seen)
    order = np.argsort(keys, kind="stable")[:HELD]
    if not np.array_equal(keys[order], state["keys"]) or len(state["rows"]) != len(order):
        raise ValueError
    digests = np.arange(seen, dtype=np.uint64)  # placeholders, which match no row, for rows that were not held
    digests[order] = row_digests(state["rows"])
    held = _select(state["rows"], order, np.ones(len(order)), digests, seed, label)
    return replace(held, total=float(seen))


def _stream(seed: int, label: Any, purpose: str) -> np.random.Generator:
    """Random numbers of a class for one purpose."""
    return np.random.default_rng((*class_entropy(seed, label), *purpose.encode()))
