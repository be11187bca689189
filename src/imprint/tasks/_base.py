from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from imprint.core.arrays import Array
from imprint.core.component import Component
from imprint.core.errors import ParameterError, check_int, first_names

Label: TypeAlias = int | str
Labels: TypeAlias = Sequence[Label]
Relabelling: TypeAlias = dict[Label, Label]  # the new label of each selected one
Codes: TypeAlias = NDArray[np.intp]

# In error messages: enough to recognise the data set, and one line on a terminal.
MAX_LISTED_CLASSES = 10


class Selection(NamedTuple):
    """The selected rows, and the new label of each.

    Examples
    --------
    >>> from imprint.tasks import resolve
    >>> selection = resolve("even").select([0, 1, 2, 3, 4])
    >>> selection.rows.tolist(), selection.labels.tolist()
    ([0, 2, 4], [0, 2, 4])
    """

    rows: Codes
    labels: Array  # int64 or str


@dataclass(frozen=True, kw_only=True)
class Task(Component):
    """Selects rows by their labels and gives them new labels, without using embeddings.

    A task maps classes to new labels (`mapping`), and may draw some of their rows
    (`draw`).

    Examples
    --------
    >>> from imprint.tasks import resolve
    >>> task = resolve("even")
    >>> task.touches([0, 1, 2, 3, 4])
    (0, 2, 4)
    """

    family: ClassVar[str] = "imprint.tasks"
    # the parameter that a text gives by position, as in `classes(0, 3, 7)`
    positional: ClassVar[str] = ""

    def mapping(self, classes: Labels) -> Relabelling:
        """The new label of each selected class, in the order of the task.

        `classes` are all classes of the data, in the order of the data. By default, all
        of them are selected and unchanged.
        """
        return {label: label for label in classes}

    def draw(
        self,
        codes: Codes,
        seed: int,
        classes: Labels,
    ) -> Codes:
        """The positions of the rows that are used; by default, all.

        `codes` are indices in `classes`.
        """
        return np.arange(len(codes))

    def touches(self, classes: Labels) -> tuple[Label, ...]:
        """The selected original classes, in the order of the task."""
        return tuple(self.mapping(classes))

    def outcomes(self, classes: Labels) -> tuple[Label, ...]:
        """The new labels, in the order of the task."""
        # Several classes may share a new label; its first class determines its place.
        new_labels = dict.fromkeys(self.mapping(classes).values())
        return tuple(new_labels)

    def queries(self) -> "Task":
        """The task for test rows: the same labels, with all their rows."""
        return self

    def select(
        self,
        labels: ArrayLike,
        seed: int = 0,
        classes: Labels | None = None,
    ) -> Selection:
        """Select rows and relabel them.

        Parameters
        ----------
        labels : array-like of shape (n,)
            Integers or strings.
        seed : int
            The seed of what is drawn at random. [default: 0]
        classes : sequence, optional
            All classes, if `labels` may lack some of them. [default: the distinct
            labels in ascending order]

        Returns
        -------
        Selection
            The selected rows, and their new labels.
        """
        array = np.asarray(labels)
        if array.ndim != 1 or array.dtype.kind not in "iuU":
            raise ParameterError(
                f"{self}.select(labels): labels must be a list of integers or of"
                f" strings, not {array.ndim}-dimensional {array.dtype}."
            )
        check_int(f"{self}.select", "seed", seed, minimum=0)
        known, codes = self._encode(array, classes)
        count = len(array)
        rows = np.arange(count)
        for step in _steps(self):
            selected, codes = step._select_codes(codes, known, int(seed), str(self))
            rows = rows[selected]
            known = step.outcomes(known)
        return Selection(rows, np.asarray(known)[codes])

    def _encode(
        self,
        labels: Array,
        classes: Labels | None,
    ) -> tuple[tuple[Label, ...], Codes]:
        """All classes, and the index of the class of each row."""
        # Work per distinct label, not per row.
        values, inverse = np.unique(labels, return_inverse=True)
        present = values.tolist()
        known = present
        if classes is not None:
            known = np.asarray(classes).tolist()
        index = _positions(known)
        for label in present:
            if label not in index:
                raise ParameterError(
                    f"{self}.select(): the label {label!r} is not among the classes."
                )
        codes = np.array([index[label] for label in present], dtype=np.intp)
        return tuple(known), codes[inverse]

    def _select_codes(
        self,
        codes: Codes,
        classes: Labels,
        seed: int,
        call: str,
    ) -> tuple[Codes, Codes]:
        """The positions of the selected rows, and the indices of their new labels."""
        mapping = self.mapping(classes)
        outcomes = self.outcomes(classes)
        if not outcomes:
            raise ParameterError(
                f"{call}.select(): none of the classes takes part:"
                f" {first_classes(classes)}."
            )
        index = _positions(outcomes)
        # The new code of each class. Those that take no part have -1.
        new_code = np.full(len(classes), -1, dtype=np.intp)
        for i, label in enumerate(classes):
            if label in mapping:
                new_code[i] = index[mapping[label]]
        new_codes = new_code[codes]
        selected = np.flatnonzero(new_codes >= 0)
        drawn = self.draw(new_codes[selected], seed, outcomes)
        selected = selected[drawn]
        return selected, new_codes[selected]

    def __or__(self, other: "Task") -> "Chain":
        return Chain(steps=(*_steps(self), *_steps(other)))


