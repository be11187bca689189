"""Best scores of proxies that share rows: one product for all of them, then maxima."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from imprint.core.types import Array
from imprint.kernels import engine
from imprint.kernels.engine import one_blas_thread

PROXIES = 2048
SCORES = 2**21  # held at a time
LEAST = 128  # queries at a time, however many proxies there are


class Span(NamedTuple):
    """The first rows of a base, each divided by its own number where there are divisors."""

    base: int
    size: int
    divisors: Array | None = None  # of every row of the base

    def rows(self, bases: Sequence[Array]) -> Array:
        """The rows themselves."""
        rows = bases[self.base][: self.size]
        return rows if self.divisors is None else rows / self.divisors[: self.size, None]


Watch: TypeAlias = Callable[[int, Array, dict[int, int]], None]
"""Is shown the first of some queries, their products with the rows of all bases, and where each base begins."""


def span_maxima(
    Q: Array, bases: Sequence[Array], spans: Sequence[Span], out: Array | None = None, watch: Watch | None = None
) -> Array:
    """Largest inner product of every query with the rows of every span.  # (spans, q)

    `watch` is called with the products of some queries at a time, when their maxima are in `out`.

    >>> span_maxima(np.array([[1.0, 1.0]]), [np.array([[2.0, 0.0], [3.0, 0.0]])], [Span(0, 1), Span(0, 2)])
    array([[2.],
           [3.]])
    """
    order = sorted(range(len(spans)), key=lambda i: (spans[i].base, id(spans[i].divisors), spans[i].size))
    wanted: dict[int, list[int]] = defaultdict(list)
    for i in order:
        wanted[spans[i].base].append(i)
    if out is None:
        out = np.empty((len(spans), len(Q)), dtype=np.result_type(Q, *(bases[b] for b in wanted)))
    with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
        for group in _groups(bases, list(wanted)) if watch is None else [list(wanted)]:
            W = np.concatenate([bases[b] for b in group])
            firsts = dict(zip(group, np.cumsum([0, *(len(bases[b]) for b in group)]).tolist()))
            prefixes = _prefixes([spans[i] for b in group for i in wanted[b]], firsts, W.dtype)
            places = np.array([i for b in group for i in wanted[b]])
            step = max(LEAST, SCORES // len(W))
            held = np.empty((len(W), min(step, len(Q))), dtype=out.dtype)
            for start in range(0, len(Q), step):
                queries = Q[start : start + step]
                scores = np.matmul(W, queries.T, out=held[:, : len(queries)])
                _maxima(scores, prefixes, places, out[:, start : start + step])
                if watch is not None:
                    watch(start, scores, firsts)
    return out


def _groups(bases: Sequence[Array], used: list[int]) -> Iterator[list[int]]:
    """Bases whose rows are multiplied together."""
    group: list[int] = []
    size = 0
    for b in used:
        if group and size + len(bases[b]) > PROXIES:
            yield group
            group, size = [], 0
        group.append(b)
        size += len(bases[b])
    if group:
        yield group


class _Prefixes(NamedTuple):
    """First rows of some spans, how many they are and which factors go with them; sorted, so that the shorter of
    two that begin alike comes first."""

    first: Array
    size: Array
    which: Array  # -1 for no factors
    factors: Array  # (kinds, rows)


def _prefixes(spans: list[Span], firsts: dict[int, int], dtype: Any) -> _Prefixes:
    kinds: dict[int, Array] = {}
    for span in spans:
        if span.divisors is not None:
            kinds.setdefault(id(span.divisors), 1 / span.divisors)
    factors = np.ones((len(kinds), max((len(f) for f in kinds.values()), default=0)), dtype=dtype)
    for row, kind in zip(factors, kinds.values()):
        row[: len(kind)] = kind
    number = dict(zip(kinds, range(len(kinds))))
    which = [-1 if span.divisors is None else number[id(span.divisors)] for span in spans]
    first = [firsts[span.base] for span in spans]
    return _Prefixes(np.array(first), np.array([span.size for span in spans]), np.array(which), factors)


def _maxima(scores: Array, prefixes: _Prefixes, places: Array, out: Array) -> None:
    """Maxima over prefixes, the shorter ones on the way to the longer, into some rows of `out`.  # scores: (rows, q)"""
    if engine.loaded():
        from imprint.kernels.compiled.spans import prefix_maxima

        prefix_maxima(scores, *prefixes, places, out)
        return
    before = -1, -1, 0, np.empty(0)
    for first, size, which, place in zip(*map(np.ndarray.tolist, (*prefixes[:3], places))):
        done = before[2] if before[:2] == (first, which) else 0
        if done == size:
            out[place] = before[3]
        else:
            rows = scores[first + done : first + size]
            if which >= 0:
                rows = rows * prefixes.factors[which, done:size, None]
            np.max(rows, axis=0, out=out[place])
            if done:
                np.maximum(out[place], before[3], out=out[place])
        before = first, which, size, out[place]
