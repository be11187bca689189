"""Explanations in closed form.

The gradient of the difference of two scores with respect to the embedding, through the
normalisation of its blocks, times the map at each place. A pooling is a sum over
places, so this is exact as far as the difference is linear in the embedding.
"""

from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from imprint.backbones import Backbone
from imprint.core.arrays import Array
from imprint.explanation.explanation import WHOLE, Box
from imprint.head import Decider, Head


class PlaceContributions(NamedTuple):
    """What each place of an image contributes."""

    values: Array  # (height, width)
    unmapped: tuple[str, ...]  # blocks that contribute and have no places


def contributions(
    head: Decider,
    backbone: Backbone,
    prepared: Any,
    x: Array,
    direction: Array,
) -> PlaceContributions | None:
    """The contributions of the places of a prepared image, whose embedding is x, to the
    sum of `direction` times the scores; None if there is no closed form.
    """
    maps = backbone.maps(prepared)
    sides = [one.values.shape[1:] for one in maps if one is not None]
    if not sides or not isinstance(head, Head):
        return None
    slope = _slope(head, x, direction)
    if slope is None:
        return None
    height = max(side[0] for side in sides)
    width = max(side[1] for side in sides)
    total = np.zeros((height, width))
    unmapped = []
    for name, columns, block_map in zip(*_blocks(backbone), maps):
        weights = slope[columns]
        if block_map is not None:
            total += enlarged(block_map.contributions(weights), height, width)
        elif weights.any():
            unmapped.append(name)
    return PlaceContributions(total, tuple(unmapped))


def _slope(head: Head, x: Array, direction: Array) -> Array | None:
    """The gradient with respect to the embedding.  # (d,)"""
    query = head.norm_inf.apply(x[None].astype(head.dtype))[0]
    slope = head.aggregator.gradient(query, head.proxies, head.prepared, direction)
    if slope is None:
        return None
    return head.norm_inf.pullback(x.astype(np.float64), slope)


def _blocks(backbone: Backbone) -> tuple[list[str], list[slice]]:
    """The names and the columns of the blocks of an embedding."""
    if not backbone.blocks:
        return ["last"], [slice(None)]
    ends = accumulate(block.width for block in backbone.blocks)
    names = []
    columns = []
    for block, end in zip(backbone.blocks, ends):
        names.append(block.name)
        columns.append(slice(end - block.width, end))
    return names, columns


def enlarged(values: Array, height: int, width: int) -> Array:
    """A map with more places, smooth, and with about the same sum.  # (h, w)"""
    from PIL import Image

    if values.shape == (height, width):
        return values
    small = Image.fromarray(values.astype(np.float32))
    large = small.resize((width, height), Image.Resampling.BILINEAR)
    # A place is divided among those that replace it.
    share = values.size / (height * width)
    return np.asarray(large, dtype=np.float64) * share


def seen_box(backbone: Backbone, image: Array) -> Box:
    """The part of an image that a network sees; of several networks, the first."""
    networks = backbone.parts or (backbone,)
    rule = networks[0].record.preprocess
    if rule is None:
        return WHOLE
    return rule.seen(image.shape[1], image.shape[0])
