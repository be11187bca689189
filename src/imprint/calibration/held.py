"""The rows of a class that cross-validation holds: distinct rows with their folds and
weights.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from imprint.core.arrays import Array, State, class_entropy, factorize
from imprint.core.blocks import column_slices
from imprint.core.errors import require
from imprint.core.layout import (
    MAX_COUNT,
    MIN_MASS,
    Entry,
    Layout,
    to_arrays,
    to_stacks,
    to_states,
)
from imprint.kernels.rows import lengths

FOLDS = 5
MAX_HELD_ROWS = 100  # distinct rows of a class
NEAR_COPY_DISTANCE = 0.08
"""The maximum squared distance of near copies, as a share of twice the variance of the
rows. About 30 % of the nearest neighbours in the training texts of CLINC150 are nearer,
and under 3 % of those in the packs of pictures.
"""
LAYOUT: Layout = {
    "rows": Entry("m d"),
    "index": Entry("m", minimum=0, integer=True),
    "weight": Entry("m", minimum=MIN_MASS, maximum=MAX_COUNT),
    "digests": Entry("n", integer=True),
    "total": Entry("1", minimum=MIN_MASS, maximum=MAX_COUNT),
}
"""The arrays of a class in a file; the folds are computed from `index`."""
SHARED, STATE_ROWS = "shared", "state/rows"
SHARED_LAYOUT: Layout = {
    "index": Entry("m", minimum=0, integer=True, optional=True),
    "length": Entry("m", minimum=MIN_MASS, optional=True),
    "lengths": Entry("m b", minimum=MIN_MASS, optional=True),
}
"""References of a class to held rows in place of its proxies; see `share_rows`."""
NO_DIGESTS = np.empty(0, dtype=np.uint64)


@dataclass(frozen=True, eq=False)
class HeldRows:
    """Some distinct rows of a class: those with the smallest random keys, in the order
    of their keys.

    Equal rows count as one row with their total weight, so that copies are never on
    both sides of a fold. Key and fold of a row follow from the seed, the label and the
    number of distinct rows of the class before it.
    """

    rows: Array  # (m, d)
    index: Array  # (m,) how many distinct rows of the class came before
    weight: Array  # (m,)
    fold: Array  # (m,)
    # (n,) uint64, of all distinct rows of the class, in the order of arrival
    digests: Array
    total: float  # the weight of all rows

    @property
    def complete(self) -> bool:
        """Whether every distinct row of the class is held."""
        return len(self.index) == len(self.digests)

    def in_order(self) -> tuple[Array, Array, Array]:
        """Rows, weights and folds in the order of arrival."""
        order = np.argsort(self.index)
        return self.rows[order], self.weight[order], self.fold[order]

    def count_copies(self, X: Array) -> int:
        """How many rows of X equal a row of the class, held or not."""
        return int(np.isin(row_digests(X), self.digests).sum())

    def contains(self, X: Array) -> Array:
        """Which rows of X equal a row of the class, held or not.  # (n,)"""
        return np.isin(row_digests(X), self.digests)

    def digest_texts(self) -> list[str]:
        """The digests of all distinct rows, as texts."""
        return [f"{digest:016x}" for digest in self.digests.tolist()]

    def find(self, digests: Sequence[str]) -> Array:
        """The held rows with these digests.  # (k, d)"""
        position = {text: i for i, text in enumerate(self.digest_texts())}
        wanted = [position[text] for text in digests if text in position]
        return self.rows[np.isin(self.index, wanted)]

    def to_state(self) -> State:
        """Named arrays as `LAYOUT` describes them."""
        return {name: np.atleast_1d(getattr(self, name)) for name in LAYOUT}


def from_state(state: State, seed: int, label: Any) -> HeldRows:
    """The held rows from the arrays of `to_state`; ValueError if they are
    inconsistent.
    """
    index = state["index"].astype(np.int64)
    digests = state["digests"].astype(np.uint64)
    require(len(np.unique(digests)) == len(digests))
    require(
        len(set(index.tolist())) == len(index)
        and (len(index) <= MAX_HELD_ROWS or len(index) == len(digests))
        and index.max() < len(digests)
    )
    held = select(
        state["rows"],
        index,
        state["weight"],
        digests,
        float(state["total"][0]),
        seed,
        label,
        limit=None,
    )
    require(np.array_equal(held.index, index))
    return held


