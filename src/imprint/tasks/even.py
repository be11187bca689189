from collections.abc import Sequence
from dataclasses import dataclass

from imprint.tasks._base import Label, Task, integer_labels


@dataclass(frozen=True, kw_only=True)
class Even(Task):
    """The classes whose label is an even number."""

    def mapping(self, classes: Sequence[Label]) -> dict[Label, Label]:
        return {c: c for c in integer_labels(self, classes) if c % 2 == 0}
