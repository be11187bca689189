from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from imprint.core.component import param
from imprint.core.digest import class_rng
from imprint.tasks._base import Codes, Label, Task
from imprint.tasks.all import AllClasses


@dataclass(frozen=True, kw_only=True)
class Shots(Task):
    """At most `n` rows of each class, drawn at random.

    The draw of a class depends on its rows, its label and the seed alone, not on the other classes. Rows come
    class by class in the order drawn, so the first five rows of a class under `shots(n=10)` are those under
    `shots(n=5)`. A class with fewer rows gives all it has.
    """

    n: int = param(5, "the most rows of a class", ge=1)

    def mapping(self, classes: Sequence[Label]) -> dict[Label, Label]:
        return {c: c for c in classes}

    def queries(self) -> Task:
        return AllClasses()

    def _select(self, codes: Codes, seed: int, classes: Sequence[Label]) -> tuple[Codes, Codes]:
        ends = np.cumsum(np.bincount(codes, minlength=len(classes)))
        by_class = np.split(np.argsort(codes, kind="stable"), ends[:-1])
        rows = np.concatenate([self._draw(own, seed, c) for own, c in zip(by_class, classes)])
        return rows, codes[rows]

    def _draw(self, own: Codes, seed: int, label: Label) -> Codes:
        return own[class_rng(seed, ("shots", label)).permutation(len(own))[: self.n]]
