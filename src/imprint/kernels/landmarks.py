"""A cluster process of more proxies than one factor can hold, solved through some of them.

Scores are sums over m landmarks z instead of all proxies w, with coefficients that fit all proxies (the subset of
regressors, or projected process): A = (K_zz + K_zw N^-1 K_wz)^-1 K_zw N^-1 Y. The cost is P m^2 instead of P^3 / 3, the
memory m^2, and queries meet m proxies only.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy  # its parts are imported when first used

from imprint.core.inkind import dtype_name, in_type_of, is_torch, like, to_numpy
from imprint.core.types import Array
from imprint.kernels.cholesky import BLOCK, Factor
from imprint.kernels.cpu import on_all_cores, one_blas_thread
from imprint.kernels.gaussian import centre_of, for_float32, kernel_rows, kernel_sums, lift_proxies, lift_queries

WHOLE = 24_576
"""Proxies up to which a system should be solved whole: 2.4 GB, under two minutes on two cores."""
LANDMARKS = 4096
ROWS = 2048  # proxies taken up together
JITTER = 1e-8  # on the diagonal of K_zz: landmarks may coincide


@dataclass(frozen=True, eq=False)
class Landmarks:
    """A solved system; `solve_by_landmarks` makes one. Results are in the order of the landmarks."""

    rows: Array  # (m,) which proxies are landmarks
    n_classes: int
    centre: Array  # (d,)
    lifted: Array  # (m, d + 2) landmarks as kernels take proxies, float64
    by_class: Array  # (classes, m) coefficients
    before: Factor  # L with L L' = K_zz
    after: Array  # (m, m) lower triangular C with C C' = I + L^-1 K_zw N^-1 K_wz L^-T

    @property
    def coefficients(self) -> Array:
        """A.  # (m, classes) float64"""
        return self.by_class.T

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
        for start in range(0, len(Q), ROWS):
            k = kernel_rows(lift_queries(Q[start : start + ROWS], self.centre, np.float64), self.lifted)
            k = self.before.forward(k)
            with one_blas_thread():
                left = scipy.linalg.solve_triangular(self.after, k.T, lower=True, check_finite=False)
            rest = 1 - np.einsum("qm,qm->q", k, k) + np.einsum("mq,mq->q", left, left)
            out[start : start + ROWS] = np.sqrt(np.maximum(rest, 0))
        return out.astype(Q.dtype, copy=False)

    def contributions(self, Q: Array, classes: Array) -> Array:
        """What every landmark adds to the score of one class per query.  # (q, m) float64, sums to that score"""
        k = kernel_rows(lift_queries(Q, self.centre, np.float64), self.lifted)
        return np.asarray(k * self.by_class[classes])


def solve_by_landmarks(weights: Array, labels: Array, noise: Array, rate: float, count: int = LANDMARKS) -> Landmarks:
    """The system of proxies `weights` (p, d), their classes 0, 1, ... and their noise on the diagonal.

    A class has a share of the landmarks as large as its share of the proxies, at least one, at even steps through its
    proxies. So they depend on nothing but what there is, not on the order in which classes came.
    """
    n_classes, centre = int(labels.max()) + 1, centre_of(weights)
    rows = _spaced(labels, count)
    lifted = lift_proxies(weights[rows], centre, rate, np.float64)
    before = Factor()
    for start in range(0, len(rows), BLOCK):
        left = lift_queries(weights[rows[start : start + BLOCK]], centre, np.float64)
        corner = kernel_rows(left, lifted[start : start + BLOCK])
        np.fill_diagonal(corner, 1 + JITTER)
        before = before.extended(kernel_rows(left, lifted[:start]), corner)
    total, fitted = np.eye(len(rows)), np.zeros((n_classes, len(rows)))
    for start in range(0, len(weights), ROWS):
        part = slice(start, start + ROWS)
        k = before.forward(kernel_rows(lift_queries(weights[part], centre, np.float64), lifted))
        np.add.at(fitted, labels[part], k / noise[part, None])
        k /= np.sqrt(noise[part, None])
        _add_products(total, k)
    with one_blas_thread():
        after = scipy.linalg.cholesky(total, lower=True, overwrite_a=True, check_finite=False)
        fitted = scipy.linalg.solve_triangular(after, fitted.T, lower=True, check_finite=False)
        fitted = scipy.linalg.solve_triangular(after, fitted, lower=True, trans="T", check_finite=False).T
    by_class = before.backward(np.ascontiguousarray(fitted))
    return Landmarks(rows, n_classes, centre, lifted, by_class, before, after)


def _spaced(labels: Array, count: int) -> Array:
    """Rows of every class at even steps."""
    chosen = []
    for c in range(int(labels.max()) + 1):
        rows = np.flatnonzero(labels == c)
        share = min(len(rows), max(1, round(count * len(rows) / len(labels))))
        chosen.append(rows[np.arange(share) * len(rows) // share])
    return np.concatenate(chosen)


def _add_products(total: Array, k: Array) -> None:
    """Add the inner products of the columns of k."""

    def fill(start: int) -> None:
        total[start : start + BLOCK] += k[:, start : start + BLOCK].T @ k

    with one_blas_thread():
        on_all_cores(fill, range(0, len(total), BLOCK))
