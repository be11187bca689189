"""The best scores of spans with test rows, and decisions by the largest of them."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from imprint.core.types import Array
from imprint.kernels import engine, estimates, placed
from imprint.kernels.decisions import Counts, count_many
from imprint.kernels.spans import Watch
from imprint.study.arrange import Arrangement
from imprint.study.blocks import Blocks, Place

WORTH = 10
"""Proxies of a class from which it pays to estimate their scores first."""
FAINT = 0.15
"""How much of their length estimates may leave out on average, for that."""


class Estimate(NamedTuple):
    """A decision whose scores but the first class's are estimated from products with other rows."""

    lineup: int
    first: int  # the span of the first class
    raws: list[tuple[int, int]]  # the bases of the products and how many of their rows, for each other class
    ends: Array  # (C,) where the rows of each class end among `rows`
    lines: Array
    rows: Array
    scores: Array  # (C, q)


class BestScores:
    """For every span its largest inner product with each test row of the lineups that it stands in.

    Where proxies are like others whose products are needed anyway (`quantile` of rows that also stand there plain),
    those settle most decisions, and only what they leave open is computed.
    """

    def __init__(
        self,
        blocks: Blocks,
        plan: Arrangement,
        places: Iterable[Place],
        queries: Callable[[int], Array],
        dtype: Any,
        device: str,
    ) -> None:
        """`queries` gives the test rows of a union of lineups, which are of this type."""
        self.blocks, self.plan, self.queries, self.device = blocks, plan, queries, device
        self.dtype = np.result_type(dtype, *(base.pool for base in blocks.bases))
        self._start: dict[int, int] = {}
        self._union: dict[int, int] = {}
        self._lines: dict[int, Any] = {}
        self._shape: dict[int, Array | None] = {}
        self._estimates: dict[tuple[int, tuple[int, ...]], Estimate] = {}
        by_rows, watched = self._shared(list(places))
        sizes = [len(spans) * len(plan.unions[union]) for union, spans in by_rows.items()]
        self._scores = np.empty(sum(sizes), dtype=self.dtype)
        end = 0
        for (union, spans), size in zip(by_rows.items(), sizes):
            width = len(plan.unions[union])
            out = self._scores[end : end + size].reshape(len(spans), width)
            self._start.update(zip(spans, range(end, end + size, width)))
            self._union.update(dict.fromkeys(spans, union))
            watch = self._watch(union, watched[union]) if union in watched else None
            chosen = [blocks.spans[i] for i in spans]
            placed.span_maxima(queries(union), blocks.bases, chosen, out, device, watch)
            end += size

    def _shared(self, places: list[Place]) -> tuple[dict[int, list[int]], dict[int, list[Estimate]]]:
        """The spans to be multiplied for each union of lineups, and the decisions that are estimated on the way."""
        estimated = {place for place in places if self._can_be_estimated(place)}
        while True:
            users = self.blocks.users(place for place in places if place not in estimated)
            by_rows = self.blocks.by_rows(users, self.plan)
            home = {self.blocks.spans[i].base: (union, users[i]) for union, spans in by_rows.items() for i in spans}
            lost = {place for place in estimated if not self._is_served(place, users, home)}
            if not lost:
                break
            estimated -= lost
        watched: dict[int, list[Estimate]] = defaultdict(list)
        for place in places:
            key = place.lineup, tuple(self.blocks.places[place])
            if place in estimated and key not in self._estimates:
                self._estimates[key] = self._estimate(*key)
                watched[home[self.blocks.spans[key[1][0]].base][0]].append(self._estimates[key])
        return by_rows, watched

    def _can_be_estimated(self, place: Place) -> bool:
        """Whether all classes but the first have many rows that are much like others, side by side."""
        spans, finished = self.blocks.places[place], self.blocks.finished
        if self.device != placed.CPU or self.dtype != np.float32:
            return False
        sizes = [self.blocks.spans[i].size for i in spans[1:]]
        if min(sizes, default=0) < WORTH or not all(i in finished for i in spans[1:]):
            return False
        together, begins = finished[spans[1]].together, np.cumsum([finished[spans[1]].first, *sizes])
        if any(finished[i].together is not together or finished[i].first != b for i, b in zip(spans[1:], begins)):
            return False
        work = together.size * len(self.plan.lineups[place.lineup].rows)
        return engine.compiled(work) and all(self._is_faint(i) for i in spans[1:])

    def _is_served(self, place: Place, users: dict[int, set[int]], home: dict[int, tuple[int, set[int]]]) -> bool:
        """Whether what a decision is estimated from is multiplied with all its queries, in one place."""
        spans = self.blocks.places[place]
        bases = [self.blocks.spans[spans[0]].base, *(self.blocks.finished[i].raw for i in spans[1:])]
        if not all(base in home for base in bases) or len({home[base][0] for base in bases}) > 1:
            return False
        served = place.lineup in users.get(spans[0], ()) and all(place.lineup in home[base][1] for base in bases)
        return served and self._shapes(home[bases[0]][0]) is not None

    def _estimate(self, lineup: int, spans: tuple[int, ...]) -> Estimate:
        finished, sizes = [self.blocks.finished[i] for i in spans[1:]], [self.blocks.spans[i].size for i in spans[1:]]
        ends = np.cumsum([0, *sizes])
        rows = finished[0].together[finished[0].first :][: ends[-1]]
        raws = [(f.raw, size) for f, size in zip(finished, sizes)]
        lines = np.concatenate([self._lines[i] for i in spans[1:]], axis=1)
        scores = np.empty((len(spans), len(self.plan.lineups[lineup].rows)), dtype=np.float32)
        return Estimate(lineup, spans[0], raws, ends, lines, rows, scores)

    def _is_faint(self, span: int) -> bool:
        """Whether its rows follow well enough from those they were made of; notes down how."""
        if span not in self._lines:
            bases, own = self.blocks.bases, self.blocks.spans[span]
            raw = own._replace(base=self.blocks.finished[span].raw)
            self._lines[span] = estimates.lines(raw.rows(bases), own.rows(bases), FAINT)
        return self._lines[span] is not None

    def _shapes(self, union: int) -> Array | None:
        if union not in self._shape:
            self._shape[union] = estimates.shapes(self.queries(union))
        return self._shape[union]

    def _watch(self, union: int, wanted: list[Estimate]) -> Watch:
        """Estimate decisions from the products of test rows with the rows of all bases."""
        Q, shapes = self.queries(union), np.asarray(self._shape[union])
        room = estimates.room_for(max(len(e.rows) for e in wanted))
        by_lineup: dict[int, list[Estimate]] = defaultdict(list)
        for e in wanted:
            by_lineup[e.lineup].append(e)

        def watch(places: dict[int, Array]) -> Callable[[int, Array], None]:
            at = {id(e): np.concatenate([places[raw][:size] for raw, size in e.raws]) for e in wanted}

            def look(start: int, products: Array) -> None:
                here = slice(start, start + products.shape[1])
                queries, shape = Q[here], shapes[:, here]
                for lineup, own in by_lineup.items():
                    first, columns = _those_in(self.plan.columns(union, lineup), here)
                    for e in own:
                        best = self._scores[self._start[e.first] :][here]
                        like = estimates.Like(at[id(e)], e.ends, e.lines, e.rows)
                        estimates.settle(products, columns, like, queries, shape, best, room, e.scores, first)

            return look

        return watch

    def count(self, chosen: Sequence[Sequence[int]], lineup: int, rounding: float) -> Counts:
        """Decisions about the rows of a lineup, each between spans of its own, one for every class."""
        truth = self.plan.lineups[lineup].truth
        estimated = {
            t: self._estimates[key] for t, s in enumerate(chosen) if (key := (lineup, tuple(s))) in self._estimates
        }
        plain = [t for t in range(len(chosen)) if t not in estimated]
        found = []
        if estimated:
            scores = np.stack([e.scores for e in estimated.values()])
            starts = np.arange(0, scores.size, len(truth)).reshape(scores.shape[:2])
            none = np.empty((0, len(truth)), dtype=np.intp)
            found.append(count_many(scores.ravel(), starts, np.full_like(starts, -1), none, truth, rounding))
        if plain:
            starts = np.array([[self._start[i] for i in chosen[t]] for t in plain])
            unions = [[self._union[i] for i in chosen[t]] for t in plain]
            found.append(count_many(self._scores, starts, *self._columns(unions, lineup), truth, rounding))
        order = np.argsort([*estimated, *plain])
        return Counts(*(np.concatenate(parts)[order] for parts in zip(*found)))

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


def _those_in(places: Array | None, here: slice) -> tuple[int, Array]:
    """Which of ascending places lie in a slice: the number of the first of them, and where in the slice they are."""
    if places is None:
        return here.start, np.arange(here.stop - here.start, dtype=np.uint32)
    a, b = np.searchsorted(places, (here.start, here.stop))
    return int(a), (places[a:b] - here.start).astype(np.uint32)
