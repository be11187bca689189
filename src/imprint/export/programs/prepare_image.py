"""Images as the graph takes them: resized exactly as imprint does, which uses Pillow.

Pillow resamples with integer weights and rounds after each direction. This does the
same with NumPy, so pixels that another program decoded need no Pillow.
"""

import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Pixels = NDArray[np.uint8]  # (height, width, channels)
Rule = Mapping[str, Any]  # "preprocess" in model.json

PRECISION = 22  # bits after the point of Pillow's weights
ONE = 2**PRECISION
# pixels on each side of the centre to which a filter gives weights
SUPPORT = {"box": 0.5, "bilinear": 1, "hamming": 1, "bicubic": 2, "lanczos": 3}
# in single precision, as Pillow states them
HAMMING = (float(np.float32(0.54)), float(np.float32(0.46)))


class Window(NamedTuple):
    """The resampling of one side of an image."""

    begin: int  # the part of the image that is resampled
    end: int
    total: int  # to how many values
    first: int  # the first of those that are used, and their number
    size: int


def read(path: str) -> Pixels:
    """A file as pixels in three colours: turned upright, on white if transparent."""
    from PIL import Image, ImageOps

    image = ImageOps.exif_transpose(Image.open(path))
    if image.mode.startswith("I"):  # 16 bits of grey
        grey = (np.asarray(image).astype(np.int64) + 128) // 257
        return np.repeat(grey.astype(np.uint8)[:, :, None], 3, axis=2)
    if image.has_transparency_data:
        colours = image.convert("RGBA")
        image = Image.new("RGB", colours.size, "white")
        image.paste(colours, mask=colours)
    return np.asarray(image.convert("RGB"))


def preparation(facts: Rule, folder: Path) -> Callable[[Pixels], Pixels]:
    """The function from pixels in three colours to the input of the graph."""
    rule = facts["preprocess"]
    return lambda pixels: prepared(pixels, rule)


def prepared(pixels: Pixels, rule: Rule) -> Pixels:
    """An image in three colours, brought to the size and colours of a rule."""
    if rule["colour"] == "grey":
        pixels = in_grey(pixels)
    height, width, _ = pixels.shape
    rows, columns = windows(height, width, rule)
    # The order matters, because the values between the two steps are rounded.
    # Newer versions of Pillow begin with the rows if many fewer of them remain.
    fewer_rows = height - rows.total
    fewer_columns = width - columns.total
    if rule["rows_first"] and fewer_rows > max(0, 2 * fewer_columns):
        short = resampled(pixels, rows, rule["filter"])
        return resampled_columns(short, columns, rule["filter"])
    narrow = resampled_columns(pixels, columns, rule["filter"])
    return resampled(narrow, rows, rule["filter"])


def in_grey(pixels: Pixels) -> Pixels:
    """The brightness of each pixel, as Pillow computes it."""
    brightness = pixels.astype(np.int64) @ np.array([19595, 38470, 7471])
    # rounded
    grey = (brightness + 0x8000) >> 16
    return grey.astype(np.uint8)[:, :, None]


def windows(height: int, width: int, rule: Rule) -> list[Window]:
    """How the rows and the columns of an image are resampled."""
    out = []
    shorter = min(height, width)
    for side, size in zip((height, width), rule["size"], strict=True):
        if rule.get("crop"):
            # a square in the middle
            length = max(1, int(rule["crop"] * shorter))
            begin = (side - length + 1) // 2
            out.append(Window(begin, begin + length, size, 0, size))
        elif rule.get("resize"):
            # the middle of the smaller image
            total = int(rule["resize"] * side / shorter)
            first = round((total - size) / 2)
            out.append(Window(0, side, total, first, size))
        else:
            out.append(Window(0, side, size, 0, size))
    return out


def resampled_columns(pixels: Pixels, window: Window, filter: str) -> Pixels:
    """An image whose columns are resampled."""
    turned = resampled(pixels.transpose(1, 0, 2), window, filter)
    return turned.transpose(1, 0, 2)


def resampled(pixels: Pixels, window: Window, filter: str) -> Pixels:
    """An image whose rows are resampled."""
    last = window.first + window.size
    scale = (window.end - window.begin) / window.total
    is_whole = window.end - window.begin == len(pixels)
    if is_whole and scale == 1:
        return pixels[window.first : last]
    if filter == "nearest":
        # added one by one, with the rounding of Pillow
        steps = [window.begin + 0.5 * scale] + [scale] * (window.total - 1)
        positions = np.cumsum(steps).astype(int)
        return pixels[positions[window.first : last]]
    out = np.empty((window.size, *pixels.shape[1:]), np.uint8)
    for i, (start, weights) in enumerate(weights_of(window, len(pixels), filter)):
        stop = start + len(weights)
        # whole numbers below 2^53 are exact
        sums = np.tensordot(weights, pixels[start:stop].astype(np.float64), axes=1)
        values = np.floor((sums + ONE / 2) / ONE)
        out[i] = values.clip(0, 255)
    return out


@lru_cache(maxsize=16)  # images of one size share their weights
def weights_of(
    window: Window, length: int, filter: str
) -> list[tuple[int, NDArray[np.float64]]]:
    """For each value that is used: its first pixel, and the weights of it and the next
    ones as whole numbers.
    """
    weights = []
    scale = (window.end - window.begin) / window.total
    # the filter grows with the factor by which an image shrinks
    stretch = max(scale, 1.0)
    support = SUPPORT[filter] * stretch
    for i in range(window.first, window.first + window.size):
        centre = window.begin + (i + 0.5) * scale
        start = max(0, int(centre - support + 0.5))
        stop = min(length, int(centre + support + 0.5))
        values = []
        for x in range(start, stop):
            values.append(kernel(filter, (x - centre + 0.5) * (1 / stretch)))
        whole = sum(values)
        scaled = np.array([value / whole * ONE for value in values])
        # away from zero at one half
        weights.append((start, np.trunc(scaled + np.copysign(0.5, scaled))))
    return weights


def kernel(filter: str, x: float) -> float:
    """The value of a filter of Pillow."""
    if filter == "box":
        return float(-0.5 < x <= 0.5)
    x = abs(x)
    if x >= SUPPORT[filter]:
        return 0.0
    if filter == "bilinear":
        return 1 - x
    if filter == "hamming":
        first, second = HAMMING
        return sinc(x) * (first + second * math.cos(math.pi * x))
    if filter == "lanczos":
        return sinc(x) * sinc(x / 3)
    # bicubic: one polynomial near the centre, another beyond
    if x < 1:
        return (1.5 * x - 2.5) * x * x + 1
    return (((x - 5) * x + 8) * x - 4) * -0.5


def sinc(x: float) -> float:
    """sin(pi x) / (pi x)."""
    if x == 0:
        return 1.0
    return math.sin(math.pi * x) / (math.pi * x)
