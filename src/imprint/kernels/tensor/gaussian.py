"""Scores of a cluster process for tensors: one product, one exponential, one more product."""

import torch
from torch import Tensor

from imprint.core.types import Array
from imprint.kernels.tensor.device import exact_float32, on_device_of

CHUNK = 2**27  # kernels held at once


def kernel_sums(Q: Tensor, centre: Array, lifted: Array, by_class: Array) -> Tensor:
    """Kernels of queries and lifted proxies, in the type of these, times the coefficients.  # (q, classes)

    See `cluster_process.gaussian`: what the proxies say cancels, so their sum is float64.
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
