"""A Cholesky factor that can be extended by rows; the factors before and after share
their blocks.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from imprint.core.arrays import AnyArray, concatenate, is_torch, namespace
from imprint.kernels.cpu import blocks, on_all_cores, one_blas_thread

BLOCK_ROWS = 512  # rows of a block of the factor
DEVICE_BLOCK_ROWS = 2048  # the same on a GPU
# right-hand sides solved together; fixed, so that the rounding does not depend on the
# cores
SLICE_ROWS = 256


def zeros_like(
    shape: tuple[int, ...],
    x: Any,
    dtype: str = "float64",
) -> Any:
    """Zeros as a NumPy array, or as a tensor on the device of x."""
    if is_torch(x):
        return x.new_zeros(shape, dtype=getattr(namespace(x), dtype))
    return np.zeros(shape, dtype)


def block_rows(x: AnyArray) -> int:
    """Rows of a block of the factor, for arrays like x."""
    return DEVICE_BLOCK_ROWS if is_torch(x) else BLOCK_ROWS


@dataclass(frozen=True)
class Factor:
    """The lower triangular L with L L' = M, float64, in blocks of rows; only the
    triangle is held.

    The inverses of its diagonal blocks are held, so that solving consists of products
    of matrices. Right-hand sides are the rows of a C-ordered float64 array, NumPy or
    torch like the factor, and are overwritten by the solution.
    """

    # the part of every block of rows left of its diagonal block: (b, start)
    left: tuple[Any, ...] = ()
    inverses: tuple[Any, ...] = ()  # the inverse of its diagonal block: (b, b)

    def __len__(self) -> int:
        return sum(map(len, self.inverses))

    @staticmethod
    def of(M: AnyArray) -> "Factor":
        """The factor of a symmetric matrix of which the lower triangle is read."""
        return Factor().extended(M[:, :0], M)

    def lower(self) -> Any:
        """L as a dense matrix.  # (n, n)"""
        L = zeros_like((len(self), len(self)), self.inverses[0])
        for left, inverse in zip(self.left, self.inverses):
            start = left.shape[1]
            stop = start + len(inverse)
            L[start:stop, :start] = left
            L[start:stop, start:stop] = namespace(inverse).linalg.inv(inverse)
        return L

    def extended(self, coupling: AnyArray, corner: AnyArray) -> "Factor":
        """The factor of M with more rows: their entries with the rows before, and among
        themselves (lower triangle).

        Raises `numpy.linalg.LinAlgError` where the larger matrix is not positive
        definite.
        """
        factor = self
        concatenated = namespace(corner).concatenate
        for rows in blocks(len(corner), block_rows(corner)):
            before = corner[rows, : rows.start]
            right_side = concatenated([coupling[rows], before], axis=1)
            left = factor.forward(right_side)
            # what the rows before do not explain of the new ones (Schur complement)
            rest = corner[rows, rows] - _products(left)
            factor = factor._with_block(left, _inverse_factor(rest))
        return factor

    def _with_block(self, left: AnyArray, inverse: AnyArray) -> "Factor":
        """The factor with one more block of rows, merged with the last block if both
        fit into one.
        """
        is_first = not self.inverses
        if is_first or len(self.inverses[-1]) + len(inverse) > block_rows(left):
            return Factor((*self.left, left), (*self.inverses, inverse))
        last = self.inverses[-1]
        start = self.left[-1].shape[1]
        before = len(last)
        size = before + len(inverse)
        # the inverse of [[A, 0], [C, D]] is [[A^-1, 0], [-D^-1 C A^-1, D^-1]]
        merged = zeros_like((size, size), inverse)
        merged[:before, :before] = last
        merged[before:, before:] = inverse
        merged[before:, :before] = -inverse @ left[:, start:] @ last
        joined = concatenate([self.left[-1], left[:, :start]])
        return Factor((*self.left[:-1], joined), (*self.inverses[:-1], merged))

    def forward(self, B: AnyArray) -> Any:
        """Rows x with L x = b for the rows b of B."""
        return _in_slices(self._forward, B)

    def backward(self, B: AnyArray) -> Any:
        """Rows x with L' x = b for the rows b of B."""
        return _in_slices(self._backward, B)

    def solve(self, B: AnyArray) -> Any:
        """Rows x with M x = b for the rows b of B."""
        return self.backward(self.forward(B))

    def _forward(self, B: AnyArray) -> None:
        first = _first_column(B)
        width = _columns_together(B)
        for left, inverse in zip(self.left, self.inverses):
            start = left.shape[1]
            stop = start + len(inverse)
            if stop <= first:
                continue
            known = min(first, start)
            out = B[:, start:stop]
            for rows in blocks(len(inverse), width):
                _subtract_product(out[:, rows], B[:, known:start], left[rows, known:].T)
            # the inverse is lower triangular
            for last in range(len(inverse), 0, -width):
                rows = slice(max(last - width, 0), last)
                out[:, rows] = out[:, :last] @ inverse[rows, :last].T

    def _backward(self, B: AnyArray) -> None:
        for left, inverse in zip(reversed(self.left), reversed(self.inverses)):
            start = left.shape[1]
            stop = start + len(inverse)
            part = B[:, start:stop] @ inverse
            B[:, start:stop] = part
            _subtract_product(B[:, :start], part, left)


