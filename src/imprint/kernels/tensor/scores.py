"""What queries score: the best proxy of every class, or all proxies together; for tensors, where they lie."""

import numpy as np
import torch
from torch import Tensor

from imprint.core.types import Array
from imprint.kernels.tensor.device import exact_float32, on_device_of

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


def kernel_sums(Q: Tensor, centre: Array, lifted: Array, by_class: Array) -> Tensor:
    """Kernels of queries and lifted proxies, in the type of these, times the coefficients.  # (q, classes)

    See `gaussian_process.gaussian`: what the proxies say cancels, so their sum is float64.
    """
    right, middle, coefficients = on_device_of(lifted, Q), on_device_of(centre, Q), on_device_of(by_class, Q).double()
    rows = max(1, CHUNK // len(lifted))
    with exact_float32():
        parts = [_kernels((q - middle).to(right.dtype), right).double() @ coefficients.T for q in torch.split(Q, rows)]
    return torch.cat(parts)


def _kernels(about: Tensor, right: Tensor) -> Tensor:
    squares = about.double().square().sum(1, keepdim=True).to(about.dtype)
    exponent = torch.addmm(right[:, -1], about, right[:, :-2].T)
    return (exponent + squares * right[:, -2]).exp_()
