"""Expected accuracy of a calibrated model and how to raise it, in sentences."""

from typing import Any

import numpy as np

from imprint.calibration import CrossValidation, OutOfFold
from imprint.calibration.caveats import caveats
from imprint.head import Decider


def describe_expected(head: Decider, inputs: str) -> list[str]:
    """Expected accuracy with its interval, the most confused pair of classes, and the class that needs more rows."""
    folds = head.imprinted.folds
    if not head.calibrated or not isinstance(folds, CrossValidation):
        return []
    calibration, answers = folds.calibration, folds.answers
    if len(head) == 1:
        return ["Expected accuracy: not available with one class; add a second class."]
    if not np.isfinite(calibration.expected_accuracy):
        return [f"Expected accuracy: not available; give at least two {inputs} of every class."]
    low, high = (100 * end for end in calibration.expected_interval)
    accuracy = percent(calibration.expected_accuracy)
    lines = [f"Expected accuracy: {accuracy} (95 % interval {low:.1f}-{high:.1f} %).", *caveats(folds, inputs)]
    if pair := most_confused(answers):
        lines.append(f"Most confused: {pair[0]!s} predicted as {pair[1]!s} ({percent(pair[2])} of {pair[0]!s}).")
    label, recall, rows = weakest_class(answers)
    if not np.isfinite(recall):
        lines.append(f"To improve: add {inputs} of {label!s} ({rows} now, too few to measure recall).")
    elif recall < calibration.expected_accuracy:
        lines.append(f"To improve: add {inputs} of {label!s} ({rows} now, recall {percent(recall)}).")
    return lines


def most_confused(answers: OutOfFold) -> tuple[Any, Any, float] | None:
    """The class with the largest share of rows predicted as one other class, that other class, and the share."""
    rows, C = answers.assessed, len(answers.classes)
    counts = np.zeros((C, C))
    np.add.at(counts, (answers.own[rows], answers.winners[rows]), 1)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    np.fill_diagonal(shares, 0)
    a, b = divmod(int(shares.argmax()), C)
    return (answers.classes[a], answers.classes[b], float(shares[a, b])) if shares[a, b] > 0 else None


def weakest_class(answers: OutOfFold) -> tuple[Any, float, int]:
    """The class with the lowest recall, its recall (NaN where it cannot be measured), and its rows."""
    C = len(answers.classes)
    rows = np.rint(np.bincount(answers.own, answers.weight, minlength=C)).astype(int)
    assessed = np.bincount(answers.own[answers.assessed], minlength=C)
    correct = np.bincount(answers.own[answers.assessed], answers.right[answers.assessed], minlength=C)
    recall = np.divide(correct, assessed, out=np.full(C, np.nan), where=assessed > 0)
    c = int(np.lexsort((rows, np.nan_to_num(recall, nan=-1.0)))[0])
    return answers.classes[c], float(recall[c]), int(rows[c])


def percent(share: float) -> str:
    """`98.1 %`."""
    return f"{100 * share:.1f} %"
