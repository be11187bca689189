"""Labelled rows: what a caller may pass, checked once, then read class by class in small float64 blocks."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any

import numpy as np

from imprint.core.arrays import to_numpy
from imprint.core.errors import ParameterError
from imprint.core.types import Array
from imprint.kernels.cpu import cores, on_all_cores, one_blas_thread

BLOCK = 1 << 19
"""Numbers in one block: 4 MB of float64, so that a block stays in cache between its steps."""

PARTS = 16
"""Into how many parts rows are cut for threads to share: so many that a core that lags holds nobody up for long."""


def in_threads(work: Callable[[Any, Array], Array], parts: Iterable[Any], space: Callable[[], Array]) -> list[Array]:
    """`work(part, space)` of every part, in the order of the parts, whatever the number of threads.

    Every thread has one space, which its parts use in turn: fresh memory for each would cost as much as the reading.
    """
    spaces: SimpleQueue[Array] = SimpleQueue()
    for _ in range(cores()):
        spaces.put(space())

    def lend(part: Any) -> Array:
        own = spaces.get()
        try:
            return work(part, own)
        finally:
            spaces.put(own)

    with one_blas_thread():
        return on_all_cores(lend, parts)


def as_array(values: Any) -> Array:
    """A NumPy array of an array, a list or a torch tensor (from any device; torch itself is not imported).

    >>> as_array([[1, 2], [3, 4]]).shape
    (2, 2)
    """
    return np.asarray(to_numpy(values))


def matrix(call: str, name: str, values: Any) -> Array:
    """Real numbers of two dimensions, neither empty."""
    array = as_array(values)
    if array.ndim != 2 or 0 in array.shape:
        raise ParameterError(f"{call}: {name} must have shape (rows >= 1, width >= 1), got {array.shape}.")
    if array.dtype.kind not in "iuf":
        raise ParameterError(f"{call}: {name} must hold real numbers, got {array.dtype}.")
    return array


def labels(call: str, name: str, values: Any, count: int) -> Array:
    """One label per row, of any type that can be sorted."""
    array = as_array(values)
    if array.shape != (count,):
        raise ParameterError(f"{call}: {name} must have shape ({count},), got {array.shape}.")
    if array.dtype.kind == "f" and np.isnan(array).any():
        raise ParameterError(f"{call}: {name} must not hold NaN.")
    return array


def narrow_product(block: Array, columns: Array) -> Array:
    """block @ columns, for few columns in slices of eight rows: too little work for BLAS to share among threads.

    Threads that wait for one another cost more here than the product, a hundred times more on a busy machine.
    """
    count, width = columns.shape[1], block.shape[1]
    whole = len(block) // 8 * 8 if count <= 64 else 0
    product = np.empty((len(block), count))
    np.matmul(block[:whole].reshape(-1, 8, width), columns, out=product[:whole].reshape(-1, 8, count))
    np.matmul(block[whole:], columns, out=product[whole:])
    return product


@dataclass(frozen=True, eq=False)
class GroupedRows:
    """Embeddings sorted by class in the index only: the rows stay where they are."""

    call: str
    X: Array  # (n, l)
    classes: Array  # (C,) sorted
    codes: Array  # (n,) the class of every row, as an index into `classes`
    order: Array  # (n,) row numbers, class after class
    bounds: Array  # (C + 1,) where each class begins in `order`

    @property
    def counts(self) -> Array:
        return np.diff(self.bounds)

    @property
    def eps(self) -> float:
        """Relative rounding of the input: float32 has its own, half counts as single, the rest as exact."""
        return float(np.finfo(np.float32).eps) if self.X.dtype in (np.float16, np.float32) else 0.0

    def of(self, c: int) -> Array:
        """The rows of one class, copied in the type given."""
        return np.asarray(self.X[self.order[self.bounds[c] : self.bounds[c + 1]]])

    def blocks(self) -> Iterator[tuple[int, Array]]:
        """The rows of every class in blocks: (index of the class, float64 copy, good until the next block)."""
        space = self.space()
        for c in range(len(self.classes)):
            for block in self.blocks_of(c, space):
                yield c, block

    def space(self) -> Array:
        """Room for one block."""
        return np.empty((min(max(1, BLOCK // self.X.shape[1]), len(self.X)), self.X.shape[1]))

    def blocks_of(self, c: int, space: Array) -> Iterator[Array]:
        """The rows of one class in blocks: float64 copies in `space`, each good until the next."""
        start, stop = self.bounds[c : c + 2].tolist()
        for a in range(start, stop, len(space)):
            block = space[: min(len(space), stop - a)]
            block[:] = self.X[self.order[a : a + len(block)]]
            yield block

    def parts(self) -> list[slice]:
        """All rows as they lie, cut for threads to share; the cut depends on X alone."""
        size = -(-len(self.X) // PARTS)
        return [slice(a, min(a + size, len(self.X))) for a in range(0, len(self.X), size)]

    def stretches(self, part: slice, space: Array) -> Iterator[tuple[Array, Array]]:
        """The rows of a part in blocks: (codes, float64 copy in `space`, good until the next block)."""
        for a in range(part.start, part.stop, len(space)):
            block = space[: min(len(space), part.stop - a)]
            block[:] = self.X[a : a + len(block)]
            yield self.codes[a : a + len(block)], block

    def residuals(self, means: Array) -> Iterator[tuple[int, Array]]:
        """The same blocks less the means of their classes."""
        for c, block in self.blocks():
            block -= means[c]
            yield c, block


def group(call: str, X: Any, y: Any, at_least: int = 2) -> GroupedRows:
    """Check (X, y) and sort the row numbers by class."""
    X = matrix(call, "X", X)
    y = labels(call, "y", y, len(X))
    try:
        classes, codes = np.unique(y, return_inverse=True)
    except TypeError as error:
        raise ParameterError(f"{call}: the labels in y must be comparable with one another.") from error
    if len(classes) < at_least:
        raise ParameterError(f"{call}: y must hold at least {at_least} classes, got {len(classes)}.")
    bounds = np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=len(classes)))])
    small = codes.astype(np.min_scalar_type(len(classes)))  # few classes sort faster in few bits
    return GroupedRows(call, X, classes, codes, np.argsort(small, kind="stable"), bounds)
