"""Short images of rows that bound the distances of the whole rows."""

from copy import copy

import numpy as np

from imprint.core.types import Array
from imprint.kernels.compiled.products import distances_to_own

EPS = 2.0**-24  # half a unit in the last place of float32
SAMPLE = 1024


class Sketch:
    """Rows about their mean, projected on a few orthonormal directions that hold most of their spread.

    For a row x and a centre c (about the mean, P the projection) `x.c = Px.Pc + (x - Px).(c - Pc)`, and the last term
    is at most the product of the two tails. The tail of a mean of many rows is short, so that the projections
    nearly always tell which centre is nearest.
    """

    def __init__(self, X: Array, norms: Array, width: int) -> None:
        self.mean = X.mean(axis=0, dtype=np.float64)
        whole = width >= X.shape[1]
        self.directions = np.eye(X.shape[1]) if whole else _main_directions(X, self.mean, width)
        self._project(X, norms)

    def of(self, X: Array, norms: Array) -> "Sketch":
        """Other rows about the same mean on the same directions."""
        sketch = copy(self)
        sketch._project(X, norms)
        return sketch

    def _project(self, X: Array, norms: Array) -> None:
        d, self.width = self.directions.shape
        origin = np.zeros(len(X), dtype=np.int32)
        self.squared = distances_to_own(X, self.mean[None], origin)  # (n,) to the mean
        self.rows = X.astype(np.float32, copy=False) @ self.directions.astype(np.float32)  # (n, r)
        self.rows -= (self.mean @ self.directions).astype(np.float32)
        image = np.sqrt(np.einsum("ij,ij->i", self.rows, self.rows, dtype=np.float64))
        wrong = (d + 4) * EPS * np.sqrt(self.width * norms) * 2
        self.blur = wrong + (self.width + 8) * EPS * image
        self.tails = np.sqrt(np.maximum(self.squared * (1 + 1e-12) - np.maximum(image - wrong, 0) ** 2, 0))

    def centres(self, C: Array) -> tuple[Array, Array, Array, Array]:
        """Projections (k, r), squared lengths, lengths and tails of centres in float64."""
        about = C - self.mean
        image = about @ self.directions
        squared = np.einsum("ij,ij->i", about, about)
        lengths = np.sqrt(squared)
        inside = np.einsum("ij,ij->i", image, image)
        tails = np.sqrt(np.maximum(squared * (1 + 1e-12) - inside, 0)) + 1e-7 * lengths
        return image.astype(np.float32), squared, lengths, tails


def _main_directions(X: Array, mean: Array, width: int) -> Array:
    """Orthonormal columns near the leading principal directions, by subspace iteration on some rows."""
    sample = (X[:: max(1, len(X) // SAMPLE)][:SAMPLE] - mean).astype(np.float32)
    Q = np.random.default_rng(0).standard_normal((X.shape[1], width), dtype=np.float32)
    for _ in range(2):
        Q, _ = np.linalg.qr(sample.T @ (sample @ Q))
    return np.linalg.qr(Q.astype(np.float64))[0]
