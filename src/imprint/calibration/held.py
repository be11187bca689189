"""The rows of a class that cross-validation holds: distinct rows with their folds and
weights.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

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
# distinct rows of a class that are predicted for the expected accuracy: those that are
# held, and further ones in half precision
MAX_PREDICTED_ROWS = 1_000
NEAR_COPY_DISTANCE = 0.01
"""The maximum squared distance of near copies, as a share of twice the variance of the
rows: a tenth of the distance of two random rows. A matter of taste.
"""
LAYOUT: Layout = {
    "rows": Entry("m d"),
    "index": Entry("m", minimum=0, integer=True),
    "weight": Entry("m", minimum=MIN_MASS, maximum=MAX_COUNT),
    "digests": Entry("n", integer=True),
    "total": Entry("1", minimum=MIN_MASS, maximum=MAX_COUNT),
    "further_codes": Entry("q d", minimum=-1, maximum=1, optional=True),
    "further_exponents": Entry("q", -1100, 1100, integer=True, optional=True),
    "further_number": Entry("q", minimum=0, integer=True, optional=True),
    "further_weight": Entry("q", MIN_MASS, MAX_COUNT, optional=True),
}
"""The arrays of a class in a file; the folds are computed from `index`, and those of
further rows from `further_number`.
"""
FURTHER = "further_"
SHARED = "shared"
STATE_ROWS = "state/rows"
SHARED_LAYOUT: Layout = {
    "index": Entry("m", minimum=0, integer=True, optional=True),
    "length": Entry("m", minimum=MIN_MASS, optional=True),
    "lengths": Entry("m b", minimum=MIN_MASS, optional=True),
}
"""References of a class to held rows in place of its proxies; see `share_rows`."""
NO_DIGESTS = np.empty(0, dtype=np.uint64)


# the largest float16 below 1: a rounded row must not overflow where its row does not
LARGEST_CODE = np.nextafter(np.float16(1), np.float16(0))


class FurtherRows(NamedTuple):
    """Distinct rows of a large class that are predicted but not fitted, in the order of
    their keys, as `codes * 2**exponents`.

    Half precision takes a quarter or half of the memory, and keeps eleven bits of every
    value; predictions are made to estimate a share only.
    """

    codes: Array  # (q, d) float16, in (-1, 1)
    exponents: Array  # (q,) int16
    number: Array  # (q,) how many distinct rows of the class came before
    weight: Array  # (q,)

    @classmethod
    def of(
        cls,
        rows: Array,
        number: Array,
        weight: Array,
    ) -> "FurtherRows":
        """Rows in half precision."""
        largest = np.abs(rows).max(axis=1, initial=0)
        exponents = np.frexp(largest)[1].astype(np.int16)
        codes = np.ldexp(rows, -exponents[:, None]).astype(np.float16)
        codes = codes.clip(-LARGEST_CODE, LARGEST_CODE)
        return cls(codes, exponents, number, weight)

    def rows(self, dtype: Any) -> Array:
        """The rows.  # (q, d)"""
        codes = self.codes.astype(dtype)
        exponents = self.exponents[:, None]
        return np.asarray(np.ldexp(codes, exponents), dtype)

    def take(self, chosen: Array) -> "FurtherRows":
        """Those at some positions."""
        return FurtherRows(*(array[chosen] for array in self))

    def joined(self, other: "FurtherRows") -> "FurtherRows":
        """These and other rows."""
        return FurtherRows(*map(np.concatenate, zip(self, other)))


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
    # None if every distinct row is held, or the rows come from several large models
    further: FurtherRows | None = None

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

    def count_stored(self) -> int:
        """The number of rows that are stored, some of them in half precision."""
        further = 0 if self.further is None else len(self.further.number)
        return len(self.rows) + further

    def digest_texts(self) -> list[str]:
        """The digests of all distinct rows, as texts."""
        return [f"{digest:016x}" for digest in self.digests.tolist()]

    def find(self, digests: Sequence[str]) -> Array:
        """The held rows with these digests.  # (k, d)"""
        texts = self.digest_texts()
        position = {text: i for i, text in enumerate(texts)}
        wanted = [position[text] for text in digests if text in position]
        return self.rows[np.isin(self.index, wanted)]

    def to_state(self) -> State:
        """Named arrays as `LAYOUT` describes them."""
        names = [name for name in LAYOUT if not name.startswith(FURTHER)]
        state = {name: np.atleast_1d(getattr(self, name)) for name in names}
        if self.further is not None:
            fields = self.further._asdict()
            state |= {FURTHER + name: array for name, array in fields.items()}
        return state


