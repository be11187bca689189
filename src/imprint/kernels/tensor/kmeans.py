"""Many k-means problems at once: ragged classes, several k and seeds in one batch, float32 distances, float64 sums."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from imprint.kernels.kmeans import Problem
from imprint.kernels.seeding import trials

CHECK_EVERY = 8  # iterations between two looks at whether everything has converged
LARGEST_BATCH = 2**30  # scores held at once: rows x centres over all problems of a batch


class TensorKMeans(NamedTuple):
    """Centres without empty clusters, and what belongs to each; as `kernels.kmeans.KMeansResult`, in tensors."""

    centres: Tensor  # (k', d)
    labels: Tensor  # (n,)
    mass: Tensor  # (k',) float64
    inertia: float
    iterations: int


def kmeans_many(
    rows: Sequence[Tensor], problems: Sequence[Problem], *, max_iter: int = 300, tol: float = 1e-4
) -> list[TensorKMeans]:
    """Solve several problems in batches; the contract of `kernels.kmeans.kmeans_many`.

    The random numbers are those of the NumPy version; results agree with it up to the rounding of float32 distances.
    """
    results: dict[int, TensorKMeans] = {}
    for batch in _batches(rows, problems):
        found = _Batch.of(rows, [problems[i] for i in batch]).solve(max_iter, tol)
        results.update(zip(batch, found))
    return [results[i] for i in range(len(problems))]


def _batches(rows: Sequence[Tensor], problems: Sequence[Problem]) -> list[list[int]]:
    """Problems of like k together, as many as memory allows."""
    order = sorted(range(len(problems)), key=lambda i: (problems[i].k, problems[i].rows))
    batches: list[list[int]] = [[]]
    for i in order:
        trial = [*batches[-1], i]
        k, n = max(problems[j].k for j in trial), max(len(rows[problems[j].rows]) for j in trial)
        per_class = np.bincount([problems[j].rows for j in trial])
        if batches[-1] and int((per_class > 0).sum()) * int(per_class.max()) * k * n > LARGEST_BATCH:
            batches.append([i])
        else:
            batches[-1] = trial
    return batches


@dataclass
class _Batch:
    """Problems as a grid of classes x slots, padded: `X` (c, n, d), `k` (c, s); a slot without a problem has k = 0."""

    X: Tensor
    real: Tensor  # (c, n) whether a row is a row
    k: Tensor  # (c, s)
    place: list[tuple[int, int]]  # of every problem
    draws: Tensor  # (c, s, K, T) uniform numbers; [..., 0, 0] picks the first centre
    tried: Tensor  # (c, s) how many draws of T count
    sizes: list[int]

    @classmethod
    def of(cls, rows: Sequence[Tensor], problems: Sequence[Problem]) -> "_Batch":
        used = sorted({p.rows for p in problems})
        slots: dict[int, int] = dict.fromkeys(used, 0)
        place = []
        for p in problems:
            place.append((used.index(p.rows), slots[p.rows]))
            slots[p.rows] += 1
        shape, K = (len(used), max(slots.values())), max(p.k for p in problems)
        T = trials(K)
        k, draws = np.zeros(shape, dtype=np.int64), np.zeros((*shape, K, T))
        tried = np.ones(shape, dtype=np.int64)
        for p, at in zip(problems, place):
            rng = np.random.default_rng(p.seed)
            k[at], tried[at] = min(p.k, len(rows[p.rows])), trials(p.k)
            draws[(*at, 0, 0)] = rng.random()
            draws[at][1 : p.k, : trials(p.k)] = rng.random((p.k - 1, trials(p.k)))
        device, sizes = rows[0].device, [len(rows[c]) for c in used]
        X = torch.nn.utils.rnn.pad_sequence([rows[c] for c in used], batch_first=True)
        real = torch.arange(X.shape[1], device=device) < torch.tensor(sizes, device=device)[:, None]
        as_tensor = [torch.from_numpy(a).to(device) for a in (k, draws, tried)]
        return cls(X, real, as_tensor[0], place, as_tensor[1], as_tensor[2], sizes)

    def solve(self, max_iter: int, tol: float) -> list[TensorKMeans]:
        self.X64 = self.X.double()
        self.norms = self.X64.square().sum(-1)  # (c, n)
        centres, iterations = self._lloyd(self._seed(), max_iter, tol)
        labels, gaps, counts = self._assign(centres)
        inertia = gaps.sum(-1).cpu()
        counts_host, iterations_host = counts.cpu(), iterations.cpu()
        results = []
        for (c, s), _ in zip(self.place, self.place):
            kept = torch.nonzero(counts_host[c, s] > 0).ravel().to(self.X.device)
            rank = torch.cumsum(counts[c, s] > 0, 0) - 1
            own = labels[c, s, : self.sizes[c]]
            results.append(
                TensorKMeans(
                    centres[c, s, kept],
                    rank[own],
                    counts[c, s, kept],
                    float(inertia[c, s]),
                    int(iterations_host[c, s]),
                )
            )
        return results

    # Seeding

    def _squared_distances(self, centres: Tensor) -> Tensor:
        """In float64, from all rows to a few centres of every slot.  # (c, s, t, d) -> (c, s, t, n)"""
        c, s, t, d = centres.shape
        flat = centres.reshape(c, s * t, d).double()
        product = torch.baddbmm(self.norms[:, None, :], flat, self.X64.transpose(1, 2), beta=1, alpha=-2)
        product += flat.square().sum(-1)[..., None]
        return product.clamp_(min=0).view(c, s, t, -1)

    def _seed(self) -> Tensor:
        """Greedy k-means++ in all slots at once.  # (c, s, K, d)"""
        c, s, K, T = self.draws.shape
        sizes = self.real.sum(-1)  # (c,)
        first = (self.draws[..., 0, 0] * sizes[:, None]).long().clamp(max=sizes[:, None] - 1)  # (c, s)
        chosen = torch.empty((c, s, K), dtype=torch.long, device=self.X.device)
        chosen[..., 0] = first
        closest = self._squared_distances(self._rows(first[..., None]))[:, :, 0] * self.real[:, None]  # (c, s, n)
        counted = torch.arange(T, device=self.X.device) < self.tried[..., None]  # (c, s, T)
        own = torch.finfo(torch.float64).eps * 64 * self.norms.amax(-1)[:, None, None]
        for j in range(1, K):
            closest = torch.where(closest <= own, 0, closest)
            total = closest.cumsum(-1)
            drawn = torch.searchsorted(total, self.draws[:, :, j] * total[..., -1:], right=True)
            drawn = torch.minimum(drawn, (sizes - 1)[:, None, None])
            nearer = torch.minimum(closest[:, :, None], self._squared_distances(self._rows(drawn)))  # (c, s, T, n)
            nearer *= self.real[:, None, None]
            best = torch.where(counted, nearer.sum(-1), torch.inf).argmin(-1, keepdim=True)  # (c, s, 1)
            chosen[..., j] = drawn.gather(-1, best)[..., 0]
            closest = nearer.gather(2, best[..., None].expand(c, s, 1, nearer.shape[-1]))[:, :, 0]
        return self._rows(chosen)

    def _rows(self, index: Tensor) -> Tensor:
        """Rows of the class of every slot.  # (c, s, t) -> (c, s, t, d)"""
        c, s, t = index.shape
        picked = self.X.gather(1, index.reshape(c, s * t, 1).expand(-1, -1, self.X.shape[-1]))
        return picked.view(c, s, t, -1)

    # Lloyd

    def _lloyd(self, centres: Tensor, max_iter: int, tol: float) -> tuple[Tensor, Tensor]:
        c, s, K, d = centres.shape
        sizes = self.real.sum(-1)
        mean = self.X64.sum(1) / sizes[:, None]
        variance = (self.norms.sum(-1) / sizes - mean.square().sum(-1)) / d  # (c,)
        limit = tol * variance[:, None]
        unused = torch.arange(K, device=centres.device) >= self.k[..., None]  # (c, s, K)
        done = self.k == 0
        labels = torch.full((c, s, self.X.shape[1]), -1, device=centres.device)
        iterations = torch.zeros_like(self.k)
        for step in range(max_iter):
            before, labels = labels, self._nearest(centres, unused)
            sums, counts = self._sums(labels, K)
            moved = torch.where((counts > 0)[..., None], sums / counts.clamp(min=1)[..., None], centres.double())
            moved = moved.to(centres.dtype)
            shift = ((moved - centres).double().square().sum(-1) * ~unused).sum(-1)
            iterations += ~done
            centres = torch.where(done[..., None, None], centres, moved)
            done = done | (shift <= limit) | (labels == before).all(-1)
            if step % CHECK_EVERY == CHECK_EVERY - 1:
                empty = (counts == 0) & ~unused
                if bool(empty.any()):
                    centres, revived = self._relocate(centres, labels, empty)
                    done = done & ~revived
                elif bool(done.all()):
                    break
        return centres, iterations

    def _nearest(self, centres: Tensor, unused: Tensor) -> Tensor:
        """The nearest used centre of every row.  # (c, s, n)"""
        c, s, K, d = centres.shape
        half = centres.double().square().sum(-1).div(2).to(centres.dtype).masked_fill(unused, torch.inf)
        flat = centres.reshape(c, s * K, d)
        scores = torch.baddbmm(half.view(c, s * K, 1), flat, self.X.transpose(1, 2), alpha=-1)
        return scores.view(c, s, K, -1).argmin(2)

    def _sums(self, labels: Tensor, K: int) -> tuple[Tensor, Tensor]:
        """Sum and number of the rows of every cluster, in float64.  # (c, s, K, d), (c, s, K)"""
        c, s, n = labels.shape
        own = labels[:, :, None] == torch.arange(K, device=labels.device)[:, None]  # (c, s, K, n)
        own = (own & self.real[:, None, None]).double()
        return torch.bmm(own.view(c, s * K, n), self.X64).view(c, s, K, -1), own.sum(-1)

    def _relocate(self, centres: Tensor, labels: Tensor, empty: Tensor) -> tuple[Tensor, Tensor]:
        """Empty clusters take the rows farthest from their centres, as scikit-learn's do; none where all coincide."""
        _, gaps, _ = self._assign(centres)
        revived = torch.zeros_like(self.k, dtype=torch.bool)
        centres = centres.clone()
        for c, s in torch.nonzero(empty.any(-1)).tolist():
            slots = torch.nonzero(empty[c, s]).ravel()
            value, row = gaps[c, s].topk(len(slots))
            slots, row = slots[value > 0], row[value > 0]
            centres[c, s, slots] = self.X[c, row]
            revived[c, s] = len(row) > 0
        return centres, revived

    def _assign(self, centres: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Labels, squared distances to the own centre (0 for padding) and counts."""
        unused = torch.arange(centres.shape[2], device=centres.device) >= self.k[..., None]
        labels = self._nearest(centres, unused)
        gaps = torch.empty(labels.shape, dtype=torch.float64, device=labels.device)
        for s in range(labels.shape[1]):
            own = centres[:, s].gather(1, labels[:, s, :, None].expand(-1, -1, centres.shape[-1]))
            gaps[:, s] = (self.X64 - own).square().sum(-1) * self.real
        _, counts = self._sums(labels, centres.shape[2])
        return labels, gaps, counts
