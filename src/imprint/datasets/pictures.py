"""Pictures of every kind become uint8 RGB."""

import io
import os
import stat
import struct
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import BinaryIO

import numpy as np
from PIL import (
    AvifImagePlugin,
    BmpImagePlugin,
    GifImagePlugin,
    Image,
    ImageOps,
    JpegImagePlugin,
    PngImagePlugin,
    PpmImagePlugin,
    TiffImagePlugin,
    WebPImagePlugin,
    features,
)

from imprint.core.types import Array
from imprint.datasets.split import UnreadableInput

MOST_PIXELS = 1 << 26
"""The largest picture that is decoded whole, 67 million pixels; larger JPEGs are decoded at 1/2, 1/4 or 1/8."""
LONGEST_SIDE = 1 << 18  # pixels; Pillow keeps a pointer for every row
STRIP = 1 << 22  # pixels that are converted at once
_PLUGINS = {
    "JPEG": (JpegImagePlugin.JpegImageFile, (".jpg", ".jpeg", ".jpe", ".jfif")),
    "PNG": (PngImagePlugin.PngImageFile, (".png",)),
    "GIF": (GifImagePlugin.GifImageFile, (".gif",)),
    "BMP": (BmpImagePlugin.BmpImageFile, (".bmp",)),
    "TIFF": (TiffImagePlugin.TiffImageFile, (".tif", ".tiff")),
    "PPM": (PpmImagePlugin.PpmImageFile, (".ppm", ".pgm", ".pbm", ".pnm")),
    "WEBP": (WebPImagePlugin.WebPImageFile, (".webp",)),
    "AVIF": (AvifImagePlugin.AvifImageFile, (".avif",)),
}
HEIF_SUFFIXES = (".heic", ".heif", ".hif")
_CODECS = {"JPEG": "jpg", "PNG": "zlib", "WEBP": "webp", "AVIF": "avif"}
_DAMAGE = (
    OSError,
    EOFError,
    SyntaxError,
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    AttributeError,
    ArithmeticError,
    MemoryError,
    NotImplementedError,
    RuntimeError,
    struct.error,
    zlib.error,
    Image.DecompressionBombError,
    UserWarning,
)
"""What Pillow's decoders raise on damaged files."""
_WORDLESS = (struct.error, TypeError, LookupError, AttributeError)
"""Those of them whose words speak of Python and not of the file."""


@cache
def formats() -> tuple[str, ...]:
    """The formats that are read: those of our list that the installed Pillow was built with, and HEIF by its extra."""
    built = tuple(f for f in _PLUGINS if f not in _CODECS or features.check(_CODECS[f]))
    return (*built, "HEIF") if _has_heif() else built


@cache
def suffixes() -> frozenset[str]:
    """The endings, in lower case, by which a folder's pictures are found."""
    return frozenset(s for f in formats() for s in (_PLUGINS[f][1] if f in _PLUGINS else HEIF_SUFFIXES))


def _has_heif() -> bool:
    """Make Pillow read HEIF, if the package for it is installed."""
    try:
        import pillow_heif
    except ImportError:
        return False
    pillow_heif.register_heif_opener()
    return True


def read_picture(source: str | os.PathLike[str] | bytes, least_side: int | None = None) -> Array:
    """A picture as uint8 RGB, (height, width, 3), as a viewer would show it on white.

    EXIF rotation is applied; transparency is laid on white; 16-bit grey is scaled to 8 bits; of an animation the
    first frame is taken; colour profiles are ignored. With `least_side`, a JPEG may be decoded at 1/2, 1/4 or 1/8
    as long as no side falls below it, which is faster. What cannot be read raises `UnreadableInput`.
    """
    name = "the given bytes" if isinstance(source, bytes) else os.fspath(source)
    try:
        with _file(source) as file, _open(file) as image:
            _shrink(image, file, least_side)
            return _rgb(image)
    except _RefusedError as e:
        raise UnreadableInput(name, str(e)) from None
    except _DAMAGE as e:
        said = getattr(e, "strerror", None) or str(e)
        reason = said if said and not isinstance(e.__cause__ or e, _WORDLESS) else "the file is damaged"
        raise UnreadableInput(name, reason.splitlines()[0].rstrip(".")) from None


