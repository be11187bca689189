"""Evaluation, wrong labels, duplicates, outliers and the map, as pure functions."""

import json

import numpy as np
import pytest

from imprint.core.errors import ParameterError
from imprint.embeddings import Skipped
from imprint.evaluation import evaluation, inspect_rows
from imprint.evaluation.inspection import duplicates, outliers
from imprint.evaluation.label_errors import label_error_scores, label_errors
from imprint.evaluation.projection import project

KEYS = [
    "accuracy",
    "balanced_accuracy",
    "rows",
    "classes",
    "confusion",
    "per_class",
    "calibration_error",
    "mistakes",
    "unreadable",
]


def test_an_evaluation_counts_what_is_called_what():
    P = np.array([[0.7, 0.2, 0.1], [0.6, 0.3, 0.1], [0.1, 0.8, 0.1], [0.2, 0.7, 0.1], [0.9, 0.1, 0.0]])
    y = np.array(["ant", "ant", "bee", "ant", "eel"])
    result = evaluation(P, np.array(["ant", "bee", "cat"]), y, list("vwxyz"), [Skipped(5, "bad.png", "not a picture")])
    assert result.classes == ["ant", "bee", "cat", "eel"]
    assert result.confusion == [[2, 1, 0, 0], [0, 1, 0, 0], [0, 0, 0, 0], [1, 0, 0, 0]]
    assert result.accuracy == pytest.approx(3 / 5)
    assert result.balanced_accuracy == pytest.approx((2 / 3 + 1 + 0) / 3)  # "cat" has no rows
    assert result.unknown == ["eel"]
    assert [tuple(c) for c in result.per_class] == [
        ("ant", 3, pytest.approx(2 / 3), pytest.approx(2 / 3)),
        ("bee", 1, 1.0, 0.5),
        ("cat", 0, None, None),
        ("eel", 1, 0.0, None),
    ]
    assert [tuple(m) for m in result.mistakes] == [("z", "eel", "ant", 0.9), ("y", "ant", "bee", 0.7)]
    assert result.calibration_error == pytest.approx((abs(0.3 - 0.7) + 0.4 + 0.2 + 0.9) / 5)
    plain = result.as_json()
    assert list(plain) == KEYS
    assert json.loads(json.dumps(plain))["mistakes"][0] == {
        "path": "z",
        "label": "eel",
        "predicted": "ant",
        "probability": 0.9,
    }
    assert plain["unreadable"] == [{"path": "bad.png", "reason": "not a picture"}]


def test_rows_of_unknown_classes_are_never_right_for_the_calibration():
    P = np.tile([1.0, 0.0], (4, 1))
    result = evaluation(P, np.array([1, 2]), np.array([0, 0, 0, 0]), list("abcd"))
    assert (result.accuracy, result.calibration_error) == (0, 1)


def test_labels_of_another_kind_are_refused():
    with pytest.raises(ParameterError, match="the data have text labels, the model number labels"):
        evaluation(np.eye(2), np.array([0, 1]), np.array(["0", "1"]), ["a", "b"])


def scores_with_planted_labels(seed=0, n=600, classes=6, planted=30):
    """Scores of classes of which the first two are alike, and some labels replaced."""
    rng = np.random.default_rng(seed)
    y = rng.integers(classes, size=n)
    S = rng.normal(scale=0.15, size=(n, classes)) + np.eye(classes)[y]
    alike = y < 2
    S[alike, :2] += rng.normal(scale=0.7, size=(alike.sum(), 2))
    chosen = rng.choice(np.flatnonzero(y > 1), planted, replace=False)
    z = y.copy()
    z[chosen] = 2 + (y[chosen] - 1) % (classes - 2)
    P = np.exp(S / 0.15) / np.exp(S / 0.15).sum(axis=1, keepdims=True)
    return S, P, z, chosen


def test_planted_label_errors_score_higher_than_rows_of_similar_classes():
    S, P, z, chosen = scores_with_planted_labels()
    first = np.argsort(-label_error_scores(S, P, z))[:30]
    by_probability = np.argsort(P[np.arange(len(z)), z])[:30]
    assert len(set(first) & set(chosen)) >= 26
    assert len(set(first) & set(chosen)) >= 3 + len(set(by_probability) & set(chosen))
    listed = label_errors(S, P, P, z, np.ones(len(z), bool))
    assert len({row for row, _, _ in listed} & set(chosen)) >= 26
    assert len(listed) <= 40
    assert all(suggested == P[row].argmax() != z[row] for row, suggested, _ in listed)
    assert [e[2] for e in listed] == sorted((e[2] for e in listed), reverse=True)


