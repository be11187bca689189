"""Blocks of arrays: the inner tensors that an interpreter returns, pooled by NumPy."""

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from imprint.backbones.block import Block, projection
from imprint.core.arrays import Array
from imprint.core.errors import ParameterError

# a matrix costs more than the pooling of a batch
cached_projection = lru_cache(maxsize=16)(projection)
MAP_AXES = 4  # inputs, height, width, channels


def pooled(network: str, block: Block, x: Array) -> Array:
    """One row of a block for each input; maps have their channels last.

    Parameters
    ----------
    network : str
        What errors call the network.
    block : Block
        How the tensor is pooled, and the width that the record states.
    x : array (n, ...)
        The tensor.

    Returns
    -------
    array (n, block.width)
    """
    call = f"The block {block.name!r} of {network}"
    if block.pooling == "none":
        rows = x.reshape(len(x), -1)
    elif block.pooling in POOLINGS:
        if x.ndim != MAP_AXES:
            raise ParameterError(
                f"{call}: its tensor has {x.ndim} axes, and the pooling"
                f" {block.pooling!r} needs {MAP_AXES}."
            )
        rows = POOLINGS[block.pooling](x)
    else:
        raise ParameterError(
            f"{call}: networks of this kind have no tokens; use"
            f" {', '.join(['none', *POOLINGS])}."
        )
    width = rows.shape[1]
    if width != block.pooled_width:
        raise ParameterError(
            f"{call} gives {width} numbers; its record says {block.pooled_width}."
        )
    if block.projected_from is None:
        return rows
    return np.asarray(rows @ cached_projection(width, block.width))


def _mean(x: Array) -> Array:
    return np.asarray(x.mean(axis=(1, 2)))


def _deviation(x: Array) -> Array:
    return np.asarray(x.std(axis=(1, 2)))


def _quadrants(x: Array) -> Array:
    """The quarters of each channel stand together, as in networks of other formats;
    with an odd side, both windows have the middle.
    """
    rows, columns = (_halves(side) for side in x.shape[1:3])
    means = [x[:, r, c].mean(axis=(1, 2)) for r in rows for c in columns]
    return np.stack(means, axis=2).reshape(len(x), -1)


def _halves(side: int) -> tuple[slice, slice]:
    return slice(0, -(-side // 2)), slice(side // 2, None)


POOLINGS: dict[str, Callable[[Array], Array]] = {
    "mean": _mean,
    "std": _deviation,
    "quadrants": _quadrants,
}
