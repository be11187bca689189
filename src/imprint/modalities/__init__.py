"""Modalities: pictures, texts, sounds and embeddings, one file each; plug-ins add more."""

import os
from functools import cache
from itertools import chain

from imprint.core.extras import registered
from imprint.core.family import Family
from imprint.modalities._base import Modality, read_file

__all__ = ["Modality", "family", "modality", "of_file", "read_file"]

family = Family(__name__, Modality)


@cache
def modality(name: str) -> Modality:
    """A modality by name.

    >>> modality("image").count(2), modality("text").backbone
    ('2 pictures', 'minilm')
    """
    return family.load(name)()


def of_file(name: str | os.PathLike[str]) -> Modality | None:
    """The modality of a file, by its suffix.

    >>> of_file("cat.JPG").name, of_file("cat.xyz")
    ('image', None)
    """
    return _of_suffix(os.path.splitext(os.fspath(name))[1].lower())


@cache
def _of_suffix(suffix: str) -> Modality | None:
    """Installed entry points are listed only for a suffix that no built-in modality has."""
    everywhere = chain(family.builtin(), (name for name in registered(family.package)))
    return next((m for m in map(modality, everywhere) if suffix in m.suffixes()), None) if suffix else None
