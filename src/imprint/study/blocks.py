"""Finished proxies of classes as spans of rows that they share."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
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


class Place(NamedTuple):
    """Where proxies stand: whose they are, how they were finished, in which lineup."""

    maker: int
    norm_post: Normaliser
    lineup: int


class Finished(NamedTuple):
    """Rows that a norm made of others: which base those begin, and where these stand among all of their lineup."""

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
        self._kept: list[Any] = []  # what keys name by identity

    def add(self, place: Place, parts: Sequence[Raw]) -> None:
        """Finish the proxies of a lineup."""
        norm = place.norm_post
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
        for norm in dict.fromkeys(norms):
            what = "ready" if norm.uses_reference else "divisors"
            found = norm.prepare(whole) if norm.uses_reference else norm.divisors(whole)
            if found is not None:
                self._known.update({((what, norm), id(r)): part for r, part in zip(rows, np.split(found, ends))})
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
        key = id(norm), id(raw)  # a maker has one of each, however many lineups it serves
        if key not in self._known:
            if (alone := ("alone", norm, id(raw.rows))) not in self._known:
                self._known[alone] = self._divided(norm, raw)
            base, divisors = self._known[alone]
            self._known[key] = self._span(base, raw.size, divisors)
            self._kept += [norm, raw]
        return int(self._known[key])

    def _divided(self, norm: Normaliser, raw: Raw) -> tuple[int, Array | None]:
        """The rows after a norm as those of a base and what these are to be divided by."""
        divisors = self._of_rows(("divisors", norm), raw, norm.divisors)
        if divisors is None:
            return self._base(norm.apply(raw.rows)), None
        return self._origin(raw, None if _are_one(divisors) else divisors)

    def _origin(self, raw: Raw, divisors: Array | None = None) -> tuple[int, Array | None]:
        """Rows over some divisors, as those before their norm and what these are to be divided by."""
        own = raw.pool.divisors
        if own is not None and raw.places is not None:
            own = own[raw.places]
        both = divisors if own is None else own if divisors is None else own * divisors
        return self._base(raw.pool.origin, raw.places), self._distinct(both)

    def _distinct(self, divisors: Array | None) -> Array | None:
        """The first of equal divisors; None for those that do nothing."""
        if divisors is None or _are_one(divisors):
            return None
        return np.asarray(self._known.setdefault(("divisors", divisors.tobytes()), divisors))

    def _in_turn(self, norm: Normaliser, parts: Sequence[Raw]) -> list[int]:
        """Each class after those before it; lineups share what comes to the same."""
        heads = tuple((0 if i and norm.first_alone_matters else id(raw.rows), raw.size) for i, raw in enumerate(parts))
        if (norm, heads) not in self._known:
            found = norm.references([raw.rows[: raw.size] for raw in parts])
            self._known.update({(norm, heads[:i]): found[:i] for i in range(1, len(heads) + 1)})
        pairs = list(zip(self._known[norm, heads], parts))
        self._finish(norm, [pair for pair in pairs if self._key(norm, *pair) not in self._known])
        return [self._known[self._key(norm, *pair)] for pair in pairs]

    def _key(self, norm: Normaliser, reference: Array | None, raw: Raw) -> Hashable:
        return "after", norm, id(raw.rows), raw.size, id(reference)

    def _finish(self, norm: Normaliser, pairs: Sequence[tuple[Array | None, Raw]]) -> None:
        """Finish proxies after their references, those of a lineup side by side."""
        if not pairs:
            return
        like = pairs[0][1].rows
        size = sum(raw.size for reference, raw in pairs if reference is not None)
        together, first = np.empty((size, like.shape[1]), dtype=like.dtype), 0
        for reference, raw in pairs:
            if reference is None:
                base, divisors = self._origin(raw)
                found = self._span(base, raw.size, divisors)
            else:
                rows = together[first : first + raw.size]
                rows[:] = norm.finish(self._ready(norm, raw)[: raw.size], reference)
                found = self._span(self._base(rows), raw.size)
                self.finished[found] = Finished(self._base(raw.pool.origin, raw.places), together, first)
                first += raw.size
            self._known[self._key(norm, reference, raw)] = found

    def _ready(self, norm: Normaliser, raw: Raw) -> Array:
        like = None if raw.pool.divisors is None else self._known.get((("ready", norm), id(raw.pool.origin)))
        return np.asarray(self._of_rows(("ready", norm), raw, partial(norm.prepare, like=like)))

    def _of_rows(self, what: Hashable, raw: Raw, find: Callable[[Array], Array | None]) -> Array | None:
        """What is found of rows: looked for once in their pool, and taken from there."""
        found: Array | None = self._once(what, raw.pool.rows, find)
        if found is None or raw.places is None:
            return found
        key = what, id(raw.rows)
        if key not in self._known:
            self._known[key] = found[raw.places]
            self._kept.append(raw.rows)
        return np.asarray(self._known[key])

    def _span(self, base: int, size: int, divisors: Array | None = None) -> int:
        key = base, size, id(divisors)
        if key not in self._known:
            self._known[key] = len(self.spans)
            self.spans.append(Span(base, size, divisors))
        return int(self._known[key])

    def _base(self, pool: Array, places: Array | None = None) -> int:
        key = "base", id(pool), id(places)
        if key not in self._known:
            self._known[key] = len(self.bases)
            self.bases.append(Base(pool, places))
        return int(self._known[key])

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
