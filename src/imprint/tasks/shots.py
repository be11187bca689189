from dataclasses import dataclass

import numpy as np

from imprint.core.arrays import class_rng
from imprint.core.component import param
from imprint.tasks._base import Codes, Labels, Task
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

    def draw(
        self,
        codes: Codes,
        seed: int,
        classes: Labels,
    ) -> Codes:
        by_code = np.argsort(codes, kind="stable")
        sizes = np.bincount(codes, minlength=len(classes))
        ends = np.cumsum(sizes)
        rows_by_class = np.split(by_code, ends[:-1])
        drawn = []
        for label, rows in zip(classes, rows_by_class):
            # Part of the seed, so that a component that draws from the same class with
            # the same seed draws other numbers.
            rng = class_rng(seed, ("shots", label))
            order = rng.permutation(len(rows))
            first = order[: self.n]
            drawn.append(rows[first])
        return np.concatenate(drawn)
