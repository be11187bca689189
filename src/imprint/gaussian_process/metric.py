"""The metric in which distances between embeddings of several blocks are measured.

Blocks are weighted: |x - z|^2 becomes the sum over blocks b of w_b |x_b - z_b|^2. On
top of that, directions in which the rows of one class differ among themselves count
less: with the weighted within-class covariance S, |x - z|^2 becomes (x - z)' (I + S /
lam)^-1 (x - z), as in linear discriminant analysis with a shrunk covariance. Both are
one linear map of rows, so that everything behind it computes plain distances.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from imprint.core.arrays import (
    AnyArray,
    Array,
    Proxies,
    cast_like,
    concatenate,
    dtype_name,
    is_torch,
    like,
    to_numpy,
)
from imprint.core.blocks import as_number, column_slices
from imprint.core.graph import GraphBuilder
from imprint.gaussian_process.gaussian import SLICE_ROWS
from imprint.kernels.cpu import blocks, on_all_cores

# eigenvalues of S relative to the largest; smaller ones are rounding error of float32
# rows, and counting them would add directions of noise
MIN_EIGENVALUE = 1e-6


@dataclass(frozen=True, eq=False)
class Metric:
    """A linear map of rows.

    Parameters
    ----------
    weights : tuple of float
        The weight of each block; their sum is the squared length of a row whose blocks
        have length one.
    scales : array (d,)
        The square root of the weight of the block of each column.
    directions : array (r, d)
        Orthonormal directions of the weighted rows that vary within classes.
    removed : array (r,)
        The share of each direction that is taken away, 0 to 1.
    mixing : array (r, n)
        The directions as combinations of the n rows that made the metric, relative to
        the means of their classes: a file holds these, because n is smaller than d.
    """

    weights: tuple[float, ...]
    scales: Array
    directions: Array
    removed: Array
    mixing: Array

    def apply(self, X: AnyArray) -> Any:
        """Rows in the metric, as NumPy array or tensor of the type of X.  # (n, d)"""
        scales, directions, removed = self._operands(X)
        scaled = X * scales
        if not len(removed):
            return scaled
        if is_torch(X):
            return scaled - ((scaled @ directions.T) * removed) @ directions

        def away(rows: slice) -> Any:
            return ((scaled[rows] @ directions.T) * removed) @ directions

        parts = on_all_cores(away, blocks(max(1, len(X)), SLICE_ROWS))
        return scaled - concatenate(parts)

    def _operands(self, X: Any) -> tuple[Any, Any, Any]:
        """Scales, directions and removed shares in the type of rows and where they lie;
        copied once, because to convert them takes longer than to apply them to a row.
        """
        key = dtype_name(X), X.device if is_torch(X) else None
        if key not in self._copies:
            arrays = (self.scales, self.directions, self.removed)
            self._copies[key] = tuple(cast_like(like(a, X), X) for a in arrays)
        return self._copies[key]

    @cached_property
    def _copies(self) -> dict[Any, Any]:
        return {}

    def transposed(self, X: Array) -> Array:
        """Rows through the transposed map, as gradients go.  # (n, d)"""
        along = X
        if len(self.removed):
            along = X - ((X @ self.directions.T) * self.removed) @ self.directions
        return np.asarray(along * self.scales)

    def tensors(self, dtype: DTypeLike) -> dict[str, Array]:
        """The arrays of the map, for programs without this library."""
        return {
            "scales": self.scales.astype(dtype),
            "directions": self.directions.astype(dtype),
            "removed": self.removed.astype(dtype),
        }

    def graph(
        self,
        g: GraphBuilder,
        x: str,
        dtype: DTypeLike,
    ) -> str:
        """The name of rows `x` in the metric in an ONNX graph `g`."""
        scaled = g.add("Mul", x, g.constant(self.scales, dtype))
        if not len(self.removed):
            return str(scaled)
        along = g.add("Gemm", scaled, g.constant(self.directions, dtype), transB=1)
        parts = g.add("Mul", along, g.constant(self.removed, dtype))
        away = g.add("MatMul", parts, g.constant(self.directions, dtype))
        return str(g.add("Sub", scaled, away))


