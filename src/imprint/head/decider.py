"""`Decider`: the interface of every fitted head, and how scores become predictions."""

from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

import numpy as np

from imprint.aggregators._base import Aggregator
from imprint.core.arrays import all_finite, dtype_name, joined, to_numpy
from imprint.core.errors import ParameterError
from imprint.core.tree import LabelTree
from imprint.core.types import Array, Proxies
from imprint.kernels.softmax import keep_winners
from imprint.normalisers._base import Normaliser

if TYPE_CHECKING:
    from imprint.head.head import Head

SCORES_AT_ONCE = 2**24
"""The maximum number of scores in memory if only the winners are needed."""


class Calibrated(Protocol):
    """The calibration of a model, which `imprint.calibration` computes."""

    @property
    def expected_accuracy(self) -> float: ...
    @property
    def expected_interval(self) -> tuple[float, float]: ...
    def probabilities(self, P: Any) -> Any: ...
    def p_values(self, S: Array, doubt: Array | None) -> Array: ...


class Assessor(Protocol):
    """A cross-validation that is updated together with a head: `imprint.calibration.CrossValidation`."""

    @property
    def calibration(self) -> Calibrated: ...
    def learn(self, X: Array, y: Array, weight: Array | None = None) -> Self: ...
    def forget(self, label: Any) -> Self: ...


class Decider(Protocol):
    """Classifies embeddings: `Head`, `TagHead` for tags, and `PretrainedHead` for pre-trained and new classes.

    The aggregator computes scores from normalised queries and from what it prepared once from the proxies.
    """

    tags: ClassVar[bool] = False
    """Whether an input may have several of the classes, or none."""

    @property
    def imprinted(self) -> "Head":
        """The head of the imprinted classes."""
        ...

    @property
    def classes(self) -> Array:
        """The labels, sorted."""
        ...

    @property
    def proxies(self) -> Proxies:
        """The finished proxies, sorted by class."""
        ...

    @property
    def owners(self) -> Array:
        """The labels that `proxies.labels` refer to: the classes, or the label sets of tags."""
        return self.classes

    @property
    def rows_per_class(self) -> Array:
        """The number of training rows of each class that was imprinted, in their order."""
        return np.bincount(self.imprinted.proxies.labels, self.imprinted.proxies.mass)

    @property
    def norm_inf(self) -> Normaliser:
        """How queries are normalised."""
        ...

    @property
    def aggregator(self) -> Aggregator:
        """How proxies score classes."""
        ...

    @property
    def prepared(self) -> Any:
        """What the aggregator computes once from the proxies."""
        ...

    @property
    def calibration(self) -> Calibrated:
        """The calibration; raises `NotFittedError` if there is none."""
        ...

    def learn(self, X: Array, y: Array, weight: Array | None = None) -> Self:
        """This head after new classes and more rows of known ones; a row of weight 2 counts as two equal rows."""
        ...

    def forget(self, label: Any) -> Self:
        """This head without a class, identical to one that never saw it."""
        ...

    def tree(self, flat: bool = False) -> LabelTree:
        """The classes as the leaves of a tree; with `flat`, a tree of one level."""
        return LabelTree.of(self.classes.tolist(), flat=flat)

    def without(self, label: Any) -> Self:
        """This head without a class or, if no class has this label, without the classes below this node of the tree."""
        labels = self.classes.tolist()
        head = self
        for leaf in [label] if label in labels else self.tree().leaves(label) or [label]:
            head = head.forget(leaf)
        return head

    def __len__(self) -> int:
        """The number of classes."""
        return len(self.classes)

    @property
    def calibrated(self) -> bool:
        """Whether there is a calibration."""
        return False

    @property
    def description(self) -> str:
        """The method in one line."""
        return str(self.imprinted.method)

    def scores(self, Q: Array) -> Array:
        """Class scores of raw queries.  # (q, C)"""
        return self.aggregator.scores(self._normalised(Q), self.prepared)

    def _normalised(self, Q: Array) -> Array:
        """Normalised queries; refused if they are not as wide as the training rows."""
        width = self.imprinted.width or self.proxies.weights.shape[1]
        if Q.shape[1] != width:
            raise ParameterError(f"X has {Q.shape[1]} columns; the model was fitted on {width}.")
        return self.norm_inf.apply(Q)

    def winners(self, Q: Any) -> Any:
        """The index in `classes` of the largest score of every query; on a tie the first.  # (q,)"""
        rows = max(1, SCORES_AT_ONCE // len(self))
        return joined([largest(self.scores(Q[i : i + rows])) for i in range(0, len(Q), rows)])

    def predict(self, Q: Any) -> Array:
        """The label of every raw query; of tags, an indicator matrix.  # (q,) or (q, labels)"""
        return np.asarray(self.classes[self.winners(Q)])

    def probabilities(self, S: Array) -> Array:
        """Class scores as probabilities, calibrated where possible; the winner's is the largest.  # (q, C)"""
        P = self.aggregator.probabilities(S, self.prepared)
        return keep_winners(self.calibration.probabilities(P) if self.calibrated else P, S)

    def doubt(self, Q: Array) -> Array | None:
        """How little the proxies determine the scores of queries; None if the aggregator has no doubt.  # (q,)"""
        return self.aggregator.doubt(self._normalised(Q), self.prepared)

    def known(self, Q: Array) -> Array:
        """The conformal p-value that each query belongs to one of the classes, in (0, 1].  # (q,) float64"""
        calibration, rows = self.calibration, max(1, SCORES_AT_ONCE // len(self))
        parts = []
        for i in range(0, len(Q), rows):
            S, doubt = self.scores(Q[i : i + rows]), self.doubt(Q[i : i + rows])
            largest(S)  # refuses scores that overflow
            parts.append(calibration.p_values(to_numpy(S), None if doubt is None else to_numpy(doubt)))
        return np.concatenate(parts)

    @property
    def measure(self) -> str:
        """What `evidence` is; see `Aggregator.measure`."""
        return self.aggregator.measure

    def evidence(self, x: Array) -> Array:
        """The contribution of every proxy to the class that wins one raw query; see `Aggregator.evidence`.  # (p,)"""
        winner = int(self.winners(x[None, :])[0])
        q = self.norm_inf.apply(x[None, :])[0]
        return self.aggregator.evidence(q, self.proxies, self.prepared, winner)


def check_label_types(subject: str, of_data: Any, of_model: Any) -> None:
    """Refuse text labels for a model with numbers as labels, and the other way round.

    `subject` begins the error: the call and the data, such as `add(data): the data have`.
    """
    data, model = ("text" if np.dtype(dtype).kind in "US" else "number" for dtype in (of_data, of_model))
    if data != model:
        raise ParameterError(f"{subject} {data} labels, the model {model} labels.")


def largest(S: Any) -> Any:
    """The index of the largest score of every row; scores that overflow are refused."""
    if not all_finite(S):
        raise ParameterError(f"the scores overflow {dtype_name(S)}; scale the rows down or use norm_inf='l2'.")
    return S.argmax(axis=1)
