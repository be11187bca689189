"""Gaussian kernels exp(-rate |a - b|^2) between rows, by one product and one
exponential.

Rows are *lifted*: centred, so that the squares that cancel are no larger than the
spread of the data, and extended by two columns, so that the product of a query's row
and a proxy's row is the exponent. Arrays are NumPy's or torch's.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from imprint.core.arrays import (
    Array,
    concatenate,
    dtype_name,
    is_torch,
    like,
    namespace,
)
from imprint.core.errors import ParameterError
from imprint.gaussian_process.cholesky import zeros_like
from imprint.kernels.cpu import blocks, on_all_cores
from imprint.kernels.rows import centred_moments, exact_products, squared_norms

SLICE_ROWS = 128  # computed by a thread at a time
MAX_SERIAL_WORK = 2**25  # multiplications that take less time than starting threads
# whose kernels are in memory at a time, per core
BLOCK_QUERIES = 512
BLOCK_PROXIES = 1024
MAX_DEVICE_KERNELS = 2**27  # in memory at a time on a GPU
# for float32; the minimum is its inverse, so that squares are far from the limits of
# float32
MAX_RATE = 1e12
# of float32 kernels; where the error may be larger, kernels are computed in float64
MAX_SCORE_ERROR = 1e-5


def cast(x: Any, dtype: DTypeLike) -> Any:
    """x in float32 or float64, without a copy if it has that type."""
    return (
        x.to(getattr(namespace(x), np.dtype(dtype).name))
        if is_torch(x)
        else x.astype(dtype, copy=False)
    )


def centre_of(W: Any) -> Any:
    """The mean of the rows, in their type.  # (d,)"""
    mean = centred_moments(W)[0]
    return cast(like(mean, W), dtype_name(W))


def lift_queries(
    Q: Any,
    centre: Any,
    dtype: DTypeLike = "float64",
) -> Any:
    """Lifted queries: rows [q, |q|^2, 1], with q relative to the centre.  # (n, d +
    2)
    """
    if Q.shape[1] != len(centre):
        raise ParameterError(
            f"the queries have {Q.shape[1]} columns and the proxies {len(centre)}."
        )
    centred = (Q if dtype_name(Q) == "float64" else cast(Q, dtype)) - centre
    return _with_columns(centred, squared_norms(centred), 1.0, dtype)


def lift_proxies(
    W: Any,
    centre: Any,
    rate: float,
    dtype: DTypeLike = "float64",
) -> Any:
    """Lifted proxies: rows [2 rate w, -rate, -rate |w|^2], with w relative to the
    centre.  # (p, d + 2)
    """
    centred = cast(W, "float64") - centre
    return _with_columns(
        2 * rate * centred,
        -rate,
        -rate * squared_norms(centred),
        dtype,
    )


def _with_columns(
    rows: Any,
    first: Any,
    second: Any,
    dtype: DTypeLike,
) -> Any:
    shape = (len(rows), rows.shape[1] + 2)
    out = (
        cast(rows.new_empty(shape), dtype)
        if is_torch(rows)
        else np.empty(shape, dtype=dtype)
    )
    out[:, :-2] = rows
    out[:, -2] = first
    out[:, -1] = second
    return out


def kernel(
    left: Any,
    right: Any,
    out: Array | None = None,
) -> Any:
    """Kernels of lifted queries and proxies, in the caller's thread; those of arrays
    are written to `out`.  # (n, p)
    """
    if is_torch(left):
        return (left @ right.T).exp_()
    products = np.matmul(left, right.T, out=out)
    return np.exp(products, out=products)


def kernel_rows(left: Any, right: Any) -> Any:
    """The same kernels, computed on all cores.  # (n, p)"""
    if is_torch(left):
        with exact_products(left):
            return kernel(left, right)
    out = np.empty((len(left), len(right)), dtype=left.dtype)
    step = SLICE_ROWS if len(left) * right.size > MAX_SERIAL_WORK else max(1, len(left))
    on_all_cores(
        lambda rows: kernel(left[rows], right, out[rows]), blocks(len(left), step)
    )
    return out


def noisy_kernels(
    left: Any,
    right: Any,
    noise: Any,
) -> Any:
    """The kernels of some rows among each other, plus their noise on the diagonal.  #
    (n, n)
    """
    out = kernel_rows(left, right)
    index = np.arange(len(left))
    out[index, index] = 1 + noise
    return out


