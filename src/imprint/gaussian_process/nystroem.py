"""A cluster process of more proxies than one factor can hold, solved through some of them.

Scores are sums over m landmarks z instead of all proxies w, with coefficients that fit all proxies (the subset of
regressors, or projected process): A = (K_zz + K_zw N^-1 K_wz)^-1 K_zw N^-1 Y. The cost is P m^2 instead of P^3 / 3, the
memory m^2, and queries meet m proxies only.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from imprint.core.types import Array
from imprint.gaussian_process.cholesky import BLOCK, Factor
from imprint.gaussian_process.gaussian import centre_of, kernel_rows, lift_proxies, lift_queries
from imprint.gaussian_process.posterior import Process
from imprint.kernels.cpu import on_all_cores, one_blas_thread
from imprint.kernels.rows import squared_norms

WHOLE = 24_576
"""Proxies up to which a system should be solved whole: 2.4 GB, under two minutes on two cores."""
LANDMARKS = 4096
ROWS = 2048  # proxies taken up together
JITTER = 1e-8  # on the diagonal of K_zz: landmarks may coincide


@dataclass(frozen=True, eq=False)
class Landmarks(Process):
    """A solved system; `solve_by_landmarks` makes one. It has one result per landmark."""

    rows: Array  # (m,) which proxies are landmarks
    n_classes: int
    centre: Array  # (d,)
    lifted: Array  # (m, d + 2)
    by_class: Array  # (classes, m) coefficients
    before: Factor  # of K_zz, L L'
    after: Factor  # of I + L^-1 K_zw N^-1 K_wz L^-T

    @cached_property
    def order(self) -> Array:
        return np.arange(len(self.rows))

    def _explained(self, k: Array) -> Array:
        k = self.before.forward(k)
        return squared_norms(k) - squared_norms(self.after.forward(k.copy()))


def solve_by_landmarks(weights: Array, labels: Array, noise: Array, rate: float, count: int = LANDMARKS) -> Landmarks:
    """The system of proxies `weights` (p, d), their classes 0, 1, ... and their noise on the diagonal.

    A class has a share of the landmarks as large as its share of the proxies, at least one, at even steps through its
    proxies. So they depend on nothing but what there is, not on the order in which classes came.
    """
    n_classes, centre = int(labels.max()) + 1, centre_of(weights)
    rows = _spaced(labels, count)
    lifted = lift_proxies(weights[rows], centre, rate, np.float64)
    among = kernel_rows(lift_queries(weights[rows], centre, np.float64), lifted)
    np.fill_diagonal(among, 1 + JITTER)
    before = Factor.of(among)
    total, fitted = np.eye(len(rows)), np.zeros((n_classes, len(rows)))
    for start in range(0, len(weights), ROWS):
        part = slice(start, start + ROWS)
        k = before.forward(kernel_rows(lift_queries(weights[part], centre, np.float64), lifted))
        np.add.at(fitted, labels[part], k / noise[part, None])
        k /= np.sqrt(noise[part, None])
        _add_products(total, k)
    after = Factor.of(total)
    by_class = before.backward(after.solve(fitted))
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
