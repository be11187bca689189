"""What a calibrated model says about itself, in sentences."""

from typing import Any

import numpy as np

from imprint.calibration import CrossValidation, OutOfFold
from imprint.calibration.caveats import caveats
from imprint.head import Decider


def judgement(head: Decider, things: str) -> list[str]:
    """Expected accuracy, the two classes it confuses most, and of what more would help."""
    folds = head.imprinted.folds
    if not head.calibrated or not isinstance(folds, CrossValidation):
        return []
    found, answers = folds.calibration, folds.answers
    if len(head) == 1 or not np.isfinite(found.expected_accuracy):
        return caveats(folds, things)
    low, high = found.expected_interval
    lines = [
        f"Expected accuracy: {_percent(found.expected_accuracy)} (95 % interval {_percent(low)} to {_percent(high)})."
    ]
    lines += caveats(folds, things)
    if pair := most_confused(answers):
        lines.append(f"Confused most: {pair[0]!s} taken for {pair[1]!s}, {_percent(pair[2])} of them.")
    label, recall, rows = weakest(answers)
    if recall < found.expected_accuracy:
        lines.append(f"What would help: more {things} of {label!s} ({rows} now, recall {_percent(recall)}).")
    return lines


def most_confused(answers: OutOfFold) -> tuple[Any, Any, float] | None:
    """The class of which the largest share is taken for one other, that other, and the share; None where none is."""
    rows, C = answers.assessed, len(answers.classes)
    counts = np.zeros((C, C))
    np.add.at(counts, (answers.own[rows], answers.winners[rows]), 1)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    np.fill_diagonal(shares, 0)
    a, b = divmod(int(shares.argmax()), C)
    return (answers.classes[a], answers.classes[b], float(shares[a, b])) if shares[a, b] > 0 else None


def weakest(answers: OutOfFold) -> tuple[Any, float, int]:
    """The class of the lowest recall, its recall (NaN where no class could be assessed), and its rows."""
    C = len(answers.classes)
    rows = np.rint(np.bincount(answers.own, answers.weight, minlength=C)).astype(int)
    judged = np.bincount(answers.own[answers.assessed], minlength=C)
    right = np.bincount(answers.own[answers.assessed], answers.right[answers.assessed], minlength=C)
    recall = np.divide(right, judged, out=np.full(C, np.nan), where=judged > 0)
    c = int(np.lexsort((rows, np.nan_to_num(recall, nan=2.0)))[0])
    return answers.classes[c], float(recall[c]), int(rows[c])


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
