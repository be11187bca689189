"""Invalid input is refused in one sentence that shows the call."""

import numpy as np
import pytest

from imprint.collapse import Accumulator, cdnv, gain_fit, nc1, nc2, nc3, nc4, vci
from imprint.core.errors import ParameterError

X = np.arange(12.0).reshape(6, 2)
y = np.array([0, 0, 1, 1, 2, 2])
METRICS = {
    "nc1": nc1,
    "nc2": nc2,
    "cdnv": cdnv,
    "vci": vci,
    "nc3": lambda X, y: nc3(X, y, np.ones((3, 2))),
    "nc4": lambda X, y: nc4(X, y, weights=np.ones((3, 2))),
    "Accumulator": lambda X, y: Accumulator().update(X, y).result(),
}


def with_value(value):
    bad = X.copy()
    bad[3, 1] = value
    return bad


BAD = [
    (with_value(np.nan), y, "finite"),
    (with_value(np.inf), y, "finite"),
    (with_value(-np.inf).astype(np.float32), y, "finite"),
    (X, np.zeros(6), "at least 2 classes"),
    (X, y[:5], r"y must have shape \(6,\)"),
    (X, y[:, None], r"y must have shape \(6,\)"),
    (X, np.array([0, 0, 1, 1, np.nan, 2]), "NaN"),
    (X, np.array([0, "a", 1, 1, None, 2], dtype=object), "comparable"),
    (X[:, 0], y, "X must have shape"),
    (X[:0], y[:0], "X must have shape"),
    (X[:, :0], y, "X must have shape"),
    (X.astype(str), y, "real numbers"),
    (X + 1j, y, "real numbers"),
]


def sentence(error):
    text = str(error.value)
    assert text.endswith(".")
    assert "\n" not in text
    assert ": " in text
    return text


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize(("bad_X", "bad_y", "rule"), BAD)
def test_every_metric_refuses_bad_rows(name, bad_X, bad_y, rule):
    with pytest.raises(ParameterError, match=rule) as error:
        METRICS[name](bad_X, bad_y)
    assert sentence(error).startswith(name + "(")


@pytest.mark.parametrize("metric", [nc1, vci, nc2, cdnv, METRICS["nc3"]])
def test_equal_class_means_are_refused(metric):
    with pytest.raises(ParameterError, match="class") as error:
        metric([[0.0, 1], [2, 1], [1, 0], [1, 2], [1, 1], [1, 1]], y)
    sentence(error)


def test_cdnv_names_the_two_classes_with_one_mean():
    with pytest.raises(ParameterError, match="those of 1 and 2 are equal"):
        cdnv([[0.0], [1], [4], [6], [5], [5]], y)


def test_nc2_names_the_class_at_the_centre():
    with pytest.raises(ParameterError, match="class 1 must not have the global mean"):
        nc2([[0.0], [1], [4], [5], [8], [9]], y)


@pytest.mark.parametrize(
    ("weights", "rule"),
    [
        (np.ones((2, 2)), r"shape \(3, 2\)"),
        (np.ones((3, 3)), r"shape \(3, 2\)"),
        (np.ones(2), "weights must have shape"),
        (np.full((3, 2), np.nan), "weights must be finite"),
        (np.zeros((3, 2)), "not all be zero"),
    ],
)
def test_nc3_refuses_heads_that_do_not_fit(weights, rule):
    with pytest.raises(ParameterError, match=rule) as error:
        nc3(X, y, weights)
    sentence(error)


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ({}, "either predictions or weights"),
        (
            {"predictions": y, "weights": np.ones((3, 2))},
            "either predictions or weights",
        ),
        ({"predictions": y[:3]}, r"predictions must have shape \(6,\)"),
        ({"predictions": y.astype(str)}, "same type as y"),
        ({"predictions": y, "bias": np.zeros(3)}, "given with weights"),
        (
            {"weights": np.ones((3, 2)), "bias": np.zeros(2)},
            r"bias must have shape \(3,\)",
        ),
        ({"weights": np.ones((3, 2)), "bias": [0, np.nan, 0]}, "bias must be finite"),
        ({"weights": np.ones((4, 2))}, r"shape \(3, 2\)"),
    ],
)
def test_nc4_refuses_ambiguous_classifiers(given, rule):
    with pytest.raises(ParameterError, match=rule) as error:
        nc4(X, y, **given)
    sentence(error)


def test_predictions_outside_the_labels_count_as_disagreement():
    assert nc4(X, y, predictions=[0, 0, 1, 1, 7, 2]) == pytest.approx(5 / 6)


@pytest.mark.parametrize(
    ("values", "gains", "rule"),
    [
        ([1, 2], [1, 2], "3 or more"),
        ([1, 2, 3], [1, 2], "same number"),
        ([[1, 2, 3]], [[1, 2, 3]], "same number"),
        ([1, 0, 3], [1, 2, 3], "positive"),
        ([1, np.nan, 3], [1, 2, 3], "finite"),
        ([1, 2, 3], [1, np.inf, 3], "finite"),
        ([2, 2, 2], [1, 2, 3], "constant"),
        ([1, 2, 3], [1, 1, 1], "constant"),
        (["a", "b", "c"], [1, 2, 3], "real numbers"),
    ],
)
def test_gain_fit_refuses_what_it_cannot_fit(values, gains, rule):
    with pytest.raises(ParameterError, match=rule) as error:
        gain_fit(values, gains)
    assert sentence(error).startswith("gain_fit(")
