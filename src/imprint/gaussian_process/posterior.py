"""A Gaussian process whose observations are clusters: proxies that decide together, by one linear system.

Each proxy is a noisy observation of its class; its noise falls with the rows it represents and grows with their spread.
With K = exp(-rate |w_i - w_j|^2), the noise N on the diagonal and Y one column per class, a query q has the scores
k(q) A, A = (K + N)^-1 Y.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from imprint.core.arrays import dtype_name, in_type_of, is_torch, like, namespace, to_numpy
from imprint.core.types import Array
from imprint.gaussian_process.cholesky import Factor, block_rows
from imprint.gaussian_process.gaussian import for_float32, kernel_rows, kernel_sums, lift_proxies, lift_queries
from imprint.kernels.cpu import one_blas_thread
from imprint.kernels.rows import squared_norms


class Process(ABC):
    """A solved system over all proxies (`Posterior`) or over some of them (`Nystroem`), which answers queries.

    Its arrays are NumPy's, or tensors on one device; queries of either kind are answered in their kind. Results are in
    the order of the classes and, within a class, in the order in which its proxies were given.
    """

    centre: Any  # (d,)
    by_class: Any  # (classes, rows) coefficients
    lifted: Any  # (rows, d + 2) the rows as kernels take proxies, float64

    @cached_property
    @abstractmethod
    def order(self) -> Array:
        """The rows that count, in the order of results.  # (proxies,)"""

    @abstractmethod
    def _explained(self, k: Any) -> Any:
        """The share of the variance at queries that the proxies explain, from kernels (overwritten).  # (q,)"""

    @property
    def coefficients(self) -> Array:
        """A.  # (proxies, classes) float64"""
        return np.asarray(to_numpy(self.by_class)[:, self.order].T, dtype=np.float64)

    def scores(self, Q: Any) -> Any:
        """The expected value of every class at every query, 1 for certain.  # (q, classes) in the type of Q"""
        if is_torch(self.by_class) and not is_torch(Q):
            return to_numpy(self.scores(like(Q, self.by_class)))
        centre, right, by_class = self._operands(Q)
        return in_type_of(kernel_sums(Q, centre, right, by_class), Q)

    def _operands(self, Q: Any) -> tuple[Any, Any, Any]:
        """Centre, lifted proxies and coefficients in the kind and precision that suits queries; copied once."""
        key = dtype_name(Q), Q.device if is_torch(Q) else None
        if key not in self._copies:
            right, by_class = self.lifted, self.by_class
            if dtype_name(Q) == "float32":
                right, by_class = for_float32(right, by_class)
            self._copies[key] = tuple(like(part, Q) for part in (self.centre, right, by_class))
        return self._copies[key]

    @cached_property
    def _copies(self) -> dict[Any, Any]:
        return {}

    def doubt(self, Q: Any) -> Any:
        """The posterior standard deviation: 0 at a certain query, 1 far from all proxies.  # (q,) in the type of Q"""
        if is_torch(Q) != is_torch(self.by_class):
            return like(self.doubt(to_numpy(Q)), Q) if is_torch(Q) else to_numpy(self.doubt(like(Q, self.by_class)))
        parts, step = [], block_rows(self.lifted)
        with one_blas_thread():
            for start in range(0, len(Q), step):
                k = kernel_rows(lift_queries(Q[start : start + step], self.centre, "float64"), self.lifted)
                parts.append((1 - self._explained(k)).clip(0) ** 0.5)
        return in_type_of(namespace(Q).concatenate(parts) if parts else Q[:, 0], Q)

    def contributions(self, Q: Array, classes: Array) -> Array:
        """The contribution of each proxy to the score of one class per query.  # (q, proxies) float64"""
        left = lift_queries(like(Q, self.centre), self.centre, "float64")
        k = to_numpy(kernel_rows(left, self.lifted))[:, self.order]
        return np.asarray(k * to_numpy(self.by_class[like(classes, self.by_class)])[:, self.order])


@dataclass(frozen=True, eq=False)
class Posterior(Process):
    """A system over all proxies, solved by `imprint.gaussian_process.update.solve`.

    The rows of the factor stay in the order in which they were added, also those of removed classes (their coefficients
    are zero).
    """

    weights: Any  # (rows, d)
    labels: Array  # (rows,) class of each, -1 for removed ones
    noise: Any  # (rows,)
    rate: float
    n_classes: int
    centre: Any  # (d,)
    factor: Factor  # of K + N over all rows
    by_class: Any  # (classes, rows) A', zero for removed rows
    removed_rows: Array  # rows of removed classes
    removed_columns: Any  # (removed, rows) their columns of (K + N)^-1

    @cached_property
    def order(self) -> Array:
        live = np.flatnonzero(self.labels >= 0)
        return np.asarray(live[np.argsort(self.labels[live], kind="stable")])

    @cached_property
    def lifted(self) -> Any:
        """Rows as `kernel` takes proxies, float64."""
        return lift_proxies(self.weights, self.centre, self.rate)

    def _explained(self, k: Any) -> Any:
        if not len(self.removed_rows):
            return squared_norms(self.factor.forward(k))
        k[:, self.removed_rows] = 0
        B = k @ self.removed_columns.T
        block = self.removed_columns[:, self.removed_rows]  # of the inverse, over the removed rows
        lost = (namespace(k).linalg.solve(block, B.T).T * B).sum(axis=1)
        return squared_norms(self.factor.forward(k)) - lost
