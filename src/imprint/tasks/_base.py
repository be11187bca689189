from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from imprint.core.arrays import Array
from imprint.core.component import Component
from imprint.core.errors import ParameterError, check_int, first_names

Label: TypeAlias = int | str
Codes: TypeAlias = NDArray[np.intp]


class Selection(NamedTuple):
    """The selected rows, and the new label of each."""

    rows: Codes
    labels: Array  # int64 or str


@dataclass(frozen=True, kw_only=True)
class Task(Component):
    """Selects rows by their labels and gives them new labels, without using embeddings.

    A task maps classes to new labels (`mapping`), and may draw some of their rows
    (`draw`).
    """

    family: ClassVar[str] = "imprint.tasks"
    # the parameter that a text gives by position, as in `classes(0, 3, 7)`
    positional: ClassVar[str] = ""

    def mapping(self, classes: Sequence[Label]) -> dict[Label, Label]:
        """The new label of each selected class, in the order of the task; by default,
        all classes unchanged.

        `classes` are all classes of the data, in the order of the data.
        """
        return {c: c for c in classes}

    def draw(self, codes: Codes, seed: int, classes: Sequence[Label]) -> Codes:
        """The positions of the rows that are used; by default, all. `codes` are indices
        in `classes`.
        """
        return np.arange(len(codes))

    def touches(self, classes: Sequence[Label]) -> tuple[Label, ...]:
        """The selected original classes, in the order of the task."""
        return tuple(self.mapping(classes))

    def outcomes(self, classes: Sequence[Label]) -> tuple[Label, ...]:
        """The new labels, in the order of the task."""
        return tuple(dict.fromkeys(self.mapping(classes).values()))

    def queries(self) -> "Task":
        """The task for test rows: the same labels, with all their rows."""
        return self

    def select(
        self, labels: Any, seed: int = 0, classes: Sequence[Label] | None = None
    ) -> Selection:
        """The selected rows of `labels`, and their new labels.

        Give `classes` if `labels` may lack some of them; by default they are the
        distinct labels in ascending order.
        """
        array = np.asarray(labels)
        if array.ndim != 1 or array.dtype.kind not in "iuU":
            kind = f"{array.ndim}-dimensional {array.dtype}"
            raise ParameterError(
                f"{self}.select(labels): labels must be a list of integers or of"
                f" strings, not {kind}."
            )
        check_int(f"{self}.select", "seed", seed, minimum=0)
        values, inverse = np.unique(array, return_inverse=True)
        current = tuple(
            values.tolist() if classes is None else np.asarray(classes).tolist()
        )
        index = {label: i for i, label in enumerate(current)}
        for label in values.tolist():
            if label not in index:
                raise ParameterError(
                    f"{self}.select(): the label {label!r} is not among the classes."
                )
        rows = np.arange(len(array))
        codes = np.array([index[label] for label in values.tolist()], dtype=np.intp)[
            inverse
        ]
        for step in _steps(self):
            mapping, outcomes = step.mapping(current), step.outcomes(current)
            if not outcomes:
                raise ParameterError(
                    f"{self}.select(): none of the classes takes part:"
                    f" {first_classes(current)}."
                )
            index = {label: i for i, label in enumerate(outcomes)}
            # by old code; -1: left out
            new_code = [index[mapping[c]] if c in mapping else -1 for c in current]
            new_codes = np.array(new_code, dtype=np.intp)[codes]
            selected = np.flatnonzero(new_codes >= 0)
            selected = selected[step.draw(new_codes[selected], int(seed), outcomes)]
            rows, codes, current = rows[selected], new_codes[selected], outcomes
        return Selection(rows, np.asarray(current)[codes])

    def __or__(self, other: "Task") -> "Chain":
        return Chain(steps=(*_steps(self), *_steps(other)))


@dataclass(frozen=True, kw_only=True)
class Chain(Task):
    """Tasks one after another: each selects from the rows and labels of the one
    before.
    """

    steps: tuple[Task, ...] = field(default=())

    def __post_init__(self) -> None:
        if len(self.steps) < 2 or any(
            isinstance(s, Chain) or not isinstance(s, Task) for s in self.steps
        ):
            raise ParameterError(
                f"Chain(steps={self.steps!r}): steps must be two or more tasks."
            )

    def mapping(self, classes: Sequence[Label]) -> dict[Label, Label]:
        groups: dict[Label, list[Label]] = {c: [c] for c in classes}
        for step in self.steps:
            merged: dict[Label, list[Label]] = {}
            for old, new in step.mapping(tuple(groups)).items():
                merged.setdefault(new, []).extend(groups[old])
            groups = merged
        return {c: label for label, members in groups.items() for c in members}

    def queries(self) -> Task:
        steps = [step for step in self.steps if step.queries() is step] or [
            self.steps[0].queries()
        ]
        return steps[0] if len(steps) == 1 else Chain(steps=tuple(steps))

    def __str__(self) -> str:
        return " | ".join(map(str, self.steps))


def _steps(task: Task) -> tuple[Task, ...]:
    return task.steps if isinstance(task, Chain) else (task,)


def first_classes(classes: Sequence[Label]) -> str:
    """Up to ten classes, for an error message."""
    return first_names(list(map(repr, classes)), 10)


def integer_labels(task: Task, classes: Sequence[Label]) -> list[int]:
    """The classes as integers; an error that names the task if some are not."""
    if not all(isinstance(c, int) for c in classes):
        rule = f"needs integer labels, not {first_classes(classes)}"
        raise ParameterError(f"{task} {rule}. Name them: classes('a', 'b').")
    return [int(c) for c in classes]
