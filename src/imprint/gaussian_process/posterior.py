"""A Gaussian process whose observations are clusters: proxies that decide together, by one linear system.

A proxy says "my class" at its place, the less surely the fewer rows it stands for and the wider they lie. With
K = exp(-rate |w_i - w_j|^2), their noise N on the diagonal and Y one column per class, a query q has the scores k(q) A,
A = (K + N)^-1 Y.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from imprint.core.arrays import dtype_name, in_type_of, is_torch, like, to_numpy
from imprint.core.types import Array
from imprint.gaussian_process.cholesky import Factor
from imprint.gaussian_process.gaussian import for_float32, kernel_rows, kernel_sums, lift_proxies, lift_queries
from imprint.kernels.cpu import one_blas_thread
from imprint.kernels.rows import squared_norms

QUERIES = 512


class Process(ABC):
    """What a solved system answers, whether it holds all proxies (`Posterior`) or some of them (`Landmarks`).

    Results are in the order of the classes and, within a class, in the order in which its proxies came.
    """

    centre: Array  # (d,)
    by_class: Array  # (classes, rows) coefficients
    lifted: Any  # (rows, d + 2) what is held, as kernels take proxies, float64

    @cached_property
    @abstractmethod
    def order(self) -> Array:
        """Which of the rows held count, in the order of results.  # (proxies,)"""

    @abstractmethod
    def _explained(self, k: Array) -> Array:
        """The share of the variance at queries that the proxies explain, from kernels (overwritten).  # (q,)"""

    @property
    def coefficients(self) -> Array:
        """A.  # (proxies, classes) float64"""
        return np.asarray(self.by_class[:, self.order].T)

    def scores(self, Q: Any) -> Any:
        """How far every class is expected at every query, 1 for wholly.  # (q, classes) in the type of Q"""
        right, by_class = self._quick if dtype_name(Q) == "float32" else (self.lifted, self.by_class)
        return in_type_of(kernel_sums(Q, self.centre, right, by_class), Q)

    @cached_property
    def _quick(self) -> tuple[Array, Array]:
        return for_float32(self.lifted, self.by_class)

    def doubt(self, Q: Any) -> Any:
        """How little the proxies say about every query: 0 at a sure one, 1 far from all.  # (q,) in the type of Q"""
        if is_torch(Q):
            return like(self.doubt(to_numpy(Q)), Q)
        out = np.empty(len(Q))
        with one_blas_thread():
            for start in range(0, len(Q), QUERIES):
                rows = slice(start, start + QUERIES)
                k = kernel_rows(lift_queries(Q[rows], self.centre, np.float64), self.lifted)
                out[rows] = np.sqrt(np.maximum(1 - self._explained(k), 0))
        return out.astype(Q.dtype, copy=False)

    def contributions(self, Q: Array, classes: Array) -> Array:
        """What every proxy adds to the score of one class per query.  # (q, proxies) float64, sums to that score"""
        k = kernel_rows(lift_queries(Q, self.centre, np.float64), self.lifted[self.order])
        return np.asarray(k * self.by_class[:, self.order][classes])


@dataclass(frozen=True, eq=False)
class Posterior(Process):
    """A solved system over proxies; `solve` of `imprint.gaussian_process.update` makes one.

    The rows of the factor keep the order in which they came, also those of classes that have gone (their coefficients
    are zero).
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
        live = np.flatnonzero(self.labels >= 0)
        return np.asarray(live[np.argsort(self.labels[live], kind="stable")])

    @cached_property
    def lifted(self) -> Array:
        """Rows as `kernel` takes proxies, float64."""
        return lift_proxies(self.weights, self.centre, self.rate, np.float64)

    def _explained(self, k: Array) -> Array:
        k[:, self.gone] = 0
        lost = self._within_gone(k @ self.gone_columns.T)
        return squared_norms(self.factor.forward(k)) - lost

    def _within_gone(self, B: Array) -> Array:
        """b' G^-1 b for every row b, where G is the block of (K + N)^-1 that has gone."""
        if not len(self.gone):
            return np.zeros(len(B))
        return np.asarray((np.linalg.solve(self.gone_columns[:, self.gone], B.T).T * B).sum(axis=1))
