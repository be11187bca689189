"""A Gaussian process whose observations are clusters: one linear system over all
proxies.

Each proxy is a noisy observation of its class; its noise falls with the rows it
represents and grows with their spread. With K = exp(-rate |w_i - w_j|^2), the noise N
on the diagonal and Y one column per class, a query q has the scores k(q) A, A = (K +
N)^-1 Y.

When classes are added or removed, nothing is factored again, and the system before is
shared, not changed: added rows extend the factor, removed rows are eliminated by their
block of the inverse, and both correct the coefficients by a product whose rank is the
number of these rows. Arrays are NumPy's or torch's, like the weights.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from imprint.core.arrays import (
    Array,
    cast_like,
    concatenate,
    dtype_name,
    is_torch,
    like,
    namespace,
    to_numpy,
)
from imprint.gaussian_process.centres import choose_centres
from imprint.gaussian_process.cholesky import Factor, block_rows, zeros_like
from imprint.gaussian_process.gaussian import (
    BLOCK_QUERIES,
    SLICE_ROWS,
    cast,
    centre_of,
    is_precise_in_float32,
    kernel,
    kernel_rows,
    kernel_sums,
    lift_proxies,
    lift_queries,
    narrow_if_precise,
    narrow_types,
    noisy_kernels,
    streamed_sums,
)
from imprint.gaussian_process.placed import PlacedRows
from imprint.kernels.cpu import blocks, on_all_cores, one_blas_thread
from imprint.kernels.rows import squared_norms

# rows of the factor per row of a removed class; with fewer, the system is solved again
MIN_ROWS_PER_REMOVED = 8
MAX_WITNESSES = 2048
"""Proxies that determine the doubt. Their factor takes 17 MB and a tenth of a second,
that of 7,500 proxies takes 225 MB and five seconds. On CLINC150 (7,500 proxies), the
p-values of `known` separate unknown texts as well: 91.1 % are below 0.05 instead of
91.0 %, and the area under the ROC curve is 0.982 instead of 0.983.
"""


class Process(ABC):
    """A solved system over all proxies (`Posterior`) or over some of them (`Nystroem`),
    which answers queries.

    Its arrays are NumPy's, or tensors on one device; queries of either kind are
    answered in their kind. Results are in the order of the classes and, within a class,
    in the order in which its proxies were given.
    """

    centre: Any  # (d,)
    by_class: Any  # (classes, rows) coefficients
    lifted: Any  # (rows, d + 2) the rows as lifted proxies, float64

    @cached_property
    def order(self) -> Array:
        """The rows that count, in the order of results.  # (proxies,)"""
        return np.arange(len(self.lifted))

    @abstractmethod
    def _explained(self, k: Any) -> Any:
        """The share of the variance at queries that the proxies explain, from kernels
        (overwritten).  # (q,)
        """

    @property
    def coefficients(self) -> Array:
        """A.  # (proxies, classes) float64"""
        return np.asarray(to_numpy(self.by_class)[:, self.order].T, dtype=np.float64)

    def scores(self, Q: Any) -> Any:
        """The expected value of every class at every query, 1 for certain.  # (q,
        classes) in the type of Q
        """
        if is_torch(self.by_class) and not is_torch(Q):
            return to_numpy(self.scores(like(Q, self.by_class)))
        centre, right, by_class = self._operands(Q)
        return cast_like(kernel_sums(Q, centre, right, by_class), Q)

    def _operands(self, Q: Any) -> tuple[Any, Any, Any]:
        """Centre, lifted proxies and coefficients in the kind and precision that suits
        queries; copied once.
        """
        key = dtype_name(Q), Q.device if is_torch(Q) else None
        if key not in self._copies:
            right = self.lifted
            by_class = self.by_class
            if dtype_name(Q) == "float32":
                right, by_class = narrow_if_precise(right, by_class)
            self._copies[key] = tuple(
                like(part, Q) for part in (self.centre, right, by_class)
            )
        return self._copies[key]

    @cached_property
    def _copies(self) -> dict[Any, Any]:
        return {}

    def doubt(self, Q: Any) -> Any:
        """The posterior standard deviation: 0 at a certain query, 1 far from all
        proxies.  # (q,) in the type of Q
        """
        if is_torch(Q) != is_torch(self.by_class):
            # computed where the proxies lie, answered where the queries lie
            if is_torch(Q):
                return like(self.doubt(to_numpy(Q)), Q)
            return to_numpy(self.doubt(like(Q, self.by_class)))
        parts = []
        with one_blas_thread():
            for rows in blocks(max(1, len(Q)), block_rows(self.lifted)):
                k = kernel_rows(lift_queries(Q[rows], self.centre), self.lifted)
                parts.append(self._doubt_from(k))
        return cast_like(concatenate(parts), Q)

    def _doubt_from(self, k: Any) -> Any:
        """The doubt from kernels (overwritten).  # (q,) float64"""
        return (1 - self._explained(k)).clip(0) ** 0.5

    def scores_and_doubt(self, Q: Any) -> tuple[Any, Any]:
        """`scores` and `doubt` of the same queries."""
        return self.scores(Q), self.doubt(Q)

    @property
    def is_graph_in_float32(self) -> bool:
        """Whether an exported graph computes kernels in float32."""
        return False

    def contributions(self, Q: Array, classes: Array) -> Array:
        """The contribution of each proxy to the score of one class per query.  # (q,
        proxies) float64
        """
        left = lift_queries(like(Q, self.centre), self.centre)
        k = to_numpy(kernel_rows(left, self.lifted))[:, self.order]
        coefficients = to_numpy(self.by_class[like(classes, self.by_class)])
        return np.asarray(k * coefficients[:, self.order])


