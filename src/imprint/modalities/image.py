import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar

import numpy as np

from imprint.core.arrays import Array
from imprint.core.errors import OutOfMemoryError, ParameterError, UnreadableInput
from imprint.core.extras import install_hint
from imprint.core.memory import DecodingBudget, usable_memory
from imprint.modalities._base import InputParts, Modality, refused

if TYPE_CHECKING:
    from PIL.Image import Image as PilImage

# of an image that is decoded at full size; larger JPEGs are decoded at 1/2, 1/4 or 1/8
MAX_PIXELS = 1 << 26
MAX_SIDE = 1 << 18  # pixels; Pillow keeps a pointer for every row
STRIP_PIXELS = 1 << 22  # that are converted at once
# memory to decode one pixel: Pillow keeps 4 bytes, the array takes 3; WebP and JPEG
# decoders need up to 8 more for themselves
BYTES_PER_PIXEL = 16
# what Pillow says if the decoder of WebP, which knows the size, cannot be created
NO_DECODER = "could not create decoder object"
# Pixels that all threads decode at once take an eighth of the memory; one image of
# the maximum size is always possible.
DECODING = DecodingBudget(max(MAX_PIXELS, usable_memory() // 8 // BYTES_PER_PIXEL))
FORMATS = {  # name: Pillow's plug-in, the library that it needs, suffixes
    "JPEG": ("Jpeg", "jpg", (".jpg", ".jpeg", ".jpe", ".jfif")),
    "PNG": ("Png", "zlib", (".png",)),
    "GIF": ("Gif", None, (".gif",)),
    "BMP": ("Bmp", None, (".bmp",)),
    "TIFF": ("Tiff", None, (".tif", ".tiff")),
    "PPM": ("Ppm", None, (".ppm", ".pgm", ".pbm", ".pnm")),
    "WEBP": ("WebP", "webp", (".webp",)),
    "AVIF": ("Avif", "avif", (".avif",)),
}
GRID = 7  # places per side that are covered in turn, to see what they contribute
SIGNATURE_BYTES = 32  # at the beginning of a file, enough to tell its format
# tags of TIFF files
BITS_PER_SAMPLE = 258
MAX_SAMPLE_VALUE = 281
WHITE = 65_535  # of 16 bits
TWELVE_BITS = 1 << 12  # the number of values
# recognised without their extra too, so that an error names it
HEIF_SUFFIXES = (".heic", ".heif", ".hif")
HEIF_BRANDS = (b"heic", b"heix", b"hevc", b"mif1", b"msf1")


@dataclass(frozen=True, kw_only=True)
class Image(Modality):
    """Images: files, bytes, Pillow images, or uint8 arrays (height, width) and
    (height, width, 3).
    """

    noun: ClassVar[str] = "image"
    backbone: ClassVar[str | None] = "efficientnet_lite0"

    def suffixes(self) -> frozenset[str]:
        return frozenset(HEIF_SUFFIXES).union(
            *(FORMATS[name][2] for name in formats() if name in FORMATS)
        )

    def read(self, raw: bytes) -> Array:
        return read_image(raw)

    def pixels(self, raw: bytes) -> int:
        with _decoding(), io.BytesIO(raw) as file, _open(file) as image:
            return int(image.size[0] * image.size[1])

    def suffix_of(self, raw: bytes) -> str:
        format_name = _format(raw[:SIGNATURE_BYTES])
        if format_name == "HEIF":
            return HEIF_SUFFIXES[0]
        return "" if format_name is None else FORMATS[format_name][2][0]

    def convert(self, value: Any) -> Array:
        if hasattr(value, "getexif") and hasattr(value, "convert"):  # a Pillow image
            with _decoding():
                return _rgb(value.copy())
        if is_image(value):
            return np.asarray(value)
        what = (
            f"{value.dtype} array of shape {value.shape}"
            if isinstance(value, np.ndarray)
            else type(value).__name__
        )
        forms = "a path, bytes, a Pillow image or a uint8 array (height, width[, 3])"
        raise ParameterError(f"An image must be {forms}, not {what}.")

    def recognises(self, value: Any) -> bool:
        is_file = isinstance(value, bytes) and not value.startswith(b"RIFF")
        return is_file or hasattr(value, "getexif") or is_image(value)

    def listed(self, values: Any) -> Sequence[Any]:
        """An array (height, width, 3) is one image, (n, height, width[, 3]) are
        several.
        """
        if isinstance(values, np.ndarray) and values.ndim < 3:
            rule = (
                "Images in one array must be (n, height, width[, 3]), not of shape"
                f" {values.shape}"
            )
            raise ParameterError(f"{rule}; give one grey image as a list: [image].")
        is_one = (
            isinstance(values, np.ndarray)
            and values.ndim == 3
            and values.shape[2] == 3
            and values.size
        )
        return (
            [values] if is_one or hasattr(values, "getexif") else super().listed(values)
        )

    def show(self, item: Any) -> Array:
        return np.asarray(item)

    def parts(self, item: Any) -> InputParts:
        """A grid, each place of which can have the mean colour of the image."""
        image = np.asarray(item)
        sides = [min(GRID, side) for side in image.shape[:2]]
        rows, columns = (
            np.linspace(0, side, parts + 1).round().astype(int)
            for side, parts in zip(image.shape, sides)
        )
        colour = image.mean(axis=(0, 1)).round().astype(np.uint8)

        def without(place: int) -> Array:
            i, j = divmod(place, sides[1])
            covered = image.copy()
            covered[rows[i] : rows[i + 1], columns[j] : columns[j + 1]] = colour
            return covered

        return InputParts((sides[0], sides[1]), (), without)

    def sample(self, size: int) -> list[Any]:
        """Images of 500 x 375 pixels."""
        return [
            np.random.default_rng(0).integers(0, 256, (375, 500, 3), dtype=np.uint8)
        ] * size


def is_image(value: Any) -> bool:
    """Whether a value is an image as an array: uint8, (height, width) or (height,
    width, 3), not empty.
    """
    is_array = (
        isinstance(value, np.ndarray) and value.dtype == np.uint8 and value.size > 0
    )
    return is_array and (value.ndim == 2 or (value.ndim == 3 and value.shape[2] == 3))


@cache
def formats() -> tuple[str, ...]:
    """The supported formats: those of the installed Pillow, and HEIF with its extra."""
    from PIL import features

    for plugin, _, _ in FORMATS.values():
        import_module(f"PIL.{plugin}ImagePlugin")  # registers its format
    available = tuple(
        name
        for name, (_, library, _) in FORMATS.items()
        if library is None or features.check(library)
    )
    try:
        import pillow_heif
    except ImportError:
        return available
    pillow_heif.register_heif_opener()
    return (*available, "HEIF")


def read_image(raw: bytes, least_side: int | None = None) -> Array:
    """An image as uint8 RGB, (height, width, 3).

    EXIF rotation is applied. Transparent images are composited on white. 16-bit grey
    is scaled to 8 bits. The first frame of an animation is used. Colour profiles are
    ignored. With `least_side`, a JPEG may be decoded at 1/2, 1/4 or 1/8 of its size,
    which is faster, as long as no side becomes shorter. Other bytes raise
    `UnreadableInput`.
    """
    with _decoding(), io.BytesIO(raw) as file, _open(file) as image:
        _shrink(image, file, least_side)
        width, height = image.size
        with DECODING.holding():
            DECODING.take(width * height)
            try:
                return _rgb(image)
            except UnreadableInput:
                raise
            except Exception:
                _check_memory(width * height)
                raise


def _check_memory(pixels: int) -> None:
    """Raise an error if the memory to decode so many pixels is lacking.

    Of a decoder that failed, this tells a lack of memory from damage: some decoders
    report both alike.
    """
    try:
        np.empty(pixels * BYTES_PER_PIXEL, dtype=np.uint8)
    except MemoryError:
        raise OutOfMemoryError(
            f"There is not enough memory to decode {pixels / 1e6:.0f} million pixels."
        ) from None


@contextmanager
def _decoding() -> Iterator[None]:
    """Report an image that cannot be decoded: decoders of other libraries raise any
    exception on a damaged file.
    """
    try:
        yield
    except (UnreadableInput, OutOfMemoryError):
        raise
    except MemoryError:
        raise OutOfMemoryError(
            "There is not enough memory to decode this image."
        ) from None
    except Exception as e:
        if NO_DECODER in str(e):
            _check_memory(MAX_PIXELS)
        reason = (
            str(e).splitlines()[0].rstrip(".")
            if isinstance(e, OSError) and str(e)
            else "the file is damaged"
        )
        raise refused(f"not a readable image ({reason})") from None


def _open(file: BinaryIO) -> "PilImage":
    """The image with its header read; does not use Pillow's limit on pixels, which is
    global.
    """
    import PIL.Image

    signature = file.read(SIGNATURE_BYTES)
    if not signature:
        raise refused("the file is empty")
    name = _format(signature)
    if name is not None:
        file.seek(0)
        return PIL.Image.OPEN[name][0](file, "")
    if signature[4:8] == b"ftyp" and signature[8:12] in HEIF_BRANDS:
        raise refused(f"HEIC images need an extra: {install_hint('heic')}")
    raise refused(f"not an image ({', '.join(formats())})")


def _format(signature: bytes) -> str | None:
    """The format of a file that begins like this; None if it is not an image."""
    import PIL.Image

    for name in formats():
        accept = PIL.Image.OPEN[name][1]
        if accept is None or accept(signature) is True:
            return name
    return None


def _shrink(image: "PilImage", file: BinaryIO, least_side: int | None) -> None:
    """Let the JPEG decoder scale the image down if needed or allowed; refuse a
    image that is still too large.
    """
    width, height = image.size
    is_too_large = width * height > MAX_PIXELS
    scale = 1
    while width * height > MAX_PIXELS * scale**2:
        scale *= 2
    while (
        least_side is not None
        and scale < 8
        and min(width, height) // (2 * scale) >= least_side
    ):
        scale *= 2
    if (
        1 < scale <= 8
        and image.format == "JPEG"
        and (not is_too_large or _has_one_scan(image, file))
    ):
        image.draft(None, (width // scale, height // scale))
    if max(image.size) > MAX_SIDE:
        raise refused(f"{width} x {height} pixels; the limit of a side is {MAX_SIDE:,}")
    if image.size[0] * image.size[1] > MAX_PIXELS:
        raise refused(
            f"{width} x {height} pixels; the limit is {MAX_PIXELS:,}, except for"
            " sequential JPEGs"
        )


def _has_one_scan(image: Any, file: BinaryIO) -> bool:
    """Whether a JPEG is decoded row by row; otherwise all coefficients are kept in
    memory.

    Pillow has read the file up to the end of the header of the first scan. That scan
    must hold all components.
    """
    length, end = 6 + 2 * image.layers, file.tell()
    file.seek(max(end - length - 2, 0))
    header = file.read(5)
    file.seek(end)
    return "progressive" not in image.info and header == b"\xff\xda\0" + bytes(
        [length, image.layers]
    )


def _rgb(image: "PilImage") -> Array:
    """The pixels as RGB, converted in strips: a large image then needs little more
    memory than its own size.
    """
    from PIL import ImageOps

    image.load()
    ImageOps.exif_transpose(image, in_place=True)
    white = _white(image)
    width, height = image.size
    rows = max(1, STRIP_PIXELS // width)
    if rows >= height:
        return _convert(image, white)
    out = np.empty((height, width, 3), dtype=np.uint8)
    for top in range(0, height, rows):
        strip = image.crop((0, top, width, min(height, top + rows)))
        out[top : top + rows] = _convert(strip, white)
    return out


def _white(image: "PilImage") -> int:
    """The sample of 16 bits that is white.

    Cameras of 12 bits write TIFF files of 16 bits, whose images would be almost
    black. Such a file is refused unless it states its largest sample.
    """
    tags = getattr(image, "tag_v2", {})  # of a TIFF file
    if max(tags.get(BITS_PER_SAMPLE, (8,))) != 16:
        return WHITE
    is_grey = image.mode.startswith("I")
    largest = _largest_sample(image)
    stated = tags.get(MAX_SAMPLE_VALUE)
    if stated is not None and is_grey:
        white = max(stated) if isinstance(stated, tuple) else stated
        if not max(largest, 1) <= white <= WHITE:
            raise refused(f"its largest sample is {largest}, and it states {white}")
        return int(white)
    # of colours, Pillow keeps the upper 8 bits
    if 0 < largest < (TWELVE_BITS if is_grey else TWELVE_BITS >> 8):
        raise refused(
            f"all its samples of 16 bits are below {TWELVE_BITS:,}, as those of 12 bits"
            " are, and no largest value is stated; save it with 8 bits"
        )
    return WHITE


def _largest_sample(image: "PilImage") -> int:
    """The largest sample of an image, over all its channels."""
    return int(np.asarray(image).max())


def _convert(image: "PilImage", white: int) -> Array:
    if image.mode == "F" or image.mode.startswith("I"):
        grey = np.asarray(image)
        if image.mode == "F" or grey.min() < 0 or grey.max() > 65535:
            raise refused("its samples of 32 bits have no stated range")
        # to 8 bits: white becomes 255
        scaled = np.multiply(grey, 255, dtype=np.int32)
        rounded = (scaled + white // 2) // white
        return np.repeat(rounded.astype(np.uint8)[:, :, None], 3, axis=2)
    if image.has_transparency_data:
        from PIL.Image import new

        colours = image.convert("RGBA")
        image = new("RGB", colours.size, "white")
        image.paste(colours, mask=colours)
    return np.array(image if image.mode == "RGB" else image.convert("RGB"))
