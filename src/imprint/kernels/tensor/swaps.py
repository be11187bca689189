"""What every swap of k-medoids would change, in two passes fused in Triton."""

import torch
import triton
from torch import Tensor

from imprint.kernels.tensor import programs

ROWS, COLUMNS = 64, 32  # the tile of distances that one program reads at a time
WIDE = 24 * COLUMNS  # columns that one program reads


def changes(D: Tensor, medoids: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Distance to the nearest medoid, which that is, and what every swap would change.  # (n,), (n,), (n, k)"""
    n, k = len(D), len(medoids)
    KP = max(16, triton.next_power_of_2(k))
    first, second = torch.empty((2, n), device=D.device)
    owner = torch.empty(n, dtype=torch.int32, device=D.device)
    parts = triton.cdiv(n, WIDE)
    change = torch.empty((parts, n, k), dtype=torch.float64, device=D.device)
    programs.closest[(triton.cdiv(n, 64),)](D, medoids, first, second, owner, n, k, D.stride(0), KP=KP, BN=64)
    programs.gains[(triton.cdiv(n, ROWS), parts)](
        D, first, second, owner, change, n, k, D.stride(0), WIDE, KP=KP, BN=ROWS, BD=COLUMNS, num_warps=4, num_stages=3
    )
    return first, owner, change.sum(0)
