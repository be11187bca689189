"""Types of arrays, functions for both NumPy arrays and torch tensors, and digests of
arrays and other values.
"""

import hashlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from types import ModuleType
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
State: TypeAlias = dict[str, Array]
"""The state of one class: named arrays, sufficient to extend the class and to save
it.
"""

Operand: TypeAlias = Any
"""What an array can be combined with or indexed by: NumPy and torch list other types.
"""


class AnyArray(Protocol):
    """What NumPy arrays and torch tensors share, for arithmetic on either."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def ndim(self) -> int: ...
    @property
    def dtype(self) -> Any: ...
    @property
    def T(self) -> "AnyArray": ...  # noqa: N802
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __getitem__(self, key: Operand, /) -> Any: ...
    def __setitem__(self, key: Operand, value: Operand, /) -> None: ...
    def __neg__(self) -> "AnyArray": ...
    def __abs__(self) -> "AnyArray": ...
    def __add__(self, other: Operand, /) -> "AnyArray": ...
    def __radd__(self, other: Operand, /) -> "AnyArray": ...
    def __sub__(self, other: Operand, /) -> "AnyArray": ...
    def __rsub__(self, other: Operand, /) -> "AnyArray": ...
    def __mul__(self, other: Operand, /) -> "AnyArray": ...
    def __rmul__(self, other: Operand, /) -> "AnyArray": ...
    def __truediv__(self, other: Operand, /) -> "AnyArray": ...
    def __rtruediv__(self, other: Operand, /) -> "AnyArray": ...
    def __matmul__(self, other: Operand, /) -> "AnyArray": ...
    def __pow__(self, other: Operand, /) -> "AnyArray": ...
    def __lt__(self, other: Operand, /) -> "AnyArray": ...
    def __le__(self, other: Operand, /) -> "AnyArray": ...
    def __gt__(self, other: Operand, /) -> "AnyArray": ...
    def __ge__(self, other: Operand, /) -> "AnyArray": ...


class Proxies(NamedTuple):
    """Proxies (prototypes): one row each, with the class and the rows that each
    represents.
    """

    weights: Array  # (p, d)
    # (p,) index into the classes, ascending; every class has at least one
    labels: NDArray[np.intp]
    mass: Array  # (p,) number, or total weight, of the rows that each represents
    # (p,) mean squared distance of those rows to the proxy; 0 for a single row
    spread: Array
    blocks: tuple[int, ...] = ()  # the widths of the blocks of an embedding, if any

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.labels[-1]) + 1 if len(self.labels) else 0

    @property
    def starts(self) -> Array:
        """Index of the first proxy of every class.  # (n_classes,)"""
        return np.searchsorted(self.labels, np.arange(self.n_classes))


def is_torch(x: object) -> bool:
    """Whether x is a torch tensor; does not import torch."""
    return type(x).__module__.partition(".")[0] == "torch"


def on_gpu(x: object) -> bool:
    """Whether x is a tensor on a GPU."""
    return is_torch(x) and bool(getattr(x, "is_cuda", False))


def to_numpy(x: Any) -> Any:
    """A torch tensor or half-precision array as a NumPy array of the nearest supported
    type; others are unchanged.
    """
    if is_torch(x):
        x = x.float() if x.is_floating_point() and x.dtype.itemsize < 4 else x
        x = x.numpy(force=True)
    if isinstance(x, np.ndarray) and x.dtype == np.float16:
        return x.astype(np.float32)
    return x


def like(array: Any, x: Any) -> Any:
    """The array in the form of x: a NumPy array, or a tensor on the device of x; text
    and large integers stay NumPy arrays.
    """
    if not is_torch(x) or not (is_torch(array) or _fits_tensor(array.dtype)):
        return to_numpy(array)
    return to_device(array, x.device)


