"""Finished proxies of classes as spans of rows that they share, and the shortlists of all of them."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from imprint.aggregators._base import Aggregator
from imprint.core.types import Array
from imprint.kernels.spans import Span
from imprint.normalisers._base import Normaliser
from imprint.study.arrange import Arrangement, Maker


class Raw(NamedTuple):
    """The proxies of one class as their generator made them: the first `size` of rows that others begin with too."""

    key: Hashable
    rows: Array
    size: int


class Place(NamedTuple):
    """Where proxies stand: whose they are, how they were finished, in which lineup."""

    maker: Maker
    norm_post: Normaliser
    lineup: int


class Blocks:
    """Proxies of several makers. What is equal is held once, however many makers, norms and lineups it serves."""

    def __init__(self) -> None:
        self.bases: list[Array] = []
        self.spans: list[Span] = []
        self.places: dict[Place, list[int]] = {}
        self._known_bases: dict[Hashable, int] = {}
        self._known_spans: dict[Hashable, int] = {}
        self._divisors: dict[tuple[int, Normaliser], Array | None] = {}
        self._prepared: dict[tuple[int, Normaliser], Any] = {}

    def add(self, place: Place, parts: Sequence[Raw]) -> None:
        """Finish the proxies of a lineup."""
        finish = self._in_turn if place.norm_post.uses_reference else self._alone
        self.places[place] = finish(place.norm_post, parts)

    def proxies(self, place: Place) -> int:
        """How many proxies a lineup has."""
        return sum(self.spans[i].size for i in self.places[place])

    def _alone(self, norm: Normaliser, parts: Sequence[Raw]) -> list[int]:
        found = []
        for raw in parts:
            base = self._base(raw.key, raw.rows)
            if (base, norm) not in self._divisors:
                self._divisors[base, norm] = norm.divisors(raw.rows)
            divisors = self._divisors[base, norm]
            if divisors is None:
                own = self._base((norm, raw.key, raw.size), norm.apply(raw.rows[: raw.size]))
                found.append(self._span(own, raw.size))
            else:
                found.append(self._span(base, raw.size, None if (divisors == 1).all() else divisors))
        return found

    def _in_turn(self, norm: Normaliser, parts: Sequence[Raw]) -> list[int]:
        """Each class after those before it; lineups that begin alike share what they begin with."""
        turns = [(norm, *((raw.key, raw.size) for raw in parts[: i + 1])) for i in range(len(parts))]
        if not all(turn in self._known_spans for turn in turns):
            own = [raw.rows[: raw.size] for raw in parts]
            done = norm.apply_in_turn(own, [self._ready(norm, raw)[: raw.size] for raw in parts])
            for turn, raw, before, after in zip(turns, parts, own, done):
                if turn not in self._known_spans:
                    base = self._base(raw.key, raw.rows) if after is before else self._base(turn, after)
                    self._known_spans[turn] = self._span(base, raw.size)
        return [self._known_spans[turn] for turn in turns]

    def _base(self, key: Hashable, rows: Array) -> int:
        if key not in self._known_bases:
            self._known_bases[key] = len(self.bases)
            self.bases.append(rows)
        return self._known_bases[key]

    def _span(self, base: int, size: int, divisors: Array | None = None) -> int:
        key = base, size, id(divisors)
        if key not in self._known_spans:
            self._known_spans[key] = len(self.spans)
            self.spans.append(Span(base, size, divisors))
        return self._known_spans[key]

    def _ready(self, norm: Normaliser, raw: Raw) -> Any:
        base = self._base(raw.key, raw.rows)
        if (base, norm) not in self._prepared:
            self._prepared[base, norm] = norm.prepare(raw.rows)
        return self._prepared[base, norm]

    def shortlists(
        self,
        aggregator: Aggregator,
        queries: Callable[[int], Array],
        arrangement: Arrangement,
        places: Iterable[Place],
        device: str,
    ) -> "Shortlists":
        """What the aggregator needs of every span, for the test rows of all lineups it stands in.

        `queries` gives the test rows of a union of lineups.
        """
        users: dict[int, set[int]] = defaultdict(set)
        for place in places:
            for i in self.places[place]:
                users[i].add(place.lineup)
        by_rows: dict[int, list[int]] = defaultdict(list)
        for i, lineups in users.items():
            by_rows[arrangement.union(tuple(sorted(lineups)))].append(i)
        found = {}
        for union, chosen in by_rows.items():
            spans = [self.spans[i] for i in chosen]
            lists = aggregator.span_shortlists(queries(union), self.bases, spans, device)
            found.update({i: (union, part) for i, part in zip(chosen, lists)})
        return Shortlists(found, arrangement)


class Shortlists(NamedTuple):
    """For every span the union of lineups whose rows it was compared with, and its shortlist.  # (r, q)"""

    found: dict[int, tuple[int, Array]]
    arrangement: Arrangement

    def of(self, spans: Sequence[int], lineup: int) -> list[Array]:
        """The shortlists of some spans for the rows of one lineup."""
        return [self._pick(*self.found[i], lineup) for i in spans]

    def _pick(self, union: int, part: Array, lineup: int) -> Array:
        columns = self.arrangement.columns(union, lineup)
        return part if columns is None else np.take(part, columns, axis=1)
