"""One HTML file from data, scripts and style; images on it are small and limited in
number.
"""

import io
import json
import re
from base64 import b64encode
from collections.abc import Callable
from contextlib import suppress
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any, TypeAlias

import numpy as np

from imprint.core import __version__
from imprint.core.errors import UnreadableInput, printable
from imprint.modalities import Modality
from imprint.report.html import ICON

Item: TypeAlias = dict[str, Any]  # JSON values by name
Items: TypeAlias = dict[int, Item]  # by the index of an input

WEB = files(__package__) / "web"
GENERATOR_TAG = b'<meta name="generator" content="imprint '
IMPORT = re.compile(r'^import .*? from "\./(\w+)\.js";\n', re.MULTILINE)
SCRIPT_ESCAPES = str.maketrans(
    {character: f"\\u{ord(character):04x}" for character in "&<>"}
)
"""Escapes by which JSON cannot end its HTML element."""
# Sizes are a matter of taste: a page of MAX_CONTENTS images is a few megabytes.
MAX_SIDE = 112  # pixels of an image
JPEG_QUALITY = 72
MAX_CONTENTS = 400  # images or texts on one page
MAX_TEXT_LENGTH = 240  # characters
MAX_PATH_LENGTH = 120  # characters


def document(
    title: str,
    lead: str,
    script: str,
    data: Item,
) -> str:
    """A page whose script reads the JSON in its element `data`; nothing in `data` is
    interpreted as markup.
    """
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return Template(_text("page.html")).substitute(
        title=escape(printable(title)),
        lead=escape(printable(lead)),
        version=escape(__version__),
        icon=ICON,
        style=_text("page.css") + _text("matrix.css"),
        data=text.translate(SCRIPT_ESCAPES),
        script=bundle(script),
    )


def is_page(path: Path) -> bool:
    """Whether imprint wrote this file, so that it may be replaced."""
    with open(path, "rb") as f:
        return GENERATOR_TAG in f.read(2000)


def bundle(script: str) -> str:
    """A module after the modules that it imports, as one script without import
    statements.
    """
    modules = [script]
    for module in modules:  # the list grows: what a module imports comes after it
        modules += IMPORT.findall(_text(f"{module}.js"))
    texts = [_text(f"{module}.js") for module in dict.fromkeys(reversed(modules))]
    return "\n".join(IMPORT.sub("", text).replace("\nexport ", "\n") for text in texts)


def _text(name: str) -> str:
    return (WEB / name).read_text("utf-8")


def with_contents(
    items: Items,
    inputs: Callable[[int], Any],
    kind: Modality,
) -> Items:
    """The items of a page, by the index of an input; the first ones with the image or
    text of the input.
    """
    for i in list(items)[:MAX_CONTENTS]:
        with suppress(UnreadableInput):  # it was deleted after it was embedded
            items[i] |= content(inputs(i), kind)
    return items


def content(item: Any, kind: Modality) -> dict[str, str]:
    """An input as a page shows it: a text, or a small image as a data URI; nothing
    for sounds and embeddings.
    """
    from PIL import Image

    shown = kind.show(item)
    if shown is None:
        return {}
    if isinstance(shown, str):
        return {"text": printable(shown, MAX_TEXT_LENGTH)}
    image = Image.fromarray(np.ascontiguousarray(shown))
    if image.mode not in ("L", "RGB"):
        image = image.convert("RGB")  # JPEG has no transparency
    # Drawings as small as digits are clearer, and no larger, without compression
    # artefacts.
    format = "png" if max(image.size) <= MAX_SIDE // 2 else "jpeg"
    image.thumbnail((MAX_SIDE, MAX_SIDE))
    out = io.BytesIO()
    image.save(out, format, quality=JPEG_QUALITY)
    encoded = b64encode(out.getvalue()).decode()
    return {"image": f"data:image/{format};base64,{encoded}"}


def shortened(path: str) -> str:
    """A printable path; a long one loses its middle."""
    text = printable(path, 10_000)
    if len(text) <= MAX_PATH_LENGTH:
        return text
    # The end of a path, its name, says more than its middle.
    half = MAX_PATH_LENGTH // 2
    return f"{text[: half - 1]}…{text[-half:]}"
