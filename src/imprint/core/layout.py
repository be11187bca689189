"""What named arrays must look like, stated once: what is read from a file is checked against it."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from imprint.core.types import Array


class Entry(NamedTuple):
    """One array of a layout.

    `shape` names the axes: a number is that long; `d` is the width of the embeddings; `t` the d (d + 1) / 2 numbers
    of a triangle; any other letter is as long as wherever else it stands for the same class, and at least one.
    `instead_of` names another array: every class has exactly one of the two. An `optional` array may be absent from any
    class.
    """

    shape: str
    least: float | None = None
    most: float | None = None
    whole: bool = False
    instead_of: str | None = None
    optional: bool = False


COUNTED = 2.0**53
"""Numbers of rows above this are no longer exact."""
SMALLEST_MASS = float(np.finfo(np.float64).tiny)
"""The least total weight of rows: positive, and its inverse is finite."""

Layout = Mapping[str, Entry]


class Stack(NamedTuple):
    """Arrays of the same name, type and number of axes, of many classes: all values in turn, and whose they are."""

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
        own = (entry.instead_of, name) if entry.instead_of else (name,)
        holders = [stacks[n].classes for n in own if n in stacks]
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
            wanted = np.full(len(length), int(axis) if axis.isdigit() else fixed[axis])
        else:
            wanted = lengths.setdefault(axis, np.zeros(count, dtype=np.int64))
            wanted[classes] = np.where(wanted[classes] == 0, length, wanted[classes])
            wanted = wanted[classes]
        if (length < 1).any() or not np.array_equal(length, wanted):
            return False
    return True
