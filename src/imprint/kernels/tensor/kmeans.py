"""Many k-means problems at once on a GPU: ragged classes, several k and seeds in one batch."""

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor

from imprint.core.types import Array
from imprint.kernels.kmeans import KMeansResult, Problem
from imprint.kernels.lloyd import trials
from imprint.kernels.tensor.scores import exact_float32

HELD = 2**24  # values held at once where they are summed by label
LARGEST_BATCH = 2**29  # distances held at once: rows x centres over all problems of a batch


class Batch(NamedTuple):
    """Problems over classes of rows."""

    rows: list[Tensor]  # (n, d) of every class
    owner: list[int]  # the class of every problem
    k: list[int]
    draws: Array  # (p, K, T) uniform numbers; [:, 0, 0] picks the first centre
    tried: list[int]  # how many of the T draws count
    tol: float


class ClusterEnds(NamedTuple):
    """The clusterings of a batch; centres beyond a problem's k and rows beyond its class are padding."""

    centres: Tensor  # (p, K, d)
    labels: Tensor  # (p, n)
    counts: Tensor  # (p, K) float64
    scatter: Tensor  # (p, K) float64, squared distances of rows to their centre, summed
    steps: Tensor  # (p,)


def kmeans_many(
    rows: Sequence[Tensor], problems: Sequence[Problem], *, max_iter: int = 300, tol: float = 1e-4
) -> list[KMeansResult]:
    """Solve several problems in batches, as `kernels.kmeans.kmeans_many` does; labels stay tensors.

    The random numbers are those of the NumPy version, and results agree with it up to the rounding of float32
    distances. Float32 rows on a GPU are clustered by Triton programs, where it is installed; the host then checks only
    every few iterations whether all problems have converged.
    """
    results: dict[int, KMeansResult] = {}
    for chosen in _batches(rows, problems):
        batch = _pack(rows, [problems[i] for i in chosen], tol)
        results.update(zip(chosen, _solve(batch, max_iter)))
    return [results[i] for i in range(len(problems))]


def _batches(rows: Sequence[Tensor], problems: Sequence[Problem]) -> list[list[int]]:
    """Problems of like k together, as many as memory allows."""
    order = sorted(range(len(problems)), key=lambda i: (problems[i].k, problems[i].rows))
    widest = max(map(len, rows))
    batches: list[list[int]] = [[]]
    for i in order:
        if batches[-1] and (len(batches[-1]) + 1) * problems[i].k * widest > LARGEST_BATCH:
            batches.append([])
        batches[-1].append(i)
    return batches


def _pack(rows: Sequence[Tensor], problems: Sequence[Problem], tol: float) -> Batch:
    used = sorted({p.rows for p in problems})
    K = max(p.k for p in problems)
    draws = np.zeros((len(problems), K, trials(K)))
    for i, p in enumerate(problems):
        rng = np.random.default_rng(p.seed)
        draws[i, 0, 0] = rng.random()
        draws[i, 1 : p.k, : trials(p.k)] = rng.random((p.k - 1, trials(p.k)))
    owner, k = [used.index(p.rows) for p in problems], [min(p.k, len(rows[p.rows])) for p in problems]
    return Batch([rows[c] for c in used], owner, k, draws, [trials(p.k) for p in problems], tol)


def _solve(batch: Batch, max_iter: int) -> list[KMeansResult]:
    solver = _passes(batch)
    ends = solver.iterate(solver.seed(), max_iter)
    filled, results = ends.counts > 0, []
    rank = filled.cumsum(1) - 1
    small = (ends.centres, ends.counts, ends.scatter, ends.steps)
    centres, counts, scatter, steps = (t.cpu().numpy() for t in small)
    for i, (c, k) in enumerate(zip(batch.owner, batch.k)):
        full = counts[i, :k] > 0
        cluster_of_row = ends.labels[i, : len(batch.rows[c])]
        mass, apart = counts[i, :k][full], scatter[i, :k][full]
        labels = cluster_of_row if full.all() else rank[i][cluster_of_row]
        sums = mass, apart / mass, float(apart.sum())
        results.append(KMeansResult(centres[i, :k][full], cast(Any, labels), *sums, int(steps[i])))
    return results


def _passes(batch: Batch) -> Any:
    """The passes over the data: greedy k-means++ (`seed`) and Lloyd's iteration of all problems (`iterate`)."""
    if batch.rows[0].is_cuda and batch.rows[0].dtype == torch.float32 and find_spec("triton"):
        from imprint.kernels.tensor.fused import Fused

        return Fused(batch)
    return PlainPasses(batch)


