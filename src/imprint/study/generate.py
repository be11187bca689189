"""Every class of a unit summarised once for all makers that need it."""

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from imprint.core.types import Array, State
from imprint.generators._base import PerClassGenerator, Request
from imprint.normalisers._base import Normaliser
from imprint.study.arrange import Arrangement, Wish


class Raw(NamedTuple):
    """The proxies of one class as their generator made them: the first `size` of rows that others begin with too.

    Where rows were divided before and nothing else was done to them, `origin` are those rows before.
    """

    rows: Array
    size: int
    origin: Array
    divisors: Array | None = None


class Made:
    """What the generators of a unit made of every class, and what that took."""

    def __init__(self, plan: Arrangement, X: Array, device: str) -> None:
        self.plan, self.dtype = plan, X.dtype
        self.spent: dict[tuple[int, int], float] = {}
        self._states: dict[tuple[int, int], State] = {}
        self._raw: dict[tuple[int, int], Raw] = {}
        for c, wanted in plan.wishes().items():
            self._summarise(c, wanted, X[plan.classes[c].rows], device)

    def lineup(self, maker: int, classes: Sequence[int]) -> list[Raw]:
        """The proxies of the classes of a lineup."""
        generator = self.plan.makers[maker].generator
        if isinstance(generator, PerClassGenerator):
            return [self._raw[c, maker] for c in classes]
        joint = generator.proxies([self._states[c, maker] for c in classes])
        rows = [np.asarray(weights, dtype=self.dtype) for weights in joint]
        return [Raw(r, len(r), r) for r in rows]

    def _summarise(self, c: int, wanted: Sequence[Wish], X: Array, device: str) -> None:
        if type(wanted[0].request.generator).picks_blindly:
            self._make(c, wanted, X, device)
            return
        for norm in dict.fromkeys(w.norm_pre for w in wanted):
            self._make(c, [w for w in wanted if w.norm_pre == norm], norm.apply(X), device)

    def _make(self, c: int, wanted: Sequence[Wish], X: Array, device: str) -> None:
        start = time.process_time()
        requests = [w.request for w in wanted]
        cls = type(requests[0].generator)
        states = cls.summarise_many(X, requests, device)
        if issubclass(cls, PerClassGenerator):
            self._raw.update({(c, w.maker): raw for w, raw in zip(wanted, _raws(wanted, states, self.dtype))})
        else:
            self._states.update({(c, w.maker): state for w, state in zip(wanted, states)})
        size = np.array([r.generator.most(len(X)) for r in requests], dtype=float)
        shares = (time.process_time() - start) * size / size.sum()
        self.spent.update({(c, w.maker): float(share) for w, share in zip(wanted, shares)})


def _raws(wanted: Sequence[Wish], states: Sequence[State], dtype: Any) -> list[Raw]:
    """The proxies of each wish; those that one state serves are the first rows of the longest of them."""
    cls = type(wanted[0].request.generator)
    plans = cls.served_by([w.request for w in wanted])
    longest: dict[Request, Array] = {}
    for plan, state in zip(plans, states):
        if plan not in longest or len(state["rows"]) > len(longest[plan]):
            longest[plan] = state["rows"]
    origins = {plan: np.asarray(rows, dtype=dtype) for plan, rows in longest.items()}
    if not cls.picks_blindly:
        return [Raw(origins[p], len(s["rows"]), origins[p]) for p, s in zip(plans, states)]
    scaled = {(p, w.norm_pre): _scaled(origins[p], w.norm_pre) for p, w in zip(plans, wanted)}
    return [scaled[p, w.norm_pre]._replace(size=len(s["rows"])) for p, w, s in zip(plans, wanted, states)]


def _scaled(origin: Array, norm: Normaliser) -> Raw:
    """Rows that were picked before a norm was applied to them."""
    rows, divisors = norm.apply(origin), norm.divisors(origin)
    return Raw(rows, len(rows), rows if divisors is None else origin, divisors)
