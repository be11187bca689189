"""Problems in labelled data: label errors, duplicates, outliers and unreadable inputs."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from imprint import recipes
from imprint.calibration import out_of_fold
from imprint.core.types import Array
from imprint.embeddings import Skipped
from imprint.evaluation.anomalies import duplicates, outliers
from imprint.evaluation.evaluation import unreadable
from imprint.evaluation.label_errors import Suspect, label_errors
from imprint.method import Method

RECIPE = "kernel"


@dataclass(frozen=True)
class Inspection:
    """What a person should check in a folder or table."""

    mislabelled: list[Suspect]
    """Labels to check, the highest score first."""
    duplicates: list[list[str]]
    """Groups with different labels first."""
    outliers: list[str]
    """The farthest first."""
    unreadable: list[dict[str, str]]
    conflicts: int = field(default=0, compare=False)
    """The number of groups of duplicates with different labels; they are the first ones in `duplicates`."""

    def as_json(self) -> dict[str, Any]:
        """The public keys, with plain values."""
        return {
            "mislabelled": [s._asdict() for s in self.mislabelled],
            "duplicates": self.duplicates,
            "outliers": self.outliers,
            "unreadable": self.unreadable,
        }


def inspect_rows(X: Array, y: Array, names: Sequence[str], skipped: Sequence[Skipped] = ()) -> Inspection:
    """Find label errors, duplicates and outliers among labelled embeddings.

    Labels are compared with the predictions of five cross-validation models. Classes with one row are left out of that.
    """
    groups = duplicates(X)
    conflicting = [group for group in groups if len(np.unique(y[group])) > 1]
    ordered = [*conflicting, *(group for group in groups if group not in conflicting)]
    return Inspection(
        mislabelled=_suspects(X, y, names),
        duplicates=[[names[i] for i in group] for group in ordered],
        outliers=[names[i] for i in outliers(X)],
        unreadable=unreadable(skipped),
        conflicts=len(conflicting),
    )


def _suspects(X: Array, y: Array, names: Sequence[str]) -> list[Suspect]:
    _, index, counts = np.unique(y, return_inverse=True, return_counts=True)
    several = np.flatnonzero(counts[index] > 1)
    if np.sum(counts > 1) < 2:
        return []
    method = Method.of(**recipes.describe(RECIPE).parts())
    answers = out_of_fold(method, 0, X[several], y[several])
    rows = np.flatnonzero(answers.assessed & np.isfinite(answers.scores).all(axis=1))
    P, labels, given = answers.probabilities(), answers.classes.tolist(), answers.own
    errors = label_errors(answers.scores[rows], answers.shares[rows], P[rows], given[rows])
    return [
        Suspect(names[several[i]], labels[given[i]], labels[c], float(P[i, c]), round(score, 3))
        for i, c, score in ((int(rows[e.row]), e.suggested, e.score) for e in errors)
    ]