@dataclass(frozen=True, eq=False)
class Posterior(Process):
    """A system over all proxies, solved by `solve`.

    The rows of the factor stay in the order in which they were added, also those of
    removed classes (their coefficients are zero).
    """

    rows: Any  # (rows, d), an array, a tensor, or `PlacedRows` from a file
    labels: Array  # (rows,) class of each, -1 for removed ones
    noise: Any  # (rows,)
    rate: float
    centre: Any  # (d,)
    # of K + N over all rows; None in a system from a file, see `factor`
    known_factor: Factor | None
    by_class: Any  # (classes, rows) A', zero for removed rows
    removed_rows: Array  # rows of removed classes
    removed_columns: Any  # (removed, rows) their columns of (K + N)^-1
    # whether it was updated, so that it equals a fresh solution only up to rounding
    is_updated: bool = False
    known_witnesses: "Posterior | None" = None  # from a file
    # whether it is the `witnesses` of another system: then it has some more rows than
    # `MAX_WITNESSES` if shares of many classes are rounded up
    determines_doubt: bool = False

    def with_witnesses(self, witnesses: "Posterior") -> "Posterior":
        """The system with another one that determines the doubt."""
        return replace(self, known_witnesses=witnesses.as_witnesses())

    def as_witnesses(self) -> "Posterior":
        """The system as one that determines the doubt of another one."""
        return replace(self, determines_doubt=True)

    @cached_property
    def weights(self) -> Any:
        """The rows as an array or tensor."""
        return self.rows.array if isinstance(self.rows, PlacedRows) else self.rows

    @cached_property
    def max_exponent(self) -> float:
        """The largest negative exponent of the kernel of a row and the centre."""
        if isinstance(self.rows, PlacedRows):
            return self.rows.max_exponent
        return -float(self.lifted[:, -1].min())

    @cached_property
    def factor(self) -> Factor:
        """The factor of K + N over all rows; computed if it is not known."""
        if self.known_factor is not None:
            return self.known_factor
        return _factor_of(self.weights, self.noise, self.centre, self.rate)

    @cached_property
    def witnesses(self) -> "Posterior":
        """The system that determines the doubt: of some proxies of every class, where
        there are too many.
        """
        if self.known_witnesses is not None:
            return self.known_witnesses
        rows = self.order
        if self.determines_doubt or len(rows) <= MAX_WITNESSES:
            return self
        chosen = witnesses_of(self.labels, rows)
        labels = np.zeros(len(chosen), dtype=np.intp)  # doubt needs no classes
        is_stored = isinstance(self.rows, PlacedRows)
        weights = self.rows.take(chosen) if is_stored else self.rows[chosen]
        system = solve(weights, labels, self.noise[chosen], self.rate)
        return system.as_witnesses()

    def scores(self, Q: Any) -> Any:
        rows = self.rows
        if not self._is_first(Q):
            return super().scores(Q)
        type_of_rows, type_of_coefficients = self._types(Q)

        def lifted(part: slice) -> Array:
            return rows.lifted(part, self.centre, self.rate, type_of_rows)

        by_class = cast(self.by_class, type_of_coefficients)
        sums = streamed_sums(Q, self.centre, lifted, len(rows), by_class, type_of_rows)
        return cast_like(sums, Q)

    def _is_first(self, Q: Any) -> bool:
        """Whether these are the first queries, and few: to keep the lifted rows of a
        file would take more memory than one prediction needs.
        """
        is_stored = isinstance(self.rows, PlacedRows)
        if not is_stored or is_torch(Q) or len(Q) > BLOCK_QUERIES or self._copies:
            return False
        is_first = not self._has_answered
        self._has_answered.append(True)
        return is_first

    @cached_property
    def _has_answered(self) -> list[bool]:
        """One entry for each call of `scores` that few queries made."""
        return []

    def _types(self, Q: Array) -> tuple[str, str]:
        """The types of lifted rows and coefficients that suit queries."""
        if dtype_name(Q) != "float32":
            return "float64", "float64"
        width = len(self.centre)
        return narrow_types(self.rate, self.max_exponent, self.by_class, width)

    def _operands(self, Q: Any) -> tuple[Any, Any, Any]:
        if not isinstance(self.rows, PlacedRows) or is_torch(Q):
            return super()._operands(Q)
        key = dtype_name(Q), None
        if key not in self._copies:
            type_of_rows, type_of_coefficients = self._types(Q)
            everything = slice(None)
            right = self.rows.lifted(everything, self.centre, self.rate, type_of_rows)
            by_class = cast(self.by_class, type_of_coefficients)
            self._copies[key] = (self.centre, right, by_class)
        return self._copies[key]

    def doubt(self, Q: Any) -> Any:
        if self.witnesses is not self:
            return self.witnesses.doubt(Q)
        if self._has_shared_kernels(Q):
            return self.scores_and_doubt(Q)[1]
        return super().doubt(Q)

    def scores_and_doubt(self, Q: Any) -> tuple[Any, Any]:
        if self.witnesses is not self or not self._has_shared_kernels(Q):
            return super().scores_and_doubt(Q)
        centre, right, by_class = self._operands(Q)

        def answer(rows: slice) -> tuple[Array, Array]:
            left = lift_queries(Q[rows], centre, dtype_name(right))
            k = cast(kernel(left, right), "float64")
            S = k @ by_class.T
            return S, self._doubt_from(k)

        parts = on_all_cores(answer, blocks(max(1, len(Q)), SLICE_ROWS))
        S, doubt = map(concatenate, zip(*parts, strict=True))
        return cast_like(S, Q), cast_like(doubt, Q)

    def _has_shared_kernels(self, Q: Any) -> bool:
        """Whether scores and doubt follow from the same kernels: of arrays in float32,
        where that is precise enough for both.
        """
        if is_torch(Q) or is_torch(self.by_class) or dtype_name(Q) != "float32":
            return False
        _, right, by_class = self._operands(Q)
        is_narrow = dtype_name(right) == "float32" != dtype_name(by_class)
        return is_narrow and self._is_doubt_precise

    @property
    def is_graph_in_float32(self) -> bool:
        weights = to_numpy(self.weights)
        return self._has_shared_kernels(weights[:0])

    @cached_property
    def _is_doubt_precise(self) -> bool:
        """Whether float32 is precise enough for the kernels of the doubt.

        The explained variance k'(K + N)^-1 k changes by twice the product of the change
        of k and a = (K + N)^-1 k, and |a| <= 1 / sqrt(smallest noise).
        """
        longest = np.full((1, 1), 2 / np.sqrt(float(self.noise.min())))
        is_precise = is_precise_in_float32(self.max_exponent, longest)
        if is_precise:
            # queries in float32 take the copy in float32, which has half the size; what
            # needs these rows in float64 lifts them again
            self.__dict__.pop("lifted", None)
        return is_precise

    @cached_property
    def order(self) -> Array:
        live = np.flatnonzero(self.labels >= 0)
        return np.asarray(live[np.argsort(self.labels[live], kind="stable")])

    @cached_property
    def lifted(self) -> Any:
        """The rows as lifted proxies, float64."""
        if isinstance(self.rows, PlacedRows):
            everything = slice(None)
            return self.rows.lifted(everything, self.centre, self.rate, "float64")
        return lift_proxies(self.weights, self.centre, self.rate)

    def _explained(self, k: Any) -> Any:
        if not len(self.removed_rows):
            return squared_norms(self.factor.forward(k))
        k[:, self.removed_rows] = 0
        B = k @ self.removed_columns.T
        solved = namespace(k).linalg.solve(self._removed_block, B.T)
        by_removed = (solved.T * B).sum(axis=1)
        return squared_norms(self.factor.forward(k)) - by_removed

    @property
    def _removed_block(self) -> Any:
        """The block of (K + N)^-1 over the removed rows.  # (removed, removed)"""
        return self.removed_columns[:, self.removed_rows]

    def without_removed(self, B: Any) -> Any:
        """Solutions over the rows that are not removed, from solutions B over all rows
        of the factor.
        """
        if not len(self.removed_rows):
            return B
        at_removed = B[:, self.removed_rows]
        solved = namespace(B).linalg.solve(self._removed_block, at_removed.T)
        # a removed row has the value zero: the part that it contributed is subtracted
        live = B - solved.T @ self.removed_columns
        live[:, self.removed_rows] = 0
        return live


