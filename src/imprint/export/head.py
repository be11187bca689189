"""What every format writes: the proxies, whose they are, and how they decide."""

from typing import Any, NamedTuple

from imprint.aggregators.max import Max
from imprint.aggregators.nearest import Nearest
from imprint.backbones import Record
from imprint.classifier import ImprintClassifier
from imprint.core.errors import ParameterError
from imprint.core.types import Array
from imprint.core.version import __version__
from imprint.imprinter.gallery import method_of
from imprint.normalisers.l2 import L2
from imprint.normalisers.none import NoNorm

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


class Head(NamedTuple):
    """A classifier of embeddings as numbers and a few facts."""

    weights: Array  # (p, d)
    owners: Array  # (p,) index into classes, ascending
    classes: list[Any]
    unit: bool
    """Whether embeddings are divided by their length first."""
    aggregator: Max | Nearest
    scale: float
    """What `max` divides scores by before their softmax."""
    about: dict[str, Any]
    """A description that JSON can hold."""

    @property
    def linear(self) -> bool:
        """Whether it is one linear layer: `max` with one proxy per class."""
        return isinstance(self.aggregator, Max) and len(self.owners) == len(self.classes)


def head_of(classifier: ImprintClassifier, origin: Origin | None) -> Head:
    """The head of a fitted model."""
    method, (weights, owners) = method_of(classifier), classifier.proxies_
    norm, aggregator = method.norm_inf, method.aggregator
    if not isinstance(norm, L2 | NoNorm) or not isinstance(aggregator, Max | Nearest):
        raise ParameterError(f"export: no format can hold a model that decides by {norm} / {aggregator}.")
    scale = aggregator.temperature * classifier._memory.reach if isinstance(aggregator, Max) else 1.0
    about = {
        "version": 1,
        "written_by": f"imprint {__version__}",
        "method": str(method),
        "norm": str(norm),
        "aggregator": str(aggregator),
        "scale": scale,
        "width": weights.shape[1],
        "proxies": len(owners),
        "classes": classifier.classes_.tolist(),
        "backbone": origin.facts() if origin else None,
        "use": _use(norm, aggregator, scale),
    }
    return Head(weights, owners, about["classes"], isinstance(norm, L2), aggregator, scale, about)


def _use(norm: L2 | NoNorm, aggregator: Max | Nearest, scale: float) -> str:
    """In words what the numbers are for."""
    first = "Divide every embedding by its Euclidean length (a zero row stays zero). " if isinstance(norm, L2) else ""
    if isinstance(aggregator, Max):
        return (
            f"{first}A class scores the largest inner product of the embedding with its rows of the weights; the "
            f"largest score wins, the first class on a tie. Probabilities are the softmax of the scores over {scale!r}."
        )
    by_distance = aggregator.weighting == "distance"
    vote = "the inverse of its distance" if by_distance else "one, and of equal counts the nearest proxy decides"
    return f"{first}The {aggregator.m} proxies nearest by {aggregator.metric} distance vote for their classes: {vote}."
