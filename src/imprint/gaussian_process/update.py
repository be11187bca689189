"""Solve a cluster process, and correct what was solved when classes come and go.

Rows that come extend the factor, rows that go are eliminated by their block of the inverse, and both correct the
coefficients by a product as thin as they are few. Nothing is factored again, and what was there is shared, not changed.
"""

from dataclasses import replace

import numpy as np

from imprint.core.types import Array
from imprint.gaussian_process.cholesky import BLOCK, Factor
from imprint.gaussian_process.gaussian import centre_of, kernel_rows, lift_proxies, lift_queries
from imprint.gaussian_process.posterior import Posterior
from imprint.kernels.cpu import one_blas_thread

ANEW = 4096
"""Proxies up to which everything is solved again when classes come or go."""
GONE = 8
"""Above, that is done once one in so many rows of the factor belongs to classes that have gone."""


def solve(weights: Array, labels: Array, noise: Array, rate: float) -> Posterior:
    """The system of proxies `weights` (p, d), their classes 0, 1, ... and their noise on the diagonal.

    Raises `numpy.linalg.LinAlgError` where the noise is too small for proxies that lie too close together.
    """
    centre, noise, n_classes = centre_of(weights), noise.astype(np.float64), int(labels.max()) + 1
    right, factor = lift_proxies(weights, centre, rate, np.float64), Factor()
    for start in range(0, len(weights), BLOCK):
        rows = slice(start, start + BLOCK)
        left = lift_queries(weights[rows], centre, np.float64)
        factor = factor.extended(kernel_rows(left, right[:start]), _corner(left, right[rows], noise[rows]))
    by_class = factor.solve(_one_hot(labels, n_classes))
    none, no_columns = np.empty(0, dtype=np.intp), np.empty((0, len(weights)))
    return Posterior(weights, labels, noise, rate, n_classes, centre, factor, by_class, none, no_columns)


def added(system: Posterior, weights: Array, labels: Array, noise: Array) -> Posterior:
    """The system with new classes; `labels` are their places among all classes that there are then."""
    new = np.unique(labels)
    n_classes = system.n_classes + len(new)
    stay = np.setdiff1d(np.arange(n_classes), new)
    more = replace(
        system,
        weights=np.concatenate([system.weights, weights]),
        labels=np.concatenate([np.where(system.labels < 0, -1, stay[system.labels]), labels]),
        noise=np.concatenate([system.noise, noise]),
        n_classes=n_classes,
    )
    return _solved_again(more) if len(more.order) <= ANEW else _bordered(system, more, stay)


def _bordered(system: Posterior, more: Posterior, stay: Array) -> Posterior:
    """Solve `more`, which has some rows after those of `system`; `stay` are the places of the classes before."""
    before = len(system.labels)
    weights, labels = more.weights[before:], more.labels[before:]
    left = lift_queries(weights, system.centre, np.float64)
    coupling = kernel_rows(left, system.lifted)
    corner = _corner(left, lift_proxies(weights, system.centre, system.rate, np.float64), more.noise[before:])
    across = system.factor.solve(coupling.copy())  # (new, rows)
    with one_blas_thread():
        gone_columns = _gone_columns_beside(system, coupling, corner, across)
        _over_live(system, across)
        sums = np.zeros((more.n_classes, len(labels)))
        starts = np.searchsorted(system.labels[system.order], np.arange(system.n_classes))
        sums[stay] = np.add.reduceat(across[:, system.order], starts, axis=1).T
        by_class = np.zeros((more.n_classes, len(more.labels)))
        rest = corner - coupling @ across.T
        by_class[:, before:] = np.linalg.solve(rest, (_one_hot(labels, more.n_classes) - sums).T).T
        by_class[stay, :before] = system.by_class
        by_class[:, :before] -= by_class[:, before:] @ across
    factor = system.factor.extended(coupling, corner)
    return replace(more, factor=factor, by_class=by_class, gone_columns=gone_columns)


def removed(system: Posterior, classes: Array) -> Posterior:
    """The system without some of its classes; those that stay move up."""
    stay = np.setdiff1d(np.arange(system.n_classes), classes)
    places = np.full(system.n_classes + 1, -1)  # the last for rows that have gone
    places[stay] = np.arange(len(stay))
    gone = np.concatenate([system.gone, np.flatnonzero(np.isin(system.labels, classes))])
    less = replace(system, labels=places[system.labels], n_classes=len(stay), gone=gone)
    again = len(less.order) <= ANEW or len(gone) * GONE > len(system.labels)
    return _solved_again(less) if again else _eliminated(system, less, stay)


def _eliminated(system: Posterior, less: Posterior, stay: Array) -> Posterior:
    """Solve `less`, where some more rows of `system` have gone; `stay` are the classes that have not."""
    leaving = less.gone[len(system.gone) :]
    columns = np.zeros((len(leaving), len(system.labels)))
    columns[np.arange(len(leaving)), leaving] = 1
    gone_columns = np.concatenate([system.gone_columns, system.factor.solve(columns)])
    with one_blas_thread():
        _over_live(system, columns)
        by_class = system.by_class[stay]
        by_class -= np.linalg.solve(columns[:, leaving], by_class[:, leaving].T).T @ columns
        by_class[:, leaving] = 0
    return replace(less, by_class=by_class, gone_columns=gone_columns)


def _solved_again(system: Posterior) -> Posterior:
    rows = system.order
    return solve(system.weights[rows], system.labels[rows], system.noise[rows], system.rate)


def _over_live(system: Posterior, B: Array) -> None:
    """Turn solutions over all rows of the factor into solutions over those that count."""
    if len(system.gone):
        B -= np.linalg.solve(system.gone_columns[:, system.gone], B[:, system.gone].T).T @ system.gone_columns
        B[:, system.gone] = 0


def _gone_columns_beside(system: Posterior, coupling: Array, corner: Array, across: Array) -> Array:
    """Columns of the inverse for rows that have gone, when rows come."""
    thin = np.linalg.solve(corner - coupling @ across.T, across[:, system.gone]).T  # (gone, new)
    return np.concatenate([system.gone_columns + thin @ across, -thin], axis=1)


def _corner(left: Array, right: Array, noise: Array) -> Array:
    corner = kernel_rows(left, right)
    np.fill_diagonal(corner, 1 + noise)
    return corner


def _one_hot(labels: Array, n_classes: int) -> Array:
    """Y'.  # (classes, rows)"""
    return np.asarray(np.arange(n_classes)[:, None] == labels, dtype=np.float64)
