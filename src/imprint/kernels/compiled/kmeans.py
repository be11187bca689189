"""The `ClusterRows` of `kernels.lloyd` in compiled loops: short images of rows bound the distances of whole rows."""

import numpy as np

from imprint.core.types import Array
from imprint.kernels.compiled import lloyd
from imprint.kernels.compiled.products import SketchArrays, distances_to_own, nearer, squared_lengths

WIDTH = 32  # of images
EPS = 2.0**-24  # half a unit in the last place of float32
SAMPLE = 512


class CompiledRows:
    """Rows clustered with bounds on their distances."""

    def __init__(self, X: Array, weight: Array) -> None:
        self.X, self.weight = X, weight
        self.norms = squared_lengths(X)
        self.sketch = sketch(X, self.norms, WIDTH)
        self.spread = float(self.sketch.about.mean())

    def nearer(self, candidates: Array, closest: Array) -> Array:
        out = np.empty((len(candidates), len(self.X)))
        nearer(self.X, candidates, self.sketch, closest, out)
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
        rounding = float(4 * (d + 8) * 2.0**-53 * peak)
        self.labels = np.full(n, -1, dtype=np.int32)
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
        self.sums, self.total, self.members = np.zeros((k, d)), np.zeros(k), np.zeros(k, dtype=np.int64)
        self.assign(centres)

    def assign(self, centres: Array) -> tuple[int, float]:
        rows, old, self.centres = self.rows, self.centres, centres.astype(np.float64)
        clusters = lloyd.ClusterSums(self.sums, self.total, self.members)
        data = lloyd.RowArrays(rows.X, rows.weight, rows.norms)
        return lloyd.advance(data, old, self.centres, rows.sketch, self.bounds, clusters)


def sketch(X: Array, norms: Array, width: int) -> SketchArrays:
    """Rows about their mean, projected on a few orthonormal directions that hold most of their variance.

    For a row x and a centre c (about the mean, P the projection) `x.c = Px.Pc + (x - Px).(c - Pc)`, and the last term
    is at most the product of the two tails. The tail of a mean of many rows is short, so the projections nearly always
    determine the nearest centre.
    """
    d = X.shape[1]
    mean = near_mean(X)
    directions = np.eye(d) if width >= d else _main_directions(X, mean, width)
    squares = distances_to_own(X, mean[None], np.zeros(len(X), dtype=np.int32))
    images = X.astype(np.float32, copy=False) @ directions.astype(np.float32)
    images -= (mean @ directions).astype(np.float32)
    lengths = np.sqrt(np.einsum("ij,ij->i", images, images, dtype=np.float64))
    rounding = (d + 4) * EPS * np.sqrt(directions.shape[1] * norms) * 2
    blurs = rounding + (directions.shape[1] + 8) * EPS * lengths
    tails = np.sqrt(np.maximum(squares * (1 + 1e-12) - np.maximum(lengths - rounding, 0) ** 2, 0))
    return SketchArrays(mean, directions, images, squares, blurs, tails)


def near_mean(X: Array) -> Array:
    """The mean of the rows up to the rounding of their type.  # (d,) float64"""
    return np.asarray((np.ones(len(X), dtype=X.dtype) @ X / len(X)).astype(np.float64))


def _main_directions(X: Array, mean: Array, width: int) -> Array:
    """Orthonormal columns near the leading principal directions, by subspace iteration on some rows."""
    sample = (X[:: max(1, len(X) // SAMPLE)][:SAMPLE] - mean).astype(np.float32)
    Q = np.random.default_rng(0).standard_normal((X.shape[1], width), dtype=np.float32)
    for _ in range(2):
        Q, _ = np.linalg.qr(sample.T @ (sample @ Q))
    return np.linalg.qr(Q.astype(np.float64))[0]
