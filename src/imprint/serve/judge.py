"""How good the model is, from its own items: every one is decided by a model that has not seen it."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from imprint.calibration import Calibration, CrossValidation, OutOfFold, predict_out_of_fold
from imprint.core.types import Array
from imprint.evaluation.anomalies import duplicates
from imprint.evaluation.label_errors import mislabelled
from imprint.serve.learnt import Basis, Rows, in_order
from imprint.serve.taught import Item, Taught

MOST_LISTED = 60
FEW = 5
"""Classes with fewer items are the first that need more."""


class Judgement(NamedTuple):
    """What the folds say of every item, and what follows for the whole model."""

    revision: int = -1
    folds: CrossValidation | None = None
    items: tuple[Item, ...] = ()
    """Those that were judged, in the order of the answers."""
    answers: OutOfFold | None = None
    duplicates: tuple[tuple[int, ...], ...] = ()
    """Numbers of items that are nearly the same."""

    @property
    def classes(self) -> list[str]:
        """The labels in the order of the answers."""
        return [] if self.answers is None else self.answers.classes.tolist()

    @property
    def calibration(self) -> Calibration | None:
        """How scores become true probabilities; None before anything was judged."""
        return self.folds.calibration if self.folds is not None and self.answers is not None else None


def refolded(
    before: CrossValidation | None, basis: Basis, taught: Taught, rows: Rows, labels: set[str]
) -> CrossValidation:
    """The folds once these classes are learnt again, each from its own items alone."""
    folds = before or CrossValidation.new(basis.method, basis.seed, np.float32)
    for label in labels:
        folds = folds.forget(label) if label in folds.held else folds
    items = [item for own in in_order(taught, labels).values() for item in own]
    if not items:
        return folds
    return folds.learn(np.stack([rows[i.digest] for i in items]), np.array([i.label for i in items]))


def judged(folds: CrossValidation, taught: Taught, rows: Rows, revision: int) -> Judgement:
    """Decide every item by the model that has not seen it."""
    by_class = in_order(taught, taught.classes)
    items = tuple(item for own in by_class.values() for item in own)
    if len(folds.held) < 2 or len(items) <= len(folds.held):
        return Judgement(revision, folds)
    X = np.stack([rows[i.digest] for i in items])
    fold = folds.folds_of(X, np.array([i.label for i in items]))
    classes, own = np.unique([i.label for i in items], return_inverse=True)
    answers = predict_out_of_fold(folds.heads, X, own, fold, classes, np.ones(len(items)))
    groups = tuple(tuple(items[n].id for n in group) for group in duplicates(X))
    return Judgement(revision, folds, items, answers, groups)


def as_json(judgement: Judgement, taught: Taught) -> dict[str, Any]:
    """What the page shows under Judge."""
    answers, calibration = judgement.answers, judgement.calibration
    if answers is None or calibration is None or not answers.assessed.any():
        return {"revision": judgement.revision, "ready": False, "advice": _advice(taught, {}, [])}
    classes, P = answers.classes.tolist(), calibration.probabilities(answers.shares)
    counts = np.zeros((len(classes), len(classes)), dtype=int)
    np.add.at(counts, (answers.own[answers.assessed], answers.winners[answers.assessed]), 1)
    wrong = np.flatnonzero(answers.assessed & ~answers.right).tolist()
    mistakes = [_mistake(judgement.items[n], classes[answers.winners[n]], P[n, answers.winners[n]]) for n in wrong]
    recall = {k: counts[c, c] / counts[c].sum() for c, k in enumerate(classes) if counts[c].sum()}
    return {
        "revision": judgement.revision,
        "ready": True,
        "rows": int(answers.assessed.sum()),
        "accuracy": calibration.expected_accuracy,
        "interval": list(calibration.expected_interval),
        "classes": classes,
        "confusion": counts.tolist(),
        "mistakes": mistakes,
        "mislabelled": _mislabelled(judgement, P)[:MOST_LISTED],
        "duplicates": [list(group) for group in judgement.duplicates[:MOST_LISTED]],
        "advice": _advice(taught, recall, mistakes),
    }


def _mislabelled(judgement: Judgement, P: Array) -> list[dict[str, Any]]:
    """Items that are likely in the wrong class, the most suspect first."""
    answers = judgement.answers
    if answers is None:
        return []
    rows = np.flatnonzero(answers.assessed & np.isfinite(answers.scores).all(axis=1))
    found = mislabelled(answers.scores[rows], answers.shares[rows], answers.own[rows])
    return [_mistake(judgement.items[rows[n]], judgement.classes[c], P[rows[n], c]) for n, c in found]


def _mistake(item: Item, predicted: str, probability: Array) -> dict[str, Any]:
    return {"id": item.id, "label": item.label, "predicted": predicted, "probability": round(float(probability), 4)}


def _advice(taught: Taught, recall: Mapping[str, float], mistakes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What would help most, the first thing first: classes with few items, then classes that are often missed."""
    sizes = {label: len(own) for label, own in taught.by_class().items() if taught.classes[label] is None}
    found: list[dict[str, Any]] = [] if len(taught.classes) > 1 else [{"kind": "class"}]
    few = sorted((n, label) for label, n in sizes.items() if n < FEW)
    found += [{"kind": "few", "label": label, "count": n} for n, label in few[:3]]
    for label, share in sorted(recall.items(), key=lambda pair: pair[1]):
        taken_for = Counter(m["predicted"] for m in mistakes if m["label"] == label).most_common(1)
        if share < 0.9 and taken_for and sizes.get(label, 0) >= FEW:
            found.append({"kind": "confused", "label": label, "with": taken_for[0][0], "recall": float(share)})
    return found[:5]
