"""A head as arrays and a description, which every format stores; the files of arrays: .npz and .safetensors."""

import json
from typing import IO, Any, NamedTuple

import numpy as np
from safetensors.numpy import save

from imprint.backbones import Record
from imprint.calibration import Calibration
from imprint.core import __version__
from imprint.core.errors import ParameterError
from imprint.core.types import Array
from imprint.head import Decider
from imprint.tags import TagHead

MARK = "imprint.export"
"""The key of the description in every exported file."""
USE_OF_TAGS = (
    ". An input has every label whose score reaches its threshold (never where that is null). The probability of a "
    "label is 1 / (1 + exp(-x)), where x is the slope times the score plus the offset."
)


class Portable(NamedTuple):
    """A head as arrays and a description."""

    head: Decider
    arrays: dict[str, Array]
    """`weights` (p, d), `owners` (p,), and those of the aggregator."""
    about: dict[str, Any]
    """The description, in JSON types."""


def portable(head: Decider, origin: tuple[Record, str] | None) -> Portable:
    """A head for other programs; refused if one of its components does not describe itself as arrays.

    `origin` is the record of the backbone, whose path is left out, and its fingerprint.
    """
    aggregator, norm, proxies = head.aggregator, head.norm_inf, head.proxies
    facts, first = aggregator.facts(proxies, head.prepared), norm.use
    if facts is None or first is None:
        part = aggregator if facts is None else norm
        raise ParameterError(f"export: {part} does not describe itself as arrays, so it cannot be exported.")
    backbone: dict[str, Any] | None = None
    if origin is not None:
        record, fingerprint = origin
        backbone = {key: getattr(record, key) for key in ("name", "adapter", "layer", "licence")}
        preprocess = record.preprocess.as_json() if record.preprocess else None
        backbone |= {"fingerprint": fingerprint, "preprocess": preprocess}
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
        arrays = {name: getattr(head.calibration, name).tolist() for name in ("thresholds", "slopes", "offsets")}
        about["tags"] = {**arrays, "thresholds": [t if t < np.inf else None for t in arrays["thresholds"]]}
        about["use"] = first + facts.use.partition("; the largest")[0] + USE_OF_TAGS
    elif head.calibrated and isinstance(calibration := head.calibration, Calibration):
        power, floor = 1 / calibration.temperature, calibration.floor
        about["calibration"] = {"power": power, "floor": floor}
        about["use"] += (
            f" Calibrated probabilities are these to the power {power!r}, over their sum, times {1 - floor!r}, "
            f"plus {floor / len(head)!r} for every class."
        )
    return Portable(head, {"weights": proxies.weights, "owners": proxies.labels, **facts.tensors}, about)


def write_npz(file: IO[bytes], model: Portable) -> None:
    """Write a .npz file: the arrays, `classes` (C,), `norm`, and the description as JSON."""
    texts = {"classes": model.about["classes"], "norm": model.about["norm"], MARK: json.dumps(model.about)}
    np.savez(file, allow_pickle=False, **model.arrays, **{name: np.array(text) for name, text in texts.items()})


def write_safetensors(file: IO[bytes], model: Portable) -> None:
    """Write a .safetensors file, with the description as metadata; this does not need torch.

    `weight` (p, d) is the state of `torch.nn.Linear` without a bias if each class has one proxy and the largest inner
    product wins. Otherwise `owners` (p,) and the arrays of the aggregator are stored too.
    """
    tensors = {name: np.ascontiguousarray(value) for name, value in model.arrays.items()}
    tensors["weight"] = tensors.pop("weights")
    if len(tensors["owners"]) == len(model.head):
        del tensors["owners"]
    file.write(save(tensors, {MARK: json.dumps(model.about)}))
