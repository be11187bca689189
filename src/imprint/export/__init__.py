"""Models for use without `imprint`: ONNX, safetensors for torch, or plain NumPy arrays."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from imprint.backbones import Backbone, Record
from imprint.backbones.backbone import extra
from imprint.core.errors import FileError, ParameterError
from imprint.core.family import unknown
from imprint.core.files import container
from imprint.core.files.atomic import atomic_write
from imprint.export.portable import MARK, Portable, portable, write_npz, write_safetensors
from imprint.imprinter import Imprinter
from imprint.imprinter.pretrained import from_parts

if TYPE_CHECKING:
    from imprint.classifier import ImprintClassifier

__all__ = ["SUFFIXES", "Exported", "check_target", "export", "export_file"]

SUFFIXES = {"onnx": ".onnx", "torch": ".safetensors", "numpy": ".npz"}
"""The formats and the suffixes of their files."""


class Exported(NamedTuple):
    """The contents of a written file."""

    path: Path
    to: str
    backbone: str | None
    """The name of the backbone if the file contains it; None if the file holds only the head."""
    model: Portable


def export(
    model: "Imprinter | ImprintClassifier",
    path: str | os.PathLike[str],
    to: str = "onnx",
    *,
    head_only: bool = False,
) -> Exported:
    """Write a fitted model as `onnx`, `torch` or `numpy`, atomically.

    An `Imprinter` becomes one ONNX graph, from pictures to scores, unless `head_only` is set. The other two formats
    hold only the head, which takes embeddings. Every file contains the class labels and instructions for its use.

    >>> import numpy as np, tempfile
    >>> from imprint import ImprintClassifier
    >>> model = ImprintClassifier(generator="mean").fit(np.eye(3), ["cat", "dog", "emu"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     exported = export(model, f"{folder}/head.npz", "numpy")
    ...     np.load(exported.path)["classes"].tolist()
    ['cat', 'dog', 'emu']
    """
    head = model.state.head if isinstance(model, Imprinter) else model.head_
    network = model.backbone if isinstance(model, Imprinter) and model.embedder.kind.needs_backbone else None
    content = portable(head, (network.record, network.fingerprint) if network else None)
    return _write(content, path, to, network if to == "onnx" and not head_only else None)


def export_file(
    source: str | os.PathLike[str],
    path: str | os.PathLike[str],
    to: str = "onnx",
    *,
    head_only: bool = False,
    backbone: str | None = None,
) -> Exported:
    """Export a saved model, as `export` does; the head alone does not need its backbone to be installed.

    `backbone` is the current path of the model's backbone, if the file has moved.
    """
    document, arrays = container.read(source)
    stated = document.get("backbone")
    if stated is not None and to == "onnx" and not head_only:
        return export(Imprinter.load(source, backbone=backbone), path, to)
    head = from_parts(document, arrays, source)
    try:
        origin = (Record.from_json(stated["record"]), str(stated["fingerprint"])) if stated else None
    except (KeyError, TypeError, ParameterError):
        raise container.foreign(source) from None
    return _write(portable(head, origin), path, to, None)


def check_target(path: Path, to: str) -> None:
    """Refuse a suffix that does not fit the format, and a file that exists but was not written by `export`."""
    if to not in SUFFIXES:
        raise unknown("format", to, SUFFIXES)
    if path.suffix != SUFFIXES[to]:
        raise FileError(f"Cannot write {path}: the name of a file for {to} must end in {SUFFIXES[to]}.")
    if path.is_file() and path.stat().st_size and MARK.encode() not in path.read_bytes():
        raise FileError(f"Cannot write {path}: it exists and is not an exported model; choose another name.")


def _write(model: Portable, path: str | os.PathLike[str], to: str, network: Backbone | None) -> Exported:
    target = Path(path)
    check_target(target, to)
    with atomic_write(target) as f:
        if to == "onnx":
            extra("onnx", "export", "export(to='onnx')")
            from imprint.export.onnx import write_onnx

            write_onnx(f, model, network)
        elif to == "torch":
            write_safetensors(f, model)
        else:
            write_npz(f, model)
    return Exported(target, to, network.record.name if network else None, model)
