"""Row-wise and column-wise sums of tensors, in float64; what is as small as a row comes back as a NumPy array."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from imprint.core.types import Array

BLOCK = 65536  # rows turned into float64 at a time


def unit_rows(X: Tensor) -> Tensor:
    """Every row over its length; a zero row stays zero; see `kernels.rows`."""
    peak = X.abs().amax(1, keepdim=True)
    scaled = X / torch.where(peak > 0, peak, 1)
    length = torch.linalg.vector_norm(scaled, dim=1, keepdim=True, dtype=torch.float64).to(X.dtype)
    return scaled / torch.where(length > 0, length, 1)


def squared_norms(X: Tensor) -> Any:
    """Squared Euclidean length of every row.  # (n,) float64"""
    return torch.cat([block.double().square().sum(1) for block in torch.split(X, BLOCK)])


def squared_distances(X: Tensor, centre: Array) -> Array:
    """Squared Euclidean distance of every row to one centre.  # (n,) float64"""
    at = torch.tensor(centre, device=X.device)
    squares = torch.cat([(block.double() - at).square().sum(1) for block in torch.split(X, BLOCK)])
    return squares.cpu().numpy()


def column_sums(X: Tensor, weight: Array | None = None) -> Array:
    """Sum of all rows, each times its weight.  # (d,) float64"""
    if weight is not None:
        return products(X.T, np.asarray(weight, dtype=np.float64))
    return X.sum(0, dtype=torch.float64).cpu().numpy()


def products(X: Tensor, v: Array) -> Array:
    """Inner product of every row with one vector.  # (n,) float64"""
    by = torch.tensor(v, device=X.device)
    return torch.cat([block.double() @ by for block in torch.split(X, BLOCK)]).cpu().numpy()


def sums_about_mean(X: Tensor, weight: Array | None, count: float) -> tuple[Array, Array, float]:
    """The mean, the sum of the rows minus it, and of their squared lengths; a row counts as its weight.

    They are copied to the host together, so that it waits once.  # (d,), (d,) float64
    """
    mass = None if weight is None else torch.tensor(weight, device=X.device, dtype=torch.float64)
    mean = (X.sum(0, dtype=torch.float64) if mass is None else X.double().T @ mass) / count
    total, squares = torch.zeros_like(mean), mean.new_zeros(1)
    for start in range(0, len(X), BLOCK):
        apart = X[start : start + BLOCK].double() - mean
        weighted = apart if mass is None else apart * mass[start : start + BLOCK, None]
        total += weighted.sum(0)
        squares += torch.vdot(weighted.ravel(), apart.ravel())
    values = torch.cat([mean, total, squares]).cpu().numpy()
    return values[: len(mean)], values[len(mean) : -1], float(values[-1])
