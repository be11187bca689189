import numpy as np
import pytest

from imprint.kernels.class_neighbours import class_neighbours
from imprint.kernels.neighbours import METRICS, nearest

rng = np.random.default_rng(0)
W = rng.normal(size=(40, 300)) + 30
STARTS = np.array([0, 5, 6, 30])


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("m", [1, 7])
def test_distances_are_those_of_each_class_alone(metric, m):
    Q = np.concatenate([rng.normal(size=(20, 300)) + 30, W[::4] * 1.0000001, W[:3]])
    found = class_neighbours(Q, W, STARTS, m, metric)
    for part, own in zip(found, np.split(W, STARTS[1:]), strict=True):
        np.testing.assert_allclose(part.T, nearest(Q, own, m, metric)[0], rtol=1e-9, atol=1e-14)


def test_equal_rows_have_no_distance():
    found = class_neighbours(W[:4], W, STARTS, 2, "euclidean")
    assert (found[0][0] == 0).all()
    assert (found[0][1] > 0).all()


def test_rows_that_are_all_the_same_take_no_time():
    X = np.full((700, 5), 3, dtype=np.float32)
    assert not class_neighbours(X, X, np.array([0, 350]), 3, "euclidean")[1].any()
