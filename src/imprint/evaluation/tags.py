"""Results of a model of tags: average precision and F1 of each label."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from imprint.core.arrays import Array
from imprint.core.errors import percent
from imprint.core.label_sets import indicator, texts_of
from imprint.embeddings import Skipped
from imprint.evaluation.evaluation import JsonResult, ratio, reliability, unreadable
from imprint.tags import TagHead
from imprint.tags.calibration import average_precision, f1_scores


class PerLabel(NamedTuple):
    """Results of one label; average precision and recall are None where no row has it,
    precision where it is never predicted.
    """

    label: Any
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
    """Results of a model of tags on labelled rows. Means are over the labels that some
    row has.
    """

    mean_average_precision: float
    macro_f1: float
    micro_f1: float
    accuracy: float  # the share of rows all of whose labels are predicted correctly
    rows: int
    labels: list[Any]
    per_label: list[PerLabel]
    # the mean gap between probabilities and frequencies over ten bins
    calibration_error: float
    mistakes: list[TagMistake]  # the least expected first
    unreadable: list[dict[str, str]]
    # labels of the rows that the model does not have and never predicts
    unknown: list[Any] = field(repr=False)
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
    present_labels = {
        text for label_set in np.unique(y).tolist() for text in texts_of(label_set)
    }
    unknown = sorted(present_labels - set(map(str, head.labels)))
    labels = [*head.labels, *unknown]
    padding = ((0, 0), (0, len(unknown)))
    S = np.asarray(head.scores(X.astype(head.imprinted.dtype, copy=False)))
    P, predicted = (
        np.pad(head.probabilities(S), padding),
        np.pad(head.calibration.thresholds <= S, padding),
    )
    truth = indicator(y.tolist(), labels) == 1
    present = truth.any(axis=0)
    precisions, f1 = average_precision(P, truth), f1_scores(predicted, truth)
    counts = (
        counted.sum(axis=0).tolist()
        for counted in (truth, predicted, truth & predicted)
    )
    bins = reliability(P.ravel(), truth.ravel())
    differ = predicted != truth
    error = np.where(differ, np.abs(truth - P), 0).max(axis=1)
    wrong = [i for i in np.argsort(-error, kind="stable").tolist() if differ[i].any()]

    def labels_of(row: Array) -> list[str]:
        return [str(labels[c]) for c in np.flatnonzero(row)]

    return TagEvaluation(
        mean_average_precision=(
            float(np.mean(precisions[present])) if present.any() else 0.0
        ),
        macro_f1=float(np.mean(f1[present])) if present.any() else 0.0,
        micro_f1=float(f1_scores(predicted.reshape(-1, 1), truth.reshape(-1, 1))[0]),
        accuracy=1 - len(wrong) / len(y),
        rows=len(y),
        labels=labels,
        per_label=[
            PerLabel(
                label,
                rows,
                average if rows else None,
                score,
                ratio(hits, predictions),
                ratio(hits, rows),
            )
            for label, average, score, rows, predictions, hits in zip(
                labels, precisions.tolist(), f1.tolist(), *counts
            )
        ],
        calibration_error=sum(n * abs(p - share) for n, p, share in bins) / P.size,
        mistakes=[
            TagMistake(
                names[i], labels_of(truth[i]), labels_of(predicted[i]), float(error[i])
            )
            for i in wrong
        ],
        unreadable=unreadable(skipped),
        unknown=unknown,
        reliability=bins,
    )