def from_state(
    state: State,
    seed: int,
    label: Any,
) -> HeldRows:
    """The held rows from the arrays of `to_state`; ValueError if they are
    inconsistent.
    """
    index = state["index"].astype(np.int64)
    digests = state["digests"].astype(np.uint64)
    count = len(digests)
    # a set: np.unique loads numpy.ma, which a prediction does not need
    require(len(set(digests.tolist())) == count)
    further = _further_from_state(state)
    further_number = index[:0] if further is None else further.number
    require(len(index) <= MAX_HELD_ROWS or len(index) == count)
    require(len(further_number) <= MAX_PREDICTED_ROWS - MAX_HELD_ROWS)
    every_index = np.concatenate([index, further_number])
    require(len(set(every_index.tolist())) == len(every_index))
    require(int(every_index.max()) < count)
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
    return replace(held, further=further)


def _further_from_state(state: State) -> FurtherRows | None:
    """The further rows of a class in a file, of which it has all arrays or none."""
    names = [FURTHER + name for name in FurtherRows._fields]
    present = [name for name in names if name in state]
    require(present in ([], names))
    if not present:
        return None
    codes, exponents, number, weight = (state[name] for name in names)
    require(codes.dtype == np.float16 and exponents.dtype == np.int16)
    return FurtherRows(codes, exponents, number.astype(np.int64), weight)


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
    row_index = np.concatenate([before.index, new])
    row_weight = np.concatenate([before.weight + added[before.index], added[new]])
    total = before.total + float(weight.sum())
    held = select(rows, row_index, row_weight, digests, total, seed, label, limit)
    if limit is not None and (before.complete or before.further is not None):
        keys = keys_of(seed, label, len(digests))
        by_key = np.argsort(keys[row_index], kind="stable")
        rest = by_key[limit:MAX_PREDICTED_ROWS]
        arrived = FurtherRows.of(rows[rest], row_index[rest], row_weight[rest])
        further = _further(before.further, arrived, added, keys)
        held = replace(held, further=further)
    return held, folds_of(seed, label, len(digests))[index]


def _further(
    before: FurtherRows | None,
    arrived: FurtherRows,
    added: Array,
    keys: Array,
) -> FurtherRows | None:
    """The further rows of a class: those with the smallest keys among earlier ones,
    whose weights have risen by `added`, and ones that arrived or are no longer held.
    """
    rows = arrived
    if before is not None:
        weight = before.weight + added[before.number]
        rows = before._replace(weight=weight).joined(arrived)
    by_key = np.argsort(keys[rows.number], kind="stable")
    chosen = by_key[: MAX_PREDICTED_ROWS - MAX_HELD_ROWS]
    return rows.take(chosen) if len(chosen) else None


def folds_of_rows(
    X: Array,
    seed: int,
    label: Any,
    known: Array = NO_DIGESTS,
) -> Array:
    """The fold of every row of a class, of which some digests may be known; equal rows
    share one.  # (n,)
    """
    index, _, digests = _distinct(known, X)
    return folds_of(seed, label, len(digests))[index]


