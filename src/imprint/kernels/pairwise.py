"""All distances between the rows of one data set, held or computed again."""

from collections.abc import Iterator

import numpy as np

from imprint.core.types import Array
from imprint.kernels import engine
from imprint.kernels.rows import squared_norms

BLOCK = 512


class Pairwise:
    """Euclidean distances in float32; made and used with BLAS kept to one thread."""

    def __init__(self, X: Array, memory: int) -> None:
        self.X = np.ascontiguousarray(X - X.mean(axis=0, dtype=np.float64).astype(X.dtype))
        self.norms = squared_norms(self.X)
        self.indices = np.arange(len(X))
        self.compiled = engine.compiled(self.X.size * len(X))
        self.held: Array | None = None
        if 4 * len(X) ** 2 <= memory:
            self.held = self._all()

    def _all(self) -> Array:
        n = len(self.X)
        held = np.empty((n, n), dtype=np.float32)
        height = -(-n // (16 * -(-n // BLOCK))) * 16  # blocks of one size, whole vectors

        def fill(start: int) -> None:
            stop = min(start + height, n)
            block = self._between(slice(start, stop), slice(start, n))
            held[start:stop, start:] = block
            held[stop:, start:stop] = block[:, stop - start :].T

        engine.on_all_cores(fill, range(0, n, height))
        return held

    def rows(self, rows: Array) -> Array:
        """Distances of some rows to all.  # (r, n)"""
        if self.held is not None:
            return self.held[rows]
        return np.concatenate([self._between(row[None], slice(None)) for row in rows])

    def within(self, rows: Array) -> Array:
        """Distances of some rows to one another.  # (r, r)"""
        return self.held[np.ix_(rows, rows)] if self.held is not None else self._between(rows, rows)

    def blocks(self) -> Iterator[tuple[int, Array]]:
        """Distances of all rows to all, some rows at a time, with the first of them."""
        for start in range(0, len(self.X), BLOCK):
            rows = slice(start, start + BLOCK)
            yield start, (self._between(rows, slice(None)) if self.held is None else self.held[rows])

    def totals(self, weight: Array) -> Array:
        """Weighted sum of the distances of every row."""
        return np.concatenate([block @ weight for _, block in self.blocks()])

    def _between(self, rows: Array | slice, columns: Array | slice) -> Array:
        some, others = self.X[rows], self.X[columns]
        if not self.compiled:
            from scipy.spatial.distance import cdist

            plain: Array = cdist(some, others).astype(np.float32)
            return plain
        from imprint.kernels.compiled.pam import to_distances

        products: Array = (some @ others.T).astype(np.float32, copy=False)
        to_distances(self.X, self.indices[rows], self.indices[columns], self.norms, products)
        return products
