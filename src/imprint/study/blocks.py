"""Finished proxies of classes as spans of rows that they share."""

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from imprint.core.types import Array
from imprint.kernels.spans import Base, Span
from imprint.normalisers._base import Normaliser
from imprint.study.arrange import Arrangement
from imprint.study.generate import Raw

FEW = 64
"""Rows of a class up to which one look at all classes beats many."""
ROOM = 4096
"""Finished rows of several lineups that are held in one array."""


class Place(NamedTuple):
    """Where proxies stand: whose they are, how they were finished, in which lineup."""

    maker: int
    norm_post: Normaliser  # equal ones must be one object
    lineup: int


class Finished(NamedTuple):
    """Rows that a norm made of others: which base those begin, and where these stand among rows of many lineups."""

    raw: int
    together: Array
    first: int


class Blocks:
    """Proxies of several makers. What is equal is held once, however many makers, norms and lineups it serves."""

    def __init__(self) -> None:
        self.bases: list[Base] = []
        self.spans: list[Span] = []
        self.finished: dict[int, Finished] = {}
        self.places: dict[Place, list[int]] = {}
        self._sizes: dict[Place, int] = {}
        self._known: dict[Hashable, Any] = {}
        self._room: Array = np.empty((0, 0))
        self._taken = 0
        self._kept: list[Any] = []  # what keys name by identity

    def add(self, place: Place, parts: Sequence[Raw]) -> None:
        """Finish the proxies of a lineup."""
        norm = place.norm_post  # kept, as a key of `places`
        found = self._in_turn(norm, parts) if norm.uses_reference else [self._alone(norm, raw) for raw in parts]
        self.places[place] = found
        self._sizes[place] = sum(raw.size for raw in parts)

    def proxies(self, place: Place) -> int:
        """How many proxies a lineup has."""
        return self._sizes[place]

    def foresee(self, norms: Iterable[Normaliser], raws: Sequence[Raw]) -> None:
        """Look at the rows of many classes at once, as `add` would class by class; for few rows that takes longer."""
        rows = list({id(raw.pool.rows): raw.pool.rows for raw in raws}.values())
        if sum(map(len, rows)) > FEW * len(rows):
            return
        whole, ends = np.concatenate(rows), np.cumsum([len(r) for r in rows])[:-1]
        for norm in {id(norm): norm for norm in norms}.values():
            self._kept.append(norm)
            what = "ready" if norm.uses_reference else "divisors"
            found = norm.prepare(whole) if norm.uses_reference else norm.divisors(whole)
            if found is not None:
                self._known.update({((what, id(norm)), id(r)): part for r, part in zip(rows, np.split(found, ends))})
                self._kept += rows

    def by_rows(self, users: Mapping[int, Iterable[int]], plan: Arrangement) -> dict[int, list[int]]:
        """The spans to compare with the test rows of each union of lineups, given the lineups that use each."""
        alike: dict[frozenset[int], list[int]] = defaultdict(list)
        for i, lineups in users.items():
            alike[frozenset(lineups)].append(i)
        found: dict[int, list[int]] = defaultdict(list)
        for common, spans in alike.items():
            found[plan.union(tuple(sorted(common)))] += spans
        return found

    def users(self, places: Iterable[Place]) -> dict[int, set[int]]:
        """The lineups in which each span stands."""
        found: dict[int, set[int]] = defaultdict(set)
        for place in places:
            for i in self.places[place]:
                found[i].add(place.lineup)
        return found

    def _alone(self, norm: Normaliser, raw: Raw) -> int:
        key = "alone", id(norm), id(raw.rows), raw.size
        if (found := self._known.get(key)) is None:
            found = self._known[key] = self._divided(norm, raw)
            self._kept.append(raw.rows)
        return int(found)

    def _divided(self, norm: Normaliser, raw: Raw) -> int:
        """Proxies after a norm: where it divides rows, as those before with what these are to be divided by."""
        divisors = self._once(("divisors", id(norm)), raw.pool.rows, norm.divisors)
        if divisors is None:
            return self._span(self._base(self._once(("applied", id(norm)), raw.rows, norm.apply)), raw.size)
        return self._origin(raw, divisors)

    def _origin(self, raw: Raw, divisors: Array | None = None) -> int:
        """Proxies, their pool over some divisors, as rows before the norm that made them."""
        key = "both", id(raw.pool.rows), id(divisors)
        if key not in self._known:
            self._known[key] = self._distinct(raw.pool.divisors, divisors)
        both = self._known[key]
        if both is not None and raw.places is not None:
            both = self._once(("of", id(both)), raw.places, both.__getitem__)
        return self._span(self._base(raw.pool.origin, raw.places), raw.size, both)

    def _distinct(self, *divisors: Array | None) -> Array | None:
        """The product of some divisors, the first of equal ones; None where it does nothing."""
        some = [d for d in divisors if d is not None and not _are_one(d)]
        if not some:
            return None
        both = math.prod(some[1:], start=some[0])
        return np.asarray(self._known.setdefault(("divisors", both.tobytes()), both))

    def _in_turn(self, norm: Normaliser, parts: Sequence[Raw]) -> list[int]:
        """Each class after those before it; lineups share what comes to the same."""
        heads = tuple((0 if i and norm.first_alone_matters else id(raw.rows), raw.size) for i, raw in enumerate(parts))
        if (references := self._known.get((id(norm), heads))) is None:
            references = norm.references([raw.rows[: raw.size] for raw in parts])
            self._known.update({(id(norm), heads[:i]): references[:i] for i in range(1, len(heads) + 1)})
        keys = [("after", id(norm), id(raw.rows), raw.size, id(r)) for r, raw in zip(references, parts)]
        missing = [pair for pair in zip(keys, references, parts) if pair[0] not in self._known]
        if missing:
            self._known.update(self._finish(norm, missing))
        return [self._known[key] for key in keys]

    def _finish(
        self, norm: Normaliser, wanted: Sequence[tuple[Hashable, Array | None, Raw]]
    ) -> Iterator[tuple[Hashable, int]]:
        """Finish proxies after their references, those of a lineup side by side."""
        like = wanted[0][2].rows
        size = sum(raw.size for _, reference, raw in wanted if reference is not None)
        if self._taken + size > len(self._room):
            self._room, self._taken = np.empty((max(size, ROOM), like.shape[1]), dtype=like.dtype), 0
        for key, reference, raw in wanted:
            if reference is None:
                yield key, self._origin(raw)
                continue
            rows = self._room[self._taken : self._taken + raw.size]
            norm.finish(self._ready(norm, raw)[: raw.size], reference, rows)
            found = self._span(self._base(rows), raw.size)
            self.finished[found] = Finished(self._base(raw.pool.origin, raw.places), self._room, self._taken)
            self._taken += raw.size
            yield key, found

    def _ready(self, norm: Normaliser, raw: Raw) -> Array:
        """What a norm needs to know of rows, from what it knows of their pool."""
        key = "ready", id(norm), id(raw.rows)
        if (found := self._known.get(key)) is None:
            like = None if raw.pool.divisors is None else self._known.get((("ready", id(norm)), id(raw.pool.origin)))
            whole = self._once(("ready", id(norm)), raw.pool.rows, partial(norm.prepare, like=like))
            found = self._known[key] = whole if raw.places is None else whole[raw.places]
            self._kept.append(raw.rows)
        return np.asarray(found)

    def _span(self, base: int, size: int, divisors: Array | None = None) -> int:
        number = self._known.setdefault(("span", base, size, id(divisors)), len(self.spans))
        if number == len(self.spans):
            self.spans.append(Span(base, size, divisors))
        return int(number)

    def _base(self, pool: Array, places: Array | None = None) -> int:
        number = self._known.setdefault(("base", id(pool), id(places)), len(self.bases))
        if number == len(self.bases):
            self.bases.append(Base(pool, places))
        return int(number)

    def _once(self, what: Hashable, array: Array, find: Callable[[Array], Any]) -> Any:
        """What is found of an array, looked for once."""
        key = what, id(array)
        if key not in self._known:
            self._known[key] = find(array)
            self._kept.append(array)
        return self._known[key]


def _are_one(divisors: Array) -> bool:
    """Whether they change rows by rounding at most, as the lengths of unit rows do."""
    return abs(divisors[0] - 1) < 1e-6 and bool(np.abs(divisors - 1).max() <= 2 * np.finfo(divisors.dtype).eps)