def kernel_sums(
    Q: Any,
    centre: Any,
    right: Any,
    by_class: Any,
) -> Any:
    """Sums over lifted proxies of their kernels with every query times their
    coefficients.  # (q, classes) float64

    Kernels are computed in the type of `right` and summed in that of `by_class`. The
    sums cancel, so in float32 only the differences of kernels from their mean are
    summed.
    """
    proxy_step = BLOCK_PROXIES
    query_step = BLOCK_QUERIES
    if is_torch(Q):
        proxy_step = len(right)
        query_step = max(1, MAX_DEVICE_KERNELS // len(right))

    def sums(queries: slice) -> Any:
        left = lift_queries(Q[queries], centre, dtype_name(right))
        total = zeros_like((len(left), len(by_class)), left)
        for proxies in blocks(len(right), proxy_step):
            for addend in _addends(left, right[proxies], by_class[:, proxies]):
                total += addend
        return total

    with exact_products(Q):
        return concatenate(
            on_all_cores(
                sums,
                blocks(max(1, len(Q)), query_step),
                parallel=not is_torch(Q),
            )
        )


def streamed_sums(
    Q: Array,
    centre: Array,
    lifted: Callable[[slice], Array],
    count: int,
    by_class: Array,
    dtype: str,
) -> Array:
    """The same sums for a few queries, bit for bit, over `count` proxies that
    `lifted` computes in parts, in the type `dtype`; no part is kept.
    """
    left = lift_queries(Q, centre, dtype)

    def addends(proxies: slice) -> list[Any]:
        return _addends(left, lifted(proxies), by_class[:, proxies])

    with exact_products(Q):
        parts = on_all_cores(addends, blocks(count, BLOCK_PROXIES))
    total = np.zeros((len(Q), len(by_class)))
    for part in parts:
        for addend in part:
            total += addend
    return total


def _addends(
    left: Any,
    right: Any,
    coefficients: Any,
) -> list[Any]:
    """What some proxies add to the sums of queries."""
    k = kernel(left, right)
    addends = []
    if dtype_name(coefficients) == "float32":
        mean = k.mean(axis=1, keepdims=True)
        k -= mean
        sums = coefficients.sum(axis=1, dtype=namespace(k).float64)
        addends.append(mean * sums)
    addends.append(cast(k, dtype_name(coefficients)) @ coefficients.T)
    return addends


def is_precise_in_float32(max_exponent: float, by_class: Any) -> bool:
    """Whether float32 is precise enough for kernels of at most this exponent, with
    coefficients (classes, proxies).

    Rounded exponents shift a score by about 2^-24 of the length of the class's
    coefficients, times 1 to 3 and more the farther proxies lie from their centre
    (measured on embeddings of five backbones, 50 to 5,000 proxies).
    """
    xp = namespace(by_class)
    length = float(xp.sqrt(xp.einsum("cp,cp->c", by_class, by_class).max()))
    return bool(3 * 2**-24 * (1 + max_exponent) * length <= MAX_SCORE_ERROR)


def narrow_if_precise(lifted: Any, by_class: Any) -> tuple[Any, Any]:
    """Lifted proxies and coefficients for float32 queries: in float32 where that is
    precise enough.

    Sums are in float32 only where there are so many classes that they would take longer
    than the kernels.
    """
    rate = -float(lifted[0, -2])
    max_exponent = -float(lifted[:, -1].min())
    types = narrow_types(rate, max_exponent, by_class, lifted.shape[1] - 2)
    type_of_rows, type_of_coefficients = types
    return cast(lifted, type_of_rows), cast(by_class, type_of_coefficients)


def narrow_types(
    rate: float,
    max_exponent: float,
    by_class: Any,
    width: int,
) -> tuple[str, str]:
    """The types of lifted proxies and coefficients for float32 queries; see
    `narrow_if_precise`.
    """
    is_usual_rate = 1 / MAX_RATE < rate < MAX_RATE
    if not (is_usual_rate and is_precise_in_float32(max_exponent, by_class)):
        return "float64", "float64"
    many_classes = 2 * len(by_class) > width + 2
    return "float32", "float32" if many_classes else "float64"
