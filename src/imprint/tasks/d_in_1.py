import random
from dataclasses import dataclass

from imprint.core.component import param
from imprint.core.errors import ParameterError
from imprint.tasks._base import Labels, Relabelling, Task


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
    # The defaults of the details are those of the paper: ten labels from 100 classes of
    # ImageNet, and the seed of its code.
    labels: int = param(10, "how many new labels there are", ge=1, detail=True)
    pool: int = param(100, "how many classes are drawn", ge=1, detail=True)
    seed: int = param(420, "the seed of the draw", ge=0, detail=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        most = self.pool // self.labels
        if self.d > most:
            raise ParameterError(
                f"DIn1(d={self.d}, labels={self.labels}, pool={self.pool}): d must be"
                f" int <= pool / labels = {most}."
            )

    def mapping(self, classes: Labels) -> Relabelling:
        if len(classes) < self.pool:
            raise ParameterError(
                f"{self}: the data have {len(classes)} classes, fewer than"
                f" pool={self.pool}."
            )
        # Python's generator, not NumPy's: the draws are those of the published code.
        rng = random.Random(self.seed)
        order = rng.sample(range(len(classes)), self.pool)
        for _ in range(self.i + 1):
            rng.shuffle(order)

        step = self.d
        if self.kind == "nested":
            step = self.pool // self.labels
        mapping: Relabelling = {}
        for label in range(self.labels):
            start = label * step
            for position in order[start : start + self.d]:
                mapping[classes[position]] = label
        return mapping
