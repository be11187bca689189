"""What is wrong with labelled rows, before anything is made from them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from imprint import recipes
from imprint.calibration import out_of_fold
from imprint.core.types import Array
from imprint.embeddings import Skipped
from imprint.evaluation.anomalies import duplicates, outliers
from imprint.evaluation.evaluation import unreadable
from imprint.evaluation.label_errors import Suspect, mislabelled
from imprint.method import Method

RECIPE = "kernel"


@dataclass(frozen=True)
class Inspection:
    """What a person should look at in a folder or table."""

    mislabelled: list[Suspect]
    """The most suspect first."""
    duplicates: list[list[str]]
    outliers: list[str]
    """The farthest first."""
    unreadable: list[dict[str, str]]

    def as_json(self) -> dict[str, Any]:
        """The public keys, with plain values."""
        return {**vars(self), "mislabelled": [s._asdict() for s in self.mislabelled]}


def inspect_rows(X: Array, y: Array, names: Sequence[str], skipped: Sequence[Skipped] = ()) -> Inspection:
    """Labels that are likely wrong, duplicates and outliers among labelled embeddings.

    Labels are judged by models made of the other folds; a class of one row cannot be judged and is left out of that.
    """
    return Inspection(
        mislabelled=_suspects(X, y, names),
        duplicates=[[names[i] for i in group] for group in duplicates(X)],
        outliers=[names[i] for i in outliers(X)],
        unreadable=unreadable(skipped),
    )


def _suspects(X: Array, y: Array, names: Sequence[str]) -> list[Suspect]:
    _, index, counts = np.unique(y, return_inverse=True, return_counts=True)
    several = np.flatnonzero(counts[index] > 1)
    if np.sum(counts > 1) < 2:
        return []
    method = Method.of(**recipes.describe(RECIPE).parts())
    answers = out_of_fold(method, 0, X[several], y[several])
    judged = np.flatnonzero(answers.assessed & np.isfinite(answers.scores).all(axis=1))
    found = mislabelled(answers.scores[judged], answers.shares[judged], answers.own[judged])
    P, labels = answers.probabilities(), answers.classes.tolist()
    rows = [(int(judged[i]), suggested) for i, suggested in found]
    own = [labels[answers.own[i]] for i, _ in rows]
    return [Suspect(names[several[i]], own[k], labels[c], float(P[i, c])) for k, (i, c) in enumerate(rows)]