def near_copies(
    parts: list[HeldRows],
    chosen: list[Array],
    normalise: Callable[[Array], Array],
) -> Array:
    """Which of the chosen rows of each class almost equal a row of the class in another
    fold.  # (n,)
    """
    from scipy.spatial.distance import cdist

    rows = [normalise(held.rows[index]) for held, index in zip(parts, chosen)]
    nearest = []
    # distances of extreme rows are infinite: not near
    with np.errstate(over="ignore", invalid="ignore"):
        every_row = np.concatenate(rows)
        variance = float(every_row.var(axis=0, dtype=np.float64).sum())
        limit = NEAR_COPY_DISTANCE * 2 * variance
        for held, index, queries in zip(parts, chosen, rows):
            distances = cdist(queries, normalise(held.rows), "sqeuclidean")
            same_fold = held.fold[index][:, None] == held.fold
            distances[same_fold] = np.inf
            nearest.append(distances.min(axis=1))
    return np.concatenate(nearest) < limit


def folds_of(
    seed: int,
    label: Any,
    count: int,
) -> Array:
    """The folds of the distinct rows of a class: each run of five rows is spread over
    all folds.  # (count,)

    If there are fewer rows than folds, the first folds have one row each; see
    `is_fitted`.
    """
    folds = min(count, FOLDS)
    runs = -(-count // folds)
    random = _random_stream(seed, label, "folds").random((runs, folds))
    order = random.argsort(axis=1)
    return np.asarray(order.ravel()[:count])


def keys_of(
    seed: int,
    label: Any,
    count: int,
) -> Array:
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
    zero = X.dtype.type(0)
    rows = np.ascontiguousarray(X + zero)  # minus zero becomes zero
    parts = (hashlib.blake2b(row.data, digest_size=8).digest() for row in rows)
    joined = b"".join(parts)
    return np.frombuffer(joined, dtype="<u8").astype(np.uint64)


def _distinct(known: Array, X: Array) -> tuple[Array, Array, Array]:
    """The distinct row that each row of X equals, the first row of each new one, and
    all distinct digests in order.
    """
    digests = np.concatenate([known, row_digests(X)])
    # the first row with each digest, and the number of that digest
    first, index = factorize(digests)
    earlier = len(known)
    index_of_rows = index[earlier:]
    first_of_new = first[first >= earlier] - earlier
    return index_of_rows, first_of_new, digests[first]


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
    chosen = rows
    # rows of a file are in this order: they are not copied
    if len(best) < len(rows) or (np.diff(best) != 1).any():
        chosen = np.array(rows[best])
    return HeldRows(chosen, index[best], weight[best], fold, digests, total)


def _random_stream(
    seed: int,
    label: Any,
    purpose: str,
) -> np.random.Generator:
    """Random numbers of a class for one purpose."""
    return np.random.default_rng((*class_entropy(seed, label), *purpose.encode()))


def share_rows(
    summary: State,
    held: Array,
    blocks: tuple[int, ...] = (),
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
        index = find_rows(proxies, divided(held, length, widths))
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


def divided(
    X: Array,
    length: Array,
    widths: tuple[int, ...],
) -> Array:
    """Rows whose blocks are divided by one number each.  # (n, d)"""
    quotients = np.empty_like(X)
    for b, block in enumerate(column_slices(widths)):
        quotients[:, block] = X[:, block] / length[:, b, None]
    return quotients


def unshare_rows(
    arrays: dict[str, Array],
    blocks: tuple[int, ...] = (),
) -> dict[str, Array]:
    """The inverse of `share_rows`; raises KeyError, ValueError or IndexError if the
    file is inconsistent.
    """
    if f"{SHARED}/index/values" not in arrays:
        return arrays
    held = to_stacks(arrays, "held")["rows"].by_class()
    stored = to_stacks(arrays, "state")
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
            proxies[c] = divided(held[c][index], length, widths)
    rest = {
        name: array
        for name, array in arrays.items()
        if not name.startswith((STATE_ROWS, f"{SHARED}/"))
    }
    return {
        **rest,
        **to_arrays("state", [{"rows": proxies[c]} for c in sorted(proxies)]),
    }
