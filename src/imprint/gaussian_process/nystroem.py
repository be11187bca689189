"""A Gaussian process over more proxies than one factor can hold, solved through some of
them, the centres z.

Scores are sums over m centres instead of all proxies w, with coefficients that fit all
proxies (the subset of regressors): (K_zz + K_zw N^-1 K_wz) A = K_zw N^-1 Y. Conjugate
gradients solve it, preconditioned by the same system over the centres alone (FALKON:
Rudi, Carratino and Rosasco 2017): P m d + steps P m C multiplications for C classes,
instead of P m^2. Arrays are NumPy's or torch's.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from imprint.core.arrays import AnyArray, Array, is_torch, like, namespace
from imprint.gaussian_process.centres import choose_centres
from imprint.gaussian_process.cholesky import BLOCK_ROWS, Factor, zeros_like
from imprint.gaussian_process.gaussian import (
    cast,
    centre_of,
    kernel_rows,
    lift_proxies,
    lift_queries,
    noisy_kernels,
)
from imprint.gaussian_process.posterior import Process, targets_of
from imprint.kernels.cpu import blocks, on_all_cores, sum_on_all_cores
from imprint.kernels.rows import squared_norms

KERNEL_ROWS = 2048  # proxies whose kernels are computed together
# on the diagonal of K_zz: centres may coincide, and kernels are multiplied in float32
JITTER = 1e-5
MAX_STEPS = 12  # of conjugate gradients
# of the residual, relative to the right-hand side, in the preconditioned norm
TOLERANCE = 1e-4
# in memory; if there are more, they are computed again in every step
MAX_STORED_KERNELS = 2**28


@dataclass(frozen=True, eq=False)
class Nystroem(Process):
    """A system solved by `solve_by_centres`. Coefficients and contributions are those
    of the centres.
    """

    rows: Array  # (m,) which proxies are centres
    centre: AnyArray  # (d,)
    lifted: AnyArray  # (m, d + 2)
    by_class: AnyArray  # (classes, m) coefficients
    prior: Factor  # of K_zz, L L'
    data: Factor  # of I + L^-1 K_zw N^-1 K_wz L^-T, estimated from the centres

    def _explained(self, k: AnyArray) -> Any:
        k = self.prior.forward(k)
        return squared_norms(k) - squared_norms(self.data.forward(k + 0))


def solve_by_centres(
    weights: AnyArray,
    labels: Array,
    noise: AnyArray,
    rate: float,
    count: int,
    targets: Array | None = None,
) -> Nystroem:
    """The system of proxies `weights` (p, d), their classes 0, 1, ... in ascending
    order, and their noise.

    `targets` are as for `imprint.gaussian_process.posterior.solve`.

    The centres are chosen at even steps through the proxies of every class, in
    proportion to their number, so they do not depend on the order in which classes were
    added.
    """
    centre = centre_of(weights)
    rows = choose_centres(labels, count)
    chosen = weights[like(rows, weights)]
    lifted = lift_proxies(chosen, centre, rate)
    noise = cast(like(noise, weights), "float64")
    prior = Factor.of(noisy_kernels(lift_queries(chosen, centre), lifted, JITTER))
    # each centre stands for as many proxies, so the sum over all is estimated
    precision = len(labels) / len(rows) / noise[like(rows, noise)]
    data = Factor.of(_estimated_gram(prior.lower(), precision))
    kernels = _Kernels(weights, noise, centre, lifted)

    def product(B: AnyArray) -> Any:
        """The preconditioned system times the rows of B."""
        # solving overwrites its argument: B + 0 is a copy
        coefficients = prior.backward(data.backward(B + 0))
        fitted = prior.forward(kernels.normal_product(coefficients))
        return data.forward(fitted + data.backward(B + 0))

    observed = kernels.transposed(targets_of(labels, targets, weights))
    right_side = data.forward(prior.forward(observed))
    solution = conjugate_gradients(product, right_side)
    by_class = prior.backward(data.backward(solution))
    return Nystroem(rows, centre, lifted, by_class, prior, data)


def conjugate_gradients(product: Callable[[AnyArray], Any], B: AnyArray) -> Any:
    """Rows x with H x = b for the rows b of B, where `product` gives H x for rows x; H
    is positive definite.
    """
    where = namespace(B).where
    X = B * 0
    residual: Any = B + 0
    direction = residual + 0
    squares = (residual * residual).sum(axis=1)
    limit = TOLERANCE**2 * squares
    for _ in range(MAX_STEPS):
        if bool((squares <= limit).all()):
            break
        image = product(direction)
        curvature = (direction * image).sum(axis=1)
        # a step of zero where a row is solved
        step = (squares / where(curvature > 0, curvature, np.inf))[:, None]
        X += step * direction
        residual -= step * image
        before = squares
        squares = (residual * residual).sum(axis=1)
        ratio = squares / where(before > 0, before, np.inf)
        direction = residual + ratio[:, None] * direction
    return X


def _estimated_gram(L: AnyArray, weight: AnyArray) -> Any:
    """I + L' diag(weight) L, the preconditioner estimated from the centres; its lower
    triangle.  # (m, m)
    """
    M = zeros_like(L.shape, L)

    def fill(rows: slice) -> None:
        start = rows.start
        stop = rows.stop
        part = L[start:, rows] * weight[start:, None]  # what is above is zero
        M[rows, :stop] = part.T @ L[start:, :stop]

    on_all_cores(fill, blocks(len(L), BLOCK_ROWS), parallel=not is_torch(L))
    index = np.arange(len(L))
    M[index, index] += 1
    return M


class _Kernels:
    """Kernels of all proxies with the centres, in float32, stored where they fit into
    memory.
    """

    def __init__(
        self,
        weights: AnyArray,
        noise: AnyArray,
        centre: AnyArray,
        lifted: AnyArray,
    ) -> None:
        self.weights = weights
        self.noise = cast(noise, "float32")
        self.centre = centre
        self.lifted = cast(lifted, "float32")
        self.blocks = blocks(len(weights), KERNEL_ROWS)
        fits = len(weights) * len(lifted) <= MAX_STORED_KERNELS
        self.stored = [self._block(rows) for rows in self.blocks] if fits else None

    def _block(self, rows: slice) -> Any:
        """Kernels of some proxies with the centres.  # (rows, m)"""
        left = lift_queries(self.weights[rows], self.centre, "float32")
        return kernel_rows(left, self.lifted)

    def _sum(self, part: Callable[[slice, Any], Any]) -> Any:
        """The sum over blocks of `part(rows, kernels)`, in their order.  # (classes, m)
        float64
        """

        def block(i: int) -> Any:
            rows = self.blocks[i]
            k = self._block(rows) if self.stored is None else self.stored[i]
            return cast(part(rows, k), "float64")

        # kernels that are computed again use all cores themselves
        parallel = self.stored is not None and not is_torch(self.weights)
        return sum_on_all_cores(block, range(len(self.blocks)), parallel=parallel)

    def normal_product(self, A: AnyArray) -> Any:
        """K_zw N^-1 K_wz times the rows of A.  # (classes, m)"""
        narrow = cast(A, "float32")
        return self._sum(lambda rows, k: (narrow @ k.T / self.noise[rows]) @ k)

    def transposed(self, Y: AnyArray) -> Any:
        """K_zw N^-1 times the rows of Y.  # (classes, m)"""

        def part(rows: slice, k: AnyArray) -> Any:
            return (cast(Y[:, rows], "float32") / self.noise[rows]) @ k

        return self._sum(part)
