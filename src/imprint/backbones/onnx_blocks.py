"""Blocks of an ONNX model as nodes that are added to it.

The nodes that pool are part of the model. So an exported model has them too, and ONNX
Runtime runs them on all cores, in the memory layout of its convolutions. All operators
mean the same in every opset from 7 on.
"""

import math

import numpy as np

from imprint.backbones.block import Block, projection
from imprint.backbones.onnx_graph import ELEMENT_FLOAT, Additions
from imprint.core.errors import ParameterError

MAP_AXES = 4  # inputs, channels, height, width
TOKEN_AXES = 3  # inputs, tokens, channels
AXES = {
    "mean": MAP_AXES,
    "std": MAP_AXES,
    "quadrants": MAP_AXES,
    "tokens": TOKEN_AXES,
    "class_token": TOKEN_AXES,
    "patches": TOKEN_AXES,
}
"""The number of axes that a pooling needs; `none` takes any."""

Shape = tuple[int, ...]


def add_blocks(
    added: Additions, network: str, blocks: tuple[Block, ...], shapes: dict[str, Shape]
) -> str:
    """Add an output with the blocks side by side, and return its name.

    `network` is what errors call the model, and `shapes` are those of the tensors for
    one input.
    """
    rows = []
    for block in blocks:
        shape = shapes[block.tensor]
        check_shape(network, block, shape)
        rows.append(_rows(added, block, shape))
    return added.output(added.node("Concat", *rows, axis=1))


def check_shape(network: str, block: Block, shape: Shape) -> None:
    """Refuse a tensor that cannot be pooled as stated, or gives another width."""
    call = f"The block {block.name!r} of {network}"
    axes = AXES.get(block.pooling, len(shape))
    if len(shape) != axes:
        raise ParameterError(
            f"{call}: its tensor has {len(shape)} axes, and the pooling"
            f" {block.pooling!r} needs {axes}."
        )
    if block.pooling == "quadrants" and min(shape[2:]) < 2:
        raise ParameterError(
            f"{call}: its map has {shape[2]} x {shape[3]} places, and quadrants need"
            " two in each direction."
        )
    width = _width(block.pooling, shape)
    if width != block.pooled_width:
        key = "width" if block.projected_from is None else "projected_from"
        raise ParameterError(
            f"{call} gives {width} numbers; its record says {key} {block.pooled_width}."
        )


def _width(pooling: str, shape: Shape) -> int:
    if pooling == "none":
        return math.prod(shape[1:])
    if AXES[pooling] == TOKEN_AXES:
        return shape[2]
    channels = shape[1]
    if pooling == "quadrants":
        return 4 * channels
    return channels


def _rows(added: Additions, block: Block, shape: Shape) -> str:
    """The nodes of one block, whose last has one row per input."""
    # networks in half precision; in single precision, ONNX Runtime drops the node
    x = added.node("Cast", block.tensor, to=ELEMENT_FLOAT)
    if block.pooling == "mean":
        x = added.node("GlobalAveragePool", x)
    elif block.pooling == "std":
        x = _deviation(added, x)
    elif block.pooling == "quadrants":
        x = _quadrants(added, x, shape)
    elif block.pooling != "none":
        x = _tokens(added, x, block.pooling, shape[1])
    rows = added.node("Flatten", x, axis=1)
    if block.projected_from is None:
        return rows
    values = projection(block.projected_from, block.width)
    matrix = added.constant(values)
    return added.node("MatMul", rows, matrix)


def _deviation(added: Additions, x: str) -> str:
    # The mean is subtracted first: the mean of squares minus the squared mean loses
    # all digits of channels that hardly vary.
    mean = added.node("GlobalAveragePool", x)
    centred = added.node("Sub", x, mean)
    squares = added.node("Mul", centred, centred)
    variance = added.node("GlobalAveragePool", squares)
    return added.node("Sqrt", variance)


def _quadrants(added: Additions, x: str, shape: Shape) -> str:
    """Windows of half a side. With an odd side, the next window begins one place
    earlier, so both have the middle.
    """
    kernel = []
    strides = []
    for side in shape[2:]:
        kernel.append(-(-side // 2))
        strides.append(side // 2)
    return added.node("AveragePool", x, kernel_shape=kernel, strides=strides)


def _tokens(added: Additions, x: str, pooling: str, count: int) -> str:
    """The product with one weight per token."""
    weights = np.zeros((count, 1), np.float32)
    if pooling == "tokens":
        weights[:] = 1 / count
    elif pooling == "class_token":
        weights[0] = 1
    else:
        weights[1:] = 1 / (count - 1)
    channels_first = added.node("Transpose", x, perm=[0, 2, 1])
    weights_of_tokens = added.constant(weights)
    return added.node("MatMul", channels_first, weights_of_tokens)