class _RefusedError(Exception):
    """The picture is whole, but we do not read it."""


def _file(source: str | os.PathLike[str] | bytes) -> BinaryIO:
    if isinstance(source, bytes):
        return io.BytesIO(source)
    path = Path(source)
    if not stat.S_ISREG(path.stat().st_mode):  # a pipe would wait for ever
        raise _RefusedError("not a file")
    return open(path, "rb")


def _open(file: BinaryIO) -> Image.Image:
    """The picture with its header read; Pillow's own limit on pixels, a global, stays out of it."""
    head = file.read(32)
    if not head:
        raise _RefusedError("the file is empty")
    for name in formats():
        accept = Image.OPEN[name][1]
        if accept is None or accept(head) is True:
            file.seek(0)
            open_picture: Callable[[BinaryIO], Image.Image] = Image.OPEN[name][0]  # type: ignore[assignment]
            return open_picture(file)
    raise _RefusedError(f"not a picture ({', '.join(formats())})")


def _shrink(image: Image.Image, file: BinaryIO, least_side: int | None) -> None:
    """Ask the JPEG decoder for fewer pixels where needed or wanted; refuse what stays too large."""
    width, height = image.size
    huge = width * height > MOST_PIXELS
    scale = 1
    while width * height > MOST_PIXELS * scale**2:
        scale *= 2
    while least_side is not None and scale < 8 and min(width, height) // (2 * scale) >= least_side:
        scale *= 2
    if 1 < scale <= 8 and image.format == "JPEG" and (not huge or _in_one_scan(file)):
        image.draft(None, (width // scale, height // scale))
    if max(image.size) > LONGEST_SIDE:
        raise _RefusedError(f"{width} x {height} pixels; the limit of a side is {LONGEST_SIDE:,}")
    if image.size[0] * image.size[1] > MOST_PIXELS:
        raise _RefusedError(f"{width} x {height} pixels; the limit is {MOST_PIXELS:,}, except for sequential JPEGs")


def _in_one_scan(file: BinaryIO) -> bool:
    """Whether a JPEG is decoded row by row; progressive ones keep all coefficients in memory."""
    place = file.tell()
    try:
        file.seek(2)
        components = 0
        while (marker := file.read(4)) and len(marker) == 4:
            kind, length = marker[1], int.from_bytes(marker[2:], "big")
            body = file.read(length - 2)
            if kind in (0xC0, 0xC1):
                components = body[5]
            elif kind == 0xDA:
                return components == body[0]
            elif 0xC2 <= kind <= 0xCF and kind not in (0xC4, 0xC8, 0xCC):
                return False
        return False
    finally:
        file.seek(place)


def _rgb(image: Image.Image) -> Array:
    """The decoded pixels, converted in strips so that a large picture needs little more than its own size."""
    image.load()
    ImageOps.exif_transpose(image, in_place=True)
    width, height = image.size
    rows = max(1, STRIP // width)
    if rows >= height:
        return _convert(image)
    out = np.empty((height, width, 3), dtype=np.uint8)
    for top in range(0, height, rows):
        out[top : top + rows] = _convert(image.crop((0, top, width, min(height, top + rows))))
    return out


def _convert(image: Image.Image) -> Array:
    if image.mode == "F" or image.mode.startswith("I"):
        return np.repeat(_grey(image)[:, :, None], 3, axis=2)
    if image.has_transparency_data:
        colours = image.convert("RGBA")
        image = Image.new("RGB", colours.size, "white")
        image.paste(colours, mask=colours)
    return np.array(image if image.mode == "RGB" else image.convert("RGB"))


def _grey(image: Image.Image) -> Array:
    """Grey values of 16 bits as the nearest of 8 bits: 65535 is white."""
    values = np.asarray(image)
    if image.mode == "F" or values.min() < 0 or values.max() > 65535:
        raise _RefusedError("its samples of 32 bits have no stated range")
    table: Array = np.rint(np.arange(65536) / 257).astype(np.uint8)
    return np.take(table, values)
