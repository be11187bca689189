"""The value of an explanation, and its figures."""

import os
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from imprint.core.arrays import Array
from imprint.core.errors import ParameterError
from imprint.core.files.atomic import atomic_write
from imprint.explanation import drawing

if TYPE_CHECKING:
    from PIL.Image import Image

Label: TypeAlias = Any
Box: TypeAlias = tuple[float, float, float, float]
"""Left, top, right and bottom, as shares of the width and the height of an image."""

WHOLE: Box = (0.0, 0.0, 1.0, 1.0)
CLOSED_FORM = "closed form"
LEFT_OUT = "each part left out"
OVERLAY_SIDE = 112  # pixels of a small overlay, which is smooth when it is enlarged


@dataclass(frozen=True, eq=False, kw_only=True)
class Explanation:
    """What each part of an input adds to the score of a class minus that of another.

    Parameters
    ----------
    values : array (height, width) or (n,)
        The contribution of each place of an image, or of each of the `names`: positive
        for `label`, negative for `against`.
    label : label
        The class that is explained.
    against : label or None
        The class that it is compared with; None for tags and models of one class.
    method : str
        `closed form`, or `each part left out`.
    box : tuple of float
        The part of an image that the map covers: left, top, right and bottom, as shares
        of its width and height.
    names : tuple of str
        The words of a text, or the times of a sound or a series.
    unmapped : tuple of str
        Blocks of the embedding that have no places; the map lacks their contribution.
    image : array (h, w) or (h, w, 3), optional
        The image that is explained.
    """

    values: Array
    label: Label
    against: Label
    method: str
    box: Box = WHOLE
    names: tuple[str, ...] = ()
    unmapped: tuple[str, ...] = ()
    image: Array | None = None

    @property
    def title(self) -> str:
        """What is shown, such as `for cat, against dog`."""
        if self.against is None:
            return f"for {self.label}"
        return f"for {self.label}, against {self.against}"

    @property
    def size(self) -> tuple[int, int]:
        """The width and the height of the image."""
        if self.image is None:
            raise ParameterError("Only the explanation of an image is a map.")
        return self.image.shape[1], self.image.shape[0]

    @property
    def strengths(self) -> Array:
        """The values relative to the largest, from -1 to 1."""
        return drawing.relative(self.values)

    def map(self, size: tuple[int, int] | None = None) -> Array:
        """The values at each pixel of the image, or of another size (width, height);
        NaN where the network does not see it.  # (height, width)
        """
        from PIL import Image

        width, height = self.size if size is None else size
        left, right = (round(share * width) for share in self.box[::2])
        top, bottom = (round(share * height) for share in self.box[1::2])
        # A narrow image has at least one column.
        seen_size = max(1, right - left), max(1, bottom - top)
        small = Image.fromarray(self.values.astype(np.float32))
        large = small.resize(seen_size, Image.Resampling.BICUBIC)
        seen = np.asarray(large, dtype=np.float64)
        pixels = np.full((height, width), np.nan)
        visible = pixels[top : top + seen_size[1], left : left + seen_size[0]]
        visible[:] = seen[: visible.shape[0], : visible.shape[1]]
        return pixels

    def overlay(self, size: tuple[int, int] | None = None) -> Array:
        """Colours to lay over the image: orange speaks for the class, violet against
        it.  # (height, width, 4) uint8
        """
        # What the network does not see stays transparent.
        values = np.nan_to_num(self.map(size))
        return drawing.coloured(values)

    def overlay_uri(self) -> str:
        """A small transparent PNG of the overlay, as a data URI, to be stretched over
        the image.
        """
        from PIL import Image

        width, height = self.size
        scale = OVERLAY_SIDE / max(width, height)
        size = max(1, round(width * scale)), max(1, round(height * scale))
        overlay = Image.fromarray(self.overlay(size), "RGBA")
        # Few colours make a file of a few kilobytes.
        small = overlay.quantize(drawing.MAX_COLOURS, Image.Quantize.FASTOCTREE)
        return drawing.data_uri(small)

    def figure(self) -> "Image":
        """The image with the overlay, as a Pillow image."""
        from PIL import Image

        if self.image is None:
            raise ParameterError("figure(): words and times are drawn by html().")
        below = Image.fromarray(self.image).convert("RGBA")
        above = Image.fromarray(self.overlay(), "RGBA")
        return Image.alpha_composite(below, above).convert("RGB")

    def html(self) -> str:
        """The figure as HTML: the image, or the words and times on grounds of their
        colours.
        """
        if self.image is None:
            return drawing.marked(self.names, self.values)
        source = drawing.data_uri(self.figure())
        return f'<img alt="{escape(self.title)}" src="{source}">'

    # Notebooks show an explanation by this name.
    _repr_html_ = html

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the figure: a PNG file for an image, an HTML page for words and
        times.
        """
        if self.image is None:
            content = drawing.page(self.title, self.html()).encode()
        else:
            content = drawing.png(self.figure())
        with atomic_write(path) as f:
            f.write(content)

    @property
    def suffix(self) -> str:
        """The suffix of a file with the figure."""
        return ".html" if self.image is None else ".png"
