"""A head as arrays and a description, which every format stores; the files of arrays: .npz and .safetensors."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from safetensors.numpy import save

from imprint.aggregators._base import Facts
from imprint.backbones import Record
from imprint.calibration import Calibration
from imprint.core import __version__
from imprint.core.errors import ParameterError
from imprint.core.files.atomic import atomic_write
from imprint.core.types import Array
from imprint.head import Decider
from imprint.tags import TagHead

MARK = "imprint.export"
"""The key of the description in every exported file."""


USE_OF_TAGS = (
    ". An input has every label whose score reaches its threshold (never where that is null). The probability of a "
    "label is 1 / (1 + exp(-x)), where x is the slope times the score plus the offset."
)


class Origin(NamedTuple):
    """The backbone that computes a model's embeddings."""

    record: Record
    fingerprint: str

    def facts(self) -> dict[str, Any]:
        """The public part of the record, without the path of the weights."""
        public = {key: getattr(self.record, key) for key in ("name", "adapter", "layer", "licence")}
        preprocess = self.record.preprocess.as_json() if self.record.preprocess else None
        return {**public, "fingerprint": self.fingerprint, "preprocess": preprocess}


class Portable(NamedTuple):
    """A head as arrays and a description."""

    head: Decider
    facts: Facts
    about: dict[str, Any]
    """The description, in JSON types."""

    def tensors(self) -> dict[str, Array]:
        """The arrays of the head by name."""
        proxies = self.head.proxies
        return {"weights": proxies.weights, "owners": proxies.labels, **self.facts.tensors}


def portable(head: Decider, origin: Origin | None) -> Portable:
    """A head for other programs; refused if one of its components does not describe itself as arrays."""
    aggregator, norm, dtype = head.aggregator, head.norm_inf, head.proxies.weights.dtype
    facts, first = aggregator.facts(head.proxies, head.prepared), norm.use
    if facts is None or first is None:
        part = aggregator if facts is None else norm
        raise ParameterError(f"export: {part} does not describe itself as arrays, so it cannot be exported.")
    about = {
        "version": 2,
        "written_by": f"imprint {__version__}",
        "method": head.description,
        "norm": str(norm),
        "aggregator": str(aggregator),
        "width": head.proxies.weights.shape[1],
        "dtype": dtype.name,
        "proxies": len(head.proxies.labels),
        "classes": head.classes.tolist(),
        "backbone": origin.facts() if origin else None,
        **facts.numbers,
        "use": first + facts.use,
    }
    if isinstance(head, TagHead):
        arrays = {name: getattr(head.calibration, name).tolist() for name in ("thresholds", "slopes", "offsets")}
        about["tags"] = {**arrays, "thresholds": [t if t < np.inf else None for t in arrays["thresholds"]]}
        about["use"] = first + facts.use.partition("; the largest")[0] + USE_OF_TAGS
    elif head.calibrated and isinstance(calibration := head.calibration, Calibration):
        power, floor = 1 / calibration.temperature, calibration.floor
        about |= {"calibration": {"power": power, "floor": floor}}
        about["use"] += (
            f" Calibrated probabilities are these to the power {power!r}, over their sum, times {1 - floor!r}, "
            f"plus {floor / len(head)!r} for every class."
        )
    return Portable(head, facts, about)


def write_npz(path: Path, model: Portable) -> None:
    """Write a .npz file: `weights` (p, d), `owners` (p,), `classes` (C,), `norm`, the arrays of the aggregator, and the
    description as JSON."""
    arrays = {
        **model.tensors(),
        "classes": np.array(model.about["classes"]),
        "norm": np.array(model.about["norm"]),
        MARK: np.array(json.dumps(model.about)),
    }
    with atomic_write(path) as f:
        np.savez(f, allow_pickle=False, **arrays)


def write_safetensors(path: Path, model: Portable) -> None:
    """Write a .safetensors file, with the description as metadata; this does not need torch.

    `weight` (p, d) is the state of `torch.nn.Linear` without a bias if each class has one proxy and the largest inner
    product wins. Otherwise `owners` (p,) and the arrays of the aggregator are stored too.
    """
    tensors = {name: np.ascontiguousarray(value) for name, value in model.tensors().items()}
    tensors["weight"] = tensors.pop("weights")
    if len(tensors["owners"]) == len(model.head):
        del tensors["owners"]
    with atomic_write(path) as f:
        f.write(save(tensors, {MARK: json.dumps(model.about)}))
