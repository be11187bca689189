"""What queries score: the best proxy of every class, or all proxies together; for tensors, where they lie."""

import numpy as np
import torch
from torch import Tensor

from imprint.core.errors import ParameterError
from imprint.core.types import Array
from imprint.kernels.tensor.device import exact_float32

CHUNK = 2**27  # scores or kernels held at once


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


def kernel_sums(Q: Tensor, centre: Tensor, right: Tensor, by_class: Tensor) -> Tensor:
    """Kernels of queries and lifted proxies, in the type of these, times the coefficients.  # (q, classes)

    See `gaussian_process.gaussian`: the sums cancel, so in float32 only what kernels differ from their mean is summed.
    """
    rows = max(1, CHUNK // len(right))
    narrow = by_class.dtype == torch.float32

    def sums(q: Tensor) -> Tensor:
        k = _kernels((q - centre).to(right.dtype), right)
        if not narrow:
            return k.to(by_class.dtype) @ by_class.T
        common = k.mean(1, keepdim=True)
        return ((k - common) @ by_class.T).double() + common * by_class.sum(1, dtype=torch.float64)

    if Q.shape[1] != len(centre):
        raise ParameterError(f"the queries have {Q.shape[1]} columns and the proxies {len(centre)}.")
    with exact_float32():
        return torch.cat([sums(q) for q in torch.split(Q, rows)])


def _kernels(about: Tensor, right: Tensor) -> Tensor:
    squares = about.double().square().sum(1, keepdim=True).to(about.dtype)
    exponent = torch.addmm(right[:, -1], about, right[:, :-2].T)
    return (exponent + squares * right[:, -2]).exp_()
