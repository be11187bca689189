"""A line plot of a series, in pixels."""

import numpy as np

from imprint.core.arrays import Array

WIDTH, HEIGHT, MARGIN = 240, 120, 4  # pixels
# of channels, after the order of Okabe and Ito, which colour-blind people tell apart
COLOURS: Array = np.array(
    [
        [0, 114, 178],
        [213, 94, 0],
        [0, 158, 115],
        [204, 121, 167],
        [86, 180, 233],
        [230, 159, 0],
        [110, 110, 110],
    ],
    dtype=np.uint8,
)


def plot(series: Array, width: int = WIDTH, height: int = HEIGHT) -> Array:
    """The channels of a series as lines of different colours on white.

    All channels share one scale. Of a long series, each column of pixels shows the
    range of its samples.

    Parameters
    ----------
    series : array (channels, length)
    width, height : int
        Of the image, in pixels.

    Returns
    -------
    array (height, width, 3) of uint8
    """
    image = np.full((height, width, 3), 255, np.uint8)
    low, high = float(series.min()), float(series.max())
    scale = (height - 1 - 2 * MARGIN) / (high - low) if high > low else 0.0
    middle = (height - 1) / 2
    for channel, values in enumerate(series):
        heights = MARGIN + (high - values.astype(np.float64)) * scale
        levels = heights if scale else np.full(len(values), middle)
        _draw(image, levels, COLOURS[channel % len(COLOURS)])
    return image


def _draw(image: Array, levels: Array, colour: Array) -> None:
    """Draw one line: `levels` are the rows of pixels of its samples."""
    height, width, _ = image.shape
    # At least four points per column, so that steep lines have no gaps in between.
    points = max(len(levels), 4 * width)
    at = np.linspace(0, len(levels) - 1, points)
    dense = np.interp(at, np.arange(len(levels)), levels)
    columns = np.minimum(np.arange(points) * width // points, width - 1)
    starts = np.searchsorted(columns, np.arange(width))
    tops = np.minimum.reduceat(dense, starts).round().astype(int)
    bottoms = np.maximum.reduceat(dense, starts).round().astype(int)
    # Neighbouring columns overlap.
    tops[1:] = np.minimum(tops[1:], bottoms[:-1])
    bottoms[1:] = np.maximum(bottoms[1:], tops[:-1])
    rows = np.arange(height)[:, None]
    image[(rows >= tops) & (rows <= bottoms)] = colour
