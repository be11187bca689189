"""`partial_fit(..., max_rows=N)`: the newest rows of each class, in bounded memory."""

import pickle
import tracemalloc

import numpy as np
import pytest
from tests.unit.head.test_merging import BUILT_IN, classifier, data

from imprint import ImprintClassifier
from imprint.core.errors import ParameterError


def newest(y, max_rows):
    """The indices of the newest rows of every class."""
    parts = [np.flatnonzero(y == label)[-max_rows:] for label in np.unique(y)]
    return np.sort(np.concatenate(parts))


@pytest.mark.parametrize("generator", BUILT_IN)
@pytest.mark.parametrize("max_rows", [1, 20, 130])
@pytest.mark.parametrize("keep_rows", [False, True])
def test_the_model_is_a_fit_of_the_newest_rows(
    generator, max_rows, keep_rows, tmp_path
):
    X, y = data(rows=700, classes=3)
    options = {"generator": generator, "calibrate": True, "keep_rows": keep_rows}
    model = classifier(**options)
    for start in range(0, 700, 50):
        rows = slice(start, start + 50)
        model.partial_fit(X[rows], y[rows], max_rows=max_rows)
    rows = newest(y, max_rows)
    expected = classifier(**options).fit(X[rows], y[rows])
    assert np.array_equal(model.decision_function(X), expected.decision_function(X))
    for label, held in model.head_.folds.held.items():
        assert len(held.digests) == min(max_rows, (y == label).sum())
    if keep_rows or max_rows <= 100:
        assert model.expected_accuracy_ == expected.expected_accuracy_ or max_rows == 1
    model.save(tmp_path / "m.imprint")
    again = ImprintClassifier.load(tmp_path / "m.imprint")
    again.partial_fit(X[:5] + 1, y[:5], max_rows=max_rows)
    assert again.score(X, y) > 0.3


def test_all_rows_need_no_calibration():
    X, y = data(rows=300)
    model = classifier("all")
    for start in range(0, 300, 60):
        model.partial_fit(X[start : start + 60], y[start : start + 60], max_rows=11)
    rows = newest(y, 11)
    expected = classifier("all").fit(X[rows], y[rows])
    assert np.array_equal(model.decision_function(X), expected.decision_function(X))


def test_weights_are_those_of_the_rows():
    X, y = data(rows=80, classes=2)
    weight = np.arange(80) % 3 + 0.5
    model = classifier("kmeans(k=4)", calibrate=True)
    for start in range(0, 80, 20):
        rows = slice(start, start + 20)
        model.partial_fit(X[rows], y[rows], sample_weight=weight[rows], max_rows=15)
    rows = newest(y, 15)
    expected = classifier("kmeans(k=4)", calibrate=True)
    expected.fit(X[rows], y[rows], sample_weight=weight[rows])
    assert np.array_equal(model.decision_function(X), expected.decision_function(X))


def test_memory_is_bounded_over_a_million_rows():
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b"], 5000)
    models = {
        "all": classifier("all"),
        "kmeans": classifier("kmeans(k=5)", calibrate=True),
    }
    sizes = {name: [] for name in models}
    peaks = []
    for step in range(100):
        X = rng.normal(size=(10_000, 3)).astype("float32") + step
        tracemalloc.start()
        for name, model in models.items():
            model.partial_fit(X, y, max_rows=60)
            sizes[name].append(len(pickle.dumps(model)))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    for name, model in models.items():
        assert max(sizes[name]) <= 1.05 * sizes[name][1]
        assert model.head_.rows_per_class.sum() == 120
        # it has followed the drift
        assert np.abs(model.head_.sums()["mean"]).max() < 2
    assert max(peaks[10:]) <= 1.2 * max(peaks[:10])


def test_models_that_dropped_rows_are_refused():
    X, y = data(rows=700, classes=2)
    for options in (
        {"generator": "mean"},
        {"generator": "all", "norm_inf": "none"},
        {"generator": "mean", "calibrate": True},
    ):
        model = classifier(**options).fit(X, y)
        before = model.head_
        with pytest.raises(ParameterError, match="does not hold all rows of 'ant'"):
            model.partial_fit(X[:4], y[:4], max_rows=50)
        assert model.head_ is before
    with pytest.raises(ParameterError, match="max_rows must be int >= 1"):
        model.partial_fit(X, y, max_rows=0)
    with pytest.raises(ParameterError, match="does not hold"):
        classifier("mean").partial_fit(X, y, max_rows=50)
    with pytest.raises(ParameterError, match="tags have no such limit"):
        ImprintClassifier(generator="all", aggregator="kernel(noise=1)").partial_fit(
            X[:9], [{"a"}, {"b"}, {"a", "b"}] * 3, max_rows=5
        )
