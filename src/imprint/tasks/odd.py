from dataclasses import dataclass

from imprint.tasks._base import (
    Labels,
    Relabelling,
    Task,
    integer_labels,
)


@dataclass(frozen=True, kw_only=True)
class Odd(Task):
    """The classes whose label is an odd number."""

    def mapping(self, classes: Labels) -> Relabelling:
        labels = integer_labels(self, classes)
        return {label: label for label in labels if label % 2 == 1}
