"""Pictures and texts as they appear on a page: small, and only so many."""

import io
from base64 import b64encode
from collections.abc import Callable
from typing import Any

import numpy as np

from imprint.core.errors import UnreadableInput
from imprint.core.printable import printable
from imprint.core.types import Array
from imprint.evaluation.rows import Rows

SIDE = 112  # pixels
MOST = 400
"""Pictures on one page, so that it stays a few megabytes."""
TEXT = 240  # characters of a text
PATH = 120  # characters of a path


class Shown:
    """What a page shows of rows, each once: name, label, further facts, and the picture or text while there is room."""

    def __init__(self, rows: Rows, facts: Callable[[int], dict[str, Any]] = lambda i: {}):
        self.rows, self.facts, self.left = rows, facts, MOST
        self.items: list[dict[str, Any]] = []
        self._places: dict[int, int] = {}

    def place(self, i: int) -> int:
        """The place in `items` of a row."""
        if i not in self._places:
            self._places[i] = len(self.items)
            item = {"name": shortened(self.rows.paths[i]), "label": printable(self.rows.y[i])}
            self.items.append({**item, **self.facts(i), **self._content(i)})
        return self._places[i]

    def _content(self, i: int) -> dict[str, str]:
        if self.left <= 0 or self.rows.modality not in ("image", "text"):
            return {}
        self.left -= 1
        try:
            return content(self.rows.inputs(i))
        except UnreadableInput:  # it could be read before, and has gone since
            return {}


def content(item: Any) -> dict[str, str]:
    """A picture as a small data URI, or a text."""
    return {"text": printable(item, TEXT)} if isinstance(item, str) else {"picture": thumbnail(item)}


def thumbnail(pixels: Array) -> str:
    """A picture of at most 112 x 112 pixels as a data URI."""
    from PIL import Image

    image = Image.fromarray(np.ascontiguousarray(pixels))
    image = image if image.mode in ("L", "RGB") else image.convert("RGB")
    small = max(image.size) <= SIDE // 2
    image.thumbnail((SIDE, SIDE))
    out = io.BytesIO()
    if small:
        image.save(out, "png")
    else:
        image.save(out, "jpeg", quality=72)
    return f"data:image/{'png' if small else 'jpeg'};base64,{b64encode(out.getvalue()).decode()}"


def shortened(path: str) -> str:
    """A path as people can read it; of a long one the end."""
    shown = printable(path, 10_000)
    return shown if len(shown) <= PATH else "…" + shown[1 - PATH :]
