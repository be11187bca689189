from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from imprint.core.arrays import Array, State, rows_at, to_numpy
from imprint.core.component import param
from imprint.core.layout import MAX_COUNT, Entry
from imprint.generators._base import ROWS_LAYOUT, PerClassGenerator, joined


@dataclass(frozen=True, kw_only=True)
class Random(PerClassGenerator):
    """k embeddings of the class, drawn at random without replacement.

    Each row draws a random key, and the rows with the k smallest keys are the proxies.
    A smaller k therefore gives a prefix of a larger one, and adding rows to a class is
    exact. The probability of a row grows with its weight (weighted reservoir sampling,
    Efraimidis and Spirakis 2006).

    Merging: a row draws its key by its number in the class. Parts that dropped no row
    are therefore added like new rows, which is exact. Of parts that dropped rows, the k
    smallest keys remain: a random draw, but not that of one fit.
    """

    k: int = param(20, "maximum number of proxies per class", ge=1)
    takes_tensors = True
    layout = ROWS_LAYOUT | {
        "keys": Entry("p", minimum=0, maximum=1),
        "seen": Entry("1", minimum=1, maximum=MAX_COUNT, integer=True),
    }

    def summarise(
        self, X: Array, rng: np.random.Generator, weight: Array | None = None
    ) -> State:
        return self._draw(X, _keys(len(X), rng, weight), len(X))

    def extend(
        self,
        state: State,
        X: Array,
        rng: np.random.Generator,
        weight: Array | None = None,
    ) -> State:
        seen = int(state["seen"][0])
        cast(Any, rng.bit_generator).advance(seen)  # past the keys of earlier rows
        rows = np.concatenate([state["rows"], X])
        return self._draw(
            rows,
            np.concatenate([state["keys"], _keys(len(X), rng, weight)]),
            seen + len(X),
        )

    def merge(self, states: Sequence[State], rng: np.random.Generator) -> State:
        in_order = [_rows_in_order(state, deepcopy(rng)) for state in states]
        drawn = [state for state, rows in zip(states, in_order) if rows is None]
        added = [rows for rows in in_order if rows is not None]
        if not drawn:
            return self.summarise(np.concatenate(added), rng)
        merged = self._draw(
            joined(drawn, "rows"),
            joined(drawn, "keys"),
            int(joined(drawn, "seen").sum()),
        )
        return self.extend(merged, np.concatenate(added), rng) if added else merged

    def merges_exactly(self, states: Sequence[State], rng: np.random.Generator) -> bool:
        in_order = [_rows_in_order(state, deepcopy(rng)) for state in states]
        return sum(rows is None for rows in in_order) <= 1

    def _draw(self, rows: Array, keys: Array, seen: int) -> State:
        smallest = np.argsort(keys, kind="stable")[: self.k]
        return {
            "rows": to_numpy(rows_at(rows, smallest)),
            "keys": keys[smallest],
            "seen": np.array([seen]),
        }


def _rows_in_order(state: State, rng: np.random.Generator) -> Array | None:
    """All rows of a class in the order of their arrival; None if some were dropped, or
    had weights.  # (n, d)
    """
    if int(state["seen"][0]) > len(state["rows"]):
        return None
    keys = rng.random(len(state["rows"]))
    by_key = np.argsort(keys, kind="stable")
    if not np.array_equal(keys[by_key], state["keys"]):
        return None
    rows = np.empty_like(state["rows"])
    rows[by_key] = state["rows"]
    return rows


def _keys(count: int, rng: np.random.Generator, weight: Array | None) -> Array:
    """Uniform keys u; with weights a, the keys 1 - (1 - u)^(1/a), the minimum of a
    uniform keys.  # (count,)
    """
    keys = rng.random(count)
    return keys if weight is None else -np.expm1(np.log1p(-keys) / weight)
