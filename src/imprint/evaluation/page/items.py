"""Pictures and texts on a page: small, and a limited number of them."""

import io
from base64 import b64encode
from collections.abc import Callable
from typing import Any

import numpy as np

from imprint import modalities
from imprint.core.errors import UnreadableInput, printable
from imprint.core.types import Array
from imprint.evaluation.labelled_rows import LabelledRows

SIDE = 112  # pixels
MAX_CONTENTS = 400
"""Maximum number of pictures or texts on one page, so that it stays a few megabytes."""
MAX_TEXT = 240  # characters
MAX_PATH = 120  # characters


class PageItems:
    """The rows on a page, each once: name, label, further facts, and the picture or text up to the maximum."""

    def __init__(self, rows: LabelledRows, facts: Callable[[int], dict[str, Any]] = lambda i: {}):
        self.rows, self.facts, self.room = rows, facts, MAX_CONTENTS
        self.items: list[dict[str, Any]] = []
        self._index: dict[int, int] = {}

    def index(self, i: int) -> int:
        """The index in `items` of a row."""
        if i not in self._index:
            self._index[i] = len(self.items)
            item = {"name": shortened(self.rows.relative(self.rows.paths[i])), "label": printable(self.rows.y[i])}
            self.items.append({**item, **self.facts(i), **self._content(i)})
        return self._index[i]

    def _content(self, i: int) -> dict[str, str]:
        if self.room <= 0:
            return {}
        self.room -= 1
        try:
            return content(self.rows.inputs(i), self.rows.modality)
        except UnreadableInput:  # it was deleted after it was embedded
            return {}


def content(item: Any, modality: str) -> dict[str, str]:
    """An input as a page shows it: a picture as a small data URI, or a text; nothing for sounds and embeddings."""
    shown = modalities.modality(modality).show(item)
    if shown is None:
        return {}
    return {"text": printable(shown, MAX_TEXT)} if isinstance(shown, str) else {"picture": thumbnail(shown)}


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
    """A printable path; a long one loses its middle."""
    text, half = printable(path, 10_000), MAX_PATH // 2
    return text if len(text) <= MAX_PATH else f"{text[: half - 1]}…{text[-half:]}"