def read_shrinkage(value: object) -> str | float | None:
    """A shrinkage as a legal parameter; None for anything else."""
    if isinstance(value, str):
        return value if value in ("auto", "none") else None
    number = as_number(value)
    return number if number > 0 else None


class Scatter(NamedTuple):
    """How far proxies lie from each other, per proxy and weighted by mass."""

    total: float  # the mean squared distance from their mean
    within: float  # the mean squared distance from the mean of their class


def weigh_blocks(widths: Sequence[int], weights: Sequence[float]) -> Metric:
    """The metric of block weights alone."""
    total = sum(weights)
    return share_blocks(widths, [weight / total for weight in weights])


def share_blocks(widths: Sequence[int], shares: Sequence[float]) -> Metric:
    """The metric of block weights that sum to one."""
    width = sum(widths)
    scales = np.empty(width)
    for columns, share in zip(column_slices(widths), shares):
        scales[columns] = np.sqrt(share)
    none = np.empty(0)
    nowhere = np.empty((0, width))
    return Metric(tuple(map(float, shares)), scales, nowhere, none, np.empty((0, 0)))


def shrink_within_classes(
    metric: Metric,
    rows: Array,
    labels: Array,
    shrinkage: float,
) -> Metric:
    """The metric with less weight for directions that vary within classes.

    Parameters
    ----------
    metric : Metric
        The weights of the blocks.
    rows : array (n, d)
        Proxies, not yet in the metric.
    labels : array (n,)
        Their classes as indices 0, 1, ...
    shrinkage : float
        lam as a multiple of the mean eigenvalue of S over n directions; large values
        leave the metric as it is.
    """
    deviations = _deviations(metric, rows, labels)
    # S has at most n directions: its eigenvectors follow from the n x n products
    products = deviations @ deviations.T / len(rows)
    eigenvalues, vectors = np.linalg.eigh(products)
    mean = float(np.trace(products)) / len(rows)
    present = eigenvalues > MIN_EIGENVALUE * max(float(eigenvalues[-1]), 0.0)
    if mean <= 0 or not present.any():
        return metric
    eigenvalues = eigenvalues[present]
    lengths = np.sqrt(eigenvalues * len(rows))
    mixing = np.ascontiguousarray((vectors[:, present] / lengths).T)
    removed = 1 - 1 / np.sqrt(1 + eigenvalues / (shrinkage * mean))
    return with_directions(metric, rows, labels, mixing, removed)


def with_directions(
    metric: Metric,
    rows: Array,
    labels: Array,
    mixing: Array,
    removed: Array,
) -> Metric:
    """The metric of block weights with directions that are combinations of rows."""
    if not len(removed):
        return metric
    directions = mixing @ _deviations(metric, rows, labels)
    return Metric(metric.weights, metric.scales, directions, removed, mixing)


def _deviations(
    metric: Metric,
    rows: Array,
    labels: Array,
) -> Array:
    """Weighted rows relative to the means of their classes.  # (n, d)"""
    scaled = rows.astype(np.float64) * metric.scales
    return np.asarray(scaled - _class_means(scaled, labels))


def scatter(proxies: Proxies, rows: AnyArray) -> Scatter:
    """The scatter of proxies; `rows` are their weights, in the metric or not."""
    X = np.asarray(to_numpy(rows), dtype=np.float64)
    mass = proxies.mass / proxies.mass.sum()
    means = _class_means(X, proxies.labels, proxies.mass)
    total = float(mass @ np.square(X - mass @ X).sum(axis=1))
    within = float(mass @ np.square(X - means).sum(axis=1))
    return Scatter(total, within)


def _class_means(
    X: Array,
    labels: Array,
    mass: Array | None = None,
) -> Array:
    """The mean of the class of each row.  # (n, d)"""
    weight = np.ones(len(X)) if mass is None else mass
    present, index = np.unique(labels, return_inverse=True)
    share = np.zeros((len(present), len(X)))
    share[index, np.arange(len(X))] = weight
    share /= share.sum(axis=1, keepdims=True)
    return np.asarray((share @ X)[index])
