"""Best scores of proxies that share rows: one product for all of them, then maxima."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from imprint.core.types import Array
from imprint.kernels.engine import one_blas_thread

PROXIES = 1024
SCORES = 2**21  # held at a time


class Span(NamedTuple):
    """The first rows of a base, each divided by its own number where there are divisors."""

    base: int
    size: int
    divisors: Array | None = None  # of every row of the base

    def rows(self, bases: Sequence[Array]) -> Array:
        """The rows themselves."""
        rows = bases[self.base][: self.size]
        return rows if self.divisors is None else rows / self.divisors[: self.size, None]


def span_maxima(Q: Array, bases: Sequence[Array], spans: Sequence[Span]) -> Array:
    """Largest inner product of every query with the rows of every span.  # (spans, q)

    >>> span_maxima(np.array([[1.0, 1.0]]), [np.array([[2.0, 0.0], [3.0, 0.0]])], [Span(0, 1), Span(0, 2)])
    array([[2.],
           [3.]])
    """
    wanted: dict[int, list[int]] = defaultdict(list)
    for i, span in enumerate(spans):
        wanted[span.base].append(i)
    out = np.empty((len(spans), len(Q)), dtype=np.result_type(Q, *(bases[b] for b in wanted)))
    with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
        for group in _groups(bases, list(wanted)):
            W = np.concatenate([bases[b] for b in group])
            step = max(1, SCORES // len(W))
            held = np.empty((len(W), min(step, len(Q))), dtype=out.dtype)
            for start in range(0, len(Q), step):
                queries = Q[start : start + step]
                scores = np.matmul(W, queries.T, out=held[:, : len(queries)])
                first = 0
                for b in group:
                    own = scores[first : first + len(bases[b])]
                    _maxima(own, spans, wanted[b], out[:, start : start + step])
                    first += len(bases[b])
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


def _maxima(scores: Array, spans: Sequence[Span], wanted: list[int], out: Array) -> None:
    """Maxima over the spans of one base, the shorter ones on the way to the longer.  # scores: (rows, q)"""
    alike: dict[int, list[int]] = defaultdict(list)
    for i in wanted:
        alike[id(spans[i].divisors)].append(i)
    for own in alike.values():
        own.sort(key=lambda i: spans[i].size)
        divisors, longest = spans[own[0]].divisors, spans[own[-1]].size
        scaled = scores[:longest] if divisors is None else scores[:longest] / divisors[:longest, None]
        before, done = out[own[0]], 0
        for i in own:
            count = spans[i].size
            if count > done:
                np.max(scaled[done:count], axis=0, out=out[i])
                if done:
                    np.maximum(out[i], before, out=out[i])
            else:
                out[i] = before
            before, done = out[i], count
