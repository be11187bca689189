"""The map of embeddings."""

import numpy as np
import pytest

from imprint.evaluation.page import project


def clusters(seed=0, n=200, width=16):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 4
    return (3 * np.eye(4, width)[y] + rng.normal(size=(n, width)) * 0.5 + 1).astype(
        np.float32
    ), y


@pytest.mark.parametrize("classes", [1, 2, 4])
def test_the_map_is_linear_fixed_and_shows_the_classes_apart(classes):
    X, y = clusters()
    X, y = X[y < classes], y[y < classes]
    order = np.random.default_rng(0).permutation(len(X))
    plane, again = project(X, y), project(X[order], y[order])
    axes = plane(np.eye(16)) - plane(np.zeros((16, 16)))
    np.testing.assert_allclose(plane(X), again(X), atol=1e-9)
    np.testing.assert_allclose(axes.T @ axes, np.eye(2), atol=1e-9)
    np.testing.assert_allclose(plane(5 * X[:3]), plane(X)[:3], atol=1e-6)
    if classes == 2:
        first = plane(X)[:, 0]
        assert np.sign(first[y == 0]).mean() * np.sign(first[y == 1]).mean() < -0.9


def test_rows_that_do_not_vary_are_one_point():
    assert (
        project(np.ones((5, 3)), np.zeros(5))(np.ones((5, 3))).tolist()
        == [[0.0, 0.0]] * 5
    )
