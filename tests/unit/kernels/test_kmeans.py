"""k-means compared with scikit-learn, and the guarantees in its docstring."""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from imprint.core.errors import ParameterError
from imprint.kernels import cpu
from imprint.kernels import kmeans as kernel
from imprint.kernels.compiled import kmeans as compiled
from imprint.kernels.kmeans import Problem, kmeans, kmeans_many


@pytest.fixture(params=[0, float("inf")], ids=["compiled", "numpy"], autouse=True)
def each_engine(request, monkeypatch):
    monkeypatch.setattr(cpu, "MIN_COMPILED_WORK", request.param)


def blobs(n=900, d=24, groups=12, dtype=np.float32, seed=0):
    rng = np.random.default_rng(seed)
    X = (
        rng.normal(size=(groups, d))[rng.integers(groups, size=n)]
        + rng.normal(size=(n, d)) * 0.8
    )
    return np.maximum(X, 0).astype(dtype)


def from_rows(X, chosen, mass=None, tol=1e-4):
    """Lloyd's iteration from given initial rows."""
    with cpu.one_blas_thread():
        return kernel._Data(X, mass, tol).cluster(chosen, 300)


def same(a, b):
    return all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [2, 7, 30])
@pytest.mark.parametrize("weighted", [False, True])
def test_same_fixed_point_as_scikit_learn(dtype, k, weighted):
    X = blobs(dtype=dtype)
    rng = np.random.default_rng(1)
    mass = rng.uniform(0.1, 3, size=len(X)) if weighted else None
    chosen = rng.choice(len(X), k, replace=False)
    ours = from_rows(X, chosen, mass)
    theirs = KMeans(k, init=X[chosen], n_init=1).fit(
        X.astype(np.float64), sample_weight=mass
    )
    assert np.array_equal(ours.labels, theirs.labels_)
    assert ours.iterations == theirs.n_iter_
    assert ours.inertia == pytest.approx(theirs.inertia_, rel=1e-6)
    np.testing.assert_allclose(
        ours.centres, theirs.cluster_centers_, rtol=1e-5, atol=1e-6
    )
    assert ours.centres.dtype == dtype
    expected = np.bincount(ours.labels, mass, minlength=k)
    np.testing.assert_allclose(ours.mass, expected, rtol=1e-12)


@pytest.mark.parametrize("k", [3, 10, 25])
def test_seeding_is_as_good_as_scikit_learns(k):
    X = blobs(n=500, groups=25)
    ours = [
        kmeans(X, k, np.random.default_rng(s), max_iter=1).inertia for s in range(30)
    ]
    theirs = [
        KMeans(k, n_init=1, random_state=s, max_iter=1).fit(X).inertia_
        for s in range(30)
    ]
    spread = np.std(theirs) / np.sqrt(30) + np.std(ours) / np.sqrt(30)
    assert abs(np.mean(ours) - np.mean(theirs)) < 3 * spread


