"""The engine of compiled loops for many clusterings of the same few rows."""

import numpy as np

from imprint.core.types import Array
from imprint.kernels.compiled import gram
from imprint.kernels.compiled.products import distances_to_own
from imprint.kernels.compiled.sketch import near_mean


class GramRows:
    """Rows clustered by their inner products with each other; `CompiledRows` would find the same, bit for bit."""

    def __init__(self, X: Array, weight: Array) -> None:
        self.X, self.weight, self.share = X, weight, weight / weight.sum()
        whole = X.astype(np.float64, copy=False)
        self.products = whole @ whole.T
        self.norms = self.products.diagonal().copy()
        self.lengths = np.sqrt(self.norms)
        self.short = self.products.astype(np.float32)
        self.spread = float(distances_to_own(X, near_mean(X)[None], np.zeros(len(X), dtype=np.int32)).mean())
        n, d = X.shape
        self.doubt = float(32 * (n + d + 8) * gram.EPS * weight.sum() * self.norms.max())

    def seed(self, k: int, draws: int, rng: np.random.Generator) -> Array | None:
        """What `seed_rows` gives; None where rounding might tell.  # (k,)"""
        chosen = np.empty(k, dtype=np.int64)
        chosen[0] = rng.choice(len(self.share), size=1, p=self.share)[0]
        uniform = rng.uniform(size=(k - 1, draws))
        sure = gram.seed(self.products, self.norms, self.weight, uniform, self.doubt, chosen)
        return chosen if sure else None

    def lloyd(self, chosen: Array, limit: float, max_iter: int) -> tuple[Array, Array, int] | None:
        """What `lloyd` gives from the chosen rows; None where a cluster loses its rows on the way."""
        n, d = self.X.shape
        centres, labels = np.empty((len(chosen), d), dtype=self.X.dtype), np.empty(n, dtype=np.int32)
        iterations = gram.iterate(
            self.X, self.weight, self.short, self.lengths, limit, max_iter, chosen, centres, labels
        )
        return (centres, labels, iterations) if iterations else None

    def distances(self, centres: Array, labels: Array) -> Array:
        return distances_to_own(self.X, centres, labels.astype(np.int32, copy=False))
