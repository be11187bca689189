from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from imprint.core.arrays import Array, State, rows_at, to_numpy
from imprint.core.component import param
from imprint.core.layout import MAX_COUNT, Entry
from imprint.generators._base import ROWS_LAYOUT, PerClassGenerator


@dataclass(frozen=True, kw_only=True)
class Random(PerClassGenerator):
    """k embeddings of the class, drawn at random without replacement.

    Each row draws a random key, and the rows with the k smallest keys are the proxies.
    A smaller k therefore gives a prefix of a larger one, and adding rows to a class is
    exact. The probability of a row grows with its weight (weighted reservoir sampling,
    Efraimidis and Spirakis 2006).
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

    def _draw(self, rows: Array, keys: Array, seen: int) -> State:
        smallest = np.argsort(keys, kind="stable")[: self.k]
        return {
            "rows": to_numpy(rows_at(rows, smallest)),
            "keys": keys[smallest],
            "seen": np.array([seen]),
        }


def _keys(count: int, rng: np.random.Generator, weight: Array | None) -> Array:
    """Uniform keys u; with weights a, the keys 1 - (1 - u)^(1/a), the minimum of a
    uniform keys.  # (count,)
    """
    keys = rng.random(count)
    return keys if weight is None else -np.expm1(np.log1p(-keys) / weight)
