"""k-means passes in plain torch, problem by problem: the way on a CPU, and what the fused kernels must agree with."""

import torch
from torch import Tensor

from imprint.kernels.tensor.kmeans import Batch, relocate
from imprint.kernels.tensor.precision import exact_float32


class Plain:
    def __init__(self, batch: Batch):
        self.batch = batch

    def _class(self, i: int) -> Tensor:
        c = int(self.batch.owner[i])
        return self.batch.X[c, : int(self.batch.sizes[c])]

    def seed(self) -> Tensor:
        chosen = torch.zeros(self.batch.draws.shape[:2], dtype=torch.long, device=self.batch.X.device)
        for i in range(len(chosen)):
            k = int(self.batch.k[i])
            chosen[i, :k] = self._seed(self._class(i), self.batch.draws[i, :k, : int(self.batch.tried[i])])
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

    def iterate(self, centres: Tensor, max_iter: int) -> Tensor:
        steps = torch.zeros_like(self.batch.k)
        labels = torch.full((len(centres), self.batch.X.shape[1]), -1, device=centres.device)
        done = torch.zeros_like(steps, dtype=torch.bool)
        for _ in range(max_iter):
            before = labels.clone()
            counts = self._step(centres, labels, done, steps)
            done |= (labels == before).all(1)
            empty = (counts == 0).any(1)
            if bool((empty & ~done).any()):
                done &= ~relocate(self.batch, centres, self._gaps(centres, labels), counts)
            if bool(done.all()):
                break
        return steps

    def _step(self, centres: Tensor, labels: Tensor, done: Tensor, steps: Tensor) -> Tensor:
        """Assign and move once; say how many rows each centre has (1 beyond a problem's k)."""
        counts = torch.ones(centres.shape[:2], dtype=torch.float64, device=centres.device)
        for i in torch.nonzero(~done).ravel().tolist():
            X, k = self._class(i), int(self.batch.k[i])
            own = self._nearest(X, centres[i, :k])
            mine = torch.nn.functional.one_hot(own, k).double()  # (n, k)
            counts[i, :k] = mine.sum(0)
            moved = (mine.T @ X.double() / counts[i, :k, None].clamp(min=1)).to(centres.dtype)
            moved = torch.where(counts[i, :k, None] > 0, moved, centres[i, :k])
            shift = (moved - centres[i, :k]).double().square().sum()
            centres[i, :k], labels[i, : len(X)] = moved, own
            steps[i] += 1
            done[i] = shift <= self.batch.limit[i]
        return counts

    @staticmethod
    def _nearest(X: Tensor, centres: Tensor) -> Tensor:
        half = centres.double().square().sum(1).div(2).to(X.dtype)
        with exact_float32():
            return torch.addmm(half, X, centres.T, alpha=-1).argmin(1)

    def _gaps(self, centres: Tensor, labels: Tensor) -> Tensor:
        gaps = torch.zeros(labels.shape, dtype=torch.float64, device=labels.device)
        for i in range(len(labels)):
            X = self._class(i)
            own = centres[i].index_select(0, labels[i, : len(X)])
            gaps[i, : len(X)] = torch.linalg.vector_norm(X - own, dim=1, dtype=torch.float64).square()
        return gaps

    def assign(self, centres: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        labels = torch.zeros((len(centres), self.batch.X.shape[1]), dtype=torch.long, device=centres.device)
        counts = torch.zeros(centres.shape[:2], dtype=torch.float64, device=centres.device)
        for i in range(len(centres)):
            X, k = self._class(i), int(self.batch.k[i])
            own = self._nearest(X, centres[i, :k])
            labels[i, : len(X)], counts[i, :k] = own, torch.bincount(own, minlength=k).double()
        return labels, counts, self._gaps(centres, labels).sum(1)
