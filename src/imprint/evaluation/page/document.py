"""One HTML file from data, scripts and style."""

import json
import re
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from imprint.core import __version__
from imprint.core.errors import printable
from imprint.report.html import ICON

WEB = files(__package__) / "web"
MARK = b'<meta name="generator" content="imprint '
IMPORT = re.compile(r"^import .*?;\n", re.MULTILINE)


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