def test_hard_rows_of_correct_labels_are_not_listed():
    """Rows between two classes get the wrong prediction with confidence, but they are typical of neither class."""
    rng = np.random.default_rng(0)
    y = rng.integers(6, size=1200)
    S = rng.normal(scale=0.05, size=(1200, 6)) + np.eye(6)[y]
    hard = rng.choice(1200, 20, replace=False)
    S[hard] = rng.normal(scale=0.05, size=(20, 6)) + 0.7 * np.eye(6)[(y[hard] + 1) % 6]
    P = np.exp(S / 0.1) / np.exp(S / 0.1).sum(axis=1, keepdims=True)
    assert (P.argmax(axis=1) != y).sum() == 20
    assert label_errors(S, P, P, y, np.ones(len(y), bool)) == []
    S[hard[:10]] += 0.3 * np.eye(6)[(y[hard[:10]] + 1) % 6]  # now ten of them are ordinary rows of the other class
    P = np.exp(S / 0.1) / np.exp(S / 0.1).sum(axis=1, keepdims=True)
    assert 5 <= len({e[0] for e in label_errors(S, P, P, y, np.ones(len(y), bool))} & set(hard[:10].tolist())) <= 10


def clusters(seed=0, n=200, width=16):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 4
    return (3 * np.eye(4, width)[y] + rng.normal(size=(n, width)) * 0.5 + 1).astype(np.float32), y


def test_duplicates_are_copies_and_near_copies_alone():
    X, _ = clusters()
    assert duplicates(X) == []
    rng = np.random.default_rng(1)
    near = X[7] * 2 + rng.normal(size=16).astype(np.float32) * 0.02  # lengths do not count
    more = np.concatenate([X, X[[5, 5]], near[None]])
    assert duplicates(more) == [[5, 200, 201], [7, 202]]
    assert duplicates(np.tile(X[:3], (4, 1))) == [[0, 3, 6, 9], [1, 4, 7, 10], [2, 5, 8, 11]]


def test_outliers_are_what_lies_far_out():
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
    result = inspect_rows(np.concatenate([X, X[:1]]), np.append(z, z[0]), paths, [Skipped(9, "x", "empty")])
    assert list(result.as_json()) == ["mislabelled", "duplicates", "outliers", "unreadable"]
    assert {s.path for s in result.mislabelled} == {"row 3", "row 50"}
    assert {s.path: s.suggested for s in result.mislabelled} == {"row 3": y[3], "row 50": y[50]}
    assert result.duplicates == [["row 0", "row 200"]]
    assert result.conflicts == 0
    assert [s.score for s in result.mislabelled] == sorted((s.score for s in result.mislabelled), reverse=True)


def test_duplicates_with_different_labels_come_first():
    X, y = clusters()
    paths = [f"row {i}" for i in range(202)]
    result = inspect_rows(np.concatenate([X, X[:1], X[9:10]]), np.append(y, [y[0], (y[9] + 1) % 4]), paths)
    assert result.duplicates == [["row 9", "row 201"], ["row 0", "row 200"]]
    assert result.conflicts == 1


@pytest.mark.parametrize("labels", [[0] * 6, [0, 1, 2, 3, 4, 5], [0, 0, 0, 0, 0, 1], [0, 0, 0, 1, 1, 1]])
def test_few_rows_of_any_labels_are_inspected(labels):
    X = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)
    inspect_rows(X, np.array(labels), list("abcdef"))


@pytest.mark.parametrize("classes", [1, 2, 4])
def test_the_map_is_linear_fixed_and_shows_the_classes_apart(classes):
    X, y = clusters()
    X, y = X[y < classes], y[y < classes]
    order = np.random.default_rng(0).permutation(len(X))
    plane, again = project(X, y), project(X[order], y[order])
    np.testing.assert_allclose(plane.axes, again.axes, atol=1e-9)
    np.testing.assert_allclose(plane.axes.T @ plane.axes, np.eye(2), atol=1e-9)
    np.testing.assert_allclose(plane.points(5 * X[:3]), plane.points(X)[:3], atol=1e-6)
    if classes == 2:
        first = plane.points(X)[:, 0]
        assert np.sign(first[y == 0]).mean() * np.sign(first[y == 1]).mean() < -0.9
