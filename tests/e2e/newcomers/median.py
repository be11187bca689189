from dataclasses import dataclass

import numpy as np

from imprint.core.arrays import Array, State
from imprint.generators._base import PerClassGenerator


@dataclass(frozen=True, kw_only=True)
class Median(PerClassGenerator):
    """The coordinate-wise median of the class's embeddings; for additional rows, the old median counts as one row."""

    def summarise(self, X: Array, rng: np.random.Generator) -> State:
        return {"rows": np.median(X, axis=0, keepdims=True).astype(X.dtype)}

    def extend(self, state: State, X: Array, rng: np.random.Generator) -> State:
        return self.summarise(np.concatenate([state["rows"].astype(X.dtype), X]), rng)
