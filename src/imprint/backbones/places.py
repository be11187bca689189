"""Where in an image the numbers of an embedding come from.

A block pools a map: a tensor of channels x height x width. The pooling is a sum over
places, so each place has a share in every number of the block, and in every linear
function of them.
"""

from typing import NamedTuple

import numpy as np

from imprint.backbones.block import Block, projection
from imprint.backbones.onnx_graph import Node
from imprint.core.arrays import Array

# operators that change the shape of a tensor, and not its values
RESHAPING = frozenset({"Flatten", "Squeeze", "Reshape", "Identity", "Dropout", "Cast"})
AVERAGING = frozenset({"GlobalAveragePool", "ReduceMean"})
MIN_DEVIATION = 1e-12  # below, a channel is constant, and no place contributes to it


class BlockMap(NamedTuple):
    """The map that a block pools, for one image."""

    pooling: str  # mean, std or quadrants
    values: Array  # (channels, height, width)
    projected_to: int | None = None  # the width after a projection

    def contributions(
        self,
        weights: Array,
    ) -> Array:
        """The contribution of each place to the sum of `weights` times the numbers of
        the block.  # (height, width)

        The contributions add up to that sum.
        """
        if self.projected_to is not None:
            matrix = projection(self.pooled_width, self.projected_to)
            weights = matrix.astype(np.float64) @ weights
        values = self.values.astype(np.float64)
        if self.pooling == "std":
            return _of_deviations(values, weights)
        if self.pooling == "quadrants":
            return _of_quadrants(values, weights)
        return _of_means(values, weights)

    @property
    def pooled_width(self) -> int:
        """The number of values before the projection."""
        channels = len(self.values)
        if self.pooling == "quadrants":
            return 4 * channels
        return channels


def _of_means(
    values: Array,
    weights: Array,
) -> Array:
    places = values[0].size
    shares = weights / places
    return np.asarray(np.tensordot(shares, values, 1))


def _of_deviations(
    values: Array,
    weights: Array,
) -> Array:
    """Of standard deviations: the square of the deviation of a place over N times the
    standard deviation.
    """
    means = values.mean(axis=(1, 2), keepdims=True)
    squares = np.square(values - means)
    variances = squares.mean(axis=(1, 2))
    spread = np.sqrt(variances)
    varies = spread > MIN_DEVIATION
    places = values[0].size
    shares = np.zeros(len(values))
    shares[varies] = weights[varies] / (places * spread[varies])
    return np.asarray(np.tensordot(shares, squares, 1))


def _of_quadrants(
    values: Array,
    weights: Array,
) -> Array:
    """Of the means of four windows; with an odd side, two of them share the middle."""
    height, width = values.shape[1:]
    total = np.zeros((height, width))
    by_window = weights.reshape(len(values), 2, 2)
    for row in range(2):
        top = row * (height // 2)
        rows = slice(top, top + -(-height // 2))
        for column in range(2):
            left = column * (width // 2)
            columns = slice(left, left + -(-width // 2))
            window = values[:, rows, columns]
            shares = by_window[:, row, column]
            total[rows, columns] += _of_means(window, shares)
    return total


def block_map(
    block: Block,
    tensor: Array,
) -> BlockMap | None:
    """The map of a block in its tensor for one image; None if it has no places.

    `tensor` has no axis of inputs.
    """
    projected_to = None
    if block.projected_from is not None:
        projected_to = block.width
    if block.pooling in ("mean", "std", "quadrants"):
        return BlockMap(block.pooling, tensor, projected_to)
    if block.pooling != "patches":
        return None
    # The first token is that of the class.
    patches = tensor[1:]
    side = round(len(patches) ** 0.5)
    if side**2 != len(patches):
        return None
    rows = patches.reshape(side, side, -1)
    values = np.moveaxis(rows, 2, 0)
    return BlockMap("mean", values, projected_to)


def averaged_tensor(
    nodes: dict[str, Node],
    tensor: str,
) -> str | None:
    """The tensor whose mean over places is `tensor`; None if it is not such a mean.

    `nodes` holds the operator and the inputs of each tensor that a network computes.
    """
    averaged = False
    while tensor in nodes:
        operator, inputs = nodes[tensor]
        if operator in AVERAGING and not averaged:
            averaged = True
        elif operator not in RESHAPING:
            break
        tensor = inputs[0]
    if not averaged:
        return None
    return tensor
