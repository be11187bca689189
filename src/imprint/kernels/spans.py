"""Best scores of proxies that share rows: one product for all of them, then maxima."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from imprint.core.types import Array
from imprint.kernels import engine
from imprint.kernels.engine import one_blas_thread

PROXIES = 2048
SCORES = 2**21  # held at a time
LEAST = 128  # queries at a time, however many proxies there are


class Base(NamedTuple):
    """Rows of a pool, in an order of their own; None for all of them as they are."""

    pool: Array
    places: Array | None = None


class Span(NamedTuple):
    """The first rows of a base, each divided by its own number where there are divisors."""

    base: int
    size: int
    divisors: Array | None = None  # of every row of the base

    def rows(self, bases: Sequence[Base]) -> Array:
        """The rows themselves."""
        pool, places = bases[self.base]
        rows = pool[: self.size] if places is None else pool[places[: self.size]]
        return rows if self.divisors is None else rows / self.divisors[: self.size, None]


Watch: TypeAlias = Callable[[dict[int, Array]], Callable[[int, Array], None]]
"""Is told where the rows of each base stand among all that are multiplied. What it gives is shown the first of some
queries and their products with those rows, when their maxima are found; then others."""


def span_maxima(
    Q: Array, bases: Sequence[Base], spans: Sequence[Span], out: Array | None = None, watch: Watch | None = None
) -> Array:
    """Largest inner product of every query with the rows of every span.  # (spans, q)

    A row of a pool is multiplied once, whatever bases it stands in.

    >>> base = Base(np.array([[2.0, 0.0], [3.0, 0.0]]))
    >>> span_maxima(np.array([[1.0, 1.0]]), [base], [Span(0, 1), Span(0, 2)])
    array([[2.],
           [3.]])
    """
    order = sorted(range(len(spans)), key=lambda i: (spans[i].base, id(spans[i].divisors), spans[i].size))
    wanted: dict[int, list[int]] = defaultdict(list)
    for i in order:
        wanted[spans[i].base].append(i)
    if out is None:
        out = np.empty((len(spans), len(Q)), dtype=np.result_type(Q, *(bases[b].pool for b in wanted)))
    with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
        parts = _parts(bases, wanted)
        for group in _groups(parts) if watch is None else [parts]:
            W, places = _together(bases, group)
            used = list(places)
            prefixes = _prefixes([spans[i] for b in used for i in wanted[b]], places, W.dtype)
            numbers = np.array([i for b in used for i in wanted[b]])
            look = None if watch is None else watch(places)
            step = max(LEAST, SCORES // len(W) // LEAST * LEAST)
            held = np.empty((len(W), min(step, len(Q))), dtype=out.dtype)
            for start in range(0, len(Q), step):
                queries = Q[start : start + step]
                scores = np.matmul(W, queries.T, out=held[:, : len(queries)])
                _maxima(scores, prefixes, numbers, out[:, start : start + step])
                if look is not None:
                    look(start, scores)
    return out


class _Part(NamedTuple):
    """Bases of one pool and which of its rows they hold, ascending; None for all."""

    bases: list[int]
    used: Array | None
    size: int


def _parts(bases: Sequence[Base], wanted: Iterable[int]) -> list[_Part]:
    alike: dict[int, list[int]] = defaultdict(list)
    for b in wanted:
        alike[id(bases[b].pool)].append(b)
    found = []
    for own in alike.values():
        n = len(bases[own[0]].pool)
        if any(bases[b].places is None for b in own):
            found.append(_Part(own, None, n))
            continue
        chosen = np.zeros(n, dtype=bool)
        for b in own:
            chosen[bases[b].places] = True
        used = np.flatnonzero(chosen)
        found.append(_Part(own, None if len(used) == n else used, len(used)))
    return found


def _groups(parts: list[_Part]) -> Iterator[list[_Part]]:
    """Pools whose rows are multiplied together."""
    group: list[_Part] = []
    size = 0
    for part in parts:
        if group and size + part.size > PROXIES:
            yield group
            group, size = [], 0
        group.append(part)
        size += part.size
    if group:
        yield group


def _together(bases: Sequence[Base], parts: list[_Part]) -> tuple[Array, dict[int, Array]]:
    """The rows of some pools below each other, and where those of each base stand among them."""
    rows, places, first = [], {}, 0
    for own, used, size in parts:
        pool = bases[own[0]].pool
        rows.append(pool if used is None else pool[used])
        place = np.arange(first, first + size)
        if used is not None:
            place = np.empty(len(pool), dtype=np.intp)
            place[used] = np.arange(first, first + size)
        for b in own:
            own_places = bases[b].places
            places[b] = place if own_places is None else place[own_places]
        first += size
    return np.concatenate(rows), places


class _Prefixes(NamedTuple):
    """Where the rows of bases stand; for some spans the first of these, how many they are and which factors go with
    them; sorted, so that the shorter of two that begin alike comes first."""

    at: Array
    first: Array
    size: Array
    which: Array  # -1 for no factors
    factors: Array  # (kinds, rows)


def _prefixes(spans: list[Span], places: dict[int, Array], dtype: Any) -> _Prefixes:
    kinds: dict[int, Array] = {}
    for span in spans:
        if span.divisors is not None:
            kinds.setdefault(id(span.divisors), 1 / span.divisors)
    factors = np.ones((len(kinds), max((len(f) for f in kinds.values()), default=0)), dtype=dtype)
    for row, kind in zip(factors, kinds.values()):
        row[: len(kind)] = kind
    number = dict(zip(kinds, range(len(kinds))))
    which = [-1 if span.divisors is None else number[id(span.divisors)] for span in spans]
    firsts = dict(zip(places, np.cumsum([0, *map(len, places.values())]).tolist()))
    first = [firsts[span.base] for span in spans]
    at = np.concatenate(list(places.values()))
    return _Prefixes(at, np.array(first), np.array([span.size for span in spans]), np.array(which), factors)


def _maxima(scores: Array, prefixes: _Prefixes, numbers: Array, out: Array) -> None:
    """Maxima over prefixes, the shorter ones on the way to the longer, into some rows of `out`.  # scores: (rows, q)"""
    if engine.loaded():
        from imprint.kernels.compiled.spans import prefix_maxima

        prefix_maxima(scores, *prefixes, numbers, out)
        return
    before = -1, -1, 0, np.empty(0)
    for first, size, which, number in zip(*map(np.ndarray.tolist, (*prefixes[1:4], numbers))):
        done = before[2] if before[:2] == (first, which) else 0
        if done == size:
            out[number] = before[3]
        else:
            rows = scores[prefixes.at[first + done : first + size]]
            if which >= 0:
                rows = rows * prefixes.factors[which, done:size, None]
            np.max(rows, axis=0, out=out[number])
            if done:
                np.maximum(out[number], before[3], out=out[number])
        before = first, which, size, out[number]
