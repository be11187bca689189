"""Invariances of the metrics, and their values on fully collapsed data."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from imprint.collapse import cdnv, nc1, nc2, nc3, nc4, vci

METRICS = [nc1, cdnv, vci, lambda X, y: nc2(X, y).equinorm, lambda X, y: nc2(X, y).etf]


@st.composite
def labelled(draw):
    """Distinct classes, each with at least one row."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    sizes = draw(st.lists(st.integers(1, 12), min_size=2, max_size=6))
    width = draw(st.integers(2, 9))
    y = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    X = rng.normal(size=(len(sizes), width))[y] + rng.normal(size=(len(y), width))
    return X, y, rng


@given(labelled(), st.sampled_from(METRICS), st.floats(-100, 100))
def test_shifting_all_data_changes_nothing(case, metric, shift):
    X, y, rng = case
    assert metric(X + shift * rng.normal(size=X.shape[1]), y) == pytest.approx(
        metric(X, y), rel=1e-7, abs=1e-7
    )


@given(labelled(), st.sampled_from(METRICS))
def test_rotating_all_data_changes_nothing(case, metric):
    X, y, rng = case
    rotation = np.linalg.qr(rng.normal(size=(X.shape[1],) * 2))[0]
    assert metric(X @ rotation, y) == pytest.approx(metric(X, y), rel=1e-7, abs=1e-7)


@given(labelled(), st.sampled_from(METRICS), st.floats(1e-3, 1e3))
def test_scaling_and_reordering_change_nothing(case, metric, scale):
    X, y, rng = case
    order = rng.permutation(len(y))
    assert metric(X[order] * scale, y[order]) == pytest.approx(
        metric(X, y), rel=1e-7, abs=1e-7
    )


@given(labelled(), st.sampled_from(METRICS))
def test_names_of_classes_do_not_matter(case, metric):
    X, y, rng = case
    names = np.array([f"class {i}" for i in rng.permutation(y.max() + 1)])
    assert metric(X, names[y]) == pytest.approx(metric(X, y), rel=1e-7, abs=1e-7)


@given(labelled(), st.sampled_from(METRICS))
def test_repeating_the_rows_of_one_class_changes_nothing(case, metric):
    X, y, _ = case
    again = np.flatnonzero(y == 0)
    X2, y2 = (
        np.concatenate([X, X[again], X[again]]),
        np.concatenate([y, y[again], y[again]]),
    )
    assert metric(X2, y2) == pytest.approx(metric(X, y), rel=1e-7, abs=1e-7)


@given(labelled())
@settings(max_examples=50)
def test_vci_is_invariant_under_invertible_maps(case):
    X, y, rng = case
    left, right = (
        np.linalg.qr(rng.normal(size=(X.shape[1],) * 2))[0] for _ in range(2)
    )
    linear = left @ np.diag(rng.uniform(0.5, 2, X.shape[1])) @ right
    assert vci(X @ linear, y) == pytest.approx(vci(X, y), abs=1e-6)


@given(labelled())
def test_vci_lies_between_zero_and_one(case):
    X, y, _ = case
    assert -1e-9 <= vci(X, y) <= 1 + 1e-9


@pytest.mark.parametrize("count", [2, 3, 5, 10])
def test_everything_is_zero_on_a_collapsed_simplex(count):
    corners = np.eye(count) * 3 + 7  # (C, l), a simplex away from the origin
    X, y = np.repeat(corners, 4, axis=0), np.repeat(np.arange(count), 4)
    deviation, head = nc2(X, y), corners - corners.mean(axis=0)
    values = [
        nc1(X, y),
        vci(X, y),
        cdnv(X, y),
        deviation.equinorm,
        deviation.equiangular,
        deviation.etf,
    ]
    np.testing.assert_allclose([*values, nc3(X, y, 5 * head)], 0, atol=1e-12)
    assert nc4(X, y, weights=head) == 1.0
    assert nc4(X, y, weights=-head) == 0.0


def test_nc1_grows_as_the_square_of_the_spread():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(4), 50)
    noise = rng.normal(size=(200, 6))
    noise -= np.stack([noise[y == c].mean(axis=0) for c in range(4)])[y]
    means = rng.normal(size=(4, 6))[y]
    assert nc1(means + 3 * noise, y) == pytest.approx(
        9 * nc1(means + noise, y), rel=1e-10
    )
