"""Model files that are opened: what they know of their classes becomes the start of a lesson."""

import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from imprint.backbones import Backbone
from imprint.core.errors import FileError
from imprint.core.files import container
from imprint.head import Head
from imprint.imprinter import exemplars
from imprint.persistence import head_from_parts
from imprint.serve.learnt import Basis
from imprint.serve.taught import clean_label


def check(raw: bytes, name: str, backbone: Backbone) -> list[str]:
    """The classes of a model file; refused where it is none, or was made with another network."""
    document, head, _ = _read(raw, name)
    stated = document["backbone"]
    if stated.get("fingerprint") != backbone.fingerprint:
        raise FileError(
            f"{name} was made with the backbone {stated.get('spec')}, and this page runs with {backbone.record.name}; "
            f"start the page with it: imprint serve {name}."
        )
    if head.dtype != np.float32:
        raise FileError(f"{name} was made from double-precision embeddings, which this page does not make.")
    labels = [str(label) for label in head.classes.tolist()]
    for label in labels:
        if clean_label(label) != label:
            raise FileError(f"{name} has a class {label!r}, whose name cannot be used here.")
    return labels


def basis(raw: bytes) -> Basis:
    """What an opened model knows, with labels as texts."""
    _, head, shelves = _read(raw, "the opened model")
    states = {str(label): state for label, state in zip(head.labels, head.states)}
    return Basis(head.method, head.seed, states, {str(label): shelf for label, shelf in shelves.items()})


def _read(raw: bytes, name: str) -> tuple[dict[str, Any], Head, dict[Any, exemplars.Exemplars]]:
    document, arrays = _unsealed(raw, name)
    if not isinstance(document.get("backbone"), dict):
        raise FileError(f"{name} is a classifier of embeddings, without a backbone; this page needs one with.")
    head = head_from_parts(document, arrays, name)
    try:
        return document, head, exemplars.from_parts(head, document["pictures"], arrays)
    except (KeyError, TypeError, ValueError):
        raise container.foreign(name) from None


def _unsealed(raw: bytes, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    with tempfile.TemporaryDirectory(prefix="imprint-") as folder:
        place = Path(folder) / "model.imprint"
        place.write_bytes(raw)
        try:
            return container.read(place)
        except FileError as e:
            raise FileError(str(e).replace(os.fspath(place), name)) from None