def solve(
    weights: Any,
    labels: Array,
    noise: Any,
    rate: float,
    targets: Array | None = None,
) -> Posterior:
    """The system of proxies `weights` (p, d), their classes 0, 1, ... and their noise
    on the diagonal.

    With `targets` (p, labels), a proxy observes these values in the place of 1 for its
    class and 0 for the others. Raises `numpy.linalg.LinAlgError` where the noise is too
    small for proxies that lie too close together.
    """
    centre = centre_of(weights)
    noise = cast(like(noise, weights), "float64")
    factor = _factor_of(weights, noise, centre, rate)
    by_class = factor.solve(targets_of(labels, targets, weights))
    return _fresh(weights, labels, noise, rate, factor, by_class)


def witnesses_of(labels: Array, rows: Array) -> Array:
    """The rows that determine the doubt, of too many rows in the order of classes."""
    return np.asarray(rows[choose_centres(labels[rows], MAX_WITNESSES)])


def restore(
    rows: PlacedRows,
    labels: Array,
    noise: Array,
    rate: float,
    centre: Array,
    coefficients: Array,
    factor: Factor | None = None,
) -> Posterior:
    """The system that `solve` returned, from its coefficients (p, classes); the factor
    is computed if it is needed.
    """
    by_class = np.ascontiguousarray(coefficients.T)
    no_rows = np.empty(0, dtype=np.intp)
    no_columns = np.zeros((0, len(rows)))
    return Posterior(
        rows,
        labels,
        noise,
        rate,
        centre,
        factor,
        by_class,
        no_rows,
        no_columns,
    )


