from collections.abc import Sequence
from dataclasses import dataclass

from imprint.tasks._base import Label, Task


@dataclass(frozen=True, kw_only=True)
class AllClasses(Task):
    """Every class under its own label."""

    def mapping(self, classes: Sequence[Label]) -> dict[Label, Label]:
        return {c: c for c in classes}
