"""k-medoids by best swaps: every step looks at all candidates and all medoids at once."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from imprint.kernels.tensor.precision import exact_float32
from imprint.kernels.tensor.recording import recorded

CHECK_EVERY = 8  # swaps between two looks at whether one still helps


def swap_medoids(X: Tensor, k: int, rng: np.random.Generator) -> tuple[Tensor, Tensor, float]:
    """Medoids that no single swap improves: rows chosen, medoid of every row, total distance.

    The gains of all swaps come from one pass over the distances (Schubert and Rousseeuw 2021); the best one is made.
    The NumPy version makes every improving swap at once; both end where no swap helps.
    """
    n, k = len(X), min(k, len(X))
    medoids = torch.from_numpy(rng.choice(n, size=k, replace=False)).to(X.device)
    changes, D = _changes(X), _distances(X)  # (n, n)
    slots, helped = torch.arange(k, device=X.device), torch.ones((), dtype=torch.bool, device=X.device)

    def swap() -> None:
        first, _, change = changes(D, medoids)
        change.index_fill_(0, medoids, torch.inf)
        least, best = change.view(-1).min(0)
        helped.copy_(least < -1e-6 * first.sum(dtype=torch.float64))
        medoids.copy_(torch.where(helped & (slots == best % k), best // k, medoids))

    def swap_often() -> None:
        for _ in range(CHECK_EVERY):
            swap()

    swap()
    several = recorded(swap_often, X.device)
    while bool(helped):
        several()
    first, owner, _ = changes(D, medoids)
    return medoids, owner.long(), float(first.sum(dtype=torch.float64))


def _changes(X: Tensor) -> Callable[[Tensor, Tensor], tuple[Tensor, Tensor, Tensor]]:
    if X.is_cuda and X.dtype == torch.float32:
        from imprint.kernels.tensor.swaps import changes

        return changes
    return _plain_changes


def _plain_changes(D: Tensor, medoids: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Distance to the nearest medoid, which that is, and what every swap would change.  # (n,), (n,), (n, k)"""
    near = D[medoids].topk(min(2, len(medoids)), dim=0, largest=False)
    owner, first = near.indices[0], near.values[0]
    second = near.values[1] if len(medoids) > 1 else torch.full_like(first, torch.inf)
    closer = (D - first).clamp(max=0).sum(1, dtype=torch.float64)  # (n,) what a new medoid saves
    lost = (torch.minimum(D, second) - first).clamp(min=0)  # what its owner's leaving costs
    own = torch.nn.functional.one_hot(owner, len(medoids)).to(D.dtype)  # (n, k)
    with exact_float32():
        return first, owner, closer[:, None] + (lost @ own).double()


def _distances(X: Tensor) -> Tensor:
    """All pairs: squares in float64, since products of near rows cancel."""
    wide = X.double()
    norms = wide.square().sum(1)
    squared = torch.addmm(norms[:, None] + norms, wide, wide.T, alpha=-2).clamp_(min=0).fill_diagonal_(0)
    aligned = X.new_empty((len(X), -(-len(X) // 16) * 16))[:, : len(X)]
    return aligned.copy_(squared.sqrt_())
