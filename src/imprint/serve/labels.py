"""Names of classes and files from users and programs: normalised, or refused in one sentence."""

import unicodedata
from collections.abc import Iterable
from typing import Any

from imprint.core.errors import ParameterError
from imprint.core.tree import SEPARATOR

LONGEST_LABEL = 100
LONGEST_NAME = 120
LONGEST_DESCRIPTION = 500


def clean_label(given: Any) -> str:
    """A label with its white space normalised. Labels that cannot name folders, one per level of a tree, are refused.

    >>> clean_label("  red  fox "), clean_label("animal / cat")
    ('red fox', 'animal/cat')
    """
    label = " ".join(unicodedata.normalize("NFC", given).split()) if isinstance(given, str) else ""
    if not label or len(label) > LONGEST_LABEL:
        raise ParameterError(f"The name of a class must have 1 to {LONGEST_LABEL} characters.")
    parts = [part.strip() for part in label.split(SEPARATOR)]
    if any(part[:1] in ("", ".") or any(c in '\\:*?"<>|' or not c.isprintable() for c in part) for part in parts):
        raise ParameterError(
            f"{label!r} cannot name a class, because it also names a folder: leave out leading dots and "
            '\\ : * ? " < > |, and put a slash only between the levels of a tree, as in animal/cat.'
        )
    return SEPARATOR.join(parts)


def clean_description(given: Any) -> str:
    """The description of a class with its white space normalised."""
    if not isinstance(given, str) or len(given) > LONGEST_DESCRIPTION:
        raise ParameterError(f"A description must be a text of at most {LONGEST_DESCRIPTION} characters.")
    return " ".join(given.split())


def clean_name(given: str, otherwise: str) -> str:
    """The last part of a file's name, without characters that file systems refuse.

    >>> clean_name("../../etc/pass wd.JPG", "picture"), clean_name("..", "picture")
    ('pass wd.JPG', 'picture')
    """
    last = given.replace("\\", "/").rsplit("/", 1)[-1]
    allowed = "".join(c for c in unicodedata.normalize("NFC", last) if c.isprintable() and c not in ':*?"<>|')
    return allowed.strip(" .")[-LONGEST_NAME:] if allowed.strip(" .") else otherwise


def check_leaf(label: str, classes: Iterable[str]) -> None:
    """Refuse a new class above or below another one: only leaves of a tree are classes."""
    for other in classes:
        if f"{other}/".startswith(f"{label}/") or f"{label}/".startswith(f"{other}/"):
            raise ParameterError(f"{label!r} cannot be a class, because {other!r} is one; rename that first.")
