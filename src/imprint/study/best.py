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
ALONE = -1
"""The union of a lineup with no other."""


class Estimates(NamedTuple):
    """Decisions about one lineup whose scores but the first class's are estimated from products with other rows."""

    lineup: int
    firsts: list[int]  # the spans of the first class
    raws: list[tuple[int, int]]  # bases of the products and how many of their rows, for each other class
    edges: Array
    rows: Array
    lines: Array
    starts: Array  # where the scores of each begin


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
        self._lines: dict[tuple[int, ...], Any] = {}
        self._shape: dict[int, Array | None] = {}
        self._estimated: dict[tuple[int, tuple[int, ...]], int] = {}
        by_rows, estimated = self._shared(list(places))
        sizes = [len(spans) * len(plan.unions[union]) for union, spans in by_rows.items()]
        estimates_of, end = self._estimates(estimated, sum(sizes))
        self._scores = np.empty(end, dtype=self.dtype)
        end = 0
        for (union, spans), size in zip(by_rows.items(), sizes):
            width = len(plan.unions[union])
            out = self._scores[end : end + size].reshape(len(spans), width)
            self._start.update(zip(spans, range(end, end + size, width)))
            self._union.update(dict.fromkeys(spans, union))
            watch = self._watch(union, estimates_of[union]) if union in estimates_of else None
            chosen = [blocks.spans[i] for i in spans]
            placed.span_maxima(queries(union), blocks.bases, chosen, out, device, watch)
            end += size

    def _shared(self, places: list[Place]) -> tuple[dict[int, list[int]], dict[Place, int]]:
        """The spans to be multiplied for each union of lineups, and where decisions are estimated on the way."""
        estimated = {place for place in places if self._can_be_estimated(place)}
        while True:
            users = self.blocks.users(place for place in places if place not in estimated)
            by_rows = self.blocks.by_rows(users, self.plan)
            home = {self.blocks.spans[i].base: (union, users[i]) for union, spans in by_rows.items() for i in spans}
            lost = {place for place in estimated if not self._is_served(place, users, home)}
            if not lost:
                break
            estimated -= lost
        first = {place: self.blocks.spans[self.blocks.places[place][0]] for place in places if place in estimated}
        return by_rows, {place: home[span.base][0] for place, span in first.items()}

    def _estimates(self, wanted: dict[Place, int], end: int) -> tuple[dict[int, list[Estimates]], int]:
        """Decisions to be estimated in each union of lineups, those of one lineup and array together.

        Their scores stand from `end` on; the second number is where they end.
        """
        alike: dict[tuple[int, int, int], list[tuple[int, ...]]] = defaultdict(list)
        for place, union in wanted.items():
            key = place.lineup, tuple(self.blocks.places[place])
            if key not in self._estimated:
                self._estimated[key] = end
                end += len(key[1]) * len(self.plan.lineups[place.lineup].rows)
                alike[union, place.lineup, id(self.blocks.finished[key[1][1]].together)].append(key[1])
        found: dict[int, list[Estimates]] = defaultdict(list)
        for (union, lineup, _), decisions in alike.items():
            own = [[self.blocks.finished[i] for i in spans[1:]] for spans in decisions]
            sizes = [[self.blocks.spans[i].size for i in spans[1:]] for spans in decisions]
            edges = np.cumsum([[parts[0].first, *n] for parts, n in zip(own, sizes)], axis=1)
            raws = [(part.raw, size) for parts, n in zip(own, sizes) for part, size in zip(parts, n)]
            lines = np.concatenate([self._lines[spans[1:]] for spans in decisions], axis=1)
            starts = np.array([self._estimated[lineup, spans] for spans in decisions])
            firsts = [spans[0] for spans in decisions]
            found[union].append(Estimates(lineup, firsts, raws, edges, own[0][0].together, lines, starts))
        return found, end

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
        work = sum(sizes) * together.shape[1] * len(self.plan.lineups[place.lineup].rows)
        return engine.compiled(work) and self._are_faint(tuple(spans[1:]))

    def _is_served(self, place: Place, users: dict[int, set[int]], home: dict[int, tuple[int, set[int]]]) -> bool:
        """Whether what a decision is estimated from is multiplied with all its queries, in one place."""
        spans = self.blocks.places[place]
        bases = [self.blocks.spans[spans[0]].base, *(self.blocks.finished[i].raw for i in spans[1:])]
        if not all(base in home for base in bases) or len({home[base][0] for base in bases}) > 1:
            return False
        served = place.lineup in users.get(spans[0], ()) and all(place.lineup in home[base][1] for base in bases)
        return served and self._shapes(home[bases[0]][0]) is not None

    def _are_faint(self, spans: tuple[int, ...]) -> bool:
        """Whether their rows, side by side, follow well enough from those they were made of; notes down how."""
        if spans not in self._lines:
            finished, own = self.blocks.finished, [self.blocks.spans[i] for i in spans]
            raw = [span._replace(base=finished[i].raw).rows(self.blocks.bases) for i, span in zip(spans, own)]
            size = sum(span.size for span in own)
            rows = finished[spans[0]].together[finished[spans[0]].first :][:size]
            self._lines[spans] = estimates.lines(np.concatenate(raw), rows, FAINT)
        return self._lines[spans] is not None

    def _shapes(self, union: int) -> Array | None:
        if union not in self._shape:
            self._shape[union] = estimates.shapes(self.queries(union))
        return self._shape[union]

    def _watch(self, union: int, wanted: list[Estimates]) -> Watch:
        """Estimate decisions from the products of test rows with the rows of all bases."""
        Q, shapes = self.queries(union), np.asarray(self._shape[union])
        room = estimates.room_for(max(int((e.edges[:, -1] - e.edges[:, 0]).max()) for e in wanted))

        def watch(places: dict[int, Array]) -> Callable[[int, Array], None]:
            at = [np.concatenate([places[raw][:size] for raw, size in e.raws]) for e in wanted]
            likes = [estimates.Likes(e.edges, e.rows, own, e.lines) for e, own in zip(wanted, at)]
            bests = [np.array([self._start[i] for i in e.firsts]) for e in wanted]

            def look(start: int, products: Array) -> None:
                here = slice(start, start + products.shape[1])
                for e, like, best in zip(wanted, likes, bests):
                    first, columns = _those_in(self.plan.columns(union, e.lineup), here)
                    width = len(self.plan.lineups[e.lineup].rows)
                    estimates.settle(
                        products, columns, like, Q[here], shapes[:, here], best + start, room, self._scores,
                        e.starts + first, width,
                    )  # fmt: skip

            return look

        return watch

    def count(self, chosen: Sequence[Sequence[int]], lineup: int, rounding: float) -> Counts:
        """Decisions about the rows of a lineup, each between spans of its own, one for every class."""
        truth = self.plan.lineups[lineup].truth
        starts, unions = [], []
        for spans in chosen:
            begin = self._estimated.get((lineup, tuple(spans)))
            if begin is None:
                starts.append([self._start[i] for i in spans])
                unions.append([self._union[i] for i in spans])
            else:
                starts.append(list(range(begin, begin + len(spans) * len(truth), len(truth))))
                unions.append([ALONE] * len(spans))
        return count_many(self._scores, np.array(starts), *self._columns(unions, lineup), truth, rounding)

    def _columns(self, unions: list[list[int]], lineup: int) -> tuple[Array, Array]:
        """Where the rows of a lineup stand in each union, and which of these places go with each; -1 as they lie."""
        places: list[Array] = []
        number = {}
        for u in {u for own in unions for u in own}:
            columns = None if u == ALONE else self.plan.columns(u, lineup)
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
