"""Text from elsewhere, safe to show."""

import unicodedata

HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Kinds of characters that cannot be seen, or that change how others are shown."""


def printable(text: object, most: int = 500) -> str:
    r"""A name or label as people can read it: what cannot be seen is escaped, what is too long is cut.

    >>> print(printable("a\x1b[31m.png"), printable("\u202egnp.exe"), printable("x" * 9, most=5))
    a\x1b[31m.png \u202egnp.exe xxxx…
    """
    shown = "".join(_escaped(c) if unicodedata.category(c) in HIDDEN else c for c in str(text)[: most + 1])
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 65536 else f"\\U{code:08x}"
