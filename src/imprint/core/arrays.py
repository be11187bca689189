"""One set of functions for NumPy arrays and torch tensors, so that rows are processed on their own device; labels."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from imprint.core.types import Array


def is_torch(x: object) -> bool:
    """Whether x is a torch tensor; does not import torch."""
    return type(x).__module__.partition(".")[0] == "torch"


def on_gpu(x: Any) -> bool:
    """Whether x is a tensor on a GPU."""
    return is_torch(x) and bool(x.is_cuda)


def to_numpy(x: Any) -> Any:
    """A torch tensor or half-precision array as a NumPy array of the nearest supported type; others are unchanged."""
    if is_torch(x):
        x = x.float() if x.is_floating_point() and x.dtype.itemsize < 4 else x
        x = x.numpy(force=True)
    if isinstance(x, np.ndarray) and x.dtype == np.float16:
        return x.astype(np.float32)
    return x


def like(result: Any, x: Any) -> Any:
    """The result as a tensor on the device of x if x is a tensor and torch has its type; else unchanged."""
    if not is_torch(x) or is_torch(result) or result.dtype.kind not in "biuf":
        return result
    import torch

    return torch.from_numpy(np.ascontiguousarray(result)).to(x.device)


def on_device_of(array: Any, x: Any) -> Any:
    """The array on the device of x: a NumPy array, or a tensor."""
    if not is_torch(x):
        return to_numpy(array) if is_torch(array) else array
    return to_device(array, x.device)


def to_device(array: Any, device: Any) -> Any:
    """The array as a tensor on a device."""
    import torch

    return torch.as_tensor(array, device=device)


def same_device(a: Any, b: Any) -> bool:
    """Whether both are NumPy arrays, or tensors on one device."""
    return is_torch(a) == is_torch(b) and getattr(a, "device", None) == getattr(b, "device", None)


def namespace(x: Any) -> Any:
    """The module whose functions compute on x: `torch` or `numpy`, which share names such as `linalg.solve`."""
    if not is_torch(x):
        return np
    import torch

    return torch


class Resident:
    """A constant array with one copy per device that uses it."""

    def __init__(self, array: Array):
        self.array = array
        self._copies: dict[Any, Any] = {}

    def near(self, x: Any) -> Any:
        """The array on the device of x; copied to a device once."""
        if not is_torch(x):
            return self.array
        if x.device not in self._copies:
            self._copies[x.device] = on_device_of(self.array, x)
        return self._copies[x.device]


def labels_at(labels: Array, index: Any, x: Any) -> Any:
    """Labels by index; numeric labels become a tensor if x is one."""
    if is_torch(index) and labels.dtype.kind in "biuf":
        return like(labels, index)[index]
    return like(labels[to_numpy(index)], x)


def dtype_name(x: Any) -> str:
    """The data type, such as `float32`."""
    return str(x.dtype).removeprefix("torch.")


def numpy_copy(X: Any) -> Array:
    """The rows as a new NumPy array, from any device."""
    return np.asarray(to_numpy(X)) if on_gpu(X) else np.array(to_numpy(X))


def in_type_of(result: Any, x: Any) -> Any:
    """The result in the data type of x."""
    return result.to(x.dtype) if is_torch(x) else result.astype(x.dtype, order="C", copy=False)


def rows_at(X: Any, index: Any) -> Any:
    """The rows at these indices."""
    return X[like(index, X)]


def cut(X: Any, sizes: Sequence[int]) -> list[Any]:
    """Rows in consecutive parts, without copying."""
    return list(X.split(list(sizes))) if is_torch(X) else np.split(X, np.cumsum(sizes)[:-1])


def joined(parts: Sequence[Any]) -> Any:
    """Arrays, concatenated."""
    if is_torch(parts[0]):
        import torch

        return torch.cat(list(parts))
    return np.concatenate(parts)


def all_finite(x: Any) -> bool:
    """Whether all values are finite."""
    return bool(x.isfinite().all() if is_torch(x) else np.isfinite(x).all())


def factorize(codes: Array) -> tuple[Array, Array]:
    """Number distinct codes in order of appearance: the first index of each, and the number of every element.

    >>> [part.tolist() for part in factorize(np.array([7, 7, 3, 7, 3]))]
    [[0, 2], [0, 0, 1, 0, 1]]
    """
    _, first, sorted_number = np.unique(codes, return_index=True, return_inverse=True)
    number = np.argsort(np.argsort(first))
    return np.sort(first), number[sorted_number]


def plain(label: Any) -> Any:
    """A label as a plain Python value."""
    return label.item() if isinstance(label, np.generic) else label


def as_labels(values: Sequence[Any], dtype: Any) -> Array:
    """Labels as an array of a type; strings are as wide as the longest."""
    text = dtype is None or np.dtype(dtype).kind == "U"
    return np.array(values, dtype=str if text else dtype)
