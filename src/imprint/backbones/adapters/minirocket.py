"""A frozen MiniRocket for time series: 84 convolution kernels at several dilations.

The published transform takes its thresholds from the training data. Here they come from
artificial series (`pretrain/minirocket.py`), so that the network is the same for all
data, and classes are added and removed exactly. Its blocks are the shape of a series,
the shape of its differences, and the level and spread of its channels.
"""

import hashlib
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from imprint.backbones.backbone import Backbone, check_cpu, thread_count
from imprint.backbones.record import Record, read_weights
from imprint.core.arrays import Array
from imprint.core.errors import UnreadableInput, count
from imprint.kernels.convolutions import MIN_SAMPLES, exceedances

VERSION = 1
SHAPES = ("shape", "differences")  # blocks of shares of samples
MIXTURES = 12  # of channels at each dilation; each is seen by seven kernels
# channels in one mixture; a power of two, as in the multivariate MiniRocket
MIXTURE_SIZES = (1, 2, 4, 8)
LINEAR_WIDTH = 64  # level and spread of 32 channels; those of more are added up
WAVES = 96  # frequencies of the other part of the level block
# of level and spread after the arcsinh, which is linear up to 1 and a logarithm beyond:
# differences from a tenth to ten units are told apart
LOWEST_WAVE, HIGHEST_WAVE = 0.1, 10.0
LEVEL_WIDTH = LINEAR_WIDTH + 2 * WAVES
# A series whose standard deviation is a smaller share of its largest value is constant:
# the rest is the rounding of float32.
ROUNDING = 1e-6


class PreparedSeries(NamedTuple):
    """A series in the form that the network takes."""

    shape: Array  # (channels, length) float32, each of mean 0 and variance 1
    differences: Array  # (channels, length) float32, the same of the differences
    levels: Array  # (channels,) the means
    spreads: Array  # (channels,) the standard deviations


class MiniRocket(Backbone):
    """The network for one number of channels, or for any if the record states none."""

    def __init__(self, record: Record, device: str, threads: int | None):
        from safetensors.numpy import load

        check_cpu(record.name, device)
        content, digest = read_weights(record)
        super().__init__(record, digest, VERSION)
        self._weights = load(content)
        self._is_parallel = thread_count(threads) > 1

    def prepare(self, item: Any) -> PreparedSeries:
        series: Array = super().prepare(item)
        expected = self.record.channels
        if expected is not None and len(series) != expected:
            channels = count(len(series), "channel")
            raise UnreadableInput("a series", f"{channels} instead of {expected}")
        return prepared(series)

    def _forward(self, batch: Sequence[PreparedSeries]) -> Array:
        groups: dict[tuple[int, ...], list[int]] = {}
        for i, series in enumerate(batch):
            size = series.shape.shape
            groups.setdefault(size, []).append(i)
        out = np.empty((len(batch), self.width), np.float32)
        for rows in groups.values():
            out[rows] = self._embed_equal([batch[i] for i in rows])
        return out

    def _embed_equal(self, batch: Sequence[PreparedSeries]) -> Array:
        """The embeddings of series of one number of channels and one length."""
        shapes = np.stack([series.shape for series in batch])
        shape_block = self._shares("shape", shapes)
        # the record of the last layer alone
        if self.record.layer is not None:
            return shape_block
        differences = np.stack([series.differences for series in batch])
        levels = np.stack([series.levels for series in batch])
        spreads = np.stack([series.spreads for series in batch])
        blocks = (
            shape_block,
            self._shares("differences", differences),
            level_block(levels, spreads),
        )
        return np.concatenate(blocks, axis=1)

    def _shares(self, block: str, series: Array) -> Array:
        """Standardised shares of samples above the thresholds, added up with random
        signs to the width of the block.
        """
        thresholds = self._weights[f"{block}.thresholds"]
        number = len(thresholds)
        _, channels, length = series.shape
        shares = exceedances(
            series,
            dilations(length, number),
            channel_mixtures(block, number, channels),
            thresholds,
            parallel=self._is_parallel,
        )
        shares -= self._weights[f"{block}.mean"]
        shares /= self._weights[f"{block}.scale"]
        return folded(shares, self._block_width, block)

    @property
    def _block_width(self) -> int:
        return self.blocks[0].width if self.blocks else self.width


load = MiniRocket


def prepared(series: Array) -> PreparedSeries:
    """A series with its level and spread taken out.

    A series shorter than the kernels is stretched to their length.

    Parameters
    ----------
    series : array (channels, length)
    """
    standardised, levels, spreads = _standardise(series)
    differences, _, _ = _standardise(np.diff(standardised, axis=1))
    return PreparedSeries(
        shape=_stretched(standardised),
        differences=_stretched(differences),
        levels=levels,
        spreads=spreads,
    )


def _standardise(series: Array) -> tuple[Array, Array, Array]:
    """Channels of mean 0 and variance 1, their means, and their standard deviations;
    a constant channel becomes 0.
    """
    values = series.astype(np.float64)
    largest = np.abs(values).max(axis=1, initial=0.0)
    unit = np.where(largest > 0, largest, 1.0)
    # relative to the largest value, so that squares neither overflow nor vanish
    values /= unit[:, None]
    length = max(values.shape[1], 1)
    means = values.sum(axis=1) / length
    values -= means[:, None]
    deviations = np.sqrt((values**2).sum(axis=1) / length)
    is_constant = deviations <= ROUNDING
    deviations[is_constant] = 0
    values[is_constant] = 0
    divisor = np.where(is_constant, 1.0, deviations)
    values /= divisor[:, None]
    return values.astype(np.float32), means * unit, deviations * unit


