"""The engine of compiled loops for `kernels.lloyd`."""

import numpy as np

from imprint.core.types import Array
from imprint.kernels.compiled import lloyd
from imprint.kernels.compiled.products import products_with, self_products


class CompiledRows:
    """Rows clustered with bounds on their distances."""

    def __init__(self, X: Array, weight: Array) -> None:
        self.X, self.weight = X, weight
        self.norms = self_products(X)

    def products(self, C: Array) -> Array:
        out = np.empty((len(C), len(self.X)))
        products_with(self.X, C.astype(np.float64), out)
        return out

    def clustering(self, products: Array, centres: Array) -> "CompiledClustering":
        return CompiledClustering(self, products, centres)

    def distances(self, centres: Array, labels: Array) -> Array:
        return lloyd.distances_to_own(self.X, centres, labels.astype(np.int32))


class CompiledClustering:
    """Labels, bounds and sums that follow the centres."""

    def __init__(self, rows: CompiledRows, products: Array, centres: Array) -> None:
        n, d = rows.X.shape
        k = len(centres)
        self.rows = rows
        self.centres = centres.astype(np.float64)
        halves = self_products(self.centres) / 2
        peak = max(rows.norms.max(), 2 * halves.max())
        self.rounding = 4 * (d + 8) * 2.0**-53 * peak
        self.slack = 1e-14 * np.sqrt(peak)
        self.labels, self.upper, self.lower = lloyd.first_assignment(products, rows.norms, halves, self.rounding)
        self.gate = np.full(n, -np.inf)
        self.drift = np.zeros(k)
        self.moved = np.empty((2, n), dtype=np.int64)
        self.sums, self.total = np.zeros((k, d)), np.zeros(k)
        lloyd.add_rows(rows.X, rows.weight, self.labels, self.sums, self.total)
        self.members = np.bincount(self.labels[rows.weight > 0], minlength=k)

    def assign(self, centres: Array) -> int:
        rows = self.rows
        C = centres.astype(np.float64)
        shift = np.sqrt(lloyd.distances_to_own(C, self.centres, np.arange(len(C), dtype=np.int32)))
        shift = np.where(shift > 0, shift * (1 + 1e-12) + self.slack, 0.0)
        self.drift += shift
        self.centres = C
        halves = self_products(C) / 2
        count = lloyd.assign(
            rows.X, rows.norms, C, halves, self.drift, shift.max(), self.rounding,
            self.labels, self.upper, self.lower, self.gate, self.moved,
        )  # fmt: skip
        lloyd.move_rows(rows.X, rows.weight, self.labels, self.moved, count, self.sums, self.total)
        heavy = self.moved[:, :count][:, rows.weight[self.moved[0, :count]] > 0]
        k = len(C)
        self.members += np.bincount(self.labels[heavy[0]], minlength=k) - np.bincount(heavy[1], minlength=k)
        return count
