"""A Cholesky factor that grows by rows: what was factored once is shared, never changed, never factored again."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from imprint.core.types import Array
from imprint.kernels.cpu import on_all_cores, one_blas_thread

BLOCK = 512  # rows of the factor held together
SLICE = 256  # right-hand sides solved together; fixed, so that the rounding does not depend on the cores


@dataclass(frozen=True)
class Factor:
    """The lower triangular L with L L' = M, float64, in blocks of rows; only the triangle is held.

    Of its corners on the diagonal the inverses are held, so that solving is nothing but products of matrices.
    Right-hand sides are the rows of a C-ordered float64 array, and are overwritten by the solution.
    """

    beside: tuple[Array, ...] = ()  # of every block of rows, what is left of its corner: (b, start)
    corners: tuple[Array, ...] = ()  # and the inverse of its triangle on the diagonal: (b, b)

    def __len__(self) -> int:
        return sum(map(len, self.corners))

    @staticmethod
    def of(M: Array) -> "Factor":
        """The factor of a matrix that is held whole."""
        factor = Factor()
        for start in range(0, len(M), BLOCK):
            stop = start + BLOCK
            factor = factor.extended(M[start:stop, :start].copy(), M[start:stop, start:stop])
        return factor

    def extended(self, coupling: Array, corner: Array) -> "Factor":
        """The factor of M with some rows more: their entries with the rows before (overwritten), and among themselves.

        Raises `numpy.linalg.LinAlgError` where the larger matrix is not positive.
        """
        self.forward(coupling)
        corner = corner - _products(coupling, coupling)
        with one_blas_thread():
            inverse = np.linalg.inv(np.linalg.cholesky(corner).T).T  # upper triangles need no pivots
        if self.corners and len(self.corners[-1]) + len(inverse) <= BLOCK:
            return self._merged(coupling, inverse)
        return Factor((*self.beside, coupling), (*self.corners, inverse))

    def _merged(self, beside: Array, inverse: Array) -> "Factor":
        """As a block of its own would do, but joined with the last one, which is small."""
        start, before, now = self.beside[-1].shape[1], len(self.corners[-1]), len(inverse)
        corner = np.zeros((before + now, before + now))
        corner[:before, :before], corner[before:, before:] = self.corners[-1], inverse
        corner[before:, :before] = -inverse @ beside[:, start:] @ self.corners[-1]
        joined = np.concatenate([self.beside[-1], beside[:, :start]])
        return Factor((*self.beside[:-1], joined), (*self.corners[:-1], corner))

    def forward(self, B: Array) -> Array:
        """Rows x with L x = b for the rows b of B."""
        return _in_slices(self._forward, B)

    def backward(self, B: Array) -> Array:
        """Rows x with L' x = b for the rows b of B."""
        return _in_slices(self._backward, B)

    def solve(self, B: Array) -> Array:
        """Rows x with M x = b for the rows b of B."""
        return _in_slices(self._solve, B)

    def _solve(self, B: Array) -> None:
        self._forward(B)
        self._backward(B)

    def _forward(self, B: Array) -> None:
        first = int(B.any(axis=0).argmax())  # before it right-hand sides are zero, and so are solutions
        for beside, corner in zip(self.beside, self.corners):
            start, stop = beside.shape[1], beside.shape[1] + len(corner)
            if stop > first:
                known = min(first, start)
                B[:, start:stop] -= B[:, known:start] @ beside[:, known:].T
                B[:, start:stop] = B[:, start:stop] @ corner.T

    def _backward(self, B: Array) -> None:
        for beside, corner in zip(reversed(self.beside), reversed(self.corners)):
            start, stop = beside.shape[1], beside.shape[1] + len(corner)
            part = B[:, start:stop] @ corner
            B[:, start:stop] = part
            B[:, :start] -= part @ beside


def _in_slices(function: Callable[[Array], None], B: Array) -> Array:
    with one_blas_thread():
        on_all_cores(lambda start: function(B[start : start + SLICE]), range(0, len(B) if B.size else 0, SLICE))
    return B


def _products(A: Array, B: Array) -> Array:
    """Inner products of the rows of A with those of B."""
    out = np.empty((len(A), len(B)))

    def fill(start: int) -> None:
        np.matmul(A[start : start + SLICE], B.T, out=out[start : start + SLICE])

    with one_blas_thread():
        on_all_cores(fill, range(0, len(A), SLICE))
    return out
