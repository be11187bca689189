"""The accuracy of a model: expected from cross-validation, and measured on labelled
rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

import numpy as np

from imprint.calibration import CrossValidation, OutOfFold, calibration_error
from imprint.calibration.estimates import caveats
from imprint.core.arrays import Array
from imprint.core.errors import ParameterError, percent
from imprint.core.labels import check_kinds, positions
from imprint.core.tree import LabelTree
from imprint.embeddings import Skipped
from imprint.head import Decider
from imprint.tags import TagHead


@dataclass(frozen=True)
class JsonResult:
    """Results of which the fields that `repr` shows are the keys of a JSON document."""

    def as_json(self) -> dict[str, Any]:
        """The public keys, with plain values; `levels` only if there are any."""
        values = {f.name: getattr(self, f.name) for f in fields(self) if f.repr}
        for name, value in values.items():
            if (
                isinstance(value, list | tuple)
                and value
                and hasattr(value[0], "_asdict")
            ):
                values[name] = [row._asdict() for row in value]
        return {name: value for name, value in values.items() if value != ()}


class PerClass(NamedTuple):
    """Recall and precision of one class.

    `recall` is None where the class has no rows, `precision` where the model never
    predicts it.
    """

    label: Any
    rows: int
    recall: float | None
    precision: float | None


class LevelAccuracy(NamedTuple):
    """The accuracy at one level of a tree of classes, and the number of nodes at that
    level.
    """

    level: int
    nodes: int
    accuracy: float


class Mistake(NamedTuple):
    """A misclassified row, and the probability of the predicted class."""

    path: str
    label: Any
    predicted: Any
    probability: float


@dataclass(frozen=True)
class Evaluation(JsonResult):
    """Results of a model on labelled rows. Rows of classes that the model does not have
    count as mistakes.
    """

    accuracy: float
    balanced_accuracy: float  # the mean recall of the classes that have rows
    rows: int
    # the labels of the model and of the rows, sorted; the order of `confusion`
    classes: list[Any]
    # `confusion[i][j]` counts the rows of class i that are predicted as class j
    confusion: list[list[int]]
    per_class: list[PerClass]
    calibration_error: float  # the expected calibration error
    mistakes: list[Mistake]  # the most confident first
    unreadable: list[dict[str, str]]
    levels: tuple[LevelAccuracy, ...]
    """The accuracy at each level of a tree of classes above the classes themselves;
    empty for flat classes.
    """
    # labels of the rows that are not classes of the model
    unknown: list[Any] = field(repr=False)
    # (n,) for each row, the index of its label in `classes`
    truth: Array = field(repr=False, compare=False)
    # (n,) for each row, the index of the predicted class
    predicted: Array = field(repr=False, compare=False)
    # (n,) for each row, the probability of the predicted class
    confidence: Array = field(repr=False, compare=False)
    # the misclassified rows, in the order of `mistakes`
    wrong: list[int] = field(repr=False, compare=False)

    def summary(self) -> str:
        """The accuracy and the number of correct rows in one line."""
        return (
            f"Accuracy {percent(self.accuracy)} ({self.rows - len(self.wrong):,} of"
            f" {self.rows:,} correct)"
        )


def evaluation(
    P: Array,
    classes: Array,
    y: Array,
    names: Sequence[str],
    skipped: Sequence[Skipped] = (),
    tree: LabelTree | None = None,
) -> Evaluation:
    """Compare probabilities P (n, C), in the order of `classes`, with the labels `y` of
    the rows.

    `tree` is the tree of the classes; by default, they have one level.
    """
    if not len(y):
        raise ParameterError("evaluation(y=[]): there are no rows to evaluate.")
    check_kinds("evaluation(): the data have", y, classes)
    known_labels = set(classes.tolist())
    labels = sorted(known_labels.union(y.tolist()))
    C = len(labels)
    best, confidence = P.argmax(axis=1), P.max(axis=1)
    truth = positions(y, labels)
    predicted = positions(classes, labels)[best]
    correct = truth == predicted
    wrong = sorted(np.flatnonzero(~correct).tolist(), key=lambda i: -confidence[i])
    confusion = np.bincount(truth * C + predicted, minlength=C * C).reshape(C, C)
    counts = zip(
        labels,
        np.diag(confusion).tolist(),
        confusion.sum(axis=1).tolist(),
        confusion.sum(axis=0).tolist(),
    )
    per_class = [
        PerClass(label, rows, ratio(hits, rows), ratio(hits, total))
        for label, hits, rows, total in counts
    ]
    return Evaluation(
        accuracy=float(correct.mean()),
        balanced_accuracy=float(
            np.mean([c.recall for c in per_class if c.recall is not None])
        ),
        rows=len(y),
        classes=labels,
        confusion=confusion.tolist(),
        per_class=per_class,
        calibration_error=calibration_error(P, np.where(correct, best, -1)),
        mistakes=[
            Mistake(
                names[i], labels[truth[i]], labels[predicted[i]], float(confidence[i])
            )
            for i in wrong
        ],
        unreadable=unreadable(skipped),
        levels=_level_accuracies(P, tree, y.tolist()) if tree else (),
        unknown=[label for label in labels if label not in known_labels],
        truth=truth,
        predicted=predicted,
        confidence=confidence,
        wrong=wrong,
    )


def _level_accuracies(
    P: Array, tree: LabelTree, labels: Sequence[Any]
) -> tuple[LevelAccuracy, ...]:
    """The accuracy at each level: the share of rows whose most probable node is that of
    their label.

    The label need not be a class of the model.
    """
    levels = []
    for level in tree.grouped_levels:
        nodes, sums = tree.at(P, level)
        correct = [
            nodes[i] == tree.node(label, level)
            for i, label in zip(sums.argmax(axis=1).tolist(), labels)
        ]
        levels.append(LevelAccuracy(level, len(nodes), float(np.mean(correct))))
    return tuple(levels)


def unreadable(skipped: Sequence[Skipped]) -> list[dict[str, str]]:
    """Inputs that cannot be read, for JSON."""
    return [{"path": item.name, "reason": item.reason} for item in skipped]


def reliability(
    probability: Array, correct: Array, bins: int = 10
) -> list[tuple[int, float, float]]:
    """Predictions in bins of equal width, without empty bins: rows, mean probability,
    and share of correct ones.
    """
    index = np.minimum((probability * bins).astype(np.intp), bins - 1)
    groups = [np.flatnonzero(index == b) for b in np.unique(index)]
    return [
        (len(g), float(probability[g].mean()), float(correct[g].mean())) for g in groups
    ]


def ratio(part: int, whole: int) -> float | None:
    """A share; None if there is nothing to divide by."""
    return float(part / whole) if whole else None


def describe_expected(head: Decider, inputs: str) -> list[str]:
    """Expected accuracy with its interval, the most confused pair of classes, and the
    class that needs more rows.
    """
    if isinstance(head, TagHead):
        return _describe_tags(head, inputs)
    folds = head.imprinted.folds
    if not head.calibrated or folds is None:
        return []
    calibration = folds.calibration
    if len(head) == 1:
        return ["Expected accuracy: not available with one class; add a second class."]
    if not np.isfinite(calibration.expected_accuracy):
        return [
            f"Expected accuracy: not available; give at least two {inputs} of every"
            " class."
        ]
    low, high = (100 * bound for bound in calibration.expected_interval)
    accuracy = percent(calibration.expected_accuracy)
    lines = [
        f"Expected accuracy: {accuracy}, extrapolated from cross-validation (95 %"
        f" interval {low:.1f}-{high:.1f} %)."
    ]
    if not isinstance(folds, CrossValidation):
        return lines  # the model was shared without rows
    lines += caveats(folds, inputs)
    return lines + _weaknesses(folds.predictions, calibration.expected_accuracy, inputs)


def _weaknesses(answers: OutOfFold, expected_accuracy: float, inputs: str) -> list[str]:
    """The pair of classes that is confused most, and the class with the lowest
    recall.
    """
    labels, C, assessed = answers.classes, len(answers.classes), answers.assessed
    confusion = np.bincount(
        answers.true[assessed] * C + answers.winners[assessed], minlength=C * C
    ).reshape(C, C)
    shares = confusion / np.maximum(confusion.sum(axis=1, keepdims=True), 1)
    # NaN where no row was predicted
    recall = np.where(confusion.any(axis=1), np.diag(shares), np.nan)
    np.fill_diagonal(shares, 0)
    lines = []
    a, b = divmod(int(shares.argmax()), C)
    if shares[a, b] > 0:
        lines.append(
            f"Most confused: {labels[a]} predicted as {labels[b]}"
            f" ({percent(shares[a, b])} of {labels[a]})."
        )
    rows = np.rint(np.bincount(answers.true, answers.weight, minlength=C)).astype(int)
    c = int(np.lexsort((rows, np.nan_to_num(recall, nan=-1.0)))[0])
    if not recall[c] >= expected_accuracy:
        measured = (
            "too few to measure recall"
            if np.isnan(recall[c])
            else f"recall {percent(recall[c])}"
        )
        if rows[c] > np.median(rows):
            # a large class is not confused for want of rows
            lines.append(
                f"Lowest recall: {labels[c]} ({rows[c]:,} {inputs}, {measured})."
            )
        else:
            lines.append(
                f"To improve: add {inputs} of {labels[c]} ({rows[c]:,} now,"
                f" {measured})."
            )
    return lines


def _describe_tags(head: TagHead, inputs: str) -> list[str]:
    """The leave-one-out results of a model of tags, and the label that needs more
    rows.
    """
    calibration, rows = head.calibration, head.rows_per_class
    present = np.flatnonzero(rows)
    precision, f1 = (
        calibration.average_precision[present].mean(),
        calibration.f1[present].mean(),
    )
    worst = present[np.lexsort((rows[present], calibration.f1[present]))[0]]
    count, worst_f1 = round(float(rows[worst])), percent(float(calibration.f1[worst]))
    return [
        (
            f"Expected (leave-one-out): mean average precision {percent(precision)},"
            f" macro F1 {percent(f1)}."
        ),
        (
            f"To improve: add {inputs} of {head.labels[worst]} ({count} now, F1"
            f" {worst_f1})."
        ),
    ]
