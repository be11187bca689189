"""Many k-means problems of the same few rows: every one as `kmeans` alone would solve it, bit for bit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from imprint.kernels import cpu
from imprint.kernels.kmeans import Problem, kmeans, kmeans_many

SEEDS = (3, (17, 5))


@pytest.fixture(autouse=True)
def always_compiled(monkeypatch):
    monkeypatch.setattr(cpu, "policy", cpu.Policy(compiled_from=0))


def assert_each_as_alone(X, ks=(2, 3, 5, 10, 20), **options):
    problems = [Problem(0, k, seed) for k in ks for seed in SEEDS]
    for (_, k, seed), together in zip(problems, kmeans_many([X], problems, **options), strict=True):
        alone = kmeans(X, k, np.random.default_rng(seed), **options)
        for name, ours, theirs in zip(together._fields, together, alone, strict=True):
            assert np.array_equal(ours, theirs), (name, k, seed)
            assert np.asarray(ours).dtype == np.asarray(theirs).dtype, name


def normal(n, d, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def whole_numbers(n, d):
    return np.random.default_rng(n).integers(-2, 3, size=(n, d)).astype(np.float64)


ROWS = {
    "normal": normal(300, 40),
    "far from the origin": normal(200, 30) * 0.01 + 100,
    "clipped": np.maximum(normal(300, 64) - 0.5, 0),
    "low rank": normal(250, 3) @ normal(3, 50),
    "whole numbers": whole_numbers(200, 12),
    "grid": whole_numbers(150, 2),
    "duplicates": normal(30, 20)[np.arange(200) % 30],
    "mirrored": np.vstack([normal(80, 9), -normal(80, 9)]),
    "skewed": np.exp(normal(200, 5) * 3),
    "few": normal(6, 4),
    "small": normal(100, 8) * 1e-9,
}


@pytest.mark.parametrize("tol", [1e-4, 0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ROWS)
def test_each_as_alone(kind, dtype, tol):
    assert_each_as_alone(ROWS[kind].astype(dtype), tol=tol)


@given(st.integers(0, 2**32), st.integers(2, 40), st.integers(1, 4), st.integers(1, 3), st.booleans())
@settings(max_examples=100)
def test_each_as_alone_among_ties(seed, n, d, largest, halves):
    X = np.random.default_rng(seed).integers(-largest, largest + 1, size=(n, d)).astype(np.float32)
    assert_each_as_alone(X / np.float32(10) if halves else X, ks=(2, 3, 7), tol=0)


@pytest.mark.parametrize("max_iter", [1, 2, 3])
def test_each_as_alone_when_cut_short(max_iter):
    assert_each_as_alone(ROWS["normal"].astype(np.float32), max_iter=max_iter)


def test_each_as_alone_where_rows_coincide():
    X = np.tile(normal(1, 30), (60, 1)).astype(np.float32)
    assert_each_as_alone(X)
    assert_each_as_alone(np.vstack([X, X + 1]))