def absorb(
    before: HeldRows | None,
    X: Array,
    weight: Array,
    seed: int,
    label: Any,
    limit: int | None = MAX_HELD_ROWS,
) -> tuple[HeldRows, Array]:
    """The held rows of a class after more rows have arrived, and the fold of each new
    row.  # (n, d), (n,)

    Without a `limit`, all rows are held.
    """
    empty = np.empty(0, dtype=np.int64)
    before = before or HeldRows(X[:0], empty, empty, empty, NO_DIGESTS, 0.0)
    index, first, digests = _distinct(before.digests, X)
    added = np.bincount(index, weight, minlength=len(digests))
    new = np.arange(len(before.digests), len(digests))
    rows = np.concatenate([before.rows, X[first]])
    held_index = np.concatenate([before.index, new])
    held_weight = np.concatenate([before.weight + added[before.index], added[new]])
    held = select(
        rows,
        held_index,
        held_weight,
        digests,
        before.total + float(weight.sum()),
        seed,
        label,
        limit,
    )
    return held, folds_of(seed, label, len(digests))[index]


def folds_of_rows(X: Array, seed: int, label: Any, known: Array = NO_DIGESTS) -> Array:
    """The fold of every row of a class, of which some digests may be known; equal rows
    share one.  # (n,)
    """
    index, _, digests = _distinct(known, X)
    return folds_of(seed, label, len(digests))[index]


def near_copies(
    parts: list[HeldRows], chosen: list[Array], normalise: Callable[[Array], Array]
) -> Array:
    """Which of the chosen rows of each class almost equal a row of the class in another
    fold.  # (n,)
    """
    from scipy.spatial.distance import cdist

    rows = [normalise(held.rows[index]) for held, index in zip(parts, chosen)]
    nearest = []
    # distances of extreme rows are infinite: not near
    with np.errstate(over="ignore", invalid="ignore"):
        limit = (
            2
            * NEAR_COPY_DISTANCE
            * float(np.concatenate(rows).var(axis=0, dtype=np.float64).sum())
        )
        for held, index, queries in zip(parts, chosen, rows):
            distances = cdist(queries, normalise(held.rows), "sqeuclidean")
            same_fold = held.fold[index][:, None] == held.fold
            nearest.append(np.where(same_fold, np.inf, distances).min(axis=1))
    return np.concatenate(nearest) < limit