def _fresh(
    weights: Any,
    labels: Array,
    noise: Any,
    rate: float,
    factor: Factor,
    by_class: Any,
) -> Posterior:
    """A system without removed rows."""
    no_rows = np.empty(0, dtype=np.intp)
    no_columns = zeros_like((0, len(weights)), weights)
    centre = centre_of(weights)
    return Posterior(
        weights,
        labels,
        noise,
        rate,
        centre,
        factor,
        by_class,
        no_rows,
        no_columns,
    )


def _factor_of(
    weights: Any,
    noise: Any,
    centre: Any,
    rate: float,
) -> Factor:
    """The factor of K + N, computed in blocks of rows."""
    right = lift_proxies(weights, centre, rate)
    factor = Factor()
    for rows in blocks(len(weights), block_rows(weights)):
        left = lift_queries(weights[rows], centre)
        coupling = kernel_rows(left, right[: rows.start])
        corner = noisy_kernels(left, right[rows], noise[rows])
        factor = factor.extended(coupling, corner)
    return factor


def add_classes(
    system: Posterior,
    weights: Any,
    labels: Array,
    noise: Any,
) -> Posterior:
    """The system with new classes; `labels` are their positions among all classes
    afterwards.
    """
    new = np.unique(labels)
    n_classes = len(system.by_class) + len(new)
    # of earlier classes; the last for removed rows
    positions = np.append(np.setdiff1d(np.arange(n_classes), new), -1)
    noise = cast(like(noise, weights), "float64")
    left = lift_queries(weights, system.centre)
    coupling = kernel_rows(left, system.lifted)  # (new, rows)
    corner = noisy_kernels(
        left, lift_proxies(weights, system.centre, system.rate), noise
    )
    larger = replace(
        system,
        rows=concatenate([system.weights, weights]),
        labels=np.concatenate([positions[system.labels], labels]),
        noise=concatenate([system.noise, noise]),
        known_factor=system.factor.extended(coupling, corner),
        is_updated=True,
    )
    # fewer right-hand sides than new rows
    if not len(system.removed_rows) and n_classes <= len(labels):
        by_class = larger.factor.solve(one_hot(larger.labels, n_classes, weights))
        return replace(
            larger,
            by_class=by_class,
            removed_columns=zeros_like((0, len(larger.labels)), weights),
        )
    with one_blas_thread():
        across = system.factor.solve(coupling + 0)
        removed_columns = _bordered(system.removed_columns, 0, coupling, across, corner)
        before = zeros_like((n_classes, len(system.labels)), weights)
        before[like(positions[:-1], before)] = system.by_class
        targets = one_hot(labels, n_classes, weights)
        by_class = _bordered(
            before,
            targets,
            coupling,
            system.without_removed(across),
            corner,
        )
    return replace(larger, by_class=by_class, removed_columns=removed_columns)


