"""The torch kernels compared with the NumPy kernels: on the CPU, and k-means also on a GPU if there is one."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from imprint.core.arrays import is_torch, to_numpy
from imprint.kernels.kmeans import Problem, kmeans, kmeans_many
from imprint.kernels.lloyd import ClusterRows
from imprint.kernels.neighbours import nearest
from imprint.kernels.rows import exact_products
from imprint.kernels.scores import class_maxima

pytest.importorskip("torch", reason="the extra 'torch' is not installed")
import torch

from imprint.kernels.tensor import kmeans as tensor_kmeans
from imprint.kernels.tensor.kmeans import Batch, ClusterEnds, by_label, relocate

RNG = np.random.default_rng(0)


def clustered(n, d=24, centres=9, dtype=np.float32):
    return (
        RNG.normal(size=(n, d))
        + 3 * RNG.normal(size=(centres, d))[RNG.integers(centres, size=n)]
    ).astype(dtype)


ROWS = [
    clustered(300),
    clustered(200),
    clustered(7),
    np.repeat(clustered(3), 20, axis=0),
]


def tensors(arrays, device="cpu"):
    return [torch.from_numpy(a).to(device) for a in arrays]


@pytest.fixture(params=["cpu", "cuda"])
def device(request, monkeypatch):
    """The CPU uses plain torch, a GPU uses Triton programs."""
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("torch sees no GPU")
    if request.param == "cpu":
        monkeypatch.setattr("imprint.kernels.kmeans.on_gpu", is_torch)
        monkeypatch.setattr("imprint.kernels.kmeans.find_spec", lambda name: None)
    return request.param


class HostPasses:
    """The passes of one batch in NumPy, with the interface of the Triton programs."""

    def __init__(self, batch):
        self.batch = batch
        self.rows = [ClusterRows(X.numpy(), np.ones(len(X))) for X in batch.rows]

    def seed(self):
        _, K, _ = self.batch.draws.shape
        chosen = []
        for c, k, draws, tried in zip(
            self.batch.owner, self.batch.k, self.batch.draws, self.batch.tried
        ):
            n = len(self.rows[c].X)
            seeds = self.rows[c].choose(
                np.array([int(draws[0, 0] * n)]), draws[1:k, :tried]
            )
            chosen.append(np.resize(seeds, K))
        return chosen

    def iterate(self, chosen, max_iter):
        ends = []
        for c, k, seeds in zip(self.batch.owner, self.batch.k, chosen):
            rows = self.rows[c]
            limit = self.batch.tol * rows.spread / rows.X.shape[1]
            centres, labels, steps = rows.lloyd(seeds[:k], limit, max_iter)
            apart = np.bincount(
                labels, rows.distances(centres, labels), minlength=len(seeds)
            )
            counts = np.bincount(labels, minlength=len(seeds)).astype(float)
            centres = np.resize(centres, (len(seeds), centres.shape[1]))
            labels = np.pad(
                labels.astype(np.int64),
                (0, max(map(len, self.batch.rows)) - len(labels)),
            )
            ends.append((centres, labels, counts, apart, np.array(steps)))
        return ClusterEnds(*(torch.from_numpy(np.stack(parts)) for parts in zip(*ends)))


@pytest.mark.parametrize("largest", [2**29, 5000])
def test_batches_of_problems(largest, monkeypatch):
    """Problems are packed into batches; each unpacked result equals that of NumPy."""
    monkeypatch.setitem(
        sys.modules, "imprint.kernels.tensor.fused", SimpleNamespace(Fused=HostPasses)
    )
    monkeypatch.setattr(tensor_kmeans, "MAX_BATCH_DISTANCES", largest)
    problems = [
        Problem(c, k, seed)
        for c in range(len(ROWS))
        for k in (2, 5, 20)
        for seed in (0, (1, 2))
    ]
    for p, a, b in zip(
        problems,
        kmeans_many(ROWS, problems),
        tensor_kmeans.kmeans_many(tensors(ROWS), problems),
    ):
        assert b.inertia == pytest.approx(a.inertia, rel=1e-6, abs=1e-6)
        assert np.array_equal(np.bincount(b.labels), b.mass)
        if p.k < len(ROWS[p.rows]):
            assert b.iterations == a.iterations
            np.testing.assert_allclose(b.centres, a.centres, atol=1e-6)
            np.testing.assert_allclose(b.spread, a.spread, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_kmeans_of_tensors_on_the_cpu_is_that_of_arrays(dtype):
    rows, problems = [clustered(80, dtype=dtype)], [Problem(0, 4, 1)]
    (ours,), (plain,) = (
        kmeans_many(tensors(rows), problems),
        kmeans_many(rows, problems),
    )
    assert np.array_equal(ours.centres, plain.centres)
    assert ours.centres.dtype == dtype


def test_empty_clusters_move_to_the_farthest_rows():
    (X,) = tensors(
        [np.array([[0.0, 0.0], [1.0, 0.0], [9.0, 0.0], [9.0, 3.0]], np.float32)]
    )
    origin, centres = X.mean(0)[None], (X[[0, 0]] - X.mean(0))[None].clone()
    batch = Batch([X], [0], [2], np.zeros((1, 2, 1)), [1], 0.0)
    gaps = (X - X[0]).double().square().sum(1)[None]
    moved = relocate(batch, origin, centres, gaps, torch.tensor([[4, 0]]))
    assert moved.tolist() == [True]
    np.testing.assert_allclose(centres[0] + origin, X[[0, 3]], atol=1e-6)
    nowhere = relocate(batch, origin, centres, gaps * 0, torch.tensor([[4, 0]]))
    assert nowhere.tolist() == [False]


def test_sums_by_label():
    sums = by_label(torch.tensor([[1.0, 2.0, 4.0]]), torch.tensor([[2, 0, 2]]), 3)
    assert sums.tolist() == [[2.0, 0.0, 5.0]]


@pytest.mark.parametrize("largest", [2**29, 5000])
def test_kmeans_over_ragged_classes_k_and_seeds(largest, device, monkeypatch):
    monkeypatch.setattr(tensor_kmeans, "MAX_BATCH_DISTANCES", largest)
    problems = [
        Problem(c, k, seed)
        for c in range(len(ROWS))
        for k in (1, 2, 5, 20)
        for seed in (0, (1, 2))
    ]
    for p, a, b in zip(
        problems,
        kmeans_many(ROWS, problems),
        kmeans_many(tensors(ROWS, device), problems),
    ):
        b = b._replace(labels=to_numpy(b.labels))
        assert b.centres.dtype == np.float32
        assert len(a.centres) == len(b.centres), p
        assert b.inertia == pytest.approx(a.inertia, rel=0.1, abs=1e-6)
        assert np.array_equal(np.bincount(b.labels, minlength=len(b.centres)), b.mass)
        if p.k < len(ROWS[p.rows]):
            np.testing.assert_allclose(b.centres, a.centres, atol=1e-3)
            np.testing.assert_allclose(b.spread, a.spread, atol=1e-2)


def test_kmeans_ends_at_a_fixed_point(device):
    (X,) = tensors([clustered(400)], device)
    (result,) = kmeans_many([X], [Problem(0, 12, 3)], tol=0)
    nearest = torch.cdist(X, torch.from_numpy(result.centres).to(device)).argmin(1)
    assert np.array_equal(nearest.cpu(), to_numpy(result.labels))
    for j in range(12):
        members = X[nearest == j].double()
        np.testing.assert_allclose(members.mean(0).cpu(), result.centres[j], atol=1e-5)
        assert result.spread[j] == pytest.approx(
            float((members - members.mean(0)).square().sum(1).mean()), abs=1e-4
        )


def test_kmeans_far_from_the_origin(device):
    """float32 separates these rows only after subtracting the mean."""
    X, problem = clustered(250) + np.float32(1000), Problem(0, 20, 0)
    (a,), (b,) = (
        kmeans_many([X], [problem]),
        kmeans_many(tensors([X], device), [problem]),
    )
    assert (b.inertia, b.iterations) == (
        pytest.approx(a.inertia, rel=1e-4),
        a.iterations,
    )
    assert np.array_equal(a.labels, to_numpy(b.labels))


def test_kmeans_of_float64_rows(device):
    rows, problem = [clustered(120, dtype=np.float64)], Problem(0, 6, 1)
    (a,), (b,) = (
        kmeans_many(rows, [problem]),
        kmeans_many(tensors(rows, device), [problem]),
    )
    assert b.centres.dtype == np.float64
    np.testing.assert_allclose(b.centres, a.centres, atol=1e-9)


@pytest.mark.parametrize("k", [1, 6, 200])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_kmeans_of_weighted_rows(device, dtype, k):
    X, mass = clustered(120, dtype=dtype), RNG.uniform(0.5, 2, size=120)
    a = kmeans(X, k, np.random.default_rng(1), mass=mass)
    b = kmeans(torch.from_numpy(X).to(device), k, np.random.default_rng(1), mass=mass)
    np.testing.assert_allclose(b.centres, a.centres, atol=1e-5)
    np.testing.assert_allclose(b.mass, a.mass)


def test_kmeans_does_not_touch_its_rows(device):
    (X,) = tensors([clustered(100)], device)
    before = X.clone()
    kmeans_many([X], [Problem(0, 5, 0)])
    assert torch.equal(X, before)


def test_kmeans_revives_empty_clusters(device):
    """Twenty clusters on twenty distinct points, each repeated: the inertia must be zero."""
    (X,) = tensors([np.repeat(clustered(20), 15, axis=0)], device)
    for result in kmeans_many([X], [Problem(0, 20, seed) for seed in range(10)]):
        assert len(result.centres) == 20
        assert result.inertia == pytest.approx(0, abs=1e-6)


def test_class_maxima():
    Q, W, starts = ROWS[0], ROWS[1], np.array([0, 100, 101, 150])
    ours = class_maxima(*tensors([Q, W]), starts)
    np.testing.assert_allclose(ours, class_maxima(Q, W, starts), rtol=1e-5)


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "manhattan"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_neighbours(metric, dtype):
    W = clustered(500, dtype=dtype)
    W[7], W[9] = W[8], W[8] + np.eye(24)[0] * 1e-2
    Q = np.concatenate([clustered(60, dtype=dtype), W[5:12]])
    distances, indices = nearest(*tensors([Q, W]), 6, metric)
    want, where = nearest(Q, W, 6, metric)
    np.testing.assert_allclose(distances, want, atol=1e-6)
    assert np.array_equal(indices, where)


def test_neighbours_that_float32_products_cannot_separate():
    """Far from the origin, products lose the differences to rounding; the exact pass must not."""
    W = (1000 + 1e-2 * RNG.normal(size=(400, 8))).astype(np.float32)
    distances, indices = nearest(*tensors([W[:50], W]), 3)
    want, where = nearest(W[:50].astype(float), W.astype(float), 3)
    assert np.array_equal(indices, where)
    np.testing.assert_allclose(distances, want, rtol=1e-9)


def test_the_callers_precision_does_not_change():
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    with exact_products(torch.ones(1)):
        assert torch.get_float32_matmul_precision() == "highest"
    assert torch.get_float32_matmul_precision() == "medium"
    torch.set_float32_matmul_precision(before)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_neighbours_of_zero_rows_and_of_equals(metric):
    """A zero row has cosine distance one to every row; of more ties than neighbours, the first are listed."""
    W = np.concatenate([np.zeros((2, 4)), np.repeat(np.eye(4), 5, axis=0)])
    Q = np.concatenate([np.zeros((1, 4)), np.eye(4)[:2]])
    for m in (1, 3, 7):
        distances, indices = nearest(*tensors([Q, W]), m, metric)
        want, where = nearest(Q, W, m, metric)
        assert np.array_equal(indices, where)
        np.testing.assert_allclose(distances, want, atol=1e-12)
