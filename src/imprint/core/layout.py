"""Named arrays of many classes: how a file stores them, and the shapes, types and ranges they must have."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from imprint.core.errors import ParameterError, require
from imprint.core.types import Array, State


class Entry(NamedTuple):
    """One array of a layout.

    `shape` names the axes. A number is a fixed length, `d` the width of the embeddings, `t` the d (d + 1) / 2 numbers
    of a triangle. Any other letter is a length >= 1 that is the same for all arrays of a class. `instead_of` names
    another array: every class has exactly one of the two. An `optional` array may be absent from any class.
    """

    shape: str
    least: float = -np.inf
    most: float = np.inf
    whole: bool = False
    instead_of: str = ""
    optional: bool = False


COUNTED = 2.0**53
"""Counts of rows above this are not exact in float64."""
SMALLEST_MASS = float(np.finfo(np.float64).tiny)
"""The smallest total weight of rows: positive, with a finite inverse."""
LARGEST_AXIS = 2**31
Layout = Mapping[str, Entry]


class Stack(NamedTuple):
    """Arrays of the same name, type and number of axes, of many classes."""

    values: Array  # of all classes, concatenated
    classes: Array  # (n,) ascending
    shapes: Array  # (n, axes)

    def by_class(self) -> dict[int, Array]:
        """The array of each class, as a view."""
        if len(self.shapes) and (self.shapes == self.shapes[0]).all():  # the same result, without a step per class
            return dict(zip(self.classes.tolist(), self.values.reshape(len(self.shapes), *self.shapes[0])))
        parts = np.split(self.values, np.cumsum(self.shapes.prod(axis=1))[:-1])
        return {c: part.reshape(shape) for c, part, shape in zip(self.classes.tolist(), parts, self.shapes.tolist())}


def to_arrays(kind: str, states: Sequence[State]) -> dict[str, Array]:
    """The states of classes, stacked: for every name, concatenated values and a row (class, *shape) per class."""
    arrays = {}
    for name in sorted({name for state in states for name in state}):
        holders = [i for i, state in enumerate(states) if name in state]
        values = [states[i][name] for i in holders]
        if len({(a.dtype, a.ndim) for a in values}) > 1:
            raise ParameterError(f"save: the array {name!r} must have one type and number of axes for every class.")
        arrays[f"{kind}/{name}/values"] = np.concatenate([a.ravel() for a in values])
        arrays[f"{kind}/{name}/shapes"] = np.array([(i, *a.shape) for i, a in zip(holders, values)], dtype=np.int64)
    return arrays


def to_stacks(arrays: Mapping[str, Array], kind: str) -> dict[str, Stack]:
    """The stacks that `to_arrays` wrote, by name; raises KeyError or ValueError for anything else."""
    stacks: dict[str, Stack] = {}
    for key, values in arrays.items():
        if key.startswith(f"{kind}/") and key.endswith("/values"):
            array = key.removesuffix("/values")
            shapes = arrays[f"{array}/shapes"]
            require(values.ndim == 1 and shapes.ndim == 2 and shapes.dtype == np.int64 and shapes.shape[1] > 0)
            require(bool(((shapes >= 0) & (shapes < LARGEST_AXIS)).all()) and bool((np.diff(shapes[:, 0]) > 0).all()))
            require(int(shapes[:, 1:].prod(axis=1).sum()) == len(values))
            stacks[array.removeprefix(f"{kind}/")] = Stack(values, shapes[:, 0], shapes[:, 1:])
    return stacks


def to_states(arrays: Mapping[str, Array], kind: str, layout: Layout | None, count: int, width: int) -> list[State]:
    """The states of `count` classes, as views of the arrays that `to_arrays` wrote.

    Raises KeyError or ValueError unless their names, shapes, types and ranges are those of the layout. Without a
    layout, all values must be finite numbers.

    >>> layout, rows = {"rows": Entry("p d"), "mass": Entry("p", least=1)}, np.ones((2, 3))
    >>> [list(state) for state in to_states(to_arrays("s", [{"rows": rows, "mass": np.ones(2)}]), "s", layout, 1, 3)]
    [['mass', 'rows']]
    >>> to_states(to_arrays("s", [{"rows": rows, "mass": np.zeros(2)}]), "s", layout, 1, 3)
    Traceback (most recent call last):
    ValueError
    """
    stacks = to_stacks(arrays, kind)
    for stack in stacks.values():
        require(stack.values.dtype.kind in "biuf" and np.isfinite(stack.values).all())
    if layout is not None:
        _check(stacks, layout, count, width)
    states: list[State] = [{} for _ in range(count)]
    for name, stack in stacks.items():
        for c, array in stack.by_class().items():
            states[c][name] = array
    return states


def _check(stacks: Mapping[str, Stack], layout: Layout, count: int, width: int) -> None:
    require(set(stacks) <= set(layout))
    lengths = {"d": np.full(count, width), "t": np.full(count, width * (width + 1) // 2)}  # by axis, of every class
    for name, entry in layout.items():
        holders = [stacks[n].classes for n in (entry.instead_of, name) if n in stacks]
        each_once = bool(holders) and np.array_equal(np.sort(np.concatenate(holders)), np.arange(count))
        require(each_once or entry.optional)
        if name in stacks:
            values, classes, shapes = stacks[name]
            require(values.dtype.kind in ("iu" if entry.whole else "f"))
            require(entry.least <= float(values.min()) and float(values.max()) <= entry.most)
            axes = entry.shape.split()
            require(shapes.shape[1] == len(axes) and (shapes >= 1).all())
            for axis, length in zip(axes, shapes.T):
                if axis.isdigit():
                    require((length == int(axis)).all())
                else:
                    of_class = lengths.setdefault(axis, np.zeros(count, dtype=np.int64))
                    of_class[classes] = np.where(of_class[classes] == 0, length, of_class[classes])
                    require((length == of_class[classes]).all())
