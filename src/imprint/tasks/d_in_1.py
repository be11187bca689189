import random
from collections.abc import Sequence
from dataclasses import dataclass

from imprint.core.component import param
from imprint.core.errors import ParameterError
from imprint.tasks._base import Label, Task


@dataclass(frozen=True, kw_only=True)
class DIn1(Task):
    """`d` classes under each new label, drawn at random: classes that have several
    modes.

    `pool` of the classes are drawn and shuffled; draw `i` shuffles the order of draw `i
    - 1` again. With `sequential`, each new label takes the next `d` classes of that
    order. With `nested`, the order is cut into one block per label, and label `j` takes
    the first `d` classes of block `j`: a larger `d` adds classes to every label and
    removes none.
    """

    d: int = param(1, "how many classes share a label", ge=1)
    i: int = param(0, "the number of the draw", ge=0)
    kind: str = param(
        "nested", "how labels take classes", choices=("nested", "sequential")
    )
    labels: int = param(10, "how many new labels there are", ge=1, detail=True)
    pool: int = param(100, "how many classes are drawn", ge=1, detail=True)
    seed: int = param(420, "the seed of the draw", ge=0, detail=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.d > self.pool // self.labels:
            rule = f"d must be int <= pool / labels = {self.pool // self.labels}"
            raise ParameterError(
                f"DIn1(d={self.d}, labels={self.labels}, pool={self.pool}): {rule}."
            )

    def mapping(self, classes: Sequence[Label]) -> dict[Label, Label]:
        if len(classes) < self.pool:
            raise ParameterError(
                f"{self}: the data have {len(classes)} classes, fewer than"
                f" pool={self.pool}."
            )
        rng = random.Random(self.seed)
        order = rng.sample(range(len(classes)), self.pool)
        for _ in range(self.i + 1):
            rng.shuffle(order)
        step = self.d if self.kind == "sequential" else self.pool // self.labels
        return {
            classes[order[j * step + k]]: j
            for j in range(self.labels)
            for k in range(self.d)
        }
