"""k-medoids by best swaps: every step looks at all candidates and all medoids at once."""

import numpy as np
import torch
from torch import Tensor

from imprint.kernels.tensor.precision import exact_float32


def swap_medoids(X: Tensor, k: int, rng: np.random.Generator) -> tuple[Tensor, Tensor, float]:
    """Medoids that no single swap improves: rows chosen, medoid of every row, total distance.

    The gains of all swaps come from one pass over the distances (Schubert and Rousseeuw 2021); the best one is made.
    The NumPy version makes every improving swap at once; both end where no swap helps.
    """
    n, k = len(X), min(k, len(X))
    medoids = torch.from_numpy(rng.choice(n, size=k, replace=False)).to(X.device)
    D = _distances(X)  # (n, n)
    while True:
        to = D[medoids]  # (k, n)
        near = to.topk(min(2, k), dim=0, largest=False)
        owner, first = near.indices[0], near.values[0]
        second = near.values[1] if k > 1 else torch.full_like(first, torch.inf)
        closer = (D - first).clamp(max=0).sum(1, dtype=torch.float64)  # (n,) what a new medoid saves
        lost = (torch.minimum(D, second) - first).clamp(min=0)  # what its owner's leaving costs
        own = torch.nn.functional.one_hot(owner, k).to(X.dtype)  # (n, k)
        with exact_float32():
            change = closer[:, None] + (lost @ own).double()  # (n, k)
        change[medoids] = torch.inf
        best = change.argmin()
        total = first.sum(dtype=torch.float64)
        if not bool(change.view(-1)[best] < -1e-6 * total):
            return medoids, owner, float(total)
        medoids[best % k] = best // k


def _distances(X: Tensor) -> Tensor:
    """All pairs: squares in float64, since products of near rows cancel."""
    wide = X.double()
    norms = wide.square().sum(1)
    squared = torch.addmm(norms[:, None] + norms, wide, wide.T, alpha=-2).clamp_(min=0).fill_diagonal_(0)
    return squared.sqrt_().to(X.dtype)
