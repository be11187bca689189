"""Every class of a unit summarised once for all makers that need it."""

import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from imprint.core.types import Array, State
from imprint.generators._base import PerClassGenerator, Picker, Request
from imprint.normalisers._base import Normaliser
from imprint.study.arrange import Arrangement, Wish, by_rows


class Pool(NamedTuple):
    """Rows of a class. Where a norm only divided rows to make them, `origin` are those rows before."""

    rows: Array
    origin: Array
    divisors: Array | None = None


class Raw(NamedTuple):
    """The proxies of one class as their generator made them: the first `size` of rows that others begin with too.

    The rows stand at some places of a pool; None where they are all of it.
    """

    rows: Array
    size: int
    pool: Pool
    places: Array | None = None


class Made:
    """What the generators of a unit made of every class, and what that took."""

    def __init__(self, plan: Arrangement, X: Array, device: str) -> None:
        self.plan, self.dtype, self.device = plan, X.dtype, device
        self.spent: dict[tuple[int, int], float] = {}
        self._states: dict[tuple[int, int], State] = {}
        self._raw: dict[tuple[int, int], Raw] = {}
        for c, wanted in plan.wishes().items():
            self._make(c, wanted, X[plan.classes[c].rows])

    def lineup(self, maker: int, classes: Sequence[int]) -> list[Raw]:
        """The proxies of the classes of a lineup."""
        generator = self.plan.makers[maker].generator
        if isinstance(generator, PerClassGenerator):
            return [self._raw[c, maker] for c in classes]
        joint = generator.proxies([self._states[c, maker] for c in classes])
        return [self._as_it_is(rows, len(rows)) for rows in joint]

    def _make(self, c: int, wanted: Sequence[Wish], X: Array) -> None:
        scaled: dict[Normaliser | None, Array] = {None: X}
        scaled.update({norm: norm.apply(X) for norm in dict.fromkeys(w.norm_pre for w in wanted)})
        picks: list[_Pick] = []
        for cls, norm, own in by_rows(wanted):
            start = time.process_time()
            requests = [w.request for w in own]
            plans = cls.served_by(requests)
            if issubclass(cls, Picker):
                places = cls.pick_many(scaled[norm], requests)
                picks += [_Pick(w, *found) for w, found in zip(own, _longest(plans, places))]
            else:
                self._summarise(c, own, plans, cls.summarise_many(scaled[norm], requests, self.device))
            size = np.array([r.generator.most(len(X)) for r in requests], dtype=float)
            shares = (time.process_time() - start) * size / size.sum()
            self.spent.update({(c, w.maker): float(share) for w, share in zip(own, shares)})
        self._raw.update({(c, p.wish.maker): raw for p, raw in zip(picks, _picked(picks, scaled))})

    def _summarise(self, c: int, wanted: Sequence[Wish], plans: list[Request], states: list[State]) -> None:
        """Keep what generators made of a class, as rows where they treat every class alone."""
        if isinstance(plans[0].generator, PerClassGenerator):
            found = _longest(plans, [state["rows"] for state in states])
            raws = {id(rows): self._as_it_is(rows, size) for rows, size in found}
            self._raw.update({(c, w.maker): raws[id(rows)]._replace(size=n) for w, (rows, n) in zip(wanted, found)})
        else:
            self._states.update({(c, w.maker): state for w, state in zip(wanted, states)})

    def _as_it_is(self, rows: Array, size: int) -> Raw:
        rows = np.asarray(rows, dtype=self.dtype)
        return Raw(rows, size, Pool(rows, rows))


class _Pick(NamedTuple):
    """The first `size` of some rows of a class, for a wish."""

    wish: Wish
    rows: Array
    size: int


def _longest(plans: Sequence[Request], found: Sequence[Array]) -> list[tuple[Array, int]]:
    """For every plan the longest of what was found for it, and how much of that each begins with."""
    longest: dict[Request, Array] = {}
    for plan, own in zip(plans, found):
        longest[plan] = max(longest.get(plan, own), own, key=len)
    return [(longest[plan], len(own)) for plan, own in zip(plans, found)]


def _picked(picks: Sequence[_Pick], scaled: dict[Normaliser | None, Array]) -> list[Raw]:
    """Picked rows as rows of one pool for each norm, which holds what any of them picked."""
    X = scaled[None]
    chosen = np.zeros(len(X), dtype=bool)
    for pick in picks:
        chosen[pick.rows] = True
    used = np.flatnonzero(chosen)
    origin = X if len(used) == len(X) else X[used]
    pools = {norm: _pool(scaled[norm], X, origin, used, norm) for norm in {p.wish.norm_pre for p in picks}}
    places: dict[int, Array | None] = {}
    raws: dict[tuple[int, Normaliser], Raw] = {}
    for wish, rows, _ in picks:
        if id(rows) not in places:
            found = np.searchsorted(used, rows)
            places[id(rows)] = None if np.array_equal(found, np.arange(len(used))) else found
        if (key := (id(rows), wish.norm_pre)) not in raws:
            pool, own = pools[wish.norm_pre], places[id(rows)]
            raws[key] = Raw(pool.rows if own is None else pool.rows[own], len(rows), pool, own)
    return [raws[id(p.rows), p.wish.norm_pre]._replace(size=p.size) for p in picks]


def _pool(scaled: Array, X: Array, origin: Array, used: Array, norm: Normaliser) -> Pool:
    """The used rows of a class after a norm."""
    rows = origin if scaled is X else scaled if origin is X else scaled[used]
    divisors = norm.divisors(origin)
    return Pool(rows, rows if divisors is None else origin, divisors)