def by_label(values: Tensor, labels: Tensor, K: int) -> Tensor:
    """Sums of values with the same label, in a fixed order, so that they repeat bit for bit.  # (p, n) -> (p, K)"""
    several = torch.split(torch.arange(K, device=labels.device), max(1, HELD // labels.numel()))
    return torch.cat([torch.where(labels[:, None] == j[:, None], values[:, None], 0).sum(2) for j in several], dim=1)


def relocate(batch: Batch, origin: Tensor, centres: Tensor, gaps: Tensor, counts: Tensor) -> Tensor:
    """Give empty clusters, in place, the rows farthest from their centres, as scikit-learn does.  # (p,) moved?

    Centres are around the origin of their class.
    """
    moved = torch.zeros(len(counts), dtype=torch.bool, device=counts.device)
    for i in torch.nonzero((counts == 0).any(1)).ravel().tolist():
        slots = torch.nonzero(counts[i, : batch.k[i]] == 0).ravel()
        if len(slots):
            c = batch.owner[i]
            X = batch.rows[c] - origin[c]
            value, row = gaps[i].topk(len(slots))
            apart = value > 1e-12 * X.square().sum(1).max()  # else a row that is its centre, up to float32
            slots, row = slots[apart], row[apart]
            centres[i, slots] = X[row]
            moved[i] = len(row) > 0
    return moved


class PlainPasses:
    """The passes in plain torch, problem by problem, for rows that the Triton programs do not take."""

    def __init__(self, batch: Batch):
        self.batch = batch
        self.origin = torch.stack([r.mean(0, dtype=torch.float64).to(r.dtype) for r in batch.rows])
        self.rows = [r - o for r, o in zip(batch.rows, self.origin)]  # where float32 distances are most exact
        self.limits = [batch.tol * r.double().var(0, correction=0).mean() for r in self.rows]
        self.draws = torch.from_numpy(batch.draws).to(self.origin.device)

    def _new(self, *shape: int, dtype: torch.dtype) -> Tensor:
        return torch.zeros((len(self.batch.k), *shape), dtype=dtype, device=self.origin.device)

    def seed(self) -> Tensor:
        chosen = self._new(self.draws.shape[1], dtype=torch.long)
        for i, (c, k, tried) in enumerate(zip(self.batch.owner, self.batch.k, self.batch.tried)):
            chosen[i, :k] = self._seed(self.rows[c], self.draws[i, :k, :tried])
        return chosen

    def _seed(self, X: Tensor, draws: Tensor) -> Tensor:
        last = len(X) - 1
        chosen = [min(int(draws[0, 0] * len(X)), last)]
        closest = self._distances(X, X[chosen])[0]
        for uniform in draws[1:]:
            total = closest.cumsum(0)
            drawn = torch.searchsorted(total, uniform * total[-1], right=True).clamp(max=last)
            nearer = torch.minimum(closest, self._distances(X, X[drawn]))
            best = int(nearer.sum(1).argmin())
            chosen.append(int(drawn[best]))
            closest = nearer[best]
        return torch.tensor(chosen, device=X.device)

    @staticmethod
    def _distances(X: Tensor, rows: Tensor) -> Tensor:
        """Squared, by differences.  # (t, n) float64"""
        return torch.stack([torch.linalg.vector_norm(X - r, dim=1, dtype=torch.float64).square() for r in rows])

    def iterate(self, chosen: Tensor, max_iter: int) -> ClusterEnds:
        centres = torch.stack([self.rows[c][row] for c, row in zip(self.batch.owner, chosen)])
        labels = self._new(max(map(len, self.rows)), dtype=torch.long) - 1
        done, steps = self._new(dtype=torch.bool), self._new(dtype=torch.long)
        for _ in range(max_iter):
            before = labels.clone()
            counts = self._step(centres, labels, done, steps)
            done |= (labels == before).all(1)
            empty = (counts == 0).any(1)
            if bool((empty & ~done).any()):
                done &= ~relocate(self.batch, self.origin, centres, self._gaps(centres, labels), counts)
            if bool(done.all()):
                break
        return self._finish(centres, steps)

    def _step(self, centres: Tensor, labels: Tensor, done: Tensor, steps: Tensor) -> Tensor:
        """Assign and move once; the number of rows of each centre (1 beyond a problem's k)."""
        counts = self._new(centres.shape[1], dtype=torch.float64) + 1
        for i in torch.nonzero(~done).ravel().tolist():
            X, k = self.rows[self.batch.owner[i]], self.batch.k[i]
            nearest = self._nearest(X, centres[i, :k])
            members = torch.nn.functional.one_hot(nearest, k).double()  # (n, k)
            counts[i, :k] = members.sum(0)
            moved = (members.T @ X.double() / counts[i, :k, None].clamp(min=1)).to(centres.dtype)
            moved = torch.where(counts[i, :k, None] > 0, moved, centres[i, :k])
            shift = (moved - centres[i, :k]).double().square().sum()
            centres[i, :k], labels[i, : len(X)] = moved, nearest
            steps[i] += 1
            done[i] = shift <= self.limits[self.batch.owner[i]]
        return counts

    @staticmethod
    def _nearest(X: Tensor, centres: Tensor) -> Tensor:
        half = centres.double().square().sum(1).div(2).to(X.dtype)
        with exact_float32():
            return torch.addmm(half, X, centres.T, alpha=-1).argmin(1)

    def _gaps(self, centres: Tensor, labels: Tensor) -> Tensor:
        gaps = self._new(labels.shape[1], dtype=torch.float64)
        for i, c in enumerate(self.batch.owner):
            X = self.rows[c]
            assigned = centres[i].index_select(0, labels[i, : len(X)])
            gaps[i, : len(X)] = torch.linalg.vector_norm(X - assigned, dim=1, dtype=torch.float64).square()
        return gaps

    def _finish(self, centres: Tensor, steps: Tensor) -> ClusterEnds:
        labels = self._new(max(map(len, self.rows)), dtype=torch.long)
        counts = self._new(centres.shape[1], dtype=torch.float64)
        for i, (c, k) in enumerate(zip(self.batch.owner, self.batch.k)):
            nearest = self._nearest(self.rows[c], centres[i, :k])
            labels[i, : len(nearest)], counts[i, :k] = nearest, torch.bincount(nearest, minlength=k).double()
        scatter = by_label(self._gaps(centres, labels), labels, counts.shape[1])
        return ClusterEnds(centres + self.origin[self.batch.owner][:, None], labels, counts, scatter, steps)
