from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from imprint.core.arrays import kept
from imprint.core.layout import Layout
from imprint.core.types import Array, State
from imprint.generators._base import ROWS, PerClassGenerator


@dataclass(frozen=True, kw_only=True)
class All(PerClassGenerator):
    """Every embedding is a proxy. More rows of a known class are appended."""

    takes_tensors: ClassVar[bool] = True
    exact_extension: ClassVar[bool] = True
    layout: ClassVar[Layout | None] = {"rows": ROWS}

    def summarise(self, X: Array, rng: np.random.Generator) -> State:
        return {"rows": kept(X)}

    def extend(self, state: State, X: Array, rng: np.random.Generator) -> State:
        return {"rows": np.concatenate([state["rows"], X])}
