from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from imprint.core.component import Component
from imprint.core.errors import ParameterError
from imprint.core.types import Array

Label: TypeAlias = int | str
Codes: TypeAlias = NDArray[np.intp]


class Selection(NamedTuple):
    """The rows that take part, and the label of each."""

    rows: Codes
    labels: Array  # int64 or str


@dataclass(frozen=True, kw_only=True)
class Task(Component):
    """A frozen value that turns labels into rows and new labels; it never sees an embedding."""

    family: ClassVar[str] = "imprint.tasks"
    positional: ClassVar[str] = ""
    """The parameter that a text gives without its name, as in `classes(0, 3, 7)`."""

    @abstractmethod
    def mapping(self, classes: Sequence[Label]) -> dict[Label, Label]:
        """The new label of every class that takes part, in the task's own order.

        `classes` are all classes of the data, in the data's order.
        """

    def touches(self, classes: Sequence[Label]) -> tuple[Label, ...]:
        """The original classes that take part, in the task's own order."""
        return tuple(self.mapping(classes))

    def outcomes(self, classes: Sequence[Label]) -> tuple[Label, ...]:
        """The new labels, in the task's own order."""
        return tuple(dict.fromkeys(self.mapping(classes).values()))

    def queries(self) -> "Task":
        """The task as it holds for test rows: the same labels, and all rows of them."""
        return self

    def select(self, labels: Any, seed: int = 0, classes: Sequence[Label] | None = None) -> Selection:
        """The rows of `labels` that take part, and their new labels.

        Give `classes` where `labels` may lack some of them, as a part of the data does; by default they are the
        distinct labels in ascending order.
        """
        given = _as_labels(labels, self)
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
            raise ParameterError(f"{self}.select(seed={seed!r}): seed must be int >= 0.")
        values, inverse = np.unique(given, return_inverse=True)
        known = tuple(values.tolist() if classes is None else np.asarray(classes).tolist())
        place = {label: i for i, label in enumerate(known)}
        strange = [label for label in values.tolist() if label not in place]
        if strange:
            raise ParameterError(f"{self}.select(): the label {strange[0]!r} is not among the classes.")
        outcomes = self.outcomes(known)
        if not outcomes:
            raise ParameterError(f"{self}.select(): none of the classes takes part: {shown(known)}.")
        codes = np.array([place[label] for label in values.tolist()], dtype=np.intp)
        rows, codes = self._select(codes[inverse], int(seed), known)
        return Selection(rows, np.asarray(outcomes)[codes])

    def _select(self, codes: Codes, seed: int, classes: Sequence[Label]) -> tuple[Codes, Codes]:
        """The rows that take part, and their new labels; labels are places in `classes` and in the outcomes."""
        place = {label: i for i, label in enumerate(self.outcomes(classes))}
        mapping = self.mapping(classes)
        table = np.array([place[mapping[c]] if c in mapping else -1 for c in classes], dtype=np.intp)
        new = table[codes]
        rows = np.flatnonzero(new >= 0)
        return rows, new[rows]

    def __or__(self, other: "Task") -> "Chain":
        return Chain(steps=(*_steps(self), *_steps(other)))


@dataclass(frozen=True, kw_only=True)
class Chain(Task):
    """Tasks one after another: each sees the rows and the labels that the one before it gave."""

    steps: tuple[Task, ...] = field(default=())

    def __post_init__(self) -> None:
        if len(self.steps) < 2 or any(isinstance(s, Chain) or not isinstance(s, Task) for s in self.steps):
            raise ParameterError(f"Chain(steps={self.steps!r}): steps must be two or more tasks.")

    def mapping(self, classes: Sequence[Label]) -> dict[Label, Label]:
        groups: dict[Label, list[Label]] = {c: [c] for c in classes}
        for step in self.steps:
            merged: dict[Label, list[Label]] = {}
            for old, new in step.mapping(tuple(groups)).items():
                merged.setdefault(new, []).extend(groups[old])
            groups = merged
        return {c: label for label, members in groups.items() for c in members}

    def queries(self) -> Task:
        kept = [q for step in self.steps if (q := step.queries()) is step]
        return self.steps[0].queries() if not kept else kept[0] if len(kept) == 1 else Chain(steps=tuple(kept))

    def _select(self, codes: Codes, seed: int, classes: Sequence[Label]) -> tuple[Codes, Codes]:
        rows = np.arange(len(codes))
        for step in self.steps:
            inner, codes = step._select(codes, seed, classes)
            rows, classes = rows[inner], step.outcomes(classes)
        return rows, codes

    def __str__(self) -> str:
        return " | ".join(map(str, self.steps))


def _steps(task: Task) -> tuple[Task, ...]:
    return task.steps if isinstance(task, Chain) else (task,)


def _as_labels(labels: Any, task: Task) -> Array:
    array = np.asarray(labels)
    if array.ndim != 1 or array.dtype.kind not in "iuU":
        found = f"{array.ndim}-dimensional {array.dtype}"
        raise ParameterError(f"{task}.select(labels): labels must be a list of integers or of strings, not {found}.")
    return array


def shown(classes: Sequence[Label]) -> str:
    """The classes as an error prints them, the first few of many."""
    return ", ".join(map(repr, classes[:10])) + (f" and {len(classes) - 10} more" if len(classes) > 10 else "")


def integers(task: Task, classes: Sequence[Label]) -> list[int]:
    """The classes, which this task needs to be numbers."""
    if not all(isinstance(c, int) for c in classes):
        raise ParameterError(f"{task} needs integer labels, not {shown(classes)}. Name them: classes('a', 'b').")
    return [int(c) for c in classes]