@dataclass(frozen=True, kw_only=True)
class Chain(Task):
    """Tasks one after another.

    Each selects from the rows and labels of the one before.

    Examples
    --------
    >>> from imprint.tasks import resolve
    >>> chain = resolve("even") | resolve("shots(n=1)")  # or "even | shots(n=1)"
    >>> str(chain), len(chain.select([0, 0, 1, 2, 2], seed=1).rows)
    ('even | shots(n=1)', 2)
    """

    steps: tuple[Task, ...] = field(default=())

    def __post_init__(self) -> None:
        # A chain within a chain would have the text of another value.
        single_tasks = [
            step
            for step in self.steps
            if isinstance(step, Task) and not isinstance(step, Chain)
        ]
        has_other = len(single_tasks) < len(self.steps)
        if len(self.steps) < 2 or has_other:
            raise ParameterError(
                f"Chain(steps={self.steps!r}): steps must be two or more tasks."
            )

    def mapping(self, classes: Labels) -> Relabelling:
        # the original classes behind each label so far
        groups: dict[Label, list[Label]] = {label: [label] for label in classes}
        for step in self.steps:
            merged: dict[Label, list[Label]] = {}
            labels = tuple(groups)
            for old, new in step.mapping(labels).items():
                merged.setdefault(new, []).extend(groups[old])
            groups = merged
        mapping: Relabelling = {}
        for label, members in groups.items():
            mapping.update(dict.fromkeys(members, label))
        return mapping

    def queries(self) -> Task:
        # Steps that change for test rows, such as `shots`, only draw rows: they are
        # left out. If none is left, the queries of the first stand for all classes.
        steps = [step for step in self.steps if step.queries() is step]
        if not steps:
            return self.steps[0].queries()
        if len(steps) == 1:
            return steps[0]
        return Chain(steps=tuple(steps))

    def __str__(self) -> str:
        return " | ".join(map(str, self.steps))


def _steps(task: Task) -> tuple[Task, ...]:
    if isinstance(task, Chain):
        return task.steps
    return (task,)


def _positions(labels: Labels) -> dict[Label, int]:
    """The position of each label."""
    return {label: i for i, label in enumerate(labels)}


def first_classes(classes: Labels) -> str:
    """The first classes, for an error message."""
    texts = [repr(label) for label in classes]
    return first_names(texts, MAX_LISTED_CLASSES)


def integer_labels(task: Task, classes: Labels) -> list[int]:
    """The classes as integers; an error that names the task if some are not."""
    if not all(isinstance(label, int) for label in classes):
        raise ParameterError(
            f"{task} needs integer labels, not {first_classes(classes)}. Name them:"
            " classes('a', 'b')."
        )
    return [int(label) for label in classes]
