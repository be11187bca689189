from dataclasses import dataclass
from typing import ClassVar

from imprint.core.arrays import plain
from imprint.core.component import param
from imprint.core.errors import ParameterError
from imprint.tasks._base import (
    Label,
    Labels,
    Relabelling,
    Task,
    first_classes,
)


@dataclass(frozen=True, kw_only=True)
class Classes(Task):
    """The named classes, in the order given: `classes(0, 3, 7)` or `classes('cat',
    'dog')`.
    """

    positional: ClassVar[str] = "labels"
    labels: tuple[Label, ...] = param((), "the classes that take part, in order")

    def __post_init__(self) -> None:
        values = self.labels if isinstance(self.labels, tuple | list) else ()
        labels = tuple(map(plain, values))
        types = {type(label) for label in labels}
        has_duplicates = len(set(labels)) < len(labels)
        if types not in ({int}, {str}) or has_duplicates:
            raise ParameterError(
                f"Classes(labels={self.labels!r}): labels must be one or more different"
                " labels, all integers or all strings."
            )
        # A frozen dataclass has no other way to store the tuple of plain values.
        object.__setattr__(self, "labels", labels)

    def mapping(self, classes: Labels) -> Relabelling:
        return subset(self, self.labels, classes)

    def __str__(self) -> str:
        labels = ", ".join(map(repr, self.labels))
        return f"classes({labels})"


def subset(
    task: Task,
    labels: Labels,
    classes: Labels,
) -> Relabelling:
    """The labels unchanged; refused if the data lack one of them."""
    known = frozenset(classes)
    for label in labels:
        if label not in known:
            raise ParameterError(
                f"{task}: the data have no class {label!r}; they have"
                f" {first_classes(classes)}."
            )
    return {label: label for label in labels}
