"""Exact neighbours: short products rule most rows out, whole rows decide."""

import numpy as np

from imprint.core.types import Array
from imprint.kernels.compiled import jit, jit_sums
from imprint.kernels.compiled.products import squared_lengths
from imprint.kernels.compiled.sketch import EPS, Sketch
from imprint.kernels.cpu import on_all_cores, one_blas_thread

QUERIES = 256
CHUNK = 4096
WIDTHS = (62, 126, 254)
EUCLIDEAN, COSINE, MANHATTAN = range(3)


def search(Q: Array, W: Array, m: int, metric: int, images: tuple[Array, Array]) -> tuple[Array, Array]:
    """Distances (squared for Euclidean) and indices of the `m` nearest rows, ties by index.

    `images` of queries and rows are what short products are taken of: the rows, or unit rows for the cosine.
    """
    scale = (np.sqrt(squared_lengths(Q)), np.sqrt(squared_lengths(W)))
    for lengths in scale:
        lengths[lengths == 0] = 1
    distances = np.full((len(Q), m), np.inf)
    indices = np.full((len(Q), m), len(W), dtype=np.int64)
    with one_blas_thread():
        if metric == MANHATTAN:
            blocks = [(i, min(i + QUERIES, len(Q))) for i in range(0, len(Q), QUERIES)]
            on_all_cores(lambda b: scan_all(Q, W, b[0], b[1], distances, indices), blocks)
            return distances, indices
        bounds = Bounds(*images, m, 2.0 if metric == COSINE else 1.0)

        def block(start: int) -> None:
            short = bounds.queries[start : start + QUERIES]
            for chunk in range(0, len(W), CHUNK):
                low = short @ bounds.rows[chunk : chunk + CHUNK].T
                order = bounds.order[chunk : chunk + CHUNK]
                args = (low, order, bounds.offset, bounds.stretch, Q, W, *scale, metric, start, distances, indices)
                if chunk == 0:
                    first_guess(*args)
                scan(*args)

        on_all_cores(block, range(0, len(Q), QUERIES))
    return distances, indices


