from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from imprint.core.arrays import class_rng
from imprint.core.component import param
from imprint.tasks._base import Codes, Label, Task
from imprint.tasks.all import AllClasses


@dataclass(frozen=True, kw_only=True)
class Shots(Task):
    """At most `n` rows of each class, drawn at random.

    The draw of a class depends only on its rows, its label and the seed, not on the
    other classes. Rows are returned class by class in the order drawn, so the first
    five rows of a class with `shots(n=10)` are those with `shots(n=5)`. A class with
    fewer rows keeps all of them.
    """

    n: int = param(5, "maximum number of rows per class", ge=1)

    def queries(self) -> Task:
        return AllClasses()

    def draw(self, codes: Codes, seed: int, classes: Sequence[Label]) -> Codes:
        ends = np.cumsum(np.bincount(codes, minlength=len(classes)))
        by_class = np.split(np.argsort(codes, kind="stable"), ends[:-1])
        orders = (
            class_rng(seed, ("shots", c)).permutation(len(rows))
            for c, rows in zip(classes, by_class)
        )
        return np.concatenate(
            [rows[order[: self.n]] for rows, order in zip(by_class, orders)]
        )
