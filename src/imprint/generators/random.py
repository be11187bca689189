from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from imprint.core.component import param
from imprint.core.types import Array, State
from imprint.generators._base import Picker


@dataclass(frozen=True, kw_only=True)
class Random(Picker):
    """k embeddings drawn at random, without replacement.

    Every row draws a key; the k rows with the smallest keys are kept, so a smaller k is a prefix of a larger one
    and rows that come later compete on equal terms: extending a class is exact.
    """

    k: int = param(20, "proxies per class, at most", ge=1)
    seeded: ClassVar[bool] = True
    nested: ClassVar[bool] = True
    picks_blindly: ClassVar[bool] = True
    exact_extension: ClassVar[bool] = True

    def pick(self, X: Array, rng: np.random.Generator) -> Array:
        return self._first(rng.random(len(X)))

    def summarise(self, X: Array, rng: np.random.Generator) -> State:
        return self._draw(X, rng.random(len(X)), len(X))

    def extend(self, state: State, X: Array, rng: np.random.Generator) -> State:
        seen = int(state["seen"][0])
        rng.random(seen)  # the keys of the rows seen before
        rows = np.concatenate([state["rows"], X])
        return self._draw(rows, np.concatenate([state["keys"], rng.random(len(X))]), seen + len(X))

    def _draw(self, rows: Array, keys: Array, seen: int) -> State:
        best = self._first(keys)
        return {"rows": rows[best], "keys": keys[best], "seen": np.array([seen])}

    def _first(self, keys: Array) -> Array:
        return np.argsort(keys, kind="stable")[: self.k]
