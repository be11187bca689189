from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np

from imprint.core.component import param
from imprint.core.types import Array, State
from imprint.generators._base import Picker, Request
from imprint.kernels.farthest import farthest_from_each, farthest_points


@dataclass(frozen=True, kw_only=True)
class FPS(Picker):
    """Farthest-point sampling: from a random row on, always the row farthest from those picked so far.

    More rows of a known class: the search starts again from its first row among the rows picked before and the new.
    """

    k: int = param(20, "proxies per class, at most", ge=1)
    seeded: ClassVar[bool] = True
    nested: ClassVar[bool] = True

    def pick(self, X: Array, rng: np.random.Generator) -> Array:
        return farthest_points(X, self.k, first=int(rng.integers(len(X))))

    @classmethod
    def pick_many(cls, X: Array, requests: Sequence[Request]) -> list[Array]:
        """One search to the largest k from the first row of every seed, all on the same passes over the rows."""
        plans = cls.served_by(requests)
        first = {p: int(np.random.default_rng(p.entropy).integers(len(X))) for p in dict.fromkeys(plans)}
        k = max((cast(FPS, p.generator).k for p in first), default=1)
        found = dict(zip(first, farthest_from_each(X, k, list(first.values()))))
        return [found[p][: r.generator.most(len(X))] for r, p in zip(requests, plans)]

    def extend(self, state: State, X: Array, rng: np.random.Generator) -> State:
        rows = np.concatenate([state["rows"], X])
        return {"rows": rows[farthest_points(rows, self.k, first=0)]}
