"""What every format writes: the proxies, whose they are, and how they decide."""

from typing import Any, NamedTuple

from imprint.aggregators._base import Facts
from imprint.backbones import Record
from imprint.calibration import Calibration, CrossValidation
from imprint.core import __version__
from imprint.core.errors import ParameterError
from imprint.core.types import Array
from imprint.head import Decider

MARK = "imprint.export"
"""The key of the description in every exported file."""


class Origin(NamedTuple):
    """The backbone a model's embeddings come from."""

    record: Record
    fingerprint: str

    def facts(self) -> dict[str, Any]:
        """What a user of the file must know, without the place where the weights lay."""
        chosen = {key: getattr(self.record, key) for key in ("name", "adapter", "layer", "licence")}
        rule = self.record.preprocess.as_json() if self.record.preprocess else None
        return {**chosen, "fingerprint": self.fingerprint, "preprocess": rule}


class Portable(NamedTuple):
    """A head as numbers and a few facts."""

    head: Decider
    facts: Facts
    about: dict[str, Any]
    """A description that JSON can hold."""

    def tensors(self) -> dict[str, Array]:
        """The numbers of the head by name."""
        proxies = self.head.proxies
        return {"weights": proxies.weights, "owners": proxies.labels, **self.facts.tensors}


def calibration_of(head: Decider) -> Calibration | None:
    """The calibration of a head; None where it has none."""
    folds = head.imprinted.folds
    return folds.calibration if head.calibrated and isinstance(folds, CrossValidation) else None


def portable(head: Decider, origin: Origin | None) -> Portable:
    """A head for other programs; refused where its parts do not say how they would work there."""
    aggregator, norm, dtype = head.aggregator, head.norm_inf, head.proxies.weights.dtype
    facts, first = aggregator.facts(head.proxies, head.prepared), norm.in_words()
    if facts is None or first is None:
        part = aggregator if facts is None else norm
        raise ParameterError(f"export: {part} does not say how it works by plain numbers.")
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
    if calibration := calibration_of(head):
        power, floor = 1 / calibration.temperature, calibration.floor
        about |= {"calibration": {"power": power, "floor": floor}}
        about["use"] += (
            f" Calibrated probabilities are these to the power {power!r}, over their sum, times {1 - floor!r}, "
            f"plus {floor / len(head)!r} for every class."
        )
    return Portable(head, facts, about)
