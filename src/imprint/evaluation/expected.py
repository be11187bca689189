"""The expected accuracy of a model in sentences, and what would improve it."""

import numpy as np

from imprint.calibration import CrossValidation, OutOfFold
from imprint.calibration.caveats import caveats
from imprint.evaluation.evaluation import percent
from imprint.head import Decider
from imprint.tags import TagHead


def describe_expected(head: Decider, inputs: str) -> list[str]:
    """Expected accuracy with its interval, the most confused pair of classes, and the class that needs more rows."""
    if isinstance(head, TagHead):
        return _describe_tags(head, inputs)
    folds = head.imprinted.folds
    if not head.calibrated or not isinstance(folds, CrossValidation):
        return []
    calibration = folds.calibration
    if len(head) == 1:
        return ["Expected accuracy: not available with one class; add a second class."]
    if not np.isfinite(calibration.expected_accuracy):
        return [f"Expected accuracy: not available; give at least two {inputs} of every class."]
    low, high = (100 * end for end in calibration.expected_interval)
    accuracy = percent(calibration.expected_accuracy)
    lines = [f"Expected accuracy: {accuracy} (95 % interval {low:.1f}-{high:.1f} %).", *caveats(folds, inputs)]
    return lines + _weaknesses(folds.answers, calibration.expected_accuracy, inputs)


def _weaknesses(answers: OutOfFold, expected_accuracy: float, inputs: str) -> list[str]:
    """The pair of classes that is confused most, and the class with the lowest recall."""
    labels, C, assessed = answers.classes, len(answers.classes), answers.assessed
    confusion = np.bincount(answers.true[assessed] * C + answers.winners[assessed], minlength=C * C).reshape(C, C)
    shares = confusion / np.maximum(confusion.sum(axis=1, keepdims=True), 1)
    recall = np.where(confusion.any(axis=1), np.diag(shares), np.nan)  # NaN where no row was predicted
    np.fill_diagonal(shares, 0)
    lines, (a, b) = [], divmod(int(shares.argmax()), C)
    if shares[a, b] > 0:
        lines.append(f"Most confused: {labels[a]} predicted as {labels[b]} ({percent(shares[a, b])} of {labels[a]}).")
    rows = np.rint(np.bincount(answers.true, answers.weight, minlength=C)).astype(int)
    c = int(np.lexsort((rows, np.nan_to_num(recall, nan=-1.0)))[0])
    if not recall[c] >= expected_accuracy:
        known = "too few to measure recall" if np.isnan(recall[c]) else f"recall {percent(recall[c])}"
        lines.append(f"To improve: add {inputs} of {labels[c]} ({rows[c]} now, {known}).")
    return lines


def _describe_tags(head: TagHead, inputs: str) -> list[str]:
    """What leave-one-out predictions tell about a model of tags, and the label that needs more rows."""
    calibration, rows = head.calibration, head.rows_per_class
    present = np.flatnonzero(rows)
    precision, f1 = calibration.average_precision[present].mean(), calibration.f1[present].mean()
    worst = present[np.lexsort((rows[present], calibration.f1[present]))[0]]
    count, share = round(float(rows[worst])), percent(float(calibration.f1[worst]))
    return [
        f"Expected (leave-one-out): mean average precision {percent(precision)}, macro F1 {percent(f1)}.",
        f"To improve: add {inputs} of {head.labels[worst]} ({count} now, F1 {share}).",
    ]
