from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np

from imprint.core.arrays import rows_at, to_numpy
from imprint.core.component import param
from imprint.core.layout import COUNTED, Entry, Layout
from imprint.core.types import Array, State
from imprint.generators._base import ROWS, PerClassGenerator


@dataclass(frozen=True, kw_only=True)
class Random(PerClassGenerator):
    """k embeddings drawn at random, without replacement.

    Every row draws a key; the k rows with the smallest keys are selected, so a smaller k is a prefix of a larger one
    and rows that come later compete on equal terms: extending a class is exact. A row is drawn in proportion to its
    weight (Efraimidis and Spirakis 2006).
    """

    k: int = param(20, "proxies per class, at most", ge=1)
    takes_tensors: ClassVar[bool] = True
    exact_extension: ClassVar[bool] = True
    takes_weights: ClassVar[bool] = True
    layout: ClassVar[Layout | None] = {
        "rows": ROWS,
        "keys": Entry("p", least=0, most=1),
        "seen": Entry("1", least=1, most=COUNTED, whole=True),
    }

    def summarise(self, X: Array, rng: np.random.Generator, weight: Array | None = None) -> State:
        return self._draw(X, _keys(len(X), rng, weight), len(X))

    def extend(self, state: State, X: Array, rng: np.random.Generator, weight: Array | None = None) -> State:
        seen = int(state["seen"][0])
        cast(Any, rng.bit_generator).advance(seen)  # past the keys of the rows seen before
        rows = np.concatenate([state["rows"], X])
        return self._draw(rows, np.concatenate([state["keys"], _keys(len(X), rng, weight)]), seen + len(X))

    def _draw(self, rows: Array, keys: Array, seen: int) -> State:
        best = np.argsort(keys, kind="stable")[: self.k]
        return {"rows": to_numpy(rows_at(rows, best)), "keys": keys[best], "seen": np.array([seen])}


def _keys(count: int, rng: np.random.Generator, weight: Array | None) -> Array:
    """Uniform keys; with weights the smallest of `weight` uniform keys, in distribution.  # (count,)"""
    keys = rng.random(count)
    return keys if weight is None else -np.expm1(np.log1p(-keys) / weight)
