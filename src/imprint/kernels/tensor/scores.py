"""Class maxima and nearest neighbours of tensors, computed on their device."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor

from imprint.core.types import Array

CHUNK = 2**27  # scores or distances held at once
CLOSE = 1e-2
"""Squared distances below this share of the squared lengths are computed again, from differences."""
PAIRS = 2**16  # differences held at once


@contextmanager
def exact_float32() -> Iterator[None]:
    """Products of float32 matrices keep all their bits inside, whatever the caller has allowed outside."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


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


def nearest(Q: Tensor, W: Tensor, m: int, metric: str = "euclidean") -> tuple[Tensor, Tensor]:
    """Distances and indices of the `m` nearest rows of `W`, nearest first; see `kernels.neighbours`.  # (q, m) twice"""
    m, Q, W = min(m, len(W)), Q.double(), W.double()
    if metric == "cosine":
        Q, W = (torch.nn.functional.normalize(t, dim=1, eps=1e-300) for t in (Q, W))
    between = {"euclidean": _squared, "cosine": _cosine, "manhattan": _manhattan}[metric]
    parts = [_first(between(q, W), m) for q in torch.split(Q, max(1, CHUNK // len(W)))]
    distances, indices = (torch.cat(part) for part in zip(*parts))
    return (distances.sqrt() if metric == "euclidean" else distances), indices


def _squared(Q: Tensor, W: Tensor) -> Tensor:
    """Squared Euclidean distances.  # (q, p)"""
    both = Q.square().sum(1)[:, None] + W.square().sum(1)
    squares = torch.addmm(both, Q, W.T, alpha=-2)
    for pairs in torch.split(torch.nonzero(squares <= CLOSE * both), PAIRS):
        q, w = pairs.T
        squares[q, w] = (Q[q] - W[w]).square().sum(1)
    return squares


def _cosine(Q: Tensor, W: Tensor) -> Tensor:
    return (1 - Q @ W.T).clamp_(min=0)


def _manhattan(Q: Tensor, W: Tensor) -> Tensor:
    return torch.cat([torch.cdist(q, W, p=1) for q in torch.split(Q, 1024)])


def _first(distances: Tensor, m: int) -> tuple[Tensor, Tensor]:
    """The m smallest of every row, ties by index."""
    value, index = distances.topk(min(m + 1, distances.shape[1]), largest=False)
    tied = torch.nonzero((value[:, 1:] == value[:, :-1]).any(1)).ravel()  # topk lists equals in any order
    value, index = value[:, :m], index[:, :m]
    if len(tied):
        value[tied], index[tied] = (t[:, :m] for t in distances[tied].sort(dim=1, stable=True))
    return value, index
