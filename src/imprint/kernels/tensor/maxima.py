"""Best score per class."""

import torch
from torch import Tensor

from imprint.kernels.tensor.precision import exact_float32

CHUNK = 2**28  # scores held at once


def class_maxima(Q: Tensor, W: Tensor, starts: Tensor) -> Tensor:
    """Largest inner product of every query with the proxies of every class; see `kernels.maxima`.  # (q, C)"""
    sizes = torch.diff(torch.cat([starts, starts.new_tensor([len(W)])])).tolist()
    rows = max(1, CHUNK // len(W))
    with exact_float32():
        return torch.cat([_maxima(q @ W.T, sizes) for q in torch.split(Q, rows)])


def _maxima(scores: Tensor, sizes: list[int]) -> Tensor:
    if len(set(sizes)) == 1:
        return scores.view(len(scores), len(sizes), -1).amax(2)
    return torch.stack([part.amax(1) for part in torch.split(scores, sizes, dim=1)], dim=1)
