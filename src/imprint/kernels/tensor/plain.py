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

    def nearer(self, candidates: Tensor, closest: Tensor) -> Tensor:
        p, t = candidates.shape
        out = torch.zeros((p, t, closest.shape[1]), dtype=closest.dtype, device=closest.device)
        for i in range(p):
            X = self._class(i)
            for j, row in enumerate(candidates[i].tolist()):
                gap = torch.linalg.vector_norm(X - X[row], dim=1, dtype=torch.float64).square()
                out[i, j, : len(X)] = torch.minimum(gap.to(closest.dtype), closest[i, : len(X)])
        return out

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
                done &= ~relocate(self.batch, centres, labels, counts)
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

    def assign(self, centres: Tensor) -> tuple[Tensor, Tensor]:
        labels = torch.zeros((len(centres), self.batch.X.shape[1]), dtype=torch.long, device=centres.device)
        counts = torch.zeros(centres.shape[:2], dtype=torch.float64, device=centres.device)
        for i in range(len(centres)):
            X, k = self._class(i), int(self.batch.k[i])
            own = self._nearest(X, centres[i, :k])
            labels[i, : len(X)], counts[i, :k] = own, torch.bincount(own, minlength=k).double()
        return labels, counts
