"""Accuracy, confusion matrix and calibration of predictions on labelled rows."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from imprint.calibration import calibration_error
from imprint.core.errors import ParameterError
from imprint.core.tree import LabelTree
from imprint.core.types import Array
from imprint.embeddings import Skipped

RELIABILITY_BINS = 10


class PerClass(NamedTuple):
    """Recall and precision of one class.

    `recall` is None where the class has no rows, `precision` where the model never predicts it.
    """

    label: Any
    rows: int
    recall: float | None
    precision: float | None


class LevelAccuracy(NamedTuple):
    """The accuracy at one level of a tree of classes, which has so many nodes there."""

    level: int
    nodes: int
    accuracy: float


class Mistake(NamedTuple):
    """A misclassified row, and the probability of the wrong answer."""

    path: str
    label: Any
    predicted: Any
    probability: float


@dataclass(frozen=True)
class Evaluation:
    """Results of a model on labelled rows. Rows of classes that the model does not have count as mistakes."""

    accuracy: float
    balanced_accuracy: float
    """The mean recall of the classes that have rows."""
    rows: int
    classes: list[Any]
    """The labels of the model and of the rows, sorted; the order of `confusion`."""
    confusion: list[list[int]]
    """`confusion[i][j]` counts the rows of class i that are predicted as class j."""
    per_class: list[PerClass]
    calibration_error: float
    """The expected calibration error."""
    mistakes: list[Mistake]
    """The most confident first."""
    unreadable: list[dict[str, str]]
    unknown: list[Any]
    """Labels of the rows that are not classes of the model."""
    levels: tuple[LevelAccuracy, ...] = ()
    """The accuracy at each level of a tree of classes above the classes themselves; empty for flat classes."""

    def as_json(self) -> dict[str, Any]:
        """The public keys, with plain values."""
        fields = asdict(self)
        fields |= {"per_class": [one._asdict() for one in self.per_class]}
        fields |= {"mistakes": [one._asdict() for one in self.mistakes]}
        fields |= {"levels": [one._asdict() for one in self.levels]}
        for name in ("unknown", *(() if self.levels else ("levels",))):
            del fields[name]
        return fields


def evaluation(
    P: Array,
    classes: Array,
    y: Array,
    names: Sequence[str],
    skipped: Sequence[Skipped] = (),
    tree: LabelTree | None = None,
) -> Evaluation:
    """Compare probabilities P (n, C), in the order of `classes`, with the labels `y` of the rows.

    `tree` is the tree of the classes; by default the labels define it.

    >>> P = np.array([[0.9, 0.1], [0.2, 0.8], [0.4, 0.6]])
    >>> result = evaluation(P, np.array(["cat", "dog"]), np.array(["cat", "dog", "cat"]), ["a", "b", "c"])
    >>> result.confusion, result.balanced_accuracy, result.mistakes
    ([[1, 1], [0, 1]], 0.75, [Mistake(path='c', label='cat', predicted='dog', probability=0.6)])
    """
    if not len(y):
        raise ParameterError("evaluation(y=[]): there are no rows to evaluate.")
    labels = all_labels(classes, y)
    truth, answers = np.searchsorted(labels, y), np.searchsorted(labels, classes[P.argmax(axis=1)])
    confusion = np.zeros((len(labels), len(labels)), dtype=np.int64)
    np.add.at(confusion, (truth, answers), 1)
    correct, confidence = truth == answers, P.max(axis=1)
    recalls = [_share(confusion[c, c], confusion[c].sum()) for c in range(len(labels))]
    precisions = [_share(confusion[c, c], confusion[:, c].sum()) for c in range(len(labels))]
    wrong = sorted(np.flatnonzero(~correct).tolist(), key=lambda i: -confidence[i])
    plain = labels.tolist()
    return Evaluation(
        accuracy=float(correct.mean()),
        balanced_accuracy=float(np.mean([r for r in recalls if r is not None])),
        rows=len(y),
        classes=plain,
        confusion=confusion.tolist(),
        per_class=[PerClass(plain[c], int(confusion[c].sum()), recalls[c], precisions[c]) for c in range(len(plain))],
        calibration_error=calibration_error(P, np.where(correct, P.argmax(axis=1), -1)),
        mistakes=[Mistake(names[i], plain[truth[i]], plain[answers[i]], float(confidence[i])) for i in wrong],
        unreadable=unreadable(skipped),
        unknown=sorted(set(np.unique(y).tolist()) - set(classes.tolist())),
        levels=level_accuracies(P, tree or LabelTree.of(classes.tolist()), y.tolist()),
    )


def level_accuracies(P: Array, tree: LabelTree, labels: Sequence[Any]) -> tuple[LevelAccuracy, ...]:
    """A row counts as correct at a level if the most probable node is that of its label, known to the model or not."""
    levels = []
    for level in tree.grouped_levels:
        nodes, sums = tree.at(P, level)
        correct = [nodes[i] == tree.node(label, level) for i, label in zip(sums.argmax(axis=1).tolist(), labels)]
        levels.append(LevelAccuracy(level, len(nodes), float(np.mean(correct))))
    return tuple(levels)


def all_labels(classes: Array, y: Array) -> Array:
    """The labels of the model and of the rows, sorted; text and number labels cannot be mixed."""
    if (classes.dtype.kind == "U") != (y.dtype.kind == "U"):
        kinds = ["text" if a.dtype.kind == "U" else "number" for a in (classes, y)]
        raise ParameterError(f"evaluation(): the data have {kinds[1]} labels, the model {kinds[0]} labels.")
    return np.union1d(classes, y)


def unreadable(skipped: Sequence[Skipped]) -> list[dict[str, str]]:
    """Inputs that cannot be read, for JSON."""
    return [{"path": one.name, "reason": one.reason} for one in skipped]


class ReliabilityBin(NamedTuple):
    """Answers of similar probability: how many, their mean probability, and the share that is correct."""

    rows: int
    probability: float
    correct: float


def reliability(probability: Array, correct: Array, bins: int = RELIABILITY_BINS) -> list[ReliabilityBin]:
    """Answers in bins of equal width, without empty bins.

    >>> reliability(np.array([0.95, 0.5]), np.array([True, False]))[1]
    ReliabilityBin(rows=1, probability=0.95, correct=1.0)
    """
    index = np.minimum((probability * bins).astype(np.intp), bins - 1)
    groups = [np.flatnonzero(index == b) for b in np.unique(index)]
    return [ReliabilityBin(len(g), float(probability[g].mean()), float(correct[g].mean())) for g in groups]


def _share(part: int, whole: int) -> float | None:
    return float(part / whole) if whole else None
