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
    low = float(series.min())
    high = float(series.max())
    available = height - 1 - 2 * MARGIN
    for channel, values in enumerate(series):
        if high > low:
            relative = (high - values.astype(np.float64)) / (high - low)
            levels = MARGIN + relative * available
        else:
            levels = np.full(len(values), (height - 1) / 2)
        colour = COLOURS[channel % len(COLOURS)]
        _draw(image, levels, colour)
    return image


def _draw(image: Array, levels: Array, colour: Array) -> None:
    """Draw one line: `levels` are the rows of pixels of its samples."""
    height, width, _ = image.shape
    # At least four points per column, so that steep lines have no gaps in between.
    points = max(len(levels), 4 * width)
    samples = np.arange(len(levels))
    places = np.linspace(0, len(levels) - 1, points)
    dense = np.interp(places, samples, levels)
    column_of_point = np.arange(points) * width // points
    starts = np.searchsorted(column_of_point, np.arange(width))
    tops = np.minimum.reduceat(dense, starts)
    bottoms = np.maximum.reduceat(dense, starts)
    top = tops.round().astype(int)
    bottom = bottoms.round().astype(int)
    # Neighbouring columns overlap.
    top[1:] = np.minimum(top[1:], bottom[:-1])
    bottom[1:] = np.maximum(bottom[1:], top[:-1])
    rows = np.arange(height)[:, None]
    is_line = (rows >= top) & (rows <= bottom)
    image[is_line] = colour
