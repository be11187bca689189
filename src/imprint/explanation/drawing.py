"""Colours and pages of explanations."""

import io
from base64 import b64encode
from collections.abc import Sequence
from html import escape
from string import Template
from typing import TYPE_CHECKING

import numpy as np

from imprint.core.arrays import Array

if TYPE_CHECKING:
    from PIL.Image import Image

# Orange and violet: apart in every kind of colour blindness (ColorBrewer, PuOr), and
# unlike most photographs.
FOR = (230, 97, 1)
AGAINST = (94, 60, 190)
MAX_ALPHA = 190  # of 255: the image stays visible below
MAX_SHADE = 0.75  # of the ground of a word, whose letters stay readable
MAX_COLOURS = 64  # of a small file; more are not told apart
PAGE = Template("""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src 'unsafe-inline'">
<title>$title</title>
<style>
body { font: 16px/1.9 system-ui, sans-serif; max-width: 46rem }
body { margin: 2rem auto; padding: 0 1rem }
mark { color: inherit; border-radius: .25rem; padding: .1rem .2rem }
</style>
<body><h1>$title</h1>
<p>$body</p>
</body>
</html>
""")


def relative(values: Array) -> Array:
    """Values relative to the largest, from -1 to 1."""
    largest = np.abs(values).max()
    if largest == 0:
        return np.zeros_like(values)
    return values / largest


def coloured(values: Array) -> Array:
    """Values as transparent colours, the largest the most opaque.  # (..., 4) uint8"""
    strengths = np.abs(relative(values))
    rgba = np.empty((*values.shape, 4), np.uint8)
    rgba[..., :3] = np.where((values > 0)[..., None], FOR, AGAINST)
    rgba[..., 3] = (MAX_ALPHA * strengths).round()
    return rgba


def marked(names: Sequence[str], values: Array) -> str:
    """Names as HTML, each on a ground of its colour."""
    parts = []
    for name, strength in zip(names, relative(values).tolist()):
        colour = FOR if strength > 0 else AGAINST
        channels = " ".join(map(str, colour))
        alpha = MAX_SHADE * abs(strength)
        ground = f"background: rgb({channels} / {alpha:.2f})"
        parts.append(f'<mark style="{ground}">{escape(name)}</mark>')
    return " ".join(parts)


def page(title: str, body: str) -> str:
    """A page with a title, and a body that is HTML already."""
    return PAGE.substitute(title=escape(title), body=body)


def png(image: "Image") -> bytes:
    """An image as the content of a PNG file."""
    out = io.BytesIO()
    image.save(out, "png", optimize=True)
    return out.getvalue()


def data_uri(image: "Image") -> str:
    """An image as the address of a PNG file that the address contains."""
    return f"data:image/png;base64,{b64encode(png(image)).decode()}"
