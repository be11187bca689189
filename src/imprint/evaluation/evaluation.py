"""The accuracy of a model: expected from cross-validation, and measured on labelled
rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple, TypeAlias

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

Label: TypeAlias = Any
"""The label of a class, as the model was fitted with it: text, or a whole number."""


@dataclass(frozen=True)
class JsonResult:
    """Results of which the fields that `repr` shows are the keys of a JSON document."""

    def as_json(self) -> dict[str, object]:
        """The public keys, with plain values; `levels` only if there are any."""
        document: dict[str, object] = {}
        for f in fields(self):
            if not f.repr:
                continue
            value = getattr(self, f.name)
            # JSON has no named tuples: the names would be lost.
            if _holds_named_tuples(value):
                value = [row._asdict() for row in value]
            if value != ():
                document[f.name] = value
        return document


def _holds_named_tuples(value: object) -> bool:
    if not isinstance(value, list | tuple) or not value:
        return False
    return hasattr(value[0], "_asdict")


class PerClass(NamedTuple):
    """Recall and precision of one class.

    `recall` is None where the class has no rows, `precision` where the model never
    predicts it.

    Examples
    --------
    >>> from imprint.evaluation import PerClass
    >>> PerClass("cat", rows=2, recall=0.5, precision=None).recall
    0.5
    """

    label: Label
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
    """A misclassified row, and the probability of the predicted class.

    Examples
    --------
    >>> from imprint.evaluation import Mistake
    >>> Mistake("c.png", label="cat", predicted="dog", probability=0.6).path
    'c.png'
    """

    path: str
    label: Label
    predicted: Label
    probability: float


@dataclass(frozen=True)
class Evaluation(JsonResult):
    """Results of a model on labelled rows.

    Rows of classes that the model does not have count as mistakes.

    Examples
    --------
    >>> import numpy as np
    >>> from imprint.evaluation import evaluation
    >>> P = np.array([[0.9, 0.1], [0.2, 0.8], [0.4, 0.6]])
    >>> labels = np.array(["cat", "dog", "cat"])
    >>> result = evaluation(P, np.array(["cat", "dog"]), labels, ["a", "b", "c"])
    >>> round(result.accuracy, 3), result.per_class[0].recall, result.mistakes[0].path
    (0.667, 0.5, 'c')
    """

    accuracy: float
    balanced_accuracy: float  # the mean recall of the classes that have rows
    rows: int
    # the labels of the model and of the rows, sorted; the order of `confusion`
    classes: list[Label]
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
    unknown: list[Label] = field(repr=False)
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
        correct = self.rows - len(self.wrong)
        return (
            f"Accuracy {percent(self.accuracy)} ({correct:,} of {self.rows:,} correct)"
        )


def evaluation(
    P: Array,
    classes: Array,
    y: Array,
    names: Sequence[str],
    skipped: Sequence[Skipped] = (),
    tree: LabelTree | None = None,
) -> Evaluation:
    """Compare probabilities with labels.

    Parameters
    ----------
    P : array of shape (n, C)
        The probabilities of the classes of a model, for every row.
    classes : array of shape (C,)
        The classes of the model, in the order of the columns of P.
    y : array of shape (n,)
        The labels of the rows.
    names : sequence of str
        The names of the rows, such as paths.
    skipped : sequence of Skipped
        Inputs that could not be read. [default: none]
    tree : LabelTree, optional
        The tree of the classes. [default: they have one level]

    Returns
    -------
    Evaluation
        Accuracy, confusion, calibration and mistakes.

    Examples
    --------
    >>> import numpy as np
    >>> from imprint.evaluation import evaluation
    >>> P = np.array([[0.9, 0.1], [0.2, 0.8], [0.4, 0.6]])
    >>> labels = np.array(["cat", "dog", "cat"])
    >>> result = evaluation(P, np.array(["cat", "dog"]), labels, ["a", "b", "c"])
    >>> result.confusion, result.balanced_accuracy
    ([[1, 1], [0, 1]], 0.75)
    >>> result.mistakes
    [Mistake(path='c', label='cat', predicted='dog', probability=0.6)]
    """
    if not len(y):
        raise ParameterError("evaluation(y=[]): there are no rows to evaluate.")
    check_kinds("evaluation(): the data have", y, classes)
    known_labels = set(classes.tolist())
    labels = sorted(known_labels.union(y.tolist()))
    best = P.argmax(axis=1)
    confidence = P.max(axis=1)
    truth = positions(y, labels)
    predicted = positions(classes, labels)[best]
    correct = truth == predicted
    # The most confident mistakes first: they tell most about the data.
    wrong = np.flatnonzero(~correct).tolist()
    wrong.sort(key=lambda i: -confidence[i])

    confusion = _count_pairs(truth, predicted, len(labels))
    per_class = _per_class(labels, confusion)
    recalls = [c.recall for c in per_class if c.recall is not None]
    return Evaluation(
        accuracy=float(correct.mean()),
        balanced_accuracy=float(np.mean(recalls)),
        rows=len(y),
        classes=labels,
        confusion=confusion.tolist(),
        per_class=per_class,
        calibration_error=calibration_error(P, np.where(correct, best, -1)),
        mistakes=[
            Mistake(
                path=names[i],
                label=labels[truth[i]],
                predicted=labels[predicted[i]],
                probability=float(confidence[i]),
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


def _count_pairs(
    first: Array,
    second: Array,
    size: int,
) -> Array:
    """How often each pair of two codes < `size` occurs.  # (size, size)"""
    pairs = first * size + second
    return np.bincount(pairs, minlength=size * size).reshape(size, size)


