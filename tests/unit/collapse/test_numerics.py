"""Rounding, ranks, types of input, memory."""

import tracemalloc

import numpy as np
import pytest
import torch

from imprint.collapse import Accumulator, cdnv, nc1, nc2, nc3, nc4, vci
from imprint.core.errors import ParameterError


def data(rows=400, classes=5, width=32, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(rows) % classes)
    X = rng.normal(size=(classes, width))[y] + rng.normal(size=(rows, width))
    return X, y


def test_float32_agrees_with_float64():
    X, y = data()
    narrow = X.astype(np.float32)
    assert nc1(narrow, y) == pytest.approx(nc1(narrow.astype(np.float64), y), rel=1e-12)
    assert nc1(narrow, y) == pytest.approx(nc1(X, y), rel=1e-6)


def test_float32_stays_right_far_from_the_origin():
    X, y = data()
    assert nc1((X + 1000).astype(np.float32), y) == pytest.approx(nc1(X, y), rel=1e-4)


def test_nearly_collapsed_float32_keeps_its_digits():
    X, y = data()
    means = np.stack([X[y == c].mean(axis=0) for c in range(5)])[y]
    near = (means + 1e-4 * (X - means)).astype(np.float32)
    assert nc1(near, y) == pytest.approx(1e-8 * nc1(X, y), rel=1e-2)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shift", [0, 100])
def test_a_duplicate_class_lowers_the_rank(dtype, shift):
    X, y = data()
    X = (X + shift).astype(dtype)
    X2, y2 = (
        np.concatenate([X, X[y == 0][::-1]]),
        np.concatenate([y, np.full((y == 0).sum(), 9)]),
    )
    means = np.stack(
        [X2[y2 == c].astype(np.float64).mean(axis=0) for c in (0, 1, 2, 3, 4, 9)]
    )
    M = means - means.mean(axis=0)
    covariances = [
        np.cov(X2[y2 == c].astype(np.float64).T, ddof=0) for c in (0, 1, 2, 3, 4, 9)
    ]
    expected = (
        np.trace(np.mean(covariances, axis=0) @ np.linalg.pinv(M.T @ M / 6, rcond=1e-9))
        / 6
    )
    assert nc1(X2, y2) == pytest.approx(expected, rel=1e-6)


def flat_in_float32():
    """Four classes whose means lie in a plane, except for float32 rounding far from the origin."""
    X, y = data(classes=3)
    between = (X[y == 0][:130] + X[y == 1][:130]) / 2
    X, y = np.concatenate([X, between]), np.concatenate([y, np.full(len(between), 3)])
    keep = np.concatenate([np.flatnonzero(y == c)[:130] for c in range(4)])
    return X[keep], y[keep], (X[keep] + 50).astype(np.float32)


def test_directions_caused_by_rounding_are_ignored():
    X, y, rounded = flat_in_float32()
    assert nc1(rounded, y) == pytest.approx(nc1(X, y), rel=1e-4)
    assert vci(rounded, y) == pytest.approx(vci(X, y), rel=1e-4)
    halves = Accumulator()
    for part in (slice(None, None, 2), slice(1, None, 2)):
        halves = halves + Accumulator().update(rounded[part], y[part])
    assert halves.result().nc1 == pytest.approx(nc1(X, y), rel=1e-4)


def test_more_classes_than_columns():
    X, y = data(classes=8, width=3)
    M = np.stack([X[y == c].mean(axis=0) for c in range(8)])
    M -= M.mean(axis=0)
    within = np.mean([np.cov(X[y == c].T, ddof=0) for c in range(8)], axis=0)
    assert nc1(X, y) == pytest.approx(
        np.trace(within @ np.linalg.inv(M.T @ M / 8)) / 8, rel=1e-10
    )


@pytest.mark.parametrize("scale", [1e-150, 1e-30, 1e30, 1e150])
def test_no_scale_is_too_small_or_too_large(scale):
    X, y = data()
    assert nc1(X * scale, y) == pytest.approx(nc1(X, y), rel=1e-9)


@pytest.mark.parametrize(
    "dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16]
)
def test_torch_tensors_give_what_their_arrays_give(dtype):
    X, y = data()
    tensor, labels = torch.tensor(X, dtype=dtype, requires_grad=True), torch.tensor(y)
    plain = tensor.detach().to(torch.float64).numpy()
    for metric in (nc1, cdnv, vci, lambda X, y: nc2(X, y).equinorm):
        assert metric(tensor, labels) == pytest.approx(metric(plain, y), rel=1e-9)
    head = torch.nn.Linear(32, 5)
    weights = head.weight.detach().numpy()
    assert nc3(tensor, labels, head.weight) == nc3(plain, y, weights)
    assert nc4(tensor, labels, weights=head.weight) == nc4(plain, y, weights=weights)
    assert Accumulator().update(tensor, labels).result().nc1 == pytest.approx(
        nc1(plain, y), rel=1e-9
    )


def test_integers_lists_and_strided_arrays_are_read_as_numbers():
    X = np.random.default_rng(0).integers(0, 255, size=(60, 8), dtype=np.uint8)
    y = np.arange(60) % 3
    expected = nc1(X.astype(np.float64), y)
    assert nc1(X, y) == expected
    assert nc1(X.tolist(), y.tolist()) == expected
    assert nc1(np.asfortranarray(X), y) == expected
    assert nc1(np.repeat(X, 2, axis=0)[::2], y) == expected


def test_inputs_do_not_change():
    X, y = data()
    X.flags.writeable = y.flags.writeable = False
    before = X.copy()
    weights = np.ones((5, 32))
    for value in (
        nc1(X, y),
        cdnv(X, y),
        vci(X, y),
        nc3(X, y, weights),
        nc4(X, y, weights=weights),
    ):
        assert isinstance(value, float)
    Accumulator().update(X, y).result()
    np.testing.assert_array_equal(X, before)


def test_an_accumulator_does_not_reference_the_batch():
    X, y = data()
    expected = nc1(X, y)
    seen = Accumulator().update(X, y)
    X[:] = 0
    assert seen.result().nc1 == pytest.approx(expected, rel=1e-12)


def test_memory_stays_far_below_a_float64_copy():
    X, y = (
        np.random.default_rng(0).random((20_000, 256), dtype=np.float32),
        np.arange(20_000) % 10,
    )
    nc1(X[:100], y[:100])
    tracemalloc.start()
    nc1(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < X.nbytes


def test_a_class_of_one_row_has_no_variance():
    X, y = [[0.0], [2], [4]], [0, 0, 1]
    assert nc1(X, y) == pytest.approx(0.5 / 2.25 / 2, rel=1e-12)
    assert nc1([[0.0], [1]], [0, 1]) == 0.0


def test_equal_means_are_refused_whatever_the_rounding():
    rows = np.random.default_rng(0).normal(size=(50, 6)).astype(np.float32) + 3
    X, y = np.concatenate([rows, rows[::-1]]), np.repeat([0, 1], 50)
    for metric in (nc1, cdnv, vci, nc2, lambda X, y: nc1(X, y, legacy=True)):
        with pytest.raises(ParameterError):
            metric(X, y)


def test_columns_that_depend_on_others_do_not_change_vci_far_from_the_origin():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    X = rng.normal(size=(60, 4)) + rng.normal(size=(3, 4))[y]
    dependent = np.hstack([X, X @ rng.normal(size=(4, 4))]) + 1e6
    assert vci(dependent, y) == pytest.approx(vci(X, y), rel=1e-9)