def _bordered(
    solutions: Any,
    targets: Any,
    coupling: Any,
    across: Any,
    corner: Any,
) -> Any:
    """Solutions of a system, continued to the system with new rows that have these
    targets.

    `coupling` (new, rows) and `corner` (new, new) are the new rows of the system;
    `across` are the solutions for `coupling` as right-hand sides.
    """
    complement = corner - coupling @ across.T  # the Schur complement of the new rows
    xp = namespace(across)
    # what the solutions so far leave of the targets of the new rows
    residual = targets - solutions @ coupling.T
    last = xp.linalg.solve(complement, residual.T).T
    return xp.concatenate([solutions - last @ across, last], axis=1)


def remove_classes(system: Posterior, classes: Array) -> Posterior:
    """The system without some of its classes; the positions of the others close up."""
    n_classes = len(system.by_class)
    remaining = np.setdiff1d(np.arange(n_classes), classes)
    positions = np.full(n_classes + 1, -1)  # the last for rows removed before
    positions[remaining] = np.arange(len(remaining))
    leaving = np.flatnonzero(np.isin(system.labels, classes))
    removed_rows = np.concatenate([system.removed_rows, leaving])
    smaller = replace(
        system,
        labels=positions[system.labels],
        removed_rows=removed_rows,
        is_updated=True,
    )
    if len(removed_rows) * MIN_ROWS_PER_REMOVED > len(system.labels):
        rows = smaller.order
        return solve(
            system.weights[rows],
            smaller.labels[rows],
            system.noise[rows],
            system.rate,
        )
    unit = zeros_like((len(leaving), len(system.labels)), system.by_class)
    unit[np.arange(len(leaving)), leaving] = 1
    with one_blas_thread():
        columns = system.factor.solve(unit)
        removed_columns = concatenate([system.removed_columns, columns])
        columns = system.without_removed(columns)
        by_class = system.by_class[like(remaining, columns)]
        block = columns[:, leaving]
        solved = namespace(columns).linalg.solve(block, by_class[:, leaving].T)
        by_class -= solved.T @ columns
        by_class[:, leaving] = 0
    return replace(smaller, by_class=by_class, removed_columns=removed_columns)


def targets_of(
    labels: Array,
    targets: Array | None,
    x: Any,
) -> Any:
    """Targets of proxies, by default one-hot, NumPy or torch like x.  # (classes,
    rows)
    """
    if targets is None:
        return one_hot(labels, int(labels.max()) + 1, x)
    return like(np.array(targets.T, dtype=np.float64, order="C"), x)


def one_hot(
    labels: Array,
    n_classes: int,
    x: Any,
) -> Any:
    """Y' in float64, NumPy or torch like x; zero for rows of removed classes.  #
    (classes, rows)
    """
    Y = zeros_like((n_classes, len(labels)), x)
    live = np.flatnonzero(labels >= 0)
    Y[like(labels[live], x), like(live, x)] = 1
    return Y
