"""A head as arrays and a description, for programs that do not have this library."""

from typing import Any, NamedTuple

import numpy as np

from imprint.backbones import Record
from imprint.calibration import Calibration
from imprint.core import __version__
from imprint.core.arrays import Array
from imprint.core.errors import ParameterError
from imprint.head import Decider
from imprint.tags import TagHead

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


def portable(head: Decider, origin: tuple[Record, str] | None) -> Portable:
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
