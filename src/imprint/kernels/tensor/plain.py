"""k-means passes in plain torch, for rows that the Triton programs do not take, and to compare these with."""

import torch
from torch import Tensor

from imprint.kernels.tensor.kmeans import Batch, ClusterEnds, by_label, relocate
from imprint.kernels.tensor.scores import exact_float32


class PlainPasses:
    """The passes over the data of one batch, problem by problem."""

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