class Bounds:
    """Vectors whose products, plus an offset of the query, are lower bounds of squared distances.

    With v the squared distance to the mean, s the sketch and t its tail, `v_q + v_w - 2 s_q.s_w - 2 t_q t_w` is such a
    bound; so the rows (s, t, v) are multiplied with (-2 s, -2 t, 1). They are visited in strides, so that early
    chunks look like all.
    """

    def __init__(self, Q: Array, W: Array, m: int, stretch: float) -> None:
        self.stretch = stretch
        strides = -(-len(W) // CHUNK)
        self.order = np.concatenate([np.arange(s, len(W), strides) for s in range(strides)])
        norms = squared_lengths(W)
        sketch = _affordable(Q, W, norms)
        self.rows = _joined(sketch.rows, sketch.tails, sketch.squared)[self.order]
        q = sketch.of(Q, squared_lengths(Q))
        self.queries = _joined(-2 * q.rows, -2 * q.tails, np.ones(len(Q)))
        far = np.sqrt(sketch.squared.max())
        near = np.sqrt(q.squared)
        sums = (sketch.width + 8) * EPS * (far + near) ** 2 * 2
        blur = 2 * (q.blur * far + sketch.blur.max() * near + q.blur * sketch.blur.max())
        self.offset = sums + blur + 16 * EPS * (far + near) ** 2 - q.squared


def _joined(rows: Array, *columns: Array) -> Array:
    """Rows in float32 with columns appended."""
    joined = np.empty((len(rows), rows.shape[1] + len(columns)), dtype=np.float32)
    joined[:, : rows.shape[1]] = rows
    for j, column in enumerate(columns, start=rows.shape[1]):
        joined[:, j] = column
    return joined


def _affordable(Q: Array, W: Array, norms: Array) -> Sketch:
    """The sketch that makes the search cheapest, judged by a sample."""
    n, d = W.shape
    probe = Q[:: max(1, len(Q) // 32)][:32].astype(np.float64)
    some = np.arange(0, n, max(1, n // 4096))
    whole = (squared_lengths(probe)[:, None] + norms[some] - 2 * probe @ W[some].astype(np.float64).T).clip(0)
    nearest = whole.min(axis=1, keepdims=True)
    costs: list[float] = []
    sketches: list[Sketch] = []
    for width in (*[w for w in WIDTHS if w <= d // 2], d):
        sketch = Sketch(W, norms, width)
        q = sketch.of(probe, squared_lengths(probe))
        low = q.squared[:, None] + sketch.squared[some] - 2 * (q.rows @ sketch.rows[some].T)
        doubtful = 8 * d * float((low - 2 * q.tails[:, None] * sketch.tails[some] <= nearest).mean())
        if costs and width + doubtful > costs[-1]:
            return sketches[-1]
        costs.append(width + doubtful)
        sketches[:] = [sketch]
        if 2 * doubtful < width:
            break
    return sketches[-1]


@jit_sums
def exact(Q: Array, i: int, W: Array, j: int, q_scale: Array, w_scale: Array, metric: int) -> float:
    """Squared Euclidean or cosine distance, in float64."""
    total = 0.0
    if metric == EUCLIDEAN:
        for t in range(Q.shape[1]):
            delta = np.float64(Q[i, t]) - np.float64(W[j, t])
            total += delta * delta
        return total
    for t in range(Q.shape[1]):
        total += np.float64(Q[i, t]) * np.float64(W[j, t])
    distance: float = 1 - total / (q_scale[i] * w_scale[j])
    return max(distance, 0.0)


@jit
def insert(distances: Array, indices: Array, i: int, distance: float, index: int) -> None:
    """Put a row in its place in the sorted list of query `i`; the last one drops out."""
    place = distances.shape[1] - 1
    if distance > distances[i, place] or (distance == distances[i, place] and index > indices[i, place]):
        return
    while place > 0 and (
        distances[i, place - 1] > distance or (distances[i, place - 1] == distance and indices[i, place - 1] > index)
    ):
        distances[i, place] = distances[i, place - 1]
        indices[i, place] = indices[i, place - 1]
        place -= 1
    distances[i, place] = distance
    indices[i, place] = index


@jit_sums
def least(low: Array, i: int, start: int, stop: int) -> np.float32:
    best = np.float32(np.inf)
    for j in range(start, stop):
        best = low[i, j] if low[i, j] < best else best
    return best


@jit
def first_guess(
    low: Array, order: Array, offset: Array, stretch: float, Q: Array, W: Array, q_scale: Array, w_scale: Array,
    metric: int, start: int, distances: Array, indices: Array,
) -> None:  # fmt: skip
    """Lists of the rows with the least bounds, so that the scan begins with short lists of near rows."""
    m = distances.shape[1]
    guess = np.empty((1, m))
    rows = np.empty((1, m), dtype=np.int64)
    for i in range(low.shape[0]):
        guess[:] = np.inf
        rows[:] = -1
        for j in range(0, low.shape[1], 64):
            stop = min(j + 64, low.shape[1])
            if least(low, i, j, stop) <= guess[0, m - 1]:
                for t in range(j, stop):
                    insert(guess, rows, 0, low[i, t], order[t])
        q = start + i
        for t in range(m):
            if rows[0, t] >= 0:
                distance = exact(Q, q, W, rows[0, t], q_scale, w_scale, metric)
                insert(distances, indices, q, distance, rows[0, t])


@jit
def scan(
    low: Array, order: Array, offset: Array, stretch: float, Q: Array, W: Array, q_scale: Array, w_scale: Array,
    metric: int, start: int, distances: Array, indices: Array,
) -> None:  # fmt: skip
    """Compare as a whole every row whose bound does not exceed the worst listed distance."""
    m = distances.shape[1]
    for i in range(low.shape[0]):
        q = start + i
        limit = stretch * distances[q, m - 1] + offset[q]
        for j in range(0, low.shape[1], 64):
            stop = min(j + 64, low.shape[1])
            if least(low, i, j, stop) > limit:
                continue
            for t in range(j, stop):
                if low[i, t] > limit:
                    continue
                row = order[t]
                known = False
                for listed in range(m):
                    known |= indices[q, listed] == row
                if not known:
                    insert(distances, indices, q, exact(Q, q, W, row, q_scale, w_scale, metric), row)
                    limit = stretch * distances[q, m - 1] + offset[q]


@jit_sums
def taxicab(Q: Array, i: int, W: Array, j: int, limit: float) -> float:
    """Manhattan distance in float64; some larger number once it exceeds the limit."""
    total = 0.0
    for start in range(0, Q.shape[1], 128):
        for t in range(start, min(start + 128, Q.shape[1])):
            total += abs(np.float64(Q[i, t]) - np.float64(W[j, t]))
        if total > limit:
            break
    return total


@jit
def scan_all(Q: Array, W: Array, start: int, stop: int, distances: Array, indices: Array) -> None:
    """Lists of the queries from `start` to `stop` under the Manhattan distance."""
    m = distances.shape[1]
    for first in range(0, W.shape[0], 256):
        for q in range(start, stop):
            for j in range(first, min(first + 256, W.shape[0])):
                worst = distances[q, m - 1]
                distance = taxicab(Q, q, W, j, worst)
                if distance <= worst:
                    insert(distances, indices, q, distance, j)