def _stretched(series: Array) -> Array:
    """The series, interpolated to `MIN_SAMPLES` if it is shorter."""
    channels, length = series.shape
    if length >= MIN_SAMPLES:
        return series
    if length == 0:  # the differences of a single sample
        return np.zeros((channels, MIN_SAMPLES), np.float32)
    known = np.arange(length)
    places = np.linspace(0, length - 1, MIN_SAMPLES)
    stretched = np.empty((channels, MIN_SAMPLES), np.float32)
    for row, channel in zip(stretched, series):
        row[:] = np.interp(places, known, channel)
    return stretched


def dilations(length: int, number: int) -> list[int]:
    """Dilations from 1 to the largest at which a kernel fits into a series, evenly
    spaced on a logarithmic scale, as in the published transform; rounded down.
    """
    largest = (length - 1) / (MIN_SAMPLES - 1)
    exponents = np.linspace(0, np.log2(largest), number)
    powers = 2**exponents
    # the largest is a power that rounding may leave just below an integer
    whole = np.floor(powers + 1e-9)
    return whole.astype(int).tolist()


def uniform(purpose: str, *shape: int) -> Array:
    """Numbers from 0 to 1 that depend on their purpose alone.

    They come from a digest, so they are the same with every version of NumPy.
    """
    source = hashlib.shake_256(f"minirocket {VERSION} {purpose}".encode())
    number = int(np.prod(shape))
    content = source.digest(4 * number)
    integers = np.frombuffer(content, "<u4")
    shares = (integers + 0.5) / 2**32
    return shares.reshape(shape)


@cache
def signs(purpose: str, *shape: int) -> Array:
    """Numbers -1 and 1 that depend on their purpose alone."""
    return np.where(uniform(purpose, *shape) < 0.5, -1, 1).astype(np.float32)


@cache
def channel_mixtures(block: str, n_dilations: int, channels: int) -> Array:
    """The weights of the channels in each mixture.  # (dilations, mixtures, channels)

    A mixture is a sum of a few channels with random signs, scaled to variance 1 for
    independent channels.
    """
    if channels == 1:
        return np.ones((n_dilations, 1, 1), np.float32)
    shape = (n_dilations, MIXTURES)
    purpose = f"{block} of {channels} channels"
    sizes = np.array([size for size in MIXTURE_SIZES if size <= channels])
    draws = uniform(f"{purpose}: sizes", *shape)
    chosen = (draws * len(sizes)).astype(int)
    size = sizes[chosen][:, :, None]
    order = uniform(f"{purpose}: ranks", *shape, channels)
    ranks = order.argsort(axis=2).argsort(axis=2)
    sign = signs(f"{purpose}: signs", *shape, channels)
    weights = sign / np.sqrt(size)
    is_chosen = ranks < size
    return np.where(is_chosen, weights, 0).astype(np.float32)


def folded(X: Array, width: int, purpose: str) -> Array:
    """Columns added up with random signs, each to those a multiple of `width` further
    on, which keeps inner products up to noise (a count sketch; Charikar, Chen and
    Farach-Colton, 2002).
    """
    n, wide = X.shape
    layers = -(-wide // width)
    padded = np.zeros((n, layers * width), np.float32)
    np.multiply(X, signs(f"{purpose}: signs of columns", wide), out=padded[:, :wide])
    return np.asarray(padded.reshape(n, layers, width).sum(axis=1))


def level_block(levels: Array, spreads: Array) -> Array:
    """The level and spread of all channels, (n, channels) each, as one block.

    The first part is linear, so it does not depend on a common unit. The second one
    consists of random waves (Rahimi and Recht, 2007), which tell apart absolute values
    of one channel too. Both have length one.
    """
    values = np.concatenate([levels, spreads], axis=1)
    blocks = (_linear_part(values), _wave_part(values))
    return np.concatenate(blocks, axis=1).astype(np.float32)


def _linear_part(values: Array) -> Array:
    """The values, of length one.  # (n, LINEAR_WIDTH)"""
    n, number = values.shape
    largest = np.abs(values).max(axis=1, keepdims=True)
    # so that squares neither overflow nor vanish
    relative = values / np.where(largest > 0, largest, 1)
    linear = np.zeros((n, LINEAR_WIDTH))
    for i in range(number):
        is_alone = i < LINEAR_WIDTH
        sign = 1.0 if is_alone else float(signs(f"level {i}", 1)[0])
        linear[:, i % LINEAR_WIDTH] += sign * relative[:, i]
    length = np.linalg.norm(linear, axis=1, keepdims=True)
    return np.asarray(linear / np.where(length > 0, length, 1))


def _wave_part(values: Array) -> Array:
    """Cosines and sines of the values, of length one.  # (n, 2 WAVES)"""
    number = values.shape[1]
    phases = np.arcsinh(values) @ _frequencies(number)
    waves = (np.cos(phases), np.sin(phases))
    return np.concatenate(waves, axis=1) / np.sqrt(WAVES)


@cache
def _frequencies(number: int) -> Array:
    """Normal frequencies of several scales for so many values.  # (number, WAVES)"""
    first = uniform(f"{number} frequencies: first", number, WAVES)
    second = uniform(f"{number} frequencies: second", number, WAVES)
    # Box and Muller, 1958
    radius = np.sqrt(-2 * np.log(first))
    normal = radius * np.cos(2 * np.pi * second)
    exponent = uniform(f"{number} frequencies: scales", WAVES)
    ratio = HIGHEST_WAVE / LOWEST_WAVE
    scales = LOWEST_WAVE * ratio**exponent
    # phases of one size for any number of channels
    channels = number / 2
    return np.asarray(normal * scales / np.sqrt(channels))
