"""Build one HTML file from data, scripts and style; pictures on it are small and limited in number."""

import io
import json
import re
from base64 import b64encode
from collections.abc import Callable, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from imprint import modalities
from imprint.core import __version__
from imprint.core.errors import UnreadableInput, printable
from imprint.core.types import Array
from imprint.evaluation.labelled_rows import LabelledRows
from imprint.report.html import ICON

WEB = files(__package__) / "web"
MARK = b'<meta name="generator" content="imprint '
IMPORT = re.compile(r"^import .*?;\n", re.MULTILINE)
SIDE = 112  # pixels
MAX_CONTENTS = 400
"""Maximum number of pictures or texts on one page, so that it stays a few megabytes."""
MAX_TEXT = 240  # characters
MAX_PATH = 120  # characters


def document(title: str, lead: str, scripts: Sequence[str], data: Any) -> str:
    """A page whose scripts read `data` from the element with this id; nothing in it is interpreted as markup."""
    return Template(_text("page.html")).substitute(
        title=escape(printable(title)),
        lead=escape(printable(lead)),
        version=escape(__version__),
        icon=ICON,
        style=_text("page.css"),
        data=_inert(json.dumps(data, allow_nan=False, separators=(",", ":"))),
        script=bundle(scripts),
    )


def is_page(path: Path) -> bool:
    """Whether imprint wrote this file, so that it may be replaced."""
    with open(path, "rb") as f:
        return MARK in f.read(2000)


def bundle(names: Sequence[str]) -> str:
    """Modules as one script, in the given order, without their import statements."""
    return "\n".join(IMPORT.sub("", _text(f"{name}.js")).replace("\nexport ", "\n") for name in names)


def _text(name: str) -> str:
    return (WEB / name).read_text("utf-8")


def _inert(text: str) -> str:
    """JSON that cannot end its element."""
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


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
        self.room -= 1
        try:
            return content(self.rows.inputs(i), self.rows.modality) if self.room >= 0 else {}
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
    format, out = "png" if max(image.size) <= SIDE // 2 else "jpeg", io.BytesIO()
    image.thumbnail((SIDE, SIDE))
    image.save(out, format, quality=72)
    return f"data:image/{format};base64,{b64encode(out.getvalue()).decode()}"


def shortened(path: str) -> str:
    """A printable path; a long one loses its middle."""
    text, half = printable(path, 10_000), MAX_PATH // 2
    return text if len(text) <= MAX_PATH else f"{text[: half - 1]}…{text[-half:]}"
