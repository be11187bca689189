"""Results of a model of tags: average precision and F1 of each label."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from imprint.core.arrays import Array
from imprint.core.errors import percent
from imprint.core.label_sets import indicator, texts_of
from imprint.embeddings import Skipped
from imprint.evaluation.evaluation import (
    JsonResult,
    Label,
    ratio,
    reliability,
    unreadable,
)
from imprint.tags import TagHead
from imprint.tags.calibration import average_precision, f1_scores


class PerLabel(NamedTuple):
    """Results of one label; average precision and recall are None where no row has it,
    precision where it is never predicted.
    """

    label: Label
    rows: int
    average_precision: float | None
    f1: float
    precision: float | None
    recall: float | None


class TagMistake(NamedTuple):
    """A row whose labels are not all predicted correctly, and the probability of the
    least expected error.
    """

    path: str
    labels: list[str]
    predicted: list[str]
    probability: float


@dataclass(frozen=True)
class TagEvaluation(JsonResult):
    """Results of a model of tags on labelled rows.

    Means are over the labels that some row has.
    """

    mean_average_precision: float
    macro_f1: float
    micro_f1: float
    accuracy: float  # the share of rows all of whose labels are predicted correctly
    rows: int
    labels: list[Label]
    per_label: list[PerLabel]
    # the mean gap between probabilities and frequencies over ten bins
    calibration_error: float
    mistakes: list[TagMistake]  # the least expected first
    unreadable: list[dict[str, str]]
    # labels of the rows that the model does not have and never predicts
    unknown: list[Label] = field(repr=False)
    reliability: list[tuple[int, float, float]] = field(repr=False)

    def summary(self) -> str:
        """The means over the labels in one line."""
        f1 = f"macro F1 {percent(self.macro_f1)}, micro F1 {percent(self.micro_f1)}"
        return f"Mean average precision {percent(self.mean_average_precision)}, {f1}"


def tag_evaluation(
    head: TagHead,
    X: Array,
    y: Array,
    names: Sequence[str],
    skipped: Sequence[Skipped] = (),
) -> TagEvaluation:
    """Compare the predictions for rows X with their label sets `y`."""
    unknown = _unknown_labels(head, y)
    labels = [*head.labels, *unknown]
    # Labels that the model does not have are never predicted.
    padding = ((0, 0), (0, len(unknown)))
    S = np.asarray(head.scores(X.astype(head.imprinted.dtype, copy=False)))
    P = np.pad(head.probabilities(S), padding)
    predicted = np.pad(head.calibration.thresholds <= S, padding)
    truth = indicator(y.tolist(), labels) == 1
    precisions = average_precision(P, truth)
    f1 = f1_scores(predicted, truth)
    present = truth.any(axis=0)
    micro_f1 = f1_scores(predicted.reshape(-1, 1), truth.reshape(-1, 1))
    bins = reliability(P.ravel(), truth.ravel())
    gaps = [count * abs(mean - share) for count, mean, share in bins]
    mistakes = _mistakes(truth, predicted, P, labels, names)
    return TagEvaluation(
        mean_average_precision=_mean(precisions[present]),
        macro_f1=_mean(f1[present]),
        micro_f1=float(micro_f1[0]),
        accuracy=1 - len(mistakes) / len(y),
        rows=len(y),
        labels=labels,
        per_label=_per_label(labels, truth, predicted, precisions, f1),
        calibration_error=sum(gaps) / P.size,
        mistakes=mistakes,
        unreadable=unreadable(skipped),
        unknown=unknown,
        reliability=bins,
    )


def _unknown_labels(head: TagHead, y: Array) -> list[Label]:
    """The labels of some label sets that a model does not have."""
    present: set[object] = set()
    for label_set in np.unique(y).tolist():
        present.update(texts_of(label_set))
    known = {str(label) for label in head.labels}
    return sorted(present - known, key=str)


def _mean(values: Array) -> float:
    """The mean; 0 if there are none."""
    return float(np.mean(values)) if len(values) else 0.0


def _per_label(
    labels: Sequence[Label],
    truth: Array,
    predicted: Array,
    precisions: Array,
    f1: Array,
) -> list[PerLabel]:
    """The results of every label."""
    rows = truth.sum(axis=0).tolist()
    predictions = predicted.sum(axis=0).tolist()
    hits = (truth & predicted).sum(axis=0).tolist()
    averages = precisions.tolist()
    scores = f1.tolist()
    per_label = []
    for i, label in enumerate(labels):
        result = PerLabel(
            label=label,
            rows=rows[i],
            average_precision=averages[i] if rows[i] else None,
            f1=scores[i],
            precision=ratio(hits[i], predictions[i]),
            recall=ratio(hits[i], rows[i]),
        )
        per_label.append(result)
    return per_label


def _mistakes(
    truth: Array,
    predicted: Array,
    P: Array,
    labels: Sequence[Label],
    names: Sequence[str],
) -> list[TagMistake]:
    """The rows whose labels are not all predicted correctly, the least expected
    first.
    """
    differ = predicted != truth
    # The probability that the model gave to the opposite of what is true.
    error = np.where(differ, np.abs(truth - P), 0).max(axis=1)

    def labels_of(row: Array) -> list[str]:
        return [str(labels[c]) for c in np.flatnonzero(row).tolist()]

    mistakes = []
    for i in np.argsort(-error, kind="stable").tolist():
        if not differ[i].any():
            continue
        mistake = TagMistake(
            path=names[i],
            labels=labels_of(truth[i]),
            predicted=labels_of(predicted[i]),
            probability=float(error[i]),
        )
        mistakes.append(mistake)
    return mistakes
