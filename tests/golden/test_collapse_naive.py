"""Every metric compared with plain loops and l x l matrices."""

import itertools

import numpy as np
import pytest

from imprint.collapse import cdnv, nc1, nc2, nc3, nc4, vci


def data(seed, sizes, width, dtype=np.float64):
    """Classes of the given sizes around random means, rows shuffled."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    X = (
        rng.normal(size=(len(sizes), width))[y]
        + 0.7 * rng.normal(size=(len(y), width))
        + 1.5
    )
    return X.astype(dtype), y


def naive_parts(X, y):
    classes = sorted(set(y.tolist()))
    means = [
        np.mean([x for x, label in zip(X, y) if label == c], axis=0) for c in classes
    ]
    centre = sum(means) / len(classes)
    within = np.zeros((X.shape[1], X.shape[1]))
    for c, mean in zip(classes, means):
        rows = [x for x, label in zip(X, y) if label == c]
        for x in rows:
            within += np.outer(x - mean, x - mean) / (len(rows) * len(classes))
    between = sum(np.outer(m - centre, m - centre) for m in means) / len(classes)
    return np.array(means), centre, within, between


CASES = [
    ([20, 20, 20], 5),
    ([40, 3, 17, 9], 8),
    ([12, 1, 30], 6),
    ([2, 3, 2], 30),
    ([8, 9, 10, 11, 12, 13, 14], 3),
    ([5, 50], 4),
]


@pytest.mark.parametrize(("sizes", "width"), CASES)
def test_nc1_is_the_trace_with_the_pseudo_inverse(sizes, width):
    X, y = data(1, sizes, width)
    _, _, within, between = naive_parts(X, y)
    expected = np.trace(within @ np.linalg.pinv(between, rcond=1e-10)) / len(sizes)
    assert nc1(X, y) == pytest.approx(expected, rel=1e-9)


def published_nc1(X, y):
    """The published computation in float32: class means are centred by the mean of all samples, samples are not."""
    classes, width = np.unique(y), X.shape[1]
    X = X.astype(np.float32)
    centre = X.mean(axis=0)
    means = [X[y == c].mean(axis=0) - centre for c in classes]
    within = np.mean(
        [
            (X[y == c] - m).T @ (X[y == c] - m) / (y == c).sum()
            for c, m in zip(classes, means)
        ],
        axis=0,
    )
    between = np.mean([np.outer(m, m) for m in means], axis=0)
    inverse = np.linalg.pinv(between, rcond=width * np.finfo(np.float32).eps)
    return np.trace(within @ inverse) / len(classes)


@pytest.mark.parametrize(("sizes", "width"), CASES)
def test_legacy_nc1_is_the_published_computation(sizes, width):
    X, y = data(2, sizes, width, np.float32)
    assert nc1(X, y, legacy=True) == pytest.approx(published_nc1(X, y), rel=2e-3)


def test_legacy_nc1_adds_the_global_mean_on_balanced_data():
    X, y = data(3, [15, 15, 15, 15], 7)
    _, centre, _, between = naive_parts(X, y)
    leak = centre @ np.linalg.pinv(between, rcond=1e-10) @ centre / 4
    assert leak > 0.1
    assert nc1(X, y, legacy=True) == pytest.approx(nc1(X, y) + leak, rel=1e-9)


@pytest.mark.parametrize(("sizes", "width"), CASES)
def test_vci_is_one_less_the_trace_over_the_rank(sizes, width):
    X, y = data(4, sizes, width)
    _, _, within, between = naive_parts(X, y)
    rank = np.linalg.matrix_rank(between, tol=1e-10)
    expected = (
        1 - np.trace(np.linalg.pinv(within + between, rcond=1e-10) @ between) / rank
    )
    assert vci(X, y) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("sizes", "width"), CASES)
def test_cdnv_is_the_mean_over_ordered_pairs(sizes, width):
    X, y = data(5, sizes, width)
    means = naive_parts(X, y)[0]
    spread = [
        np.mean([np.sum((x - m) ** 2) for x in X[y == c]]) for c, m in enumerate(means)
    ]
    pairs = itertools.permutations(range(len(sizes)), 2)
    values = [
        (spread[i] + spread[j]) / (2 * np.sum((means[i] - means[j]) ** 2))
        for i, j in pairs
    ]
    assert cdnv(X, y) == pytest.approx(np.mean(values), rel=1e-12)


@pytest.mark.parametrize(("sizes", "width"), CASES)
def test_nc2_by_loops(sizes, width):
    X, y = data(6, sizes, width)
    means, centre, _, _ = naive_parts(X, y)
    M, C = means - centre, len(sizes)
    norms = [np.sqrt(np.sum(m**2)) for m in M]
    average = sum(norms) / C
    spread = np.sqrt(sum((n - average) ** 2 for n in norms) / C)
    pairs = list(itertools.permutations(range(C), 2))
    angles = [abs(M[i] @ M[j] / norms[i] / norms[j] + 1 / (C - 1)) for i, j in pairs]
    gram = np.array([[a @ b for a in M] for b in M])
    frame = np.array(
        [[(float(i == j) - 1 / C) / np.sqrt(C - 1) for i in range(C)] for j in range(C)]
    )
    got = nc2(X, y)
    assert got.equinorm == pytest.approx(spread / average, abs=1e-12)
    assert got.equiangular == pytest.approx(sum(angles) / len(pairs), abs=1e-12)
    assert got.etf == pytest.approx(
        np.sqrt(((gram / np.sqrt((gram**2).sum()) - frame) ** 2).sum()), abs=1e-12
    )


def test_nc3_and_nc4_by_loops():
    X, y = data(7, [20, 9, 14], 6)
    means, centre, _, _ = naive_parts(X, y)
    rng = np.random.default_rng(8)
    W, b = rng.normal(size=(3, 6)), rng.normal(size=3)
    M = means - centre
    gap = W / np.sqrt((W**2).sum()) - M / np.sqrt((M**2).sum())
    assert nc3(X, y, W) == pytest.approx((gap**2).sum(), rel=1e-12)
    nearest = [min(range(3), key=lambda c: ((x - means[c]) ** 2).sum()) for x in X]
    linear = [max(range(3), key=lambda c: W[c] @ x + b[c]) for x in X]
    expected = sum(i == j for i, j in zip(nearest, linear)) / len(X)
    assert 0 < expected < 1
    assert nc4(X, y, weights=W, bias=b) == expected
    assert nc4(X, y, predictions=linear) == expected


def test_legacy_nc1_drops_directions_as_a_float32_pseudo_inverse_does():
    """One direction of Sb is below l times the float32 epsilon: the published value omits it, ours does not."""
    X, y = data(9, [30, 30, 30], 4)
    means = np.stack([X[y == c].mean(axis=0) for c in range(3)])
    thin = np.array([[5.0, 0, 0, 0], [-5, 0, 0, 0], [0, 1e-3, 0, 0]])
    X = (X - means[y] + thin[y] + 2).astype(np.float32)
    assert nc1(X, y, legacy=True) == pytest.approx(published_nc1(X, y), rel=2e-3)
    assert nc1(X, y) > 1e3 * nc1(X, y, legacy=True)
