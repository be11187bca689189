"""Exact nearest neighbours: float32 products propose, float64 distances decide."""

import torch
from torch import Tensor

from imprint.kernels.tensor.device import exact_float32

CHUNK = 2**28  # scores held at once
SPARE = 8  # candidates beyond m


def nearest(Q: Tensor, W: Tensor, m: int, metric: str = "euclidean") -> tuple[Tensor, Tensor]:
    """Distances and indices of the `m` nearest rows of `W`, nearest first; see `kernels.neighbours`.  # (q, m) twice"""
    m = min(m, len(W))
    if metric == "cosine":
        Q, W = (torch.nn.functional.normalize(t.double(), dim=1, eps=1e-300) for t in (Q, W))
    rows = max(1, CHUNK // len(W))
    parts = [_manhattan(q, W, m) if metric == "manhattan" else _near(q, W, m) for q in torch.split(Q, rows)]
    distances, indices = (torch.cat(part) for part in zip(*parts))
    return (distances.square() / 2 if metric == "cosine" else distances), indices


def _near(Q: Tensor, W: Tensor, m: int) -> tuple[Tensor, Tensor]:
    """Candidates by float32; where rounding could hide a nearer row, all rows in float64."""
    norms = W.double().square().sum(1)  # (p,)
    with exact_float32():
        proposed = torch.addmm(norms.to(Q.dtype), Q, W.T, alpha=-2)  # squared distances less those of the queries
    value, index = proposed.topk(min(m + SPARE, len(W)), largest=False)
    own = Q.double().square().sum(1)
    distances, indices = _decide(Q, W, index, m)
    eps = torch.finfo(Q.dtype).eps
    slack = 4 * eps * (Q.shape[1] ** 0.5) * (own.sqrt() * norms.max().sqrt() * 2 + norms.max())
    safe = (value[:, -1].double() + own - slack > distances[:, -1].square()) | (index.shape[1] == len(W))
    for i in torch.split(torch.nonzero(~safe).ravel(), 256):
        full = torch.cdist(Q[i].double(), W.double(), compute_mode="donot_use_mm_for_euclid_dist")
        distances[i], indices[i] = _first(full, torch.arange(len(W), device=W.device).expand(len(i), -1), m)
    return distances, indices


def _decide(Q: Tensor, W: Tensor, index: Tensor, m: int) -> tuple[Tensor, Tensor]:
    exact = (W[index].double() - Q.double()[:, None]).square().sum(-1).sqrt()
    return _first(exact, index, m)


def _first(distances: Tensor, index: Tensor, m: int) -> tuple[Tensor, Tensor]:
    """The m smallest, ties by index."""
    by_index = index.argsort(dim=1)
    distances, index = distances.gather(1, by_index), index.gather(1, by_index)
    order = distances.sort(dim=1, stable=True).indices[:, :m]
    return distances.gather(1, order), index.gather(1, order)


def _manhattan(Q: Tensor, W: Tensor, m: int) -> tuple[Tensor, Tensor]:
    distances = torch.cat([torch.cdist(q.double(), W.double(), p=1) for q in torch.split(Q, 1024)])
    return _first(distances, torch.arange(len(W), device=W.device).expand(len(Q), -1), m)