def _per_class(labels: Sequence[Label], confusion: Array) -> list[PerClass]:
    """Recall and precision of every class."""
    hits = np.diag(confusion).tolist()
    rows = confusion.sum(axis=1).tolist()
    predictions = confusion.sum(axis=0).tolist()
    per_class = []
    for i, label in enumerate(labels):
        recall = ratio(hits[i], rows[i])
        precision = ratio(hits[i], predictions[i])
        per_class.append(PerClass(label, rows[i], recall, precision))
    return per_class


def _level_accuracies(
    P: Array,
    tree: LabelTree,
    labels: Sequence[Label],
) -> tuple[LevelAccuracy, ...]:
    """The accuracy at each level: the share of rows whose most probable node is that of
    their label.

    The label need not be a class of the model.
    """
    levels = []
    for level in tree.grouped_levels:
        nodes, sums = tree.at(P, level)
        best = sums.argmax(axis=1).tolist()
        correct = []
        for i, label in zip(best, labels):
            correct.append(nodes[i] == tree.node(label, level))
        accuracy = float(np.mean(correct))
        levels.append(LevelAccuracy(level, len(nodes), accuracy))
    return tuple(levels)


def unreadable(skipped: Sequence[Skipped]) -> list[dict[str, str]]:
    """Inputs that cannot be read, for JSON."""
    return [{"path": item.name, "reason": item.reason} for item in skipped]


def reliability(
    probability: Array,
    correct: Array,
    bins: int = 10,
) -> list[tuple[int, float, float]]:
    """Predictions in bins of equal width, without empty bins: rows, mean probability,
    and share of correct ones.
    """
    # A probability of 1 belongs to the last bin.
    index = np.minimum((probability * bins).astype(np.intp), bins - 1)
    filled = []
    for b in np.unique(index):
        rows = np.flatnonzero(index == b)
        mean = float(probability[rows].mean())
        share = float(correct[rows].mean())
        filled.append((len(rows), mean, share))
    return filled


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
    expected = (
        f"Expected accuracy: {accuracy}, extrapolated from cross-validation (95 %"
        f" interval {low:.1f}-{high:.1f} %)."
    )
    # A model that was shared without rows keeps only the result.
    if not isinstance(folds, CrossValidation):
        return [expected]
    weaknesses = _weaknesses(folds.predictions, calibration.expected_accuracy, inputs)
    return [expected, *caveats(folds, inputs), *weaknesses]


def _weaknesses(
    answers: OutOfFold,
    expected_accuracy: float,
    inputs: str,
) -> list[str]:
    """The pair of classes that is confused most, and the class with the lowest
    recall.
    """
    labels = answers.classes
    assessed = answers.assessed
    true = answers.true[assessed]
    confusion = _count_pairs(true, answers.winners[assessed], len(labels))
    shares = confusion / np.maximum(confusion.sum(axis=1, keepdims=True), 1)
    # NaN where no row was predicted
    recall = np.where(confusion.any(axis=1), np.diag(shares), np.nan)
    np.fill_diagonal(shares, 0)
    lines = []
    a, b = divmod(int(shares.argmax()), len(labels))
    if shares[a, b] > 0:
        lines.append(
            f"Most confused: {labels[a]} predicted as {labels[b]}"
            f" ({percent(shares[a, b])} of {labels[a]})."
        )
    weighted_rows = np.bincount(answers.true, answers.weight, minlength=len(labels))
    rows = np.rint(weighted_rows).astype(int)
    # The class with the lowest recall; of equal ones, that with the fewest rows.
    known_recall = np.nan_to_num(recall, nan=-1.0)
    c = int(np.lexsort((rows, known_recall))[0])
    # Not `<`: a recall that is not known needs rows too.
    if not recall[c] >= expected_accuracy:
        measured = "too few to measure recall"
        if not np.isnan(recall[c]):
            measured = f"recall {percent(recall[c])}"
        if rows[c] > np.median(rows):
            # A large class is not confused for want of rows.
            line = f"Lowest recall: {labels[c]} ({rows[c]:,} {inputs}, {measured})."
        else:
            now = f"{rows[c]:,} now"
            line = f"To improve: add {inputs} of {labels[c]} ({now}, {measured})."
        lines.append(line)
    return lines


def _describe_tags(head: TagHead, inputs: str) -> list[str]:
    """The leave-one-out results of a model of tags, and the label that needs more
    rows.
    """
    calibration = head.calibration
    rows = head.rows_per_class
    present = np.flatnonzero(rows)
    precision = calibration.average_precision[present].mean()
    f1 = calibration.f1[present].mean()
    # The label with the lowest F1; of equal ones, that with the fewest rows.
    order = np.lexsort((rows[present], calibration.f1[present]))
    worst = present[order[0]]
    count = round(float(rows[worst]))
    worst_f1 = percent(float(calibration.f1[worst]))
    return [
        f"Expected (leave-one-out): mean average precision {percent(precision)},"
        f" macro F1 {percent(f1)}.",
        f"To improve: add {inputs} of {head.labels[worst]} ({count} now, F1"
        f" {worst_f1}).",
    ]
