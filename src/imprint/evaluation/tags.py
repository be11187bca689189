"""Models and data of tags: average precision and F1 of each label, and labels to check."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from imprint.core.errors import printable
from imprint.core.label_sets import as_text, indicator, texts_of
from imprint.core.types import Array
from imprint.embeddings import Skipped
from imprint.evaluation.evaluation import percent, ratio, reliability, unreadable
from imprint.evaluation.label_errors import Suspect
from imprint.evaluation.labelled_rows import LabelledRows
from imprint.evaluation.page.document import PageItems, document
from imprint.head import Head
from imprint.tags import TagHead
from imprint.tags.calibration import average_precision, f1_scores, leave_one_out
from imprint.tags.head import default_method, predicted_sets

SCRIPTS = ("dom", "numbers", "cards", "bars", "reliability", "tags")
MAX_MISTAKES = 100
IMPLAUSIBLE = 0.05
"""Maximum probability that a label to check is present, or absent, as the data say."""
LIKELY = 0.5
"""Minimum probability of a label that is suggested."""


class PerLabel(NamedTuple):
    """Results of one label; average precision and recall are None where no row has it, precision where it is never
    predicted."""

    label: Any
    rows: int
    average_precision: float | None
    f1: float
    precision: float | None
    recall: float | None


class TagMistake(NamedTuple):
    """A row whose labels are not all predicted correctly, and the probability of the least expected error."""

    path: str
    labels: list[str]
    predicted: list[str]
    probability: float


@dataclass(frozen=True)
class TagEvaluation:
    """Results of a model of tags on labelled rows. Means are over the labels that some row has."""

    mean_average_precision: float
    macro_f1: float
    micro_f1: float
    accuracy: float
    """The share of rows all of whose labels are predicted correctly."""
    rows: int
    labels: list[Any]
    per_label: list[PerLabel]
    calibration_error: float
    """The mean gap between probabilities and frequencies over ten bins."""
    mistakes: list[TagMistake]
    """The least expected first."""
    unreadable: list[dict[str, str]]
    unknown: list[Any]
    """Labels of the rows that the model does not have; their average precision and F1 count as 0."""
    reliability: list[tuple[int, float, float]]

    def as_json(self) -> dict[str, Any]:
        """The public keys, with plain values."""
        fields = {key: value for key, value in asdict(self).items() if key not in ("unknown", "reliability")}
        fields["per_label"] = [one._asdict() for one in self.per_label]
        return fields | {"mistakes": [one._asdict() for one in self.mistakes]}

    def summary(self) -> str:
        """The three figures in one line."""
        figures = percent(self.mean_average_precision), percent(self.macro_f1), percent(self.micro_f1)
        return "mean average precision {}, macro F1 {}, micro F1 {}".format(*figures)


def tag_evaluation(
    head: TagHead, X: Array, y: Array, names: Sequence[str], skipped: Sequence[Skipped] = ()
) -> TagEvaluation:
    """Compare the predictions for rows X with their label sets `y`."""
    known = set(map(str, head.labels))
    unknown = sorted({text for one in np.unique(y).tolist() for text in texts_of(one)} - known)
    labels, extra = [*head.labels, *unknown], ((0, 0), (0, len(unknown)))
    S = np.asarray(head.scores(X.astype(head.imprinted.dtype, copy=False)))
    Y, P = indicator(y.tolist(), labels), np.pad(head.probabilities(S), extra)
    predicted = np.pad(head.calibration.thresholds <= S, extra)
    precisions, f1, present = average_precision(P, Y), f1_scores(predicted, Y), Y.any(axis=0)
    bins = reliability(P.ravel(), Y.ravel())
    both = (predicted & (Y == 1)).sum(axis=0)
    per_label = [
        PerLabel(label, int(n), float(ap) if n else None, float(f), ratio(b, k), ratio(b, n))
        for label, n, ap, f, b, k in zip(labels, Y.sum(axis=0), precisions, f1, both, predicted.sum(axis=0))
    ]
    error = np.where(predicted != (Y == 1), np.abs(Y - P), 0).max(axis=1)
    wrong = [i for i in np.argsort(-error, kind="stable").tolist() if (predicted[i] != (Y[i] == 1)).any()]
    truth, answers = predicted_sets(Y, labels), predicted_sets(predicted, labels)
    return TagEvaluation(
        mean_average_precision=float(np.mean(precisions[present])) if present.any() else 0.0,
        macro_f1=float(np.mean(f1[present])) if present.any() else 0.0,
        micro_f1=float(f1_scores(predicted.reshape(-1, 1), Y.reshape(-1, 1))[0]),
        accuracy=1 - len(wrong) / len(Y),
        rows=len(Y),
        labels=labels,
        per_label=per_label,
        calibration_error=sum(n * abs(p - share) for n, p, share in bins) / P.size,
        mistakes=[TagMistake(names[i], texts_of(truth[i]), texts_of(answers[i]), float(error[i])) for i in wrong],
        unreadable=unreadable(skipped),
        unknown=unknown,
        reliability=bins,
    )


def tag_page(title: str, result: TagEvaluation, rows: LabelledRows) -> str:
    """The HTML of an evaluation of tags."""
    row_of = {path: i for i, path in enumerate(rows.paths)}
    shown = {row_of[one.path]: one for one in result.mistakes[:MAX_MISTAKES]}

    def facts(i: int) -> dict[str, Any]:
        one = shown[i]
        return {"label": as_text(one.labels) or "no label", "predicted": as_text(one.predicted) or "no label"}

    items = PageItems(rows, facts)
    data = {
        "figures": [result.mean_average_precision, result.macro_f1, result.micro_f1, result.calibration_error],
        "per_label": [[printable(one.label, 60), *one[1:]] for one in result.per_label],
        "mistakes": [items.index(i) for i in shown],
        "all_mistakes": len(result.mistakes),
        "items": items.items,
        "reliability": result.reliability,
        "unreadable": [{"path": rows.relative(one["path"]), "reason": one["reason"]} for one in result.unreadable],
    }
    lead = result.summary()
    return document(title, f"{lead[0].upper()}{lead[1:]}, {result.rows:,} rows", SCRIPTS, data)


def describe_tags(head: TagHead, inputs: str) -> list[str]:
    """What leave-one-out predictions tell about a model, and the label that needs more rows."""
    calibration, rows = head.calibration, head.rows_per_class
    present = np.flatnonzero(rows)
    precision, f1 = calibration.average_precision[present].mean(), calibration.f1[present].mean()
    worst = present[np.lexsort((rows[present], calibration.f1[present]))[0]]
    count, share = round(float(rows[worst])), percent(float(calibration.f1[worst]))
    return [
        f"Expected (leave-one-out): mean average precision {percent(precision)}, macro F1 {percent(f1)}.",
        f"To improve: add {inputs} of {head.labels[worst]!s} ({count} now, F1 {share}).",
    ]


def tag_suspects(X: Array, y: Array, labels: tuple[Any, ...], names: Sequence[str]) -> list[Suspect]:
    """Rows with a label whose leave-one-out probability is tiny, or without one that is all but certain."""
    head = TagHead(Head(default_method(), 0, X.dtype), labels).learn(X, y)
    order = np.argsort(np.searchsorted(head.imprinted.classes, y), kind="stable")  # of the proxies
    predictions = leave_one_out(head)
    P, Y = head.probabilities(predictions.scores), predictions.targets
    stated = np.where(Y == 1, P, 1 - P)
    better = np.where(stated < IMPLAUSIBLE, 1 - Y, Y) | (P >= LIKELY)
    suspects = []
    for i in np.flatnonzero((stated.min(axis=1) < IMPLAUSIBLE) & better.any(axis=1) & (better != Y).any(axis=1)):
        c = int(stated[i].argmin())
        given, suggested = predicted_sets(np.stack([Y[i], better[i]]), labels)
        row, score = order[predictions.rows[i]], -float(np.log(stated[i, c]))
        suspects.append(Suspect(names[row], given, suggested, float(1 - stated[i, c]), round(score, 3)))
    return sorted(suspects, key=lambda one: -one.score)
