"""A Gaussian process whose observations are clusters: proxies that decide together, by one linear system.

A proxy says "my class" at its place, the less surely the fewer rows it stands for and the wider they lie. With
K = exp(-rate |w_i - w_j|^2), their noise N on the diagonal and Y one column per class, a query q has the scores k(q) A,
A = (K + N)^-1 Y.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy  # its parts are imported when first used

from imprint.core.inkind import dtype_name, in_type_of, is_torch, like, to_numpy
from imprint.core.types import Array
from imprint.kernels.cholesky import BLOCK, Factor
from imprint.kernels.gaussian import for_float32, kernel_rows, kernel_sums, lift_proxies, lift_queries

QUERIES = 512


@dataclass(frozen=True, eq=False)
class System:
    """A solved system over proxies; `solve` of `imprint.kernels.cluster_changes` makes one.

    The rows of the factor keep the order in which they came, also those of classes that have gone (their coefficients
    are zero). Results are in the order of the classes and, within a class, in the order in which its proxies came.
    """

    weights: Array  # (rows, d)
    labels: Array  # (rows,) class of each, -1 for those that have gone
    noise: Array  # (rows,)
    rate: float
    n_classes: int
    centre: Array  # (d,)
    factor: Factor  # of K + N over all rows
    by_class: Array  # (classes, rows) A', zero for rows that have gone
    gone: Array  # rows of classes that have gone
    gone_columns: Array  # (gone, rows) their columns of (K + N)^-1

    @cached_property
    def order(self) -> Array:
        """Rows of the factor that count, in the order of results.  # (proxies,)"""
        live = np.flatnonzero(self.labels >= 0)
        return np.asarray(live[np.argsort(self.labels[live], kind="stable")])

    @property
    def coefficients(self) -> Array:
        """A.  # (proxies, classes) float64"""
        return np.asarray(self.by_class[:, self.order].T)

    def scores(self, Q: Any) -> Any:
        """How far every class is expected at every query, 1 for wholly.  # (q, classes) in the type of Q"""
        right, by_class = self._quick if dtype_name(Q) == "float32" else (self.lifted, self.by_class)
        return in_type_of(kernel_sums(Q, self.centre, right, by_class), Q)

    @cached_property
    def lifted(self) -> Array:
        """Rows as `kernel` takes proxies, float64."""
        return lift_proxies(self.weights, self.centre, self.rate, np.float64)

    @cached_property
    def _quick(self) -> tuple[Array, Array]:
        return for_float32(self.lifted, self.by_class)

    def doubt(self, Q: Any) -> Any:
        """How little the proxies say about every query: 0 at a sure one, 1 far from all.  # (q,) in the type of Q"""
        if is_torch(Q):
            return like(self.doubt(to_numpy(Q)), Q)
        out = np.empty(len(Q))
        for start in range(0, len(Q), QUERIES):
            rows = slice(start, start + QUERIES)
            k = kernel_rows(lift_queries(Q[rows], self.centre, np.float64), self.lifted)
            k[:, self.gone] = 0
            lost = self._within_gone(k @ self.gone_columns.T)
            k = self.factor.forward(k)
            out[rows] = np.sqrt(np.maximum(1 - np.einsum("qp,qp->q", k, k) + lost, 0))
        return out.astype(Q.dtype, copy=False)

    def contributions(self, Q: Array, classes: Array) -> Array:
        """What every proxy adds to the score of one class per query.  # (q, proxies) float64, sums to that score"""
        k = kernel_rows(lift_queries(Q, self.centre, np.float64), self.lifted[self.order])
        return np.asarray(k * self.by_class[:, self.order][classes])

    def leave_one_out(self) -> Array:
        """Scores of every proxy by the system without it, in closed form; as long as solving.  # (proxies, classes)"""
        rows, diagonal = len(self.labels), np.empty(len(self.labels))
        for start in range(0, rows, BLOCK):
            units = np.eye(min(BLOCK, rows - start), rows, start)
            self.factor.forward(units)
            diagonal[start : start + BLOCK] = np.einsum("up,up->u", units, units)
        diagonal -= self._within_gone(self.gone_columns.T)
        own = self.labels[self.order, None] == np.arange(self.n_classes)
        return np.asarray(own - self.coefficients / diagonal[self.order, None])

    def _within_gone(self, B: Array) -> Array:
        """b' G^-1 b for every row b, where G is the block of (K + N)^-1 that has gone."""
        if not len(self.gone):
            return np.zeros(len(B))
        triangle = np.linalg.cholesky(self.gone_columns[:, self.gone])
        return np.asarray((scipy.linalg.solve_triangular(triangle, B.T, lower=True) ** 2).sum(axis=0))
