"""Data, scripts and style put together into one HTML file."""

import json
import re
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from imprint.core.printable import printable
from imprint.core.version import __version__

WEB = files(__package__) / "web"
IMPORT = re.compile(r"^import .*?;\n", re.MULTILINE)


def document(title: str, lead: str, scripts: Sequence[str], data: Any) -> str:
    """A page whose scripts find `data` in the element `data`; nothing in it is read as markup."""
    return Template(_text("page.html")).substitute(
        title=escape(printable(title)),
        lead=escape(printable(lead)),
        version=escape(__version__),
        style=_text("page.css"),
        data=_inert(json.dumps(data, allow_nan=False, separators=(",", ":"))),
        script=bundle(scripts),
    )


def bundle(names: Sequence[str]) -> str:
    """Modules as one script, in the order given: their imports go, and what they export stays."""
    return "\n".join(IMPORT.sub("", _text(f"{name}.js")).replace("\nexport ", "\n") for name in names)


def _text(name: str) -> str:
    return (WEB / name).read_text("utf-8")


def _inert(text: str) -> str:
    """JSON that cannot end the element it stands in."""
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
