"""Text in Markdown."""

import re
from html import escape

# What Markdown would interpret; underscores within words are text. Pages of models show
# HTML in Markdown as it is, so that is escaped too.
MARKUP = re.compile(r"[\\`*\[\]|~]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")


def as_markdown(text: str) -> str:
    """A text of one line as Markdown that shows exactly this text, in tables too."""
    return MARKUP.sub(r"\\\g<0>", escape(text, quote=False))
