"""Modalities: images, texts, sounds, time series and embeddings, one file each;
plug-ins add more.
"""

import os
from functools import cache

from imprint.core.component import Family
from imprint.core.extras import registered
from imprint.modalities._base import (
    Collection,
    InputParts,
    Modality,
    TableInputs,
    read_file,
)

__all__ = [
    "Collection",
    "InputParts",
    "Modality",
    "TableInputs",
    "builtin",
    "family",
    "modality",
    "of_file",
    "read_file",
]

family = Family(__name__, Modality)


@cache
def modality(name: str) -> Modality:
    """A modality by name."""
    return family.load(name)()


def builtin() -> list[Modality]:
    """The modalities of the package, and not those of plug-ins."""
    return [modality(name) for name in family.builtin()]


def of_file(name: str | os.PathLike[str]) -> Modality | None:
    """The modality of a file, by its suffix."""
    return _of_suffix(os.path.splitext(os.fspath(name))[1].lower())


@cache
def _of_suffix(suffix: str) -> Modality | None:
    """The modality of a suffix; plug-ins are listed, which is slow, only if no built-in
    modality has it.
    """
    for list_names in (family.builtin, lambda: registered(family.package)):
        for kind in map(modality, list_names()):
            if suffix in kind.suffixes():
                return kind
    return None
