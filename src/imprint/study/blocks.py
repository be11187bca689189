"""Finished proxies of classes as spans of rows that they share."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from imprint.core.types import Array
from imprint.kernels.spans import Span
from imprint.normalisers._base import Likeness, Normaliser
from imprint.study.arrange import Arrangement
from imprint.study.generate import Raw

SHADED_FROM = 64
"""Rows from which it pays to look for spans that are nearly alike."""
FAINT = 0.03
"""How far apart they may be, as a share of their length."""


class Place(NamedTuple):
    """Where proxies stand: whose they are, how they were finished, in which lineup."""

    maker: int
    norm_post: Normaliser
    lineup: int


class Shade(NamedTuple):
    """Proxies that are nearly those of another span: what they are like, and how long they are."""

    span: int
    like: Likeness
    length: float
    rows: Callable[[], Array]


class _Finished(NamedTuple):
    """A span that others may be shades of."""

    span: int
    prepared: Array
    reference: Array


class Blocks:
    """Proxies of several makers. What is equal is held once, however many makers, norms and lineups it serves."""

    def __init__(self) -> None:
        self.bases: list[Array] = []
        self.spans: list[Span | Shade] = []
        self.places: dict[Place, list[int]] = {}
        self._sizes: list[int] = []
        self._known: dict[Hashable, Any] = {}
        self._kept: list[Array] = []  # what keys name by identity

    def add(self, place: Place, parts: Sequence[Raw]) -> None:
        """Finish the proxies of a lineup."""
        norm = place.norm_post
        found = self._in_turn(norm, parts) if norm.uses_reference else [self._alone(norm, raw) for raw in parts]
        self.places[place] = found

    def proxies(self, place: Place) -> int:
        """How many proxies a lineup has."""
        return sum(self._sizes[i] for i in self.places[place])

    def solid(self, span: int) -> Span:
        """A span that is no shade."""
        found = self.spans[span]
        if isinstance(found, Shade):
            raise TypeError(f"span {span} is a shade of span {found.span}")
        return found

    def rows(self, span: int) -> Array:
        """The proxies themselves."""
        found = self.spans[span]
        return found.rows() if isinstance(found, Shade) else found.rows(self.bases)

    def by_rows(self, places: Iterable[Place], plan: Arrangement, shades: bool = False) -> dict[int, list[int]]:
        """The spans to compare with the test rows of each union of lineups; with `shades` those behind them instead."""
        users: dict[int, set[int]] = defaultdict(set)
        for place in places:
            for i in self.places[place]:
                span = self.spans[i]
                users[span.span if shades and isinstance(span, Shade) else i].add(place.lineup)
        found: dict[int, list[int]] = defaultdict(list)
        for i, lineups in users.items():
            found[plan.union(tuple(sorted(lineups)))].append(i)
        return found

    def _alone(self, norm: Normaliser, raw: Raw) -> int:
        base, divisors = self._once(("alone", norm), raw.rows, lambda rows: self._divided(norm, raw))
        return self._span(base, raw.size, divisors)

    def _divided(self, norm: Normaliser, raw: Raw) -> tuple[Array, Array | None]:
        """The rows after a norm as other rows and what these are to be divided by."""
        divisors = norm.divisors(raw.rows)
        if divisors is None:
            return norm.apply(raw.rows), None
        if raw.divisors is None or _are_one(divisors):
            return raw.origin, self._distinct(divisors if raw.divisors is None else raw.divisors)
        return raw.origin, self._distinct(raw.divisors * divisors)

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
        return [self._after(norm, reference, raw) for reference, raw in zip(self._known[norm, heads], parts)]

    def _after(self, norm: Normaliser, reference: Array | None, raw: Raw) -> int:
        if reference is None:
            return self._span(
                raw.origin, raw.size, self._once("divisors", raw.rows, lambda _: self._distinct(raw.divisors))
            )
        key = norm, id(raw.rows), raw.size, id(reference)
        if key not in self._known:
            ready = self._ready(norm, raw)[: raw.size]
            like = self._known.setdefault((norm, id(raw.origin), raw.size), []) if raw.size >= SHADED_FROM else []
            shade = self._shade(norm, ready, reference, like)
            if shade is None:
                self._known[key] = self._span(norm.finish(ready, reference), raw.size)
                like.append(_Finished(self._known[key], ready, reference))
            else:
                self._known[key] = self._append(shade, raw.size)
        return int(self._known[key])

    def _ready(self, norm: Normaliser, raw: Raw) -> Array:
        like = None if raw.divisors is None else self._known.get((("ready", norm), id(raw.origin)))
        return np.asarray(self._once(("ready", norm), raw.rows, partial(norm.prepare, like=like)))

    def _shade(self, norm: Normaliser, ready: Array, reference: Array, like: list[_Finished]) -> Shade | None:
        """The least blurred description by a span that is there, if one is faint enough."""
        found, length = None, float(np.linalg.norm(reference)) if like else 0.0
        for span, prepared, base in like:
            alike = norm.likeness(ready, reference, prepared, base)
            faintest = found.like.blur if found else FAINT * length
            if alike and alike.scale > 0 and alike.blur <= faintest:
                found = Shade(span, alike, length, partial(norm.finish, ready, reference))
        return found

    def _span(self, base: Array, size: int, divisors: Array | None = None) -> int:
        number = self._once("base", base, self._add_base)
        key = number, size, id(divisors)
        if key not in self._known:
            self._known[key] = self._append(Span(number, size, divisors), size)
        return int(self._known[key])

    def _append(self, span: Span | Shade, size: int) -> int:
        self.spans.append(span)
        self._sizes.append(size)
        return len(self.spans) - 1

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


def _are_one(divisors: Array) -> bool:
    """Whether they change rows by rounding at most, as the lengths of unit rows do."""
    return bool(np.abs(divisors - 1).max() <= 2 * np.finfo(divisors.dtype).eps)