def test_empty_clusters_move_as_in_scikit_learn():
    X = blobs(n=300)
    far = np.full((2, X.shape[1]), 1e3, dtype=X.dtype)  # without mass
    ours = from_rows(
        np.concatenate([X, far]),
        np.array([0, 1, 2, 300, 301]),
        np.repeat([1.0, 0.0], [300, 2]),
        tol=0,
    )
    theirs = KMeans(5, init=np.concatenate([X[:3], far]), n_init=1, tol=0).fit(
        X.astype(np.float64)
    )
    assert sorted(np.bincount(ours.labels[:300])) == sorted(np.bincount(theirs.labels_))
    assert ours.inertia == pytest.approx(theirs.inertia_, rel=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_cluster_is_the_mean(dtype):
    X = blobs(dtype=dtype)
    result = kmeans(X, 1, np.random.default_rng(0))
    assert np.array_equal(
        result.centres[0], X.mean(axis=0, dtype=np.float64).astype(dtype)
    )
    assert result.mass.tolist() == [len(X)]


def test_k_above_the_number_of_rows_keeps_every_row():
    X = blobs(n=6)
    result = kmeans(X, 9, np.random.default_rng(0))
    assert np.array_equal(result.centres, X)
    assert result.labels.tolist() == list(range(6))
    assert result.inertia == 0


@pytest.mark.parametrize("k", [2, 3, 4, 40, 60])
def test_duplicates_give_no_empty_cluster(k):
    distinct = blobs(n=3)
    X = distinct[np.arange(50) % 3]
    result = kmeans(X, k, np.random.default_rng(0))
    assert len(result.centres) == min(k, 3)
    assert (result.mass > 0).all()
    assert result.mass.sum() == 50
    if k >= 3:
        assert result.inertia == 0


def test_rows_without_mass_have_no_effect():
    X = blobs(n=400)
    far = np.concatenate([X, X[:5] + 1e3])
    mass = np.concatenate([np.ones(400), np.zeros(5)])
    result = kmeans(far, 6, np.random.default_rng(0), mass=mass)
    assert result.mass.sum() == 400
    assert np.abs(result.centres).max() < 100
    assert len(result.labels) == 405


@pytest.mark.parametrize("d", [24, 512])
def test_threads_change_no_bit(d):
    X = blobs(n=3000, d=d)
    results = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            results.append(kmeans(X, 20, np.random.default_rng(3)))
    assert same(*results)


def test_kmeans_many_equals_single_runs():
    rows = [blobs(n=n, seed=n) for n in (40, 400, 900)]
    problems = [
        Problem(i, k, s)
        for i in range(3)
        for k in (1, 2, 3, 7, 8, 13, 50)
        for s in (0, (1, 2))
    ]
    for (i, k, seed), result in zip(problems, kmeans_many(rows, problems), strict=True):
        assert same(result, kmeans(rows[i], k, np.random.default_rng(seed)))


def test_the_input_does_not_change():
    X = blobs()
    copy = X.copy()
    X.flags.writeable = False
    kmeans(X, 5, np.random.default_rng(0))
    assert np.array_equal(X, copy)


def test_a_cluster_needs_k_and_mass():
    X = blobs(n=5)
    with pytest.raises(ParameterError, match=r"kmeans\(k=0\): k must be int >= 1"):
        kmeans(X, 0, np.random.default_rng(0))
    with pytest.raises(ParameterError, match="positive mass"):
        kmeans(X, 2, np.random.default_rng(0), mass=np.zeros(5))


@pytest.mark.parametrize("flat", [False, True], ids=["low rank", "isotropic"])
@pytest.mark.parametrize("k", [2, 9, 40])
def test_engines_agree_where_rows_are_wide(flat, k, monkeypatch):
    rng = np.random.default_rng(k)
    X = (
        rng.normal(size=(1500, 200))
        if flat
        else rng.normal(size=(1500, 20)) @ rng.normal(size=(20, 200))
    )
    X = (X + rng.normal(size=(1500, 200)) * 0.3 + 5).astype(np.float32)
    results = []
    for limit in (0, float("inf")):
        monkeypatch.setattr(cpu, "MIN_COMPILED_WORK", limit)
        results.append(kmeans(X, k, np.random.default_rng(0), tol=0))
    ours, plain = results
    assert np.array_equal(ours.labels, plain.labels)
    assert ours.iterations == plain.iterations
    assert ours.inertia == pytest.approx(plain.inertia, rel=1e-9)


@pytest.mark.parametrize("scale", [1e-30, 1e-15, 1e15, 1e30])
def test_extreme_scales_change_nothing(scale):
    X = blobs(dtype=np.float64)
    plain = kmeans(X, 6, np.random.default_rng(0))
    scaled = kmeans(X * np.exp2(np.round(np.log2(scale))), 6, np.random.default_rng(0))
    assert np.array_equal(plain.labels, scaled.labels)


@pytest.mark.parametrize("width", [8, 90])
def test_the_width_of_sketches_changes_nothing(width, monkeypatch):
    X = blobs(n=700, d=90)
    plain = kmeans(X, 20, np.random.default_rng(0), tol=0)
    monkeypatch.setattr(compiled, "SKETCH_WIDTH", width)
    assert same(plain, kmeans(X, 20, np.random.default_rng(0), tol=0))
