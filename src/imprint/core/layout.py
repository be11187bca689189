"""Named arrays of many classes: how a file stores them, and the shapes, types and ranges they must have."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from imprint.core.errors import ParameterError
from imprint.core.types import Array, State


class Entry(NamedTuple):
    """One array of a layout.

    `shape` names the axes. A number is a fixed length, `d` the width of the embeddings, `t` the d (d + 1) / 2 numbers
    of a triangle. Any other letter is a length >= 1 that is the same for all arrays of a class. `instead_of` names
    another array: every class has exactly one of the two. An `optional` array may be absent from any class.
    """

    shape: str
    least: float | None = None
    most: float | None = None
    whole: bool = False
    instead_of: str | None = None
    optional: bool = False


COUNTED = 2.0**53
"""Counts of rows above this are not exact in float64."""
SMALLEST_MASS = float(np.finfo(np.float64).tiny)
"""The smallest total weight of rows: positive, with a finite inverse."""

Layout = Mapping[str, Entry]


class Stack(NamedTuple):
    """Arrays of the same name, type and number of axes, of many classes: concatenated values, classes and shapes."""

    values: Array  # one axis
    classes: Array  # (n,) ascending
    shapes: Array  # (n, axes)


def fits(stacks: Mapping[str, Stack], layout: Layout, count: int, width: int) -> bool:
    """Whether the arrays of `count` classes have the names, shapes, types and ranges of a layout.

    >>> layout = {"rows": Entry("p d"), "mass": Entry("p", least=1)}
    >>> rows = Stack(np.ones(6), np.array([0]), np.array([[2, 3]]))
    >>> fits({"rows": rows, "mass": Stack(np.array([1.0, 4.0]), np.array([0]), np.array([[2]]))}, layout, 1, 3)
    True
    >>> fits({"rows": rows, "mass": Stack(np.array([1.0, -4.0]), np.array([0]), np.array([[2]]))}, layout, 1, 3)
    False
    """
    if not set(stacks) <= set(layout):
        return False
    lengths: dict[str, Array] = {}
    for name, entry in layout.items():
        alternatives = (entry.instead_of, name) if entry.instead_of else (name,)
        holders = [stacks[n].classes for n in alternatives if n in stacks]
        each_once = bool(holders) and np.array_equal(np.sort(np.concatenate(holders)), np.arange(count))
        if not (each_once or entry.optional):
            return False
        if name in stacks and not (
            _in_range(stacks[name].values, entry) and _in_shape(stacks[name], entry, count, width, lengths)
        ):
            return False
    return True


def _in_range(values: Array, entry: Entry) -> bool:
    return (
        values.dtype.kind in ("iu" if entry.whole else "f")
        and bool(np.isfinite(values).all())
        and (entry.least is None or bool((values >= entry.least).all()))
        and (entry.most is None or bool((values <= entry.most).all()))
    )


def _in_shape(stack: Stack, entry: Entry, count: int, width: int, lengths: dict[str, Array]) -> bool:
    axes, (_, classes, shapes) = entry.shape.split(), stack
    if shapes.shape[1] != len(axes):
        return False
    fixed = {"d": width, "t": width * (width + 1) // 2}
    for axis, length in zip(axes, shapes.T):
        if axis.isdigit() or axis in fixed:
            expected = np.full(len(length), int(axis) if axis.isdigit() else fixed[axis])
        else:
            of_class = lengths.setdefault(axis, np.zeros(count, dtype=np.int64))
            of_class[classes] = np.where(of_class[classes] == 0, length, of_class[classes])
            expected = of_class[classes]
        if (length < 1).any() or not np.array_equal(length, expected):
            return False
    return True


LARGEST_AXIS = 2**31


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
            name = key.removeprefix(f"{kind}/").removesuffix("/values")
            shapes = arrays[key.removesuffix("values") + "shapes"]
            if values.ndim != 1 or shapes.ndim != 2 or shapes.dtype != np.int64 or not shapes.shape[1]:
                raise ValueError
            if bool((shapes < 0).any()) or bool((shapes >= LARGEST_AXIS).any()):
                raise ValueError
            if int(shapes[:, 1:].prod(axis=1).sum()) != len(values) or not bool((np.diff(shapes[:, 0]) > 0).all()):
                raise ValueError
            stacks[name] = Stack(values, shapes[:, 0], shapes[:, 1:])
    return stacks


def to_states(stacks: Mapping[str, Stack], count: int) -> list[State]:
    """The states of `count` classes, as views of the stacks."""
    states: list[State] = [{} for _ in range(count)]
    for name, stack in stacks.items():
        for c, part in split(stack).items():
            states[c][name] = part
    return states


def split(stack: Stack) -> dict[int, Array]:
    """The array of each class."""
    values, classes, shapes = stack
    if len(shapes) and (shapes == shapes[0]).all():
        return dict(zip(classes.tolist(), values.reshape(len(shapes), *shapes[0])))
    ends = np.cumsum(shapes.prod(axis=1))[:-1]
    parts = (part.reshape(shape) for part, shape in zip(np.split(values, ends), shapes.tolist()))
    return dict(zip(classes.tolist(), parts))


def states_fit(arrays: Mapping[str, Array], kind: str, layout: Layout | None, count: int, width: int) -> bool:
    """Whether stacked states have the layout; without one, whether all values are finite numbers."""
    try:
        stacks = to_stacks(arrays, kind)
    except (KeyError, ValueError):
        return False
    if layout is not None:
        return fits(stacks, layout, count, width)
    return all(s.values.dtype.kind in "biuf" and bool(np.isfinite(s.values).all()) for s in stacks.values())
