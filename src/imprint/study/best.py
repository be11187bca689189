"""The best scores of spans with test rows, and decisions by the largest of them."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from imprint.core.types import Array
from imprint.kernels import placed
from imprint.kernels.decisions import Counts, count_decisions, count_many
from imprint.kernels.rows import squared_norms
from imprint.study.arrange import Arrangement
from imprint.study.blocks import Blocks, Place, Shade

SLACK = 1e-5
"""What float rounding may add to a score, as a share of the lengths of query and proxy; more than it does."""


class BestScores:
    """For every span its largest inner product with each test row of the lineups that it stands in."""

    def __init__(
        self,
        blocks: Blocks,
        plan: Arrangement,
        places: Iterable[Place],
        queries: Callable[[int], Array],
        device: str,
    ) -> None:
        """`queries` gives the test rows of a union of lineups."""
        self.blocks, self.plan, self.queries, self.device = blocks, plan, queries, device
        self._start: dict[int, int] = {}
        self._union: dict[int, int] = {}
        by_rows = blocks.by_rows(places, plan, shades=True)
        sizes = [len(spans) * len(plan.unions[union]) for union, spans in by_rows.items()]
        self._scores = np.empty(sum(sizes), dtype=np.result_type(queries(next(iter(by_rows))), *blocks.bases))
        end = 0
        for (union, spans), size in zip(by_rows.items(), sizes):
            width = len(plan.unions[union])
            out = self._scores[end : end + size].reshape(len(spans), width)
            placed.span_maxima(queries(union), blocks.bases, [blocks.solid(i) for i in spans], out, device)
            self._start.update(zip(spans, range(end, end + size, width)))
            self._union.update(dict.fromkeys(spans, union))
            end += size

    def count(self, chosen: Sequence[Sequence[int]], lineup: int, rounding: float) -> Counts:
        """Decisions about the rows of a lineup, each between spans of its own, one for every class."""
        truth = self.plan.lineups[lineup].truth
        shaded = [t for t, spans in enumerate(chosen) if self._shades(spans)]
        plain = sorted(set(range(len(chosen))) - set(shaded))
        found = [count_decisions(self._settled(chosen[t], lineup), truth, rounding) for t in shaded]
        if plain:
            starts = np.array([[self._start[i] for i in chosen[t]] for t in plain])
            unions = [[self._union[i] for i in chosen[t]] for t in plain]
            found.append(count_many(self._scores, starts, *self._columns(unions, lineup), truth, rounding))
        order = np.argsort(shaded + plain)
        return Counts(*(np.concatenate(parts)[order] for parts in zip(*found)))

    def _shades(self, spans: Sequence[int]) -> list[tuple[int, Shade]]:
        """Those of a decision that are shades, with their classes."""
        found = ((c, self.blocks.spans[i]) for c, i in enumerate(spans))
        return [(c, span) for c, span in found if isinstance(span, Shade)]

    def _columns(self, unions: list[list[int]], lineup: int) -> tuple[Array, Array]:
        """Where the rows of a lineup stand in each union, and which of these places go with each; -1 as they lie."""
        places: list[Array] = []
        number = {}
        for u in {u for own in unions for u in own}:
            columns = self.plan.columns(u, lineup)
            number[u] = -1 if columns is None else len(places)
            places += [] if columns is None else [columns]
        which = np.array([[number[u] for u in own] for own in unions])
        return which, np.array(places, dtype=np.intp).reshape(len(places), len(self.plan.lineups[lineup].rows))

    def _settled(self, spans: Sequence[int], lineup: int) -> Array:
        """Scores that decide as the true ones do: estimates, and the true ones where those leave doubt.  # (C, q)

        What a shade scores is known to within its blur times the length of the query about its mean.
        """
        shades = self._shades(spans)
        known = list(spans)
        for c, shade in shades:
            known[c] = shade.span
        scores = np.stack([self._of(i, lineup) for i in known])
        Q = self._rows(lineup, self._union[known[0]])
        length, mean = np.sqrt(squared_norms(Q)), Q.mean(axis=1, dtype=np.float64)
        about = np.sqrt(np.maximum(length**2 - Q.shape[1] * mean**2, 0))
        blur = np.zeros(scores.shape)
        for c, shade in shades:
            scores[c] = shade.like.scale * scores[c] + shade.like.shift * (Q.shape[1] * mean)
            blur[c] = shade.like.blur * about + SLACK * shade.length * length
        open_ = ~(scores + blur < (scores - blur).max(axis=0))
        open_ &= open_.sum(axis=0) > 1
        for c, shade in shades:
            rows = np.flatnonzero(open_[c])
            if len(rows):
                scores[c, rows] = placed.class_maxima(Q[rows], shade.rows(), np.zeros(1, np.intp), self.device)[:, 0]
        return scores

    def _of(self, span: int, lineup: int) -> Array:
        """The scores of a span with the rows of a lineup."""
        union, start = self._union[span], self._start[span]
        scores = self._scores[start : start + len(self.plan.unions[union])]
        return self._picked(scores, union, lineup)

    def _rows(self, lineup: int, union: int) -> Array:
        """The test rows of a lineup, out of a union that holds them."""
        return self._picked(self.queries(union), union, lineup)

    def _picked(self, rows: Array, union: int, lineup: int) -> Array:
        columns = self.plan.columns(union, lineup)
        return rows if columns is None else rows[columns]
