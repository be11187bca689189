"""Finished proxies of classes as spans of rows that they share, and the shortlists of all of them."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from imprint.aggregators._base import Aggregator
from imprint.core.types import Array
from imprint.kernels.spans import Span
from imprint.normalisers._base import Normaliser
from imprint.study.arrange import Arrangement
from imprint.study.generate import Raw


class Place(NamedTuple):
    """Where proxies stand: whose they are, how they were finished, in which lineup."""

    maker: int
    norm_post: Normaliser
    lineup: int


class Blocks:
    """Proxies of several makers. What is equal is held once, however many makers, norms and lineups it serves."""

    def __init__(self) -> None:
        self.bases: list[Array] = []
        self.spans: list[Span] = []
        self.places: dict[Place, list[int]] = {}
        self._known: dict[Hashable, Any] = {}
        self._kept: list[Array] = []  # what keys name by identity

    def add(self, place: Place, parts: Sequence[Raw]) -> None:
        """Finish the proxies of a lineup."""
        norm = place.norm_post
        self.places[place] = self._in_turn(norm, parts) if norm.uses_reference else self._alone(norm, parts)

    def proxies(self, place: Place) -> int:
        """How many proxies a lineup has."""
        return sum(self.spans[i].size for i in self.places[place])

    def _alone(self, norm: Normaliser, parts: Sequence[Raw]) -> list[int]:
        found = []
        for raw in parts:
            divisors = self._once(("divisors", norm), raw.rows, norm.divisors)
            if divisors is None:
                done = self._once(("done", norm, raw.size), raw.rows, partial(_apply, norm, raw.size))
                found.append(self._span(done, raw.size))
            elif raw.divisors is None:
                found.append(self._span(raw.origin, raw.size, divisors))
            else:
                found.append(self._span(raw.origin, raw.size, raw.divisors * divisors))
        return found

    def _in_turn(self, norm: Normaliser, parts: Sequence[Raw]) -> list[int]:
        """Each class after those before it; lineups share what comes to the same."""
        heads = tuple((id(raw.rows), raw.size) for raw in parts)
        if (norm, heads) not in self._known:
            found = norm.references([raw.rows[: raw.size] for raw in parts])
            self._known.update({(norm, heads[:i]): found[:i] for i in range(1, len(heads) + 1)})
        return [self._after(norm, reference, raw) for reference, raw in zip(self._known[norm, heads], parts)]

    def _after(self, norm: Normaliser, reference: Array | None, raw: Raw) -> int:
        if reference is None:
            return self._span(raw.origin, raw.size, raw.divisors)
        key = norm, id(raw.rows), raw.size, reference.tobytes()
        if key not in self._known:
            ready = self._once(("ready", norm), raw.rows, norm.prepare)
            self._known[key] = self._span(norm.finish(ready[: raw.size], reference), raw.size)
        return int(self._known[key])

    def _span(self, base: Array, size: int, divisors: Array | None = None) -> int:
        if divisors is not None and (divisors == 1).all():
            divisors = None
        number = self._once("base", base, self._add_base)
        key = number, size, None if divisors is None else divisors.tobytes()
        if key not in self._known:
            self._known[key] = len(self.spans)
            self.spans.append(Span(number, size, divisors))
        return int(self._known[key])

    def _add_base(self, rows: Array) -> int:
        self.bases.append(rows)
        return len(self.bases) - 1

    def _once(self, what: Hashable, array: Array, find: Callable[[Array], Any]) -> Any:
        """What is found of an array, looked for once."""
        key = what, id(array)
        if key not in self._known:
            self._known[key] = find(array)
            self._kept.append(array)
        return self._known[key]

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


def _apply(norm: Normaliser, size: int, rows: Array) -> Array:
    return norm.apply(rows[:size])


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
