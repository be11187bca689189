"""Accuracy, confusion matrix, recall and calibration error of predictions."""

import json

import numpy as np
import pytest

from imprint.core.errors import ParameterError
from imprint.core.tree import LabelTree
from imprint.embeddings import Skipped
from imprint.evaluation import evaluation
from imprint.evaluation.evaluation import reliability

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


def test_the_confusion_matrix_counts_predictions_by_class():
    P = np.array(
        [
            [0.7, 0.2, 0.1],
            [0.6, 0.3, 0.1],
            [0.1, 0.8, 0.1],
            [0.2, 0.7, 0.1],
            [0.9, 0.1, 0.0],
        ]
    )
    y = np.array(["ant", "ant", "bee", "ant", "eel"])
    result = evaluation(
        P,
        np.array(["ant", "bee", "cat"]),
        y,
        list("vwxyz"),
        [Skipped(5, "bad.png", "not an image")],
    )
    assert result.classes == ["ant", "bee", "cat", "eel"]
    assert result.confusion == [[2, 1, 0, 0], [0, 1, 0, 0], [0, 0, 0, 0], [1, 0, 0, 0]]
    assert result.accuracy == pytest.approx(3 / 5)
    assert result.balanced_accuracy == pytest.approx(
        (2 / 3 + 1 + 0) / 3
    )  # "cat" has no rows
    assert result.unknown == ["eel"]
    assert [tuple(c) for c in result.per_class] == [
        ("ant", 3, pytest.approx(2 / 3), pytest.approx(2 / 3)),
        ("bee", 1, 1.0, 0.5),
        ("cat", 0, None, None),
        ("eel", 1, 0.0, None),
    ]
    assert [tuple(m) for m in result.mistakes] == [
        ("z", "eel", "ant", 0.9),
        ("y", "ant", "bee", 0.7),
    ]
    assert result.calibration_error == pytest.approx(
        (abs(0.3 - 0.7) + 0.4 + 0.2 + 0.9) / 5
    )
    plain = result.as_json()
    assert list(plain) == KEYS
    assert json.loads(json.dumps(plain))["mistakes"][0] == {
        "path": "z",
        "label": "eel",
        "predicted": "ant",
        "probability": 0.9,
    }
    assert plain["unreadable"] == [{"path": "bad.png", "reason": "not an image"}]


def test_rows_of_unknown_classes_are_never_right_for_the_calibration():
    P = np.tile([1.0, 0.0], (4, 1))
    result = evaluation(P, np.array([1, 2]), np.array([0, 0, 0, 0]), list("abcd"))
    assert (result.accuracy, result.calibration_error) == (0, 1)


def test_labels_of_another_kind_are_refused():
    with pytest.raises(
        ParameterError, match="the data have text labels, the model integer labels"
    ):
        evaluation(np.eye(2), np.array([0, 1]), np.array(["0", "1"]), ["a", "b"])


def test_no_rows_are_refused():
    with pytest.raises(ParameterError, match="there are no rows to evaluate"):
        evaluation(np.empty((0, 2)), np.array(["a", "b"]), np.array([], dtype=str), [])


def test_levels_of_a_tree_are_part_of_the_json_only_if_there_are_any():
    P = np.array([[0.4, 0.35, 0.25], [0.1, 0.2, 0.7], [0.3, 0.2, 0.5]])
    classes, y = (
        np.array(["animal/cat", "animal/dog", "sky"]),
        np.array(["animal/dog", "sky", "animal/emu"]),
    )
    assert evaluation(P, classes, y, list("abc")).levels == ()
    result = evaluation(P, classes, y, list("abc"), tree=LabelTree.of(classes.tolist()))
    assert result.accuracy == pytest.approx(1 / 3)
    assert [tuple(one) for one in result.levels] == [
        (1, 2, 1.0)
    ]  # at level 1, an unknown animal counts as an animal
    assert result.as_json()["levels"] == [{"level": 1, "nodes": 2, "accuracy": 1.0}]
    assert "unknown" not in result.as_json()
    assert result.wrong == [2, 0]


def test_reliability_has_one_entry_per_bin_with_predictions():
    probability, correct = (
        np.array([1.0, 0.95, 0.31, 0.39, 0.0]),
        np.array([True, False, False, True, False]),
    )
    bins = reliability(probability, correct)
    assert bins == [
        (1, 0.0, 0.0),
        (2, pytest.approx(0.35), 0.5),
        (2, pytest.approx(0.975), 0.5),
    ]
