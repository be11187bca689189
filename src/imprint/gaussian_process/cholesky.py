"""A Cholesky factor that grows by rows; blocks that are factored are shared and never change."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from imprint.core.arrays import is_torch, joined, namespace
from imprint.kernels.cpu import on_all_cores, one_blas_thread

BLOCK = 512  # rows of a block of the factor
DEVICE_BLOCK = 2048  # the same on a GPU
SLICE = 256  # right-hand sides solved together; fixed, so that the rounding does not depend on the cores


def zeros_like(shape: tuple[int, ...], x: Any, dtype: str = "float64") -> Any:
    """Zeros where x lies."""
    return x.new_zeros(shape, dtype=getattr(namespace(x), dtype)) if is_torch(x) else np.zeros(shape, dtype)


def block_rows(x: Any) -> int:
    """Rows of a block of the factor, for arrays like x."""
    return DEVICE_BLOCK if is_torch(x) else BLOCK


@dataclass(frozen=True)
class Factor:
    """The lower triangular L with L L' = M, float64, in blocks of rows; only the triangle is held.

    The inverses of its diagonal blocks are held, so that solving consists of products of matrices. Right-hand sides are
    the rows of a C-ordered float64 array, NumPy or torch like the factor, and are overwritten by the solution.
    """

    beside: tuple[Any, ...] = ()  # of every block of rows, the part left of the diagonal block: (b, start)
    corners: tuple[Any, ...] = ()  # and the inverse of its diagonal block: (b, b)

    def __len__(self) -> int:
        return sum(map(len, self.corners))

    @staticmethod
    def of(M: Any) -> "Factor":
        """The factor of a symmetric matrix of which the lower triangle is read."""
        return Factor().extended(M[:, :0], M)

    def lower(self) -> Any:
        """L as a dense matrix.  # (n, n)"""
        L = zeros_like((len(self), len(self)), self.corners[0])
        for beside, corner in zip(self.beside, self.corners):
            start, stop = beside.shape[1], beside.shape[1] + len(corner)
            L[start:stop, :start], L[start:stop, start:stop] = beside, namespace(corner).linalg.inv(corner)
        return L

    def extended(self, coupling: Any, corner: Any) -> "Factor":
        """The factor of M with more rows: their entries with the rows before, and among themselves (lower triangle).

        Raises `numpy.linalg.LinAlgError` where the larger matrix is not positive definite.
        """
        factor, step = self, block_rows(corner)
        for start in range(0, len(corner), step):
            rows = slice(start, start + step)
            left = factor.forward(namespace(corner).concatenate([coupling[rows], corner[rows, :start]], axis=1))
            factor = factor._with_block(left, _inverse_factor(corner[rows, rows] - _products(left)))
        return factor

    def _with_block(self, left: Any, inverse: Any) -> "Factor":
        """The factor with one more block of rows; small blocks are merged."""
        if self.corners and len(self.corners[-1]) + len(inverse) <= block_rows(left):
            return self._merged(left, inverse)
        return Factor((*self.beside, left), (*self.corners, inverse))

    def _merged(self, beside: Any, inverse: Any) -> "Factor":
        """The new rows merged with the last block, which is small."""
        start, before, now = self.beside[-1].shape[1], len(self.corners[-1]), len(inverse)
        corner = zeros_like((before + now, before + now), inverse)
        corner[:before, :before], corner[before:, before:] = self.corners[-1], inverse
        corner[before:, :before] = -inverse @ beside[:, start:] @ self.corners[-1]
        rows = joined([self.beside[-1], beside[:, :start]])
        return Factor((*self.beside[:-1], rows), (*self.corners[:-1], corner))

    def forward(self, B: Any) -> Any:
        """Rows x with L x = b for the rows b of B."""
        return _in_slices(self._forward, B)

    def backward(self, B: Any) -> Any:
        """Rows x with L' x = b for the rows b of B."""
        return _in_slices(self._backward, B)

    def solve(self, B: Any) -> Any:
        """Rows x with M x = b for the rows b of B."""
        return _in_slices(self._solve, B)

    def _solve(self, B: Any) -> None:
        self._forward(B)
        self._backward(B)

    def _forward(self, B: Any) -> None:
        first, width = _first_column(B), _columns_together(B)
        for beside, corner in zip(self.beside, self.corners):
            start, stop = beside.shape[1], beside.shape[1] + len(corner)
            if stop <= first:
                continue
            known, out = min(first, start), B[:, start:stop]
            for rows in (slice(a, a + width) for a in range(0, len(corner), width)):
                _subtract_product(out[:, rows], B[:, known:start], beside[rows, known:].T)
            for last in range(len(corner), 0, -width):  # the inverse is lower triangular
                rows = slice(max(last - width, 0), last)
                out[:, rows] = out[:, :last] @ corner[rows, :last].T

    def _backward(self, B: Any) -> None:
        for beside, corner in zip(reversed(self.beside), reversed(self.corners)):
            start, stop = beside.shape[1], beside.shape[1] + len(corner)
            part = B[:, start:stop] @ corner
            B[:, start:stop] = part
            _subtract_product(B[:, :start], part, beside)


def _first_column(B: Any) -> int:
    """The first column that is not zero: solutions are zero before it. Aligned in memory for a GPU."""
    if is_torch(B):
        return int(B.any(0).byte().argmax()) // 64 * 64
    return int(B.any(axis=0).argmax())


def _columns_together(B: Any) -> int:
    """Columns of a block that are solved together: on a GPU half of them where many rows are solved.

    An H200 multiplies 2048 x n x 1024 at 62 TFLOP/s and 2048 x n x 2048 at 54.
    """
    return block_rows(B) // 2 if is_torch(B) and len(B) > block_rows(B) // 2 else block_rows(B)


def _subtract_product(out: Any, A: Any, B: Any) -> None:
    """out -= A B."""
    if is_torch(out):
        out.addmm_(A, B, alpha=-1)  # no memory for the product
    else:
        out -= A @ B


def _inverse_factor(M: Any) -> Any:
    """The inverse of the Cholesky factor of a block."""
    if not is_torch(M):
        with one_blas_thread():
            return np.linalg.inv(np.linalg.cholesky(M).T).T  # upper triangles need no pivots
    import torch

    L, failed = torch.linalg.cholesky_ex(M)
    if int(failed):
        raise np.linalg.LinAlgError("the matrix is not positive definite")
    unit = torch.eye(len(M), dtype=M.dtype, device=M.device)
    return torch.linalg.solve_triangular(L, unit, upper=False)


def _in_slices(function: Callable[[Any], None], B: Any) -> Any:
    if is_torch(B):
        if B.numel():
            function(B)
        return B
    with one_blas_thread():
        on_all_cores(lambda start: function(B[start : start + SLICE]), range(0, len(B) if B.size else 0, SLICE))
    return B


def _products(A: Any) -> Any:
    """Inner products of the rows of A; of tensors, only the lower triangle is complete."""
    out = zeros_like((len(A), len(A)), A)
    if is_torch(A):
        for start in range(0, len(A), DEVICE_BLOCK // 2):
            stop = start + DEVICE_BLOCK // 2
            out[start:, start:stop] = A[start:] @ A[start:stop].T
        return out

    def fill(start: int) -> None:
        np.matmul(A[start : start + SLICE], A.T, out=out[start : start + SLICE])

    with one_blas_thread():
        on_all_cores(fill, range(0, len(A), SLICE))
    return out