def _fits_tensor(dtype: np.dtype[Any]) -> bool:
    """Whether tensors of a type can be indexed; those of uint64 cannot."""
    return dtype.kind in "biuf" and dtype != np.uint64


def to_device(array: Any, device: Any) -> Any:
    """The array as a tensor on a device."""
    import torch

    return torch.as_tensor(
        array if is_torch(array) else np.asarray(array, order="C"), device=device
    )


def namespace(x: object) -> ModuleType:
    """The module whose functions compute on x: `torch` or `numpy`, which share names
    such as `linalg.solve`.
    """
    return sys.modules["torch"] if is_torch(x) else np


class DeviceCopies:
    """A constant array with one copy per device that uses it."""

    def __init__(self, array: Array):
        self.array = array
        self._copies: dict[Any, Any] = {array.device: array}

    def on_device_of(self, x: Any) -> Any:
        """The array on the device of x, copied there on first use."""
        if x.device not in self._copies:
            self._copies[x.device] = like(self.array, x)
        return self._copies[x.device]


def dtype_name(x: Any) -> str:
    """The name of the data type, such as `float32`, without a prefix `torch.`."""
    return str(x.dtype).removeprefix("torch.")


def cast_like(result: Any, x: Any) -> Any:
    """The result, converted to the data type of x."""
    return (
        result.to(x.dtype)
        if is_torch(x)
        else result.astype(x.dtype, order="C", copy=False)
    )


def rows_at(X: AnyArray, index: AnyArray) -> Any:
    """The rows of X at some indices, which may be on another device."""
    return X[like(index, X)]


def split_rows(X: Any, sizes: Sequence[int]) -> list[Any]:
    """Consecutive parts of the given sizes, as views."""
    return (
        list(X.split(list(sizes)))
        if is_torch(X)
        else np.split(X, np.cumsum(sizes)[:-1])
    )


def concatenate(parts: Sequence[AnyArray]) -> Any:
    """The arrays or tensors as one, along the first axis."""
    return namespace(parts[0]).concatenate(parts)


def all_finite(x: object) -> bool:
    """Whether all values are finite."""
    return bool(namespace(x).isfinite(x).all())


def factorize(*codes: Array) -> tuple[Array, Array]:
    """Number distinct codes >= 0 in order of appearance: the first index of each, and
    the number of every element.

    Several arrays are numbered by the combinations of their elements.
    """
    combined = codes[0]
    if len(codes) > 1:
        combined = np.ravel_multi_index(
            codes, [int(c.max(initial=0)) + 1 for c in codes]
        )
    _, first, sorted_number = np.unique(
        combined, return_index=True, return_inverse=True
    )
    number = np.argsort(np.argsort(first))
    return np.sort(first), number[sorted_number]


def plain(label: Any) -> Any:
    """A label as a plain Python value."""
    return label.item() if isinstance(label, np.generic) else label


def digest(parts: Iterable[bytes | str | Array]) -> str:
    """SHA-256 of a sequence of parts, each prefixed by its type and length: the same in
    every process and machine.
    """
    h = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray):
            h.update(f"array {part.dtype.str} {part.shape}:".encode())
            h.update(np.ascontiguousarray(part).data)
        else:
            raw = part.encode(errors="surrogatepass") if isinstance(part, str) else part
            h.update(f"{type(part).__name__} {len(raw)}:".encode())
            h.update(raw)
    return h.hexdigest()


def class_entropy(seed: int, label: object) -> tuple[int, int]:
    """The seed of a class for `numpy.random.default_rng`; it depends only on the seed
    and on the value of the label.
    """
    value = plain(label)
    if isinstance(value, bool | float) and float(value).is_integer():
        value = int(value)
    return seed, int(digest([type(value).__name__, repr(value)])[:32], 16)


# quoted: numpy.random is imported on first use
def class_rng(seed: int, label: object) -> "np.random.Generator":
    """The random number generator of a class."""
    return np.random.default_rng(class_entropy(seed, label))
