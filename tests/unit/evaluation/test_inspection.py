"""Wrong labels, duplicates and outliers of labelled rows."""

import numpy as np
import pytest

from imprint.embeddings import Skipped
from imprint.evaluation import inspect_rows
from imprint.evaluation.inspection import duplicates, outliers


def clusters(seed=0, n=200, width=16):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 4
    return (3 * np.eye(4, width)[y] + rng.normal(size=(n, width)) * 0.5 + 1).astype(
        np.float32
    ), y


def test_only_copies_and_near_copies_are_duplicates():
    X, _ = clusters()
    assert duplicates(X) == []
    rng = np.random.default_rng(1)
    near = (
        X[7] * 2 + rng.normal(size=16).astype(np.float32) * 0.02
    )  # the length of a row has no effect
    more = np.concatenate([X, X[[5, 5]], near[None]])
    assert duplicates(more) == [[5, 200, 201], [7, 202]]
    assert duplicates(np.tile(X[:3], (4, 1))) == [
        [0, 3, 6, 9],
        [1, 4, 7, 10],
        [2, 5, 8, 11],
    ]


def test_rows_far_from_all_others_are_outliers():
    X, _ = clusters()
    strange = -X[:1] * np.linspace(-3, 5, 16, dtype=np.float32)
    result = outliers(np.concatenate([X, strange]))
    assert result[0] == 200
    assert len(result) <= 3
    assert outliers(X[:10]) == []
    assert outliers(np.ones((50, 4))) == []


def test_an_inspection_names_rows_by_path():
    X, y = clusters()
    z = y.copy()
    z[[3, 50]] = (z[[3, 50]] + 1) % 4
    paths = [f"row {i}" for i in range(201)]
    result = inspect_rows(
        np.concatenate([X, X[:1]]),
        np.append(z, z[0]),
        paths,
        [Skipped(9, "x", "empty")],
    )
    assert list(result.as_json()) == [
        "mislabelled",
        "duplicates",
        "outliers",
        "unreadable",
    ]
    assert {s.path for s in result.mislabelled} == {"row 3", "row 50"}
    assert {s.path: s.suggested for s in result.mislabelled} == {
        "row 3": y[3],
        "row 50": y[50],
    }
    assert result.duplicates == [["row 0", "row 200"]]
    assert result.conflicts == 0
    assert [s.score for s in result.mislabelled] == sorted(
        (s.score for s in result.mislabelled), reverse=True
    )


def test_duplicates_with_different_labels_come_first():
    X, y = clusters()
    paths = [f"row {i}" for i in range(202)]
    result = inspect_rows(
        np.concatenate([X, X[:1], X[9:10]]), np.append(y, [y[0], (y[9] + 1) % 4]), paths
    )
    assert result.duplicates == [["row 9", "row 201"], ["row 0", "row 200"]]
    assert result.conflicts == 1


@pytest.mark.parametrize(
    "labels", [[0] * 6, [0, 1, 2, 3, 4, 5], [0, 0, 0, 0, 0, 1], [0, 0, 0, 1, 1, 1]]
)
def test_few_rows_of_any_labels_are_inspected(labels):
    X = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)
    result = inspect_rows(X, np.array(labels), list("abcdef"))
    assert (result.duplicates, result.conflicts, result.unreadable) == ([], 0, [])
    assert {suspect.path for suspect in result.mislabelled} | set(
        result.outliers
    ) <= set("abcdef")


def test_wrong_tags_are_listed():
    rng, labels = np.random.default_rng(3), np.array(["fear", "joy", "love"])
    Y = (rng.random((300, 3)) < 0.4).astype(int)
    X = (
        Y @ np.random.default_rng(7).normal(size=(3, 10)) * 2
        + rng.normal(size=(300, 10)) * 0.6
    ).astype(np.float32)
    wrong = np.random.default_rng(0).choice(300, 12, replace=False)
    Y[wrong] = 1 - Y[wrong]
    sets = np.array(["|".join(labels[row == 1]) for row in Y])
    result = inspect_rows(
        X, sets, [str(i) for i in range(300)], tags=tuple(labels.tolist())
    )
    listed = [int(s.path) for s in result.mislabelled]
    assert len(set(listed) & set(wrong.tolist())) >= 8
    assert len(set(listed) - set(wrong.tolist())) <= 4
    assert all(s.label == sets[int(s.path)] != s.suggested for s in result.mislabelled)
    assert [s.score for s in result.mislabelled] == sorted(
        (s.score for s in result.mislabelled), reverse=True
    )
