"""Best score per class."""

import numpy as np
import torch
from torch import Tensor

from imprint.core.types import Array
from imprint.kernels.tensor.device import exact_float32

CHUNK = 2**28  # scores held at once


def class_maxima(Q: Tensor, W: Tensor, starts: Array) -> Tensor:
    """Largest inner product of every query with the proxies of every class; see `kernels.maxima`.  # (q, C)"""
    sizes = np.diff(np.append(starts, len(W))).tolist()
    rows = max(1, CHUNK // len(W))
    with exact_float32():
        return torch.cat([_maxima(q @ W.T, sizes) for q in torch.split(Q, rows)])


def _maxima(scores: Tensor, sizes: list[int]) -> Tensor:
    if len(set(sizes)) == 1:
        return scores.view(len(scores), len(sizes), -1).amax(2)
    return torch.stack([part.amax(1) for part in torch.split(scores, sizes, dim=1)], dim=1)
