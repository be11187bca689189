"""Farthest-point traversal of several classes at once."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence


def farthest_points(rows: Sequence[Tensor], k: int, firsts: Sequence[int]) -> list[Tensor]:
    """For every class the rows `kernels.farthest` takes from its first row on.  # (min(k, n),) each"""
    X = pad_sequence([r.double() for r in rows], batch_first=True)  # (c, n, d)
    sizes = torch.tensor([len(r) for r in rows], device=X.device)
    norms = X.square().sum(-1)
    gap = torch.where(torch.arange(X.shape[1], device=X.device) < sizes[:, None], torch.inf, -torch.inf)
    chosen = torch.empty((len(X), min(k, X.shape[1])), dtype=torch.long, device=X.device)
    last = torch.tensor(firsts, device=X.device)
    for step in range(chosen.shape[1]):
        chosen[:, step] = last
        row = X.gather(1, last[:, None, None].expand(-1, 1, X.shape[2]))  # (c, 1, d)
        squared = norms - 2 * torch.bmm(X, row.transpose(1, 2))[..., 0] + row.square().sum(-1)
        gap = torch.minimum(gap, squared.clamp(min=0)).scatter(1, last[:, None], -1.0)
        last = gap.argmax(1)
    return [c[: len(r)] for c, r in zip(chosen, rows)]
