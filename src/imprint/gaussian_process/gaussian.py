"""Gaussian kernels exp(-rate |a - b|^2) between rows, by one product and one exponential.

Rows are taken about a common centre, so that the squares that cancel are no larger than the spread of the data, and get
two more columns: the product of a query's row with a proxy's row is then the exponent.
"""

from typing import Any

import numpy as np

from imprint.core.arrays import is_torch
from imprint.core.types import Array
from imprint.kernels.cpu import on_all_cores, one_blas_thread
from imprint.kernels.rows import column_means, squared_norms

SLICE = 128
FEW = 2**25  # multiplications that take less time than starting threads
QUERIES = 512
PROXIES = 1024
ERROR = 1e-5
"""Error of scores from which float32 queries are compared in float64."""


def centre_of(W: Array) -> Array:
    """The mean of the rows, in their type.  # (d,)"""
    return column_means(W).astype(W.dtype)


def lift_queries(Q: Array, centre: Array, dtype: type) -> Array:
    """Rows [q, |q|^2, 1] about the centre.  # (n, d + 2)"""
    about = Q.astype(np.result_type(Q, dtype), copy=False) - centre
    return _joined(about, squared_norms(about), np.ones(len(Q)), dtype)


def lift_proxies(W: Array, centre: Array, rate: float, dtype: type) -> Array:
    """Rows [2 rate w, -rate, -rate |w|^2] about the centre.  # (p, d + 2)"""
    about = W.astype(np.float64) - centre
    return _joined(2 * rate * about, np.full(len(W), -rate), -rate * squared_norms(about), dtype)


def _joined(rows: Array, first: Array, second: Array, dtype: type) -> Array:
    out = np.empty((len(rows), rows.shape[1] + 2), dtype=dtype)
    out[:, :-2], out[:, -2], out[:, -1] = rows, first, second
    return out


def kernel(left: Array, right: Array) -> Array:
    """Kernels of lifted queries and lifted proxies, in the caller's thread.  # (n, p)"""
    out = left @ right.T
    return np.asarray(np.exp(out, out=out))


def kernel_rows(left: Array, right: Array) -> Array:
    """The same on all cores.  # (n, p)"""
    out = np.empty((len(left), len(right)), dtype=left.dtype)
    step = SLICE if len(left) * right.size > FEW else max(1, len(left))

    def fill(start: int) -> None:
        part = np.matmul(left[start : start + step], right.T, out=out[start : start + step])
        np.exp(part, out=part)

    with one_blas_thread():
        on_all_cores(fill, range(0, len(left), step))
    return out


def kernel_sums(Q: Any, centre: Array, right: Array, by_class: Array) -> Any:
    """Sums over lifted proxies of their kernels with every query times their coefficients.  # (q, classes) float64

    Kernels are computed in the type of `right` and summed in that of `by_class`. The sums cancel; in float32 only what
    kernels differ from their mean is summed.
    """
    if is_torch(Q):
        from imprint.kernels.tensor.scores import kernel_sums as of_tensors

        return of_tensors(Q, centre, right, by_class)
    out = np.zeros((len(Q), len(by_class)))
    narrow = by_class.dtype == np.float32

    def fill(start: int) -> None:
        rows = slice(start, start + QUERIES)
        left = lift_queries(Q[rows], centre, right.dtype.type)
        for first in range(0, len(right), PROXIES):
            part = by_class[:, first : first + PROXIES]
            k = kernel(left, right[first : first + PROXIES])
            if narrow:
                common = k.mean(axis=1, keepdims=True)
                k -= common
                out[rows] += common * part.sum(axis=1, dtype=np.float64)
            out[rows] += k.astype(part.dtype, copy=False) @ part.T

    with one_blas_thread():
        on_all_cores(fill, range(0, len(Q), QUERIES))
    return out


def for_float32(lifted: Array, by_class: Array) -> tuple[Array, Array]:
    """Lifted proxies and coefficients for float32 queries: in float32 where that is exact enough.

    Rounded exponents shift a score by about 2^-24 of the length of the class's coefficients, times 1 to 3 and more the
    farther proxies lie from their centre (measured on embeddings of five backbones, 50 to 5,000 proxies). Sums are in
    float32 only where there are so many classes that they would take longer than the kernels.
    """
    reach = 1 - lifted[:, -1].min()
    length = np.sqrt(np.einsum("cp,cp->c", by_class, by_class).max())
    if 3 * 2**-24 * reach * length > ERROR:
        return lifted, by_class
    many = 2 * len(by_class) > lifted.shape[1]
    return lifted.astype(np.float32), by_class.astype(np.float32) if many else by_class
