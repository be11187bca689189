"""NumPy inside, the caller's kind of array outside."""

from typing import Any

import numpy as np

from imprint.core.types import Array


def is_torch(x: object) -> bool:
    """Whether x is a torch tensor, told without importing torch."""
    return type(x).__module__.partition(".")[0] == "torch"


def to_numpy(x: Any) -> Any:
    """A torch tensor or half-precision array as a NumPy array of the nearest supported type; anything else as it is."""
    if is_torch(x):
        x = x.float() if x.is_floating_point() and x.dtype.itemsize < 4 else x
        x = x.numpy(force=True)
    if isinstance(x, np.ndarray) and x.dtype == np.float16:
        return x.astype(np.float32)
    return x


def like(result: Array, x: Any) -> Any:
    """The result as a tensor on the device of x where x is a tensor and torch has such a type; else as it is."""
    if not is_torch(x) or result.dtype.kind not in "biuf":
        return result
    import torch

    return torch.from_numpy(np.ascontiguousarray(result)).to(x.device)
