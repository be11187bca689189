"""Models for use without `imprint`: ONNX, safetensors for torch, plain NumPy arrays, or
a folder with programs (`imprint.export.whole`).
"""

import json
import os
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

import numpy as np
from safetensors.numpy import save

from imprint.backbones import Backbone, Record
from imprint.core.errors import FileError, unknown
from imprint.core.extras import import_extra
from imprint.core.files import container
from imprint.core.files.atomic import atomic_write
from imprint.export.portable import MARK, Portable, portable
from imprint.export.whole import Whole, export_whole
from imprint.imprinter import Imprinter
from imprint.imprinter.state import ImprinterState

if TYPE_CHECKING:
    from imprint.classifier import ImprintClassifier

__all__ = [
    "SUFFIXES",
    "Exported",
    "Whole",
    "check_target",
    "export",
    "export_file",
    "export_whole",
]

SUFFIXES = {"onnx": ".onnx", "torch": ".safetensors", "numpy": ".npz"}
"""The formats and the suffixes of their files."""


class Exported(NamedTuple):
    """The contents of a written file."""

    path: Path
    to: str
    # the name of the backbone if the file contains it; None if the file holds only the
    # head
    backbone: str | None
    model: Portable


def export(
    model: "Imprinter | ImprintClassifier",
    path: str | os.PathLike[str],
    to: str = "onnx",
    *,
    head_only: bool = False,
) -> Exported:
    """Write a fitted model as `onnx`, `torch` or `numpy`, atomically.

    An `Imprinter` becomes one ONNX graph, from images to scores, unless `head_only`
    is set. The other two formats hold only the head, which takes embeddings. Every file
    contains the class labels and instructions for its use.
    """
    head = model.state.head if isinstance(model, Imprinter) else model.head_
    network = (
        model.backbone
        if isinstance(model, Imprinter) and model.embedder.kind.needs_backbone
        else None
    )
    content = portable(head, (network.record, network.fingerprint) if network else None)
    return _write(
        content, path, to, network if to == "onnx" and not head_only else None
    )


def export_file(
    source: str | os.PathLike[str],
    path: str | os.PathLike[str],
    to: str = "onnx",
    *,
    head_only: bool = False,
    backbone: str | None = None,
) -> Exported:
    """Export a saved model, as `export` does; the head alone does not need its backbone
    to be installed.

    `backbone` is the current path of the model's backbone, if the file has moved.
    """
    document, arrays = container.read(source)
    stated = document.get("backbone")
    if stated is not None and to == "onnx" and not head_only:
        return export(Imprinter.load(source, backbone=backbone), path, to)
    head = ImprinterState.from_parts(document, arrays, source).head
    with container.reading(source):
        origin = (
            (Record.from_json(stated["record"]), str(stated["fingerprint"]))
            if stated
            else None
        )
    return _write(portable(head, origin), path, to, None)


def check_target(path: Path, to: str) -> None:
    """Refuse a suffix that does not fit the format, and a file that exists but was not
    written by `export`.
    """
    if to not in SUFFIXES:
        raise unknown("format", to, SUFFIXES)
    if path.suffix != SUFFIXES[to]:
        raise FileError(
            f"Cannot write {path}: the name of a file for {to} must end in"
            f" {SUFFIXES[to]}."
        )
    if (
        path.is_file()
        and path.stat().st_size
        and MARK.encode() not in path.read_bytes()
    ):
        raise FileError(
            f"Cannot write {path}: it exists and is not an exported model; choose"
            " another name."
        )


def _write(
    model: Portable, path: str | os.PathLike[str], to: str, network: Backbone | None
) -> Exported:
    target = Path(path)
    check_target(target, to)
    with atomic_write(target) as f:
        if to == "onnx":
            import_extra("onnx", "export", "export(to='onnx')")
            from imprint.export.onnx import write_onnx

            write_onnx(f, model, network)
        elif to == "torch":
            _write_safetensors(f, model)
        else:
            _write_npz(f, model)
    return Exported(target, to, network.record.name if network else None, model)


def _write_npz(file: IO[bytes], model: Portable) -> None:
    """Write a .npz file: the arrays, `classes` (C,), `norm`, and the description as
    JSON.
    """
    texts = {
        "classes": model.about["classes"],
        "norm": model.about["norm"],
        MARK: json.dumps(model.about),
    }
    np.savez(
        file,
        allow_pickle=False,
        **model.arrays,
        **{name: np.array(text) for name, text in texts.items()},
    )


def _write_safetensors(file: IO[bytes], model: Portable) -> None:
    """Write a .safetensors file, with the description as metadata; this does not need
    torch.

    `weight` (p, d) is the state of `torch.nn.Linear` without a bias if each class has
    one proxy and the largest inner product wins. Otherwise `owners` (p,) and the arrays
    of the aggregator are stored too.
    """
    tensors = {
        name: np.ascontiguousarray(value) for name, value in model.arrays.items()
    }
    tensors["weight"] = tensors.pop("weights")
    if len(tensors["owners"]) == len(model.head):
        del tensors["owners"]
    file.write(save(tensors, {MARK: json.dumps(model.about)}))