def _first_column(B: Any) -> int:
    """The first column that is not zero: solutions are zero before it. Aligned in
    memory for a GPU.
    """
    if is_torch(B):
        return int(B.any(0).byte().argmax()) // 64 * 64
    return int(B.any(axis=0).argmax())


def _columns_together(B: AnyArray) -> int:
    """Columns of a block that are solved together: on a GPU half of them where many
    rows are solved.

    An H200 multiplies 2048 x n x 1024 at 62 TFLOP/s and 2048 x n x 2048 at 54.
    """
    rows = block_rows(B)
    if is_torch(B) and len(B) > rows // 2:
        return rows // 2
    return rows


def _subtract_product(
    out: Any,
    A: Any,
    B: Any,
) -> None:
    """out -= A B."""
    if is_torch(out):
        out.addmm_(A, B, alpha=-1)  # no memory for the product
    else:
        out -= A @ B


def _inverse_factor(M: Any) -> Any:
    """The inverse of the Cholesky factor of a block."""
    if not is_torch(M):
        with one_blas_thread():
            # upper triangles need no pivots
            return np.linalg.inv(np.linalg.cholesky(M).T).T
    import torch

    L, failed = torch.linalg.cholesky_ex(M)
    if int(failed):
        raise np.linalg.LinAlgError("the matrix is not positive definite")
    unit = torch.eye(len(M), dtype=M.dtype, device=M.device)
    return torch.linalg.solve_triangular(L, unit, upper=False)


def _in_slices(function: Callable[[Any], None], B: Any) -> Any:
    """Solve for some right-hand sides at a time, in place."""
    if is_torch(B):
        if B.numel():
            function(B)
        return B
    count = len(B) if B.size else 0
    on_all_cores(lambda rows: function(B[rows]), blocks(count, SLICE_ROWS))
    return B


def _products(A: Any) -> Any:
    """Inner products of the rows of A; of tensors, only the lower triangle is
    complete.
    """
    out = zeros_like((len(A), len(A)), A)
    if is_torch(A):
        for start in range(0, len(A), DEVICE_BLOCK_ROWS // 2):
            stop = start + DEVICE_BLOCK_ROWS // 2
            out[start:, start:stop] = A[start:] @ A[start:stop].T
        return out

    def fill(rows: slice) -> None:
        np.matmul(A[rows], A.T, out=out[rows])

    on_all_cores(fill, blocks(len(A), SLICE_ROWS))
    return out
