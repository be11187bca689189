"""Second moments and regularised least squares in float64."""

import torch
from torch import Tensor

BLOCK = 65536


def gram(X: Tensor) -> Tensor:
    """Sum of the outer products of the rows.  # (d, d) float64"""
    total = torch.zeros((X.shape[1],) * 2, dtype=torch.float64, device=X.device)
    for block in torch.split(X, BLOCK):
        wide = block.double()
        total.addmm_(wide.T, wide)
    return total


def solve_ridge(G: Tensor, M: Tensor, reg: float) -> Tensor | None:
    """Rows w with (G + reg I) w = m for every row m of M; None where that matrix is not positive."""
    A = G + reg * torch.eye(len(G), dtype=G.dtype, device=G.device)
    L, failed = torch.linalg.cholesky_ex(A)
    return None if bool(failed) else torch.cholesky_solve(M.T, L).T
