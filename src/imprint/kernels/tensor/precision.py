"""float32 that means float32: the matrix units' shortened products are switched off for our own."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def exact_float32() -> Iterator[None]:
    """Products of float32 matrices keep all their bits inside, whatever the caller has allowed outside."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
