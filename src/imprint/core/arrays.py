"""Arrays of NumPy and tensors of torch under the same few verbs, so that rows are computed on where they lie."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from imprint.core.types import Array


def is_torch(x: object) -> bool:
    """Whether x is a torch tensor, told without importing torch."""
    return type(x).__module__.partition(".")[0] == "torch"


def on_gpu(x: Any) -> bool:
    """Whether x is a tensor on a GPU."""
    return is_torch(x) and bool(x.is_cuda)


def to_numpy(x: Any) -> Any:
    """A torch tensor or half-precision array as a NumPy array of the nearest supported type; anything else as it is."""
    if is_torch(x):
        x = x.float() if x.is_floating_point() and x.dtype.itemsize < 4 else x
        x = x.numpy(force=True)
    if isinstance(x, np.ndarray) and x.dtype == np.float16:
        return x.astype(np.float32)
    return x


def like(result: Any, x: Any) -> Any:
    """The result as a tensor on the device of x where x is a tensor and torch has such a type; else as it is."""
    if not is_torch(x) or is_torch(result) or result.dtype.kind not in "biuf":
        return result
    import torch

    return torch.from_numpy(np.ascontiguousarray(result)).to(x.device)


def on_device_of(array: Any, x: Any) -> Any:
    """The array where x lies: a NumPy array, or a tensor on the device of x."""
    if not is_torch(x):
        return to_numpy(array) if is_torch(array) else array
    return to_device(array, x.device)


def to_device(array: Any, device: Any) -> Any:
    """The array as a tensor on a device."""
    import torch

    return torch.as_tensor(array, device=device)


def namespace(x: Any) -> Any:
    """The module whose functions compute on x: `torch` or `numpy`, which share names such as `linalg.solve`."""
    if not is_torch(x):
        return np
    import torch

    return torch


class Resident:
    """An array that never changes, with a copy on every device that has asked for one."""

    def __init__(self, array: Array):
        self.array = array
        self._copies: dict[Any, Any] = {}

    def near(self, x: Any) -> Any:
        """The array where x lies; copied to a device once."""
        if not is_torch(x):
            return self.array
        if x.device not in self._copies:
            self._copies[x.device] = on_device_of(self.array, x)
        return self._copies[x.device]


def labels_at(labels: Array, index: Any, x: Any) -> Any:
    """Labels by index, in the kind of x where it is a tensor and they are numbers."""
    if is_torch(index) and labels.dtype.kind in "biuf":
        return like(labels, index)[index]
    return like(labels[to_numpy(index)], x)


def dtype_name(x: Any) -> str:
    """The type of its numbers, such as `float32`."""
    return str(x.dtype).removeprefix("torch.")


def kept(X: Any) -> Array:
    """Rows to keep: a NumPy copy, wherever they lay."""
    return np.array(to_numpy(X))


def in_type_of(result: Any, x: Any) -> Any:
    """The result with numbers of the type of x."""
    return result.to(x.dtype) if is_torch(x) else result.astype(x.dtype, order="C", copy=False)


def rows_at(X: Any, index: Any) -> Any:
    """Some rows, by index."""
    return X[like(index, X)]


def cut(X: Any, sizes: Sequence[int]) -> list[Any]:
    """Rows in consecutive parts, without copying."""
    return list(X.split(list(sizes))) if is_torch(X) else np.split(X, np.cumsum(sizes)[:-1])


def joined(parts: Sequence[Any]) -> Any:
    """Arrays one after another."""
    if is_torch(parts[0]):
        import torch

        return torch.cat(list(parts))
    return np.concatenate(parts)


def all_finite(x: Any) -> bool:
    """Whether no number is infinite or none."""
    return bool(x.isfinite().all() if is_torch(x) else np.isfinite(x).all())


def factorize(codes: Array) -> tuple[Array, Array]:
    """Distinct codes factorize in the order in which they come: where each first stands, and the number of every code.

    >>> [found.tolist() for found in factorize(np.array([7, 7, 3, 7, 3]))]
    [[0, 2], [0, 0, 1, 0, 1]]
    """
    _, first, sorted_number = np.unique(codes, return_index=True, return_inverse=True)
    number = np.argsort(np.argsort(first))
    return np.sort(first), number[sorted_number]
