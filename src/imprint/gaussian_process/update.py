"""Solve a Gaussian process over clusters, and update the solution when classes are added or removed.

Added rows extend the factor, removed rows are eliminated by their block of the inverse, and both correct the
coefficients by a product as thin as they are few. Nothing is factored again, and the solution before is shared, not
changed. Arrays are NumPy's or torch's, like the weights.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from imprint.core.arrays import joined, like, namespace
from imprint.core.types import Array, State
from imprint.gaussian_process.cholesky import Factor, block_rows, zeros_like
from imprint.gaussian_process.gaussian import cast, centre_of, kernel_rows, lift_proxies, lift_queries
from imprint.gaussian_process.posterior import Posterior
from imprint.gaussian_process.scale import rounded_scale, scale
from imprint.kernels.cpu import one_blas_thread

RESOLVED_ROWS = 4096
"""Proxies up to which the whole system is solved again when classes are added or removed."""
REMOVED_SHARE = 8
"""Above, it is solved again once one in so many rows of the factor belongs to removed classes."""


def scale_for(sums: State, count: int) -> float:
    """The scale of distances between so many proxies, rounded where a solution is updated."""
    return rounded_scale(scale(sums)) if count > RESOLVED_ROWS else scale(sums)


def solve(weights: Any, labels: Array, noise: Any, rate: float, targets: Array | None = None) -> Posterior:
    """The system of proxies `weights` (p, d), their classes 0, 1, ... and their noise on the diagonal.

    With `targets` (p, labels), a proxy observes these values in the place of 1 for its class and 0 for the others.
    Raises `numpy.linalg.LinAlgError` where the noise is too small for proxies that lie too close together.
    """
    centre, noise = centre_of(weights), cast(like(noise, weights), "float64")
    right, factor, step = lift_proxies(weights, centre, rate), Factor(), block_rows(weights)
    for start in range(0, len(weights), step):
        rows = slice(start, start + step)
        left = lift_queries(weights[rows], centre, "float64")
        factor = factor.extended(kernel_rows(left, right[:start]), _corner(left, right[rows], noise[rows]))
    by_class = factor.solve(targets_of(labels, targets, weights))
    none = np.empty(0, dtype=np.intp)
    no_columns = zeros_like((0, len(weights)), weights)
    return Posterior(weights, labels, noise, rate, len(by_class), centre, factor, by_class, none, no_columns)


def added(system: Posterior, weights: Any, labels: Array, noise: Any) -> Posterior:
    """The system with new classes; `labels` are their positions among all classes afterwards."""
    new = np.unique(labels)
    n_classes = system.n_classes + len(new)
    old = np.setdiff1d(np.arange(n_classes), new)
    more = replace(
        system,
        weights=joined([system.weights, weights]),
        labels=np.concatenate([np.where(system.labels < 0, -1, old[system.labels]), labels]),
        noise=joined([system.noise, cast(like(noise, weights), "float64")]),
        n_classes=n_classes,
    )
    return _solved_again(more) if len(more.order) <= RESOLVED_ROWS else _bordered(system, more, old)


def _bordered(system: Posterior, more: Posterior, old: Array) -> Posterior:
    """Solve `more`, which has some rows after those of `system`; `old` are the positions of the classes before."""
    before = len(system.labels)
    weights, labels = more.weights[before:], more.labels[before:]
    left = lift_queries(weights, system.centre, "float64")
    coupling = kernel_rows(left, system.lifted)
    corner = _corner(left, lift_proxies(weights, system.centre, system.rate), more.noise[before:])
    factor = system.factor.extended(coupling, corner)
    if not len(system.removed_rows) and more.n_classes <= len(labels):  # fewer right-hand sides than new rows
        by_class = factor.solve(one_hot(more.labels, more.n_classes, weights))
        no_columns = zeros_like((0, len(more.labels)), weights)
        return replace(more, factor=factor, by_class=by_class, removed_columns=no_columns)
    across = system.factor.solve(coupling + 0)  # (new, rows)
    with one_blas_thread():
        rest = corner - coupling @ across.T  # the Schur complement of the new rows
        thin = namespace(across).linalg.solve(rest, across[:, system.removed_rows]).T  # (removed, new)
        removed_columns = namespace(across).concatenate([system.removed_columns + thin @ across, -thin], axis=1)
        _over_live(system, across)
        rest = corner - coupling @ across.T
        old = like(old, across)
        sums = zeros_like((more.n_classes, len(labels)), across)
        sums[old] = one_hot(system.labels, system.n_classes, across) @ across.T
        by_class = zeros_like((more.n_classes, len(more.labels)), across)
        targets = one_hot(labels, more.n_classes, across) - sums
        by_class[:, before:] = namespace(across).linalg.solve(rest, targets.T).T
        by_class[old, :before] = system.by_class
        by_class[:, :before] -= by_class[:, before:] @ across
    return replace(more, factor=factor, by_class=by_class, removed_columns=removed_columns)


def removed(system: Posterior, classes: Array) -> Posterior:
    """The system without some of its classes; the positions of the others close up."""
    remaining = np.setdiff1d(np.arange(system.n_classes), classes)
    positions = np.full(system.n_classes + 1, -1)  # the last for rows removed before
    positions[remaining] = np.arange(len(remaining))
    rows = np.concatenate([system.removed_rows, np.flatnonzero(np.isin(system.labels, classes))])
    less = replace(system, labels=positions[system.labels], n_classes=len(remaining), removed_rows=rows)
    again = len(less.order) <= RESOLVED_ROWS or len(rows) * REMOVED_SHARE > len(system.labels)
    return _solved_again(less) if again else _eliminated(system, less, remaining)


def _eliminated(system: Posterior, less: Posterior, remaining: Array) -> Posterior:
    """Solve `less`, from which more rows of `system` are removed; `remaining` are the classes that are not."""
    leaving = less.removed_rows[len(system.removed_rows) :]
    columns = zeros_like((len(leaving), len(system.labels)), system.by_class)
    columns[np.arange(len(leaving)), leaving] = 1
    removed_columns = joined([system.removed_columns, system.factor.solve(columns)])
    with one_blas_thread():
        _over_live(system, columns)
        by_class = system.by_class[like(remaining, columns)]
        by_class -= namespace(columns).linalg.solve(columns[:, leaving], by_class[:, leaving].T).T @ columns
        by_class[:, leaving] = 0
    return replace(less, by_class=by_class, removed_columns=removed_columns)


def _solved_again(system: Posterior) -> Posterior:
    rows = system.order
    return solve(system.weights[rows], system.labels[rows], system.noise[rows], system.rate)


def _over_live(system: Posterior, B: Any) -> None:
    """Turn solutions over all rows of the factor into solutions over those that are not removed."""
    if rows := system.removed_rows.tolist():
        inverse = system.removed_columns[:, rows]
        B -= namespace(B).linalg.solve(inverse, B[:, rows].T).T @ system.removed_columns
        B[:, rows] = 0


def _corner(left: Any, right: Any, noise: Any) -> Any:
    corner = kernel_rows(left, right)
    index = np.arange(len(left))
    corner[index, index] = 1 + noise
    return corner


def targets_of(labels: Array, targets: Array | None, x: Any) -> Any:
    """Targets of proxies, by default the one-hot targets of their classes, as rows where x lies."""
    if targets is None:
        return one_hot(labels, int(labels.max()) + 1, x)
    return like(np.array(targets.T, dtype=np.float64, order="C"), x)


def one_hot(labels: Array, n_classes: int, x: Any) -> Any:
    """Y', float64, where x lies; zero for rows of removed classes.  # (classes, rows)"""
    Y, live = zeros_like((n_classes, len(labels)), x), np.flatnonzero(labels >= 0)
    Y[like(labels[live], x), like(live, x)] = 1
    return Y
