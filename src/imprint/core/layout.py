"""How a file stores the states of classes, and the layout (names, shapes, types,
ranges) that they must have.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from imprint.core.arrays import Array, State
from imprint.core.errors import ParameterError, require


class Entry(NamedTuple):
    """One array of a layout.

    `shape` names the axes. A number is a fixed length, `d` the width of the embeddings,
    `t` the d (d + 1) / 2 numbers of a triangular matrix. Any other letter is a length
    >= 1 that all arrays of a class share. `instead_of` names another array: every class
    has exactly one of the two. An `optional` array may be absent from any class.
    """

    shape: str
    minimum: float = -np.inf
    maximum: float = np.inf
    integer: bool = False
    instead_of: str = ""
    optional: bool = False


MAX_COUNT = 2.0**53  # number of rows; float64 does not represent larger counts exactly
# total weight of rows: positive, with a finite inverse
MIN_MASS = float(np.finfo(np.float64).tiny)
MAX_AXIS_LENGTH = 2**31
Layout = Mapping[str, Entry]


class Stack(NamedTuple):
    """The arrays of one name of many classes, with the same type and number of axes."""

    values: Array  # of all classes, flattened and concatenated
    classes: Array  # (n,) the classes that have this array, ascending
    shapes: Array  # (n, axes) the shape of the array of each of them

    def by_class(self) -> dict[int, Array]:
        """The array of each class, as a view."""
        # equal shapes: the same result, faster
        if len(self.shapes) and (self.shapes == self.shapes[0]).all():
            return dict(
                zip(
                    self.classes.tolist(),
                    self.values.reshape(len(self.shapes), *self.shapes[0]),
                )
            )
        parts = np.split(self.values, np.cumsum(self.shapes.prod(axis=1))[:-1])
        return {
            c: part.reshape(shape)
            for c, part, shape in zip(
                self.classes.tolist(), parts, self.shapes.tolist()
            )
        }


def to_arrays(kind: str, states: Sequence[State]) -> dict[str, Array]:
    """The states of classes, stacked: for every name, concatenated values and a row
    (class, *shape) per class.
    """
    arrays = {}
    for name in sorted({name for state in states for name in state}):
        holders = [i for i, state in enumerate(states) if name in state]
        values = [states[i][name] for i in holders]
        if len({(a.dtype, a.ndim) for a in values}) > 1:
            raise ParameterError(
                f"save: the array {name!r} must have one type and number of axes for"
                " every class."
            )
        arrays[f"{kind}/{name}/values"] = np.concatenate([a.ravel() for a in values])
        arrays[f"{kind}/{name}/shapes"] = np.array(
            [(i, *a.shape) for i, a in zip(holders, values)], dtype=np.int64
        )
    return arrays


def to_stacks(arrays: Mapping[str, Array], kind: str) -> dict[str, Stack]:
    """The stacks that `to_arrays` wrote, by name; raises KeyError or ValueError for
    anything else.
    """
    stacks: dict[str, Stack] = {}
    for key, values in arrays.items():
        if key.startswith(f"{kind}/") and key.endswith("/values"):
            array = key.removesuffix("/values")
            shapes = arrays[f"{array}/shapes"]
            require(
                values.ndim == 1
                and shapes.ndim == 2
                and shapes.dtype == np.int64
                and shapes.shape[1] > 0
            )
            require(((shapes >= 0) & (shapes < MAX_AXIS_LENGTH)).all())
            require((np.diff(shapes[:, 0]) > 0).all())  # the classes ascend
            require(int(shapes[:, 1:].prod(axis=1).sum()) == len(values))
            stacks[array.removeprefix(f"{kind}/")] = Stack(
                values, shapes[:, 0], shapes[:, 1:]
            )
    return stacks


def to_states(
    arrays: Mapping[str, Array],
    kind: str,
    layout: Layout | None,
    count: int,
    width: int,
) -> list[State]:
    """The states of `count` classes, as views of the arrays that `to_arrays` wrote.

    Raises KeyError or ValueError unless their names, shapes, types and ranges are those
    of the layout. Without a layout, all values must be finite numbers.
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
    # by axis, for each class
    lengths = {
        "d": np.full(count, width),
        "t": np.full(count, width * (width + 1) // 2),
    }
    for name, entry in layout.items():
        holders = [stacks[n].classes for n in (entry.instead_of, name) if n in stacks]
        each_once = bool(holders) and np.array_equal(
            np.sort(np.concatenate(holders)), np.arange(count)
        )
        require(each_once or entry.optional)
        if name in stacks:
            values, classes, shapes = stacks[name]
            require(values.dtype.kind in ("iu" if entry.integer else "f"))
            require(
                entry.minimum <= float(values.min())
                and float(values.max()) <= entry.maximum
            )
            axes = entry.shape.split()
            require(shapes.shape[1] == len(axes) and (shapes >= 1).all())
            for axis, length in zip(axes, shapes.T):
                if axis.isdigit():
                    require((length == int(axis)).all())
                else:
                    # 0: not seen yet
                    known = lengths.setdefault(axis, np.zeros(count, dtype=np.int64))
                    known[classes] = np.where(
                        known[classes] == 0, length, known[classes]
                    )
                    require((length == known[classes]).all())
