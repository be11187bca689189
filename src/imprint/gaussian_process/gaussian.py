"""Gaussian kernels exp(-rate |a - b|^2) between rows, by one product and one exponential.

Rows are taken about a common centre, so that the squares that cancel are no larger than the spread of the data, and get
two more columns: the product of a query's row with a proxy's row is then the exponent. Arrays are NumPy's or torch's.
"""

from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from imprint.core.arrays import dtype_name, is_torch, joined, like, namespace
from imprint.core.errors import ParameterError
from imprint.gaussian_process.cholesky import zeros_like
from imprint.kernels.cpu import blocks, on_all_cores
from imprint.kernels.rows import centred_moments, exact_products, squared_norms

SLICE = 128
SERIAL_WORK = 2**25  # multiplications that take less time than starting threads
QUERIES, PROXIES = 512, 1024  # whose kernels are held at a time by every core
DEVICE_KERNELS = 2**27  # kernels held at a time on a GPU
MODERATE = 1e12  # rates up to which, and from the inverse of which, squares are far from the limits of float32
ERROR = 1e-5
"""Error of scores from which float32 queries are compared in float64."""


def cast(x: Any, dtype: DTypeLike) -> Any:
    """The numbers of x as float32 or float64."""
    return x.to(getattr(namespace(x), np.dtype(dtype).name)) if is_torch(x) else x.astype(dtype, copy=False)


def centre_of(W: Any) -> Any:
    """The mean of the rows, in their type.  # (d,)"""
    mean = centred_moments(W)[0]
    return cast(like(mean, W), dtype_name(W))


def lift_queries(Q: Any, centre: Any, dtype: DTypeLike = "float64") -> Any:
    """Rows [q, |q|^2, 1] about the centre.  # (n, d + 2)"""
    if Q.shape[1] != len(centre):
        raise ParameterError(f"the queries have {Q.shape[1]} columns and the proxies {len(centre)}.")
    about = (Q if dtype_name(Q) == "float64" else cast(Q, dtype)) - centre
    return _joined(about, squared_norms(about), 1.0, dtype)


def lift_proxies(W: Any, centre: Any, rate: float, dtype: DTypeLike = "float64") -> Any:
    """Rows [2 rate w, -rate, -rate |w|^2] about the centre.  # (p, d + 2)"""
    about = cast(W, "float64") - centre
    return _joined(2 * rate * about, -rate, -rate * squared_norms(about), dtype)


def _joined(rows: Any, first: Any, second: Any, dtype: DTypeLike) -> Any:
    shape = (len(rows), rows.shape[1] + 2)
    out = cast(rows.new_empty(shape), dtype) if is_torch(rows) else np.empty(shape, dtype=dtype)
    out[:, :-2], out[:, -2], out[:, -1] = rows, first, second
    return out


def kernel(left: Any, right: Any) -> Any:
    """Kernels of lifted queries and lifted proxies, in the caller's thread.  # (n, p)"""
    out = left @ right.T
    return out.exp_() if is_torch(out) else np.exp(out, out=out)


def kernel_rows(left: Any, right: Any) -> Any:
    """The same kernels, computed on all cores.  # (n, p)"""
    if is_torch(left):
        with exact_products(left):
            return kernel(left, right)
    out = np.empty((len(left), len(right)), dtype=left.dtype)
    step = SLICE if len(left) * right.size > SERIAL_WORK else max(1, len(left))

    def fill(rows: slice) -> None:
        np.matmul(left[rows], right.T, out=out[rows])
        np.exp(out[rows], out=out[rows])

    on_all_cores(fill, blocks(len(left), step))
    return out


def noisy_kernels(left: Any, right: Any, noise: Any) -> Any:
    """The kernels of some rows among each other, plus their noise on the diagonal.  # (n, n)"""
    out, index = kernel_rows(left, right), np.arange(len(left))
    out[index, index] = 1 + noise
    return out


def kernel_sums(Q: Any, centre: Any, right: Any, by_class: Any) -> Any:
    """Sums over lifted proxies of their kernels with every query times their coefficients.  # (q, classes) float64

    Kernels are computed in the type of `right` and summed in that of `by_class`. The sums cancel; in float32 only what
    kernels differ from their mean is summed.
    """
    together, rows = (len(right), max(1, DEVICE_KERNELS // len(right))) if is_torch(Q) else (PROXIES, QUERIES)
    is_narrow = dtype_name(by_class) == "float32"

    def sums(queries: slice) -> Any:
        left = lift_queries(Q[queries], centre, dtype_name(right))
        total = zeros_like((len(left), len(by_class)), left)
        for proxies in blocks(len(right), together):
            k, coefficients = kernel(left, right[proxies]), by_class[:, proxies]
            if is_narrow:
                common = k.mean(axis=1, keepdims=True)
                k -= common
                total += common * coefficients.sum(axis=1, dtype=namespace(k).float64)
            total += cast(k, dtype_name(by_class)) @ coefficients.T
        return total

    with exact_products(Q):
        return joined(on_all_cores(sums, blocks(max(1, len(Q)), rows), parallel=not is_torch(Q)))


def for_float32(lifted: Any, by_class: Any) -> tuple[Any, Any]:
    """Lifted proxies and coefficients for float32 queries: in float32 where that is exact enough.

    Rounded exponents shift a score by about 2^-24 of the length of the class's coefficients, times 1 to 3 and more the
    farther proxies lie from their centre (measured on embeddings of five backbones, 50 to 5,000 proxies). Sums are in
    float32 only where there are so many classes that they would take longer than the kernels.
    """
    rate, reach = -float(lifted[0, -2]), 1 - lifted[:, -1].min()
    length = namespace(by_class).sqrt(namespace(by_class).einsum("cp,cp->c", by_class, by_class).max())
    if not 1 / MODERATE < rate < MODERATE or 3 * 2**-24 * float(reach * length) > ERROR:
        return lifted, by_class
    many = 2 * len(by_class) > lifted.shape[1]
    return cast(lifted, "float32"), cast(by_class, "float32") if many else by_class
