"""The `ClusterRows` of `kernels.lloyd` in compiled loops: short images of rows bound the distances of whole rows."""

from copy import copy

import numpy as np

from imprint.core.types import Array
from imprint.kernels.compiled import lloyd
from imprint.kernels.compiled.products import SketchArrays, distances_to_own, nearer, squared_lengths

WIDTH = 32  # of images
EPS = 2.0**-24  # half a unit in the last place of float32
SAMPLE = 512
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
        out = np.empty((len(candidates), len(self.X)))
        nearer(self.X, candidates, self.sketch.arrays, closest, out)
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
        rounding = float(4 * (d + 8) * 2.0**-53 * peak)
        self.labels = np.zeros(n, dtype=np.int32)
        self.bounds = lloyd.RowBounds(
            self.labels,
            upper=np.full(n, np.inf),
            gate=np.zeros(n),
            drift=np.zeros(k),
            uncertain=np.empty(n, dtype=np.int32),
            moved=np.empty((2, n), dtype=np.int32),
            rounding=rounding,
            slack=float(2 * np.sqrt(rounding)),
        )
        self._advance(self.centres, _no_clusters(k, d))
        self.clusters = _no_clusters(k, d)
        self.sums, self.total, self.members = self.clusters
        lloyd.add_rows(rows.X, rows.weight, self.labels, self.clusters)

    def assign(self, centres: Array) -> tuple[int, float]:
        rows, C = self.rows, centres.astype(np.float64)
        self.assignments += 1
        if self.assignments in EXTEND_AT and self._is_worth_extending(len(C)):
            self.sketch = rows.sketch.extended(rows.X, rows.norms, C)
        result = self._advance(C, self.clusters)
        self.centres = C
        return result

    def _is_worth_extending(self, k: int) -> bool:
        n, d = self.rows.X.shape
        return bool(n * k >= EXTEND_FROM and self.rows.sketch.width + k < d)

    def _advance(self, C: Array, clusters: lloyd.ClusterSums) -> tuple[int, float]:
        data = lloyd.RowArrays(self.rows.X, self.rows.weight, self.rows.norms)
        return lloyd.advance(data, self.centres, C, self.sketch.arrays, self.bounds, clusters)


def _no_clusters(k: int, d: int) -> lloyd.ClusterSums:
    return lloyd.ClusterSums(np.zeros((k, d)), np.zeros(k), np.zeros(k, dtype=np.int64))


class Sketch:
    """Rows about their mean, projected on a few orthonormal directions that hold most of their spread.

    For a row x and a centre c (about the mean, P the projection) `x.c = Px.Pc + (x - Px).(c - Pc)`, and the last term
    is at most the product of the two tails. The tail of a mean of many rows is short, so that the projections
    nearly always tell which centre is nearest.
    """

    def __init__(self, X: Array, norms: Array, width: int) -> None:
        self.mean = near_mean(X)
        whole = width >= X.shape[1]
        self.directions = np.eye(X.shape[1]) if whole else _main_directions(X, self.mean, width)
        self._project(X, norms)

    def extended(self, X: Array, norms: Array, C: Array) -> "Sketch":
        """The same rows with directions added on which these centres lie: they lose their tails."""
        tails = C - self.mean
        for _ in range(2):
            tails = tails - (tails @ self.directions) @ self.directions.T
            tails = np.linalg.qr(tails.T)[0].T
        sketch = copy(self)
        sketch.directions = np.hstack([self.directions, tails.T])
        sketch.rows = np.hstack([self.rows, self._images(X, tails.T)])
        sketch._bound(norms)
        return sketch

    @property
    def arrays(self) -> SketchArrays:
        """What compiled loops take."""
        return SketchArrays(self.mean, self.directions, self.rows, self.squared, self.blur, self.tails)

    def _project(self, X: Array, norms: Array) -> None:
        origin = np.zeros(len(X), dtype=np.int32)
        self.squared = distances_to_own(X, self.mean[None], origin)  # (n,) to the mean
        self.rows = self._images(X, self.directions)  # (n, r)
        self._bound(norms)

    def _images(self, X: Array, directions: Array) -> Array:
        images: Array = X.astype(np.float32, copy=False) @ directions.astype(np.float32)
        images -= (self.mean @ directions).astype(np.float32)
        return images

    def _bound(self, norms: Array) -> None:
        """Bounds on the rounding of images and on the length of what they leave out."""
        d, self.width = self.directions.shape
        image = np.sqrt(np.einsum("ij,ij->i", self.rows, self.rows, dtype=np.float64))
        wrong = (d + 4) * EPS * np.sqrt(self.width * norms) * 2
        self.blur = wrong + (self.width + 8) * EPS * image
        self.tails = np.sqrt(np.maximum(self.squared * (1 + 1e-12) - np.maximum(image - wrong, 0) ** 2, 0))


def near_mean(X: Array) -> Array:
    """The mean of the rows, nearly.  # (d,) float64"""
    return np.asarray((np.ones(len(X), dtype=X.dtype) @ X / len(X)).astype(np.float64))


def _main_directions(X: Array, mean: Array, width: int) -> Array:
    """Orthonormal columns near the leading principal directions, by subspace iteration on some rows."""
    sample = (X[:: max(1, len(X) // SAMPLE)][:SAMPLE] - mean).astype(np.float32)
    Q = np.random.default_rng(0).standard_normal((X.shape[1], width), dtype=np.float32)
    for _ in range(2):
        Q, _ = np.linalg.qr(sample.T @ (sample @ Q))
    return np.linalg.qr(Q.astype(np.float64))[0]
