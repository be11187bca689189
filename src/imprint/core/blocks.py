"""Blocks: the groups of columns of an embedding that come from different layers, places
or networks.
"""

from collections.abc import Mapping, Sequence
from itertools import accumulate, zip_longest
from operator import index
from typing import Any, SupportsFloat, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from imprint.core.errors import ParameterError

MAX_BLOCKS = 64  # a choice of weights compares blocks; a network has tens of layers


def read_blocks(blocks: Any) -> tuple[int, ...]:
    """The widths of blocks as a tuple of integers; empty if there are none.

    Parameters
    ----------
    blocks : sequence of int, or None
        The number of columns of each block, from left to right. None or one block:
        the embedding is one whole.

    Returns
    -------
    tuple of int
        Empty for less than two blocks, because one block is the whole embedding.

    Raises
    ------
    ParameterError
        If they are not positive whole numbers.

    >>> read_blocks([1280, 448]), read_blocks(None), read_blocks((512,))
    ((1280, 448), (), ())
    """
    if blocks is None:
        return ()
    is_sequence = isinstance(blocks, Sequence) and not isinstance(blocks, str)
    widths = tuple(map(_as_width, blocks)) if is_sequence else ()
    if not 1 <= len(widths) <= MAX_BLOCKS or 0 in widths:
        rule = f"blocks must be 1 to {MAX_BLOCKS} positive numbers of columns"
        raise ParameterError(f"blocks={blocks!r}: {rule}.")
    return widths if len(widths) > 1 else ()


def read_groups(groups: Mapping[str, Any], names: Sequence[str]) -> tuple[int, ...]:
    """The widths of blocks that are named groups of the columns of a table.

    Parameters
    ----------
    groups : dict
        The names of the columns of each block, or the text with which they begin.
    names : sequence of str
        The columns of the table, which must be those of the groups, in this order.

    Returns
    -------
    tuple of int
        The number of columns of each block.

    Raises
    ------
    ParameterError
        If the groups do not list each column once and in order.

    >>> read_groups({"last": "last_", "b10": ["a", "b"]}, ["last_0", "a", "b"])
    (1, 2)
    """
    listed: list[str] = []
    widths = []
    for group, members in groups.items():
        columns = members
        if isinstance(members, str):
            columns = [name for name in names if name.startswith(members)]
        if not columns:
            raise ParameterError(f"blocks: the block {group!r} has no columns.")
        listed += map(str, columns)
        widths.append(len(columns))
    for position, (expected, name) in enumerate(zip_longest(listed, names), start=1):
        if expected != name:
            raise ParameterError(
                "blocks: the columns of blocks must be those of the table, in its"
                f" order; column {position} of the table is {name!r}, and of the blocks"
                f" {expected!r}."
            )
    return read_blocks(widths)


def _as_width(value: object) -> int:
    """A number of columns; 0 for anything that is none."""
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        return 0
    return max(0, index(value))


def column_slices(widths: Sequence[int]) -> list[slice]:
    """The columns of each block.

    >>> column_slices((3, 2))
    [slice(0, 3, None), slice(3, 5, None)]
    """
    ends = list(accumulate(widths))
    return [slice(end - width, end) for width, end in zip(widths, ends)]


def read_weights(value: Any) -> str | tuple[float, ...] | None:
    """Weights of blocks, or "auto" or "equal", as a legal parameter; None for anything
    else.
    """
    if isinstance(value, str):
        return value if value in ("auto", "equal") else None
    if not isinstance(value, tuple | list):
        return None
    weights = tuple(as_number(weight) for weight in value)
    return weights if any(weights) and min(weights) >= 0 else None


def as_number(value: Any) -> float:
    """A finite number; -1 for anything that is none."""
    if isinstance(value, bool) or not isinstance(value, SupportsFloat):
        return -1.0
    try:
        number = float(value)
    except OverflowError:  # of a very large integer
        return -1.0
    return number if np.isfinite(number) else -1.0


def column_factors(
    call: str, weights: tuple[float, ...], widths: Sequence[int], columns: int
) -> NDArray[np.float64]:
    """The weight of each column: that of its block, over the mean weight.  # (columns,)

    Raises `ParameterError` unless there is one weight for each block; an embedding
    without blocks is one.
    """
    widths = widths or (columns,)
    if len(weights) != len(widths):
        raise ParameterError(
            f"{call}: it has {len(weights)} weights, and the embeddings have"
            f" {len(widths)} block{'s' * (len(widths) > 1)}."
        )
    mean = sum(weights) / len(weights)
    return np.repeat([weight / mean for weight in weights], widths)
