"""Models for use without `imprint`: ONNX, safetensors for torch, or plain NumPy
arrays.
"""

import json
import os
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np
from safetensors.numpy import save

from imprint.backbones import Backbone, Record
from imprint.calibration import Calibration
from imprint.core import __version__
from imprint.core.arrays import Array
from imprint.core.errors import FileError, ParameterError, unknown
from imprint.core.extras import import_extra
from imprint.core.files import container
from imprint.core.files.atomic import atomic_write
from imprint.head import Decider
from imprint.imprinter import Imprinter
from imprint.imprinter.state import ImprinterState
from imprint.tags import TagHead

if TYPE_CHECKING:
    from imprint.classifier import ImprintClassifier

__all__ = ["SUFFIXES", "Exported", "check_target", "export", "export_file"]

SUFFIXES = {"onnx": ".onnx", "torch": ".safetensors", "numpy": ".npz"}
"""The formats and the suffixes of their files."""
MARK = "imprint.export"  # the key of the description in every exported file
USE_OF_TAGS = (
    ". An input has every label whose score reaches its threshold (never where that is"
    " null). The probability of a label is 1 / (1 + exp(-x)), where x is the slope"
    " times the score plus the offset."
)


class Portable(NamedTuple):
    """A head as arrays and a description."""

    head: Decider
    # `weights` (p, d), `owners` (p,), and those of the aggregator
    arrays: dict[str, Array]
    about: dict[str, Any]  # the description, in JSON types


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

    An `Imprinter` becomes one ONNX graph, from pictures to scores, unless `head_only`
    is set. The other two formats hold only the head, which takes embeddings. Every file
    contains the class labels and instructions for its use.
    """
    head = model.state.head if isinstance(model, Imprinter) else model.head_
    network = (
        model.backbone
        if isinstance(model, Imprinter) and model.embedder.kind.needs_backbone
        else None
    )
    content = _portable(
        head, (network.record, network.fingerprint) if network else None
    )
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
    return _write(_portable(head, origin), path, to, None)


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


def _portable(head: Decider, origin: tuple[Record, str] | None) -> Portable:
    """A head for other programs; refused if one of its components does not describe
    itself as arrays.

    `origin` is the record of the backbone, whose path is left out, and its fingerprint.
    """
    aggregator, norm, proxies = head.aggregator, head.norm_inf, head.proxies
    facts, first = aggregator.facts(proxies, head.prepared), norm.instruction
    if facts is None or first is None:
        part = aggregator if facts is None else norm
        raise ParameterError(
            f"export: {part} does not describe itself as arrays, so it cannot be"
            " exported."
        )
    backbone: dict[str, Any] | None = None
    if origin is not None:
        record, fingerprint = origin
        backbone = {
            key: getattr(record, key) for key in ("name", "adapter", "layer", "licence")
        }
        preprocess = record.preprocess.as_json() if record.preprocess else None
        backbone |= {"fingerprint": fingerprint, "preprocess": preprocess}
        if record.blocks:
            backbone["blocks"] = [block.as_json() for block in record.blocks]
    about = {
        "version": 2,
        "written_by": f"imprint {__version__}",
        "method": head.description,
        "norm": str(norm),
        "aggregator": str(aggregator),
        "width": proxies.weights.shape[1],
        "dtype": proxies.weights.dtype.name,
        "proxies": len(proxies.labels),
        "classes": head.classes.tolist(),
        "backbone": backbone,
        **facts.numbers,
        "use": first + facts.use,
    }
    if isinstance(head, TagHead):
        arrays = {
            name: getattr(head.calibration, name).tolist()
            for name in ("thresholds", "slopes", "offsets")
        }
        about["tags"] = {
            **arrays,
            "thresholds": [t if t < np.inf else None for t in arrays["thresholds"]],
        }
        about["use"] = first + facts.use.partition("; the largest")[0] + USE_OF_TAGS
    elif head.calibrated and isinstance(calibration := head.calibration, Calibration):
        power, floor = 1 / calibration.temperature, calibration.floor
        about["calibration"] = {"power": power, "floor": floor}
        about["use"] += (
            f" Calibrated probabilities are these to the power {power!r}, over their"
            f" sum, times {1 - floor!r}, plus {floor / len(head)!r} for every class."
        )
    return Portable(
        head,
        {"weights": proxies.weights, "owners": proxies.labels, **facts.tensors},
        about,
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
