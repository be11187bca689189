"""The engine of compiled loops for `kernels.lloyd`."""

import numpy as np

from imprint.core.types import Array
from imprint.kernels.compiled import lloyd
from imprint.kernels.compiled.products import distances_to_own, nearer, squared_lengths
from imprint.kernels.compiled.sketch import Sketch

WIDTH = 64


class CompiledRows:
    """Rows clustered with bounds on their distances."""

    def __init__(self, X: Array, weight: Array) -> None:
        self.X, self.weight = X, weight
        self.norms = squared_lengths(X)
        self.sketch = Sketch(X, self.norms, WIDTH)
        self.spread = float(self.sketch.squared.mean())

    def nearer(self, candidates: Array, closest: Array) -> Array:
        sketch, C = self.sketch, self.X[candidates].astype(np.float64)
        short, squared, lengths, tails = sketch.centres(C)
        out = np.empty((len(C), len(self.X)))
        nearer(
            self.X, C, sketch.rows @ short.T, sketch.squared, sketch.blur, sketch.tails,
            squared, lengths, tails, closest, out,
        )  # fmt: skip
        return out

    def clustering(self, centres: Array) -> "CompiledClustering":
        return CompiledClustering(self, centres)

    def distances(self, centres: Array, labels: Array) -> Array:
        return distances_to_own(self.X, centres, labels.astype(np.int32))


class CompiledClustering:
    """Labels, bounds and sums that follow the centres."""

    def __init__(self, rows: CompiledRows, centres: Array) -> None:
        n, d = rows.X.shape
        k = len(centres)
        self.rows = rows
        self.centres = centres.astype(np.float64)
        peak = max(rows.norms.max(), squared_lengths(self.centres).max())
        self.rounding = 4 * (d + 8) * 2.0**-53 * peak
        self.slack = 2 * np.sqrt(self.rounding)
        self.labels = np.zeros(n, dtype=np.int32)
        self.upper, self.gate = np.full(n, np.inf), np.zeros(n)
        self.drift = np.zeros(k)
        self.doubtful, self.moved = np.empty(n, dtype=np.int32), np.empty((2, n), dtype=np.int32)
        self.sums, self.total = np.zeros((k, d)), np.zeros(k)
        self._settle(self.centres, 0.0)
        lloyd.add_rows(rows.X, rows.weight, self.labels, self.sums, self.total)
        self.members = np.bincount(self.labels[rows.weight > 0], minlength=k)

    def assign(self, centres: Array) -> int:
        rows, k = self.rows, len(centres)
        C = centres.astype(np.float64)
        shift = np.sqrt(distances_to_own(C, self.centres, np.arange(k, dtype=np.int32)))
        shift = np.where(shift > 0, shift * (1 + 1e-12) + 1e-6 * self.slack, 0.0)
        self.drift += shift
        self.centres = C
        moved = self.moved[:, : self._settle(C, shift.max())]
        lloyd.move_rows(rows.X, rows.weight, self.labels, moved, self.sums, self.total)
        heavy = moved[:, rows.weight[moved[0]] > 0]
        self.members += np.bincount(self.labels[heavy[0]], minlength=k) - np.bincount(heavy[1], minlength=k)
        return len(moved[0])

    def _settle(self, C: Array, step: float) -> int:
        """Labels and bounds for these centres; how many rows moved."""
        rows, sketch = self.rows, self.rows.sketch
        count = lloyd.in_doubt(self.labels, self.upper, self.gate, self.drift, step, self.slack, self.doubtful)
        doubtful = self.doubtful[:count]
        short, squared, lengths, tails = sketch.centres(C)
        products = sketch.rows[doubtful] @ short.T
        return lloyd.assign(
            rows.X, rows.norms, C, squared_lengths(C) / 2, doubtful, products, sketch.squared, sketch.blur,
            sketch.tails, squared, lengths, tails, self.drift, self.rounding,
            self.labels, self.upper, self.gate, self.moved,
        )  # fmt: skip
