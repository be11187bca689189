"""The `Rows` of `kernels.lloyd` in compiled loops."""

import numpy as np

from imprint.core.types import Array
from imprint.kernels.compiled import lloyd
from imprint.kernels.compiled.products import distances_to_own, nearer, squared_lengths
from imprint.kernels.compiled.sketch import Sketch

WIDTH = 32
EXTEND_AT = (3, 12)
"""Assignments at which the sketch is extended by the centres of the time."""
EXTEND_FROM = 50_000
"""Rows times centres from which that repays its cost."""


class CompiledRows:
    """Rows clustered with bounds on their distances."""

    def __init__(self, X: Array, weight: Array) -> None:
        self.X, self.weight = X, weight
        self.norms = squared_lengths(X)
        self.sketch = Sketch(X, self.norms, WIDTH)
        self.spread = float(self.sketch.squared.mean())

    def nearer(self, candidates: Array, closest: Array) -> Array:
        sketch, out = self.sketch, np.empty((len(candidates), len(self.X)))
        nearer(
            self.X, candidates, sketch.mean, sketch.directions, sketch.rows, sketch.squared, sketch.blur,
            sketch.tails, closest, out,
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
        self.sketch = rows.sketch
        self.assignments = 0
        self.centres = centres.astype(np.float64)
        peak = max(rows.norms.max(), squared_lengths(self.centres).max())
        self.rounding = 4 * (d + 8) * 2.0**-53 * peak
        self.slack = 2 * np.sqrt(self.rounding)
        self.labels = np.zeros(n, dtype=np.int32)
        self.upper, self.gate = np.full(n, np.inf), np.zeros(n)
        self.drift = np.zeros(k)
        self.doubtful, self.moved = np.empty(n, dtype=np.int32), np.empty((2, n), dtype=np.int32)
        self.sums, self.total, self.members = np.zeros((k, d)), np.zeros(k), np.zeros(k, dtype=np.int64)
        self._advance(self.centres, np.zeros((k, d)), np.zeros(k), np.zeros(k, dtype=np.int64))
        lloyd.add_rows(rows.X, rows.weight, self.labels, self.sums, self.total, self.members)

    def assign(self, centres: Array) -> tuple[int, float]:
        rows, C = self.rows, centres.astype(np.float64)
        self.assignments += 1
        if self.assignments in EXTEND_AT and self._is_worth_extending(len(C)):
            self.sketch = rows.sketch.extended(rows.X, rows.norms, C)
        result = self._advance(C, self.sums, self.total, self.members)
        self.centres = C
        return result

    def _is_worth_extending(self, k: int) -> bool:
        n, d = self.rows.X.shape
        return bool(n * k >= EXTEND_FROM and self.rows.sketch.width + k < d)

    def _advance(self, C: Array, sums: Array, total: Array, members: Array) -> tuple[int, float]:
        rows, sketch = self.rows, self.sketch
        return lloyd.advance(
            rows.X, rows.weight, rows.norms, self.centres, C, sketch.mean, sketch.directions, sketch.rows,
            sketch.squared, sketch.blur, sketch.tails, self.drift, self.rounding, self.slack, self.labels,
            self.upper, self.gate, self.doubtful, self.moved, sums, total, members,
        )  # fmt: skip
