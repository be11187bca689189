"""Counting decisions: both engines, ties, one class."""

import numpy as np
import pytest

from imprint.kernels import engine
from imprint.kernels.decisions import count_decisions, count_many


@pytest.fixture(params=[False, True], ids=["numpy", "compiled"], autouse=True)
def each_engine(request, monkeypatch):
    monkeypatch.setattr(engine, "loaded", lambda: request.param)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("classes", [1, 2, 5])
def test_counts_what_a_loop_counts(classes, dtype):
    rng = np.random.default_rng(classes)
    scores = rng.integers(-3, 4, size=(classes, 80)).astype(dtype)  # many ties
    scores[:, ::3] += rng.normal(scale=1e-7, size=scores[:, ::3].shape).astype(dtype)
    truth = rng.integers(classes, size=80)
    expected, close = np.zeros((classes, classes), dtype=int), 0
    for column, true in zip(scores.T, truth):
        expected[true, list(column).index(max(column))] += 1
        best, second = sorted([-np.inf, *column], reverse=True)[:2]
        close += bool(dtype(best) - dtype(second) <= dtype(1e-6) * abs(dtype(best)))
    confusion, near = count_decisions(scores, truth, 1e-6)
    assert np.array_equal(confusion, [expected])
    assert near.tolist() == [close]


def test_many_decisions_are_those_of_their_scores():
    rng = np.random.default_rng(0)
    scores, truth = rng.integers(5, size=400).astype(np.float32), rng.integers(3, size=20)
    columns = np.array([rng.permutation(40)[:20], rng.permutation(40)[:20]])
    starts, which = rng.integers(0, 360, size=(9, 3)), rng.integers(-1, 2, size=(9, 3))
    found = count_many(scores, starts, which, columns, truth, 1e-6)
    for t, (start, kinds) in enumerate(zip(starts, which)):
        own = [scores[s : s + 20] if k < 0 else scores[s + columns[k]] for s, k in zip(start, kinds)]
        (confusion,), (near,) = count_decisions(np.array(own), truth, 1e-6)
        assert np.array_equal(found.confusion[t], confusion)
        assert found.near[t] == near