def folds_of(seed: int, label: Any, count: int) -> Array:
    """The folds of the distinct rows of a class: each run of five rows is spread over
    all folds.  # (count,)

    If there are fewer rows than folds, the first folds have one row each; see
    `is_fitted`.
    """
    folds = min(count, FOLDS)
    random = _random_stream(seed, label, "folds").random((-(-count // folds), folds))
    return np.asarray(random.argsort(axis=1).ravel()[:count])


def keys_of(seed: int, label: Any, count: int) -> Array:
    """The random keys of the distinct rows of a class; those with the smallest are
    held.  # (count,)
    """
    return _random_stream(seed, label, "keys").random(count)


def is_fitted(fold: Array, f: int) -> Array:
    """Whether the model of fold `f` is fitted on each row of a class, given the folds
    of the rows.  # (n,)

    Every model lacks some rows of every class: of a class of two to four rows, one. So
    classes of equal size stay equal in every fold. A single row is missing in the first
    fold only.
    """
    used = int(fold.max()) + 1
    return np.asarray(fold != (f % used if used > 1 else f))


def row_digests(X: Array) -> Array:
    """A 64-bit digest of every row; equal rows have equal ones.  # (n,) uint64"""
    rows = np.ascontiguousarray(X + X.dtype.type(0))  # minus zero becomes zero
    parts = (hashlib.blake2b(row.data, digest_size=8).digest() for row in rows)
    return np.frombuffer(b"".join(parts), dtype="<u8").astype(np.uint64)


def _distinct(known: Array, X: Array) -> tuple[Array, Array, Array]:
    """The distinct row that each row of X equals, the first row of each new one, and
    all distinct digests in order.
    """
    digests = np.concatenate([known, row_digests(X)])
    first, index = factorize(digests)
    return index[len(known) :], first[first >= len(known)] - len(known), digests[first]


def select(
    rows: Array,
    index: Array,
    weight: Array,
    digests: Array,
    total: float,
    seed: int,
    label: Any,
    limit: int | None = MAX_HELD_ROWS,
) -> HeldRows:
    """The rows with the smallest keys, in the order of their keys."""
    keys = keys_of(seed, label, len(digests))[index]
    best = np.argsort(keys, kind="stable")[:limit]
    fold = folds_of(seed, label, len(digests))[index[best]]
    return HeldRows(
        np.array(rows[best]), index[best], weight[best], fold, digests, total
    )


def _random_stream(seed: int, label: Any, purpose: str) -> np.random.Generator:
    """Random numbers of a class for one purpose."""
    return np.random.default_rng((*class_entropy(seed, label), *purpose.encode()))


def share_rows(
    summary: State, held: Array, blocks: tuple[int, ...] = ()
) -> tuple[State, State]:
    """The state of a class without proxies that are held rows, or held rows whose
    blocks have unit length: rows are stored once.

    The second value refers to the rows: their indices, and the numbers by which they,
    or their blocks, are divided.
    """
    proxies = summary.get("rows", held[:0])
    if not 0 < len(proxies) <= len(held) or proxies.dtype != held.dtype:
        return summary, {}
    widths = blocks or (held.shape[1],)
    ones = np.ones((len(held), len(widths)), dtype=held.dtype)
    for length in (ones, _block_lengths(held, widths)):
        if length is None:  # some rows are too extreme to be normalised like this
            break
        index = find_rows(proxies, _divided(held, length, widths))
        if index is not None and len(set(index.tolist())) == len(index):
            rest = {name: array for name, array in summary.items() if name != "rows"}
            numbers = {"lengths": length[index]}
            if not blocks:
                numbers = {"length": length[index, 0]}
            return rest, {"index": index, **numbers}
    return summary, {}


def find_rows(rows: Array, among: Array) -> Array | None:
    """The index of an equal row for each row; None if some have no equal.  # (n,)"""
    row_of = {row.tobytes(): i for i, row in enumerate(among)}
    index = np.array([row_of.get(row.tobytes(), -1) for row in rows], dtype=np.int64)
    return None if (index < 0).any() else index


def _block_lengths(X: Array, widths: tuple[int, ...]) -> Array | None:
    """The length of each block of each row; None if some are too extreme.  # (n, b)"""
    columns = []
    for block in column_slices(widths):
        length = lengths(X[:, block])
        if length is None:
            return None
        columns.append(length)
    return np.stack(columns, axis=1)


def _divided(X: Array, length: Array, widths: tuple[int, ...]) -> Array:
    """Rows whose blocks are divided by one number each.  # (n, d)"""
    quotients = np.empty_like(X)
    for b, block in enumerate(column_slices(widths)):
        quotients[:, block] = X[:, block] / length[:, b, None]
    return quotients


def unshare_rows(
    arrays: dict[str, Array], blocks: tuple[int, ...] = ()
) -> dict[str, Array]:
    """The inverse of `share_rows`; raises KeyError, ValueError or IndexError if the
    file is inconsistent.
    """
    if f"{SHARED}/index/values" not in arrays:
        return arrays
    held, stored = (
        to_stacks(arrays, "held")["rows"].by_class(),
        to_stacks(arrays, "state"),
    )
    proxies = stored["rows"].by_class() if "rows" in stored else {}
    for c, state in enumerate(to_states(arrays, SHARED, SHARED_LAYOUT, len(held), 0)):
        if state:
            index = state["index"]
            length = state["lengths"] if blocks else state["length"][:, None]
            widths = blocks or (held[c].shape[1],)
            require(c not in proxies and len(set(index.tolist())) == len(index))
            require(length.dtype == held[c].dtype)
            require(length.shape[1] == len(widths))
            require(sum(widths) == held[c].shape[1])
            proxies[c] = _divided(held[c][index], length, widths)
    rest = {
        name: array
        for name, array in arrays.items()
        if not name.startswith((STATE_ROWS, f"{SHARED}/"))
    }
    return {
        **rest,
        **to_arrays("state", [{"rows": proxies[c]} for c in sorted(proxies)]),
    }
