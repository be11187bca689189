"""Best score per class."""

import torch
from torch import Tensor

from imprint.kernels.tensor.precision import exact_float32

CHUNK = 2**28  # scores held at once


def class_maxima(Q: Tensor, W: Tensor, starts: Tensor) -> Tensor:
    """Largest inner product of every query with the proxies of every class; see `kernels.maxima`.  # (q, C)"""
    owner = torch.searchsorted(starts, torch.arange(len(W), device=W.device), right=True) - 1
    best = torch.full((len(Q), len(starts)), -torch.inf, dtype=Q.dtype, device=Q.device)
    rows = max(1, CHUNK // len(W))
    with exact_float32():
        for i in range(0, len(Q), rows):
            scores = Q[i : i + rows] @ W.T
            best[i : i + rows].scatter_reduce_(1, owner.expand(len(scores), -1), scores, "amax")
    return best
