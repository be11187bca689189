"""Lloyd's iteration: bounds prove most labels unchanged, and the other rows are
compared by exact products.

Bounds come from short images of rows (sketches) or from the Gram matrix of the rows.
Rows are named by index: a view of a row costs as much as a short sum.
"""

from typing import NamedTuple

import numpy as np

from imprint.core.arrays import Array
from imprint.kernels.compiled import jit, jit_sums

# the unit roundoff: largest relative error of rounding to float64
ROUNDOFF64 = 2.0**-53
ROUNDOFF32 = 2.0**-24


class RowArrays(NamedTuple):
    """The rows of one data set, and bounds on their distances to centres.

    Products p of row i and centre j are approximated by those of sketches, about the
    mean of the rows, or by means of inner products of rows (the Gram matrix), about
    zero. The squared distance is then `squares[i] + squares[j] - 2 p`, up to `2
    (blurs[i] blurs[j] + tails[i] tails[j])`.
    """

    X: Array  # (n, d)
    weight: Array  # (n,)
    norms: Array  # (n,) squared lengths
    squares: Array  # (n,) squared lengths about the mean or about zero
    blurs: Array  # (n,)
    tails: Array  # (n,)
    mean: Array  # (d,)
    directions: Array  # (d, r)
    sketches: Array  # (r, n) float32, rows about the mean projected on the directions
    gram: Array  # (n, n) float32, or (0, 0) where sketches are used


class CentreArrays(NamedTuple):
    """The same bounds for centres."""

    squares: Array  # (k,)
    scales: Array  # (k,) factors of products
    blurs: Array  # (k,)
    tails: Array  # (k,)


class Clustering(NamedTuple):
    """Labels under moving centres, the sums of clusters, and bounds on the distances of
    rows to centres.
    """

    labels: Array  # (n,)
    # (n,) bounds of the distance to the assigned centre; empty with the Gram matrix
    upper: Array
    # (n,) bounds of the distance to every other centre; empty with the Gram matrix
    lower: Array
    # (2, n) space for rows that changed their label, and for their old labels
    moved: Array
    sums: Array  # (k, d)
    total: Array  # (k,)
    members: Array  # (k,)
    stale: Array  # (k,) whether the centre has to be updated
    halves: Array  # (k,) half the squared lengths of the centres
    # (k, n) for every row the sum of its products with the rows of a cluster; (0, 0)
    # with sketches
    products: Array
    rounding: float


@jit_sums
def dot(X: Array, i: int, C: Array, j: int) -> float:
    """The product of row `i` and row `j` of `C`, in float64."""
    total = 0.0
    for t in range(X.shape[1]):
        total += np.float64(X[i, t]) * C[j, t]
    return total


@jit_sums
def squared_distance(X: Array, i: int, C: Array, j: int) -> float:
    """Between row `i` and row `j` of `C`, by differences in float64."""
    total = 0.0
    for t in range(X.shape[1]):
        delta = np.float64(X[i, t]) - np.float64(C[j, t])
        total += delta * delta
    return total


@jit
def distances_to_assigned(X: Array, C: Array, labels: Array) -> Array:
    """Squared distance of every row to its centre."""
    out = np.empty(X.shape[0])
    for i in range(X.shape[0]):
        out[i] = squared_distance(X, i, C, labels[i])
    return out


@jit
def squared_lengths(X: Array) -> Array:
    """Squared length of every row."""
    return distances_to_assigned(
        X, np.zeros((1, X.shape[1])), np.zeros(X.shape[0], dtype=np.int32)
    )


@jit
def sketch(C: Array, rows: RowArrays) -> tuple[Array, CentreArrays]:
    """The sketches of centres in float32, and their bounds.  # (k, r)"""
    offset = C - rows.mean
    short = np.dot(offset, rows.directions)
    squares = squared_lengths(offset)
    lengths = np.sqrt(squares)
    tails = (
        np.sqrt(np.maximum(squares * (1 + 1e-12) - squared_lengths(short), 0))
        + 1e-7 * lengths
    )
    return short.astype(np.float32), CentreArrays(
        squares, np.ones(len(C)), lengths, tails
    )


@jit
def uncertain_rows(state: Clustering, moved_by: Array) -> Array:
    """Rows whose bounds do not prove that they keep their label, after centres moved by
    no more than given.
    """
    uncertain, count, step = (
        np.empty(len(state.labels), dtype=np.int32),
        0,
        moved_by.max(),
    )
    slack = 2 * np.sqrt(state.rounding)
    for i in range(len(state.labels)):
        state.upper[i] += moved_by[state.labels[i]]
        state.lower[i] -= step
        uncertain[count] = i
        count += state.upper[i] + slack >= state.lower[i]
    return uncertain[:count]


@jit_sums
def compare(
    products: Array,
    blurs: Array,
    tails: Array,
    centres: CentreArrays,
    rounding: float,
    others: Array,
) -> tuple[Array, Array, Array]:
    """Compare the centres of rows by bounds of their squared distances, less `squares`
    of the row.

    Returns the least upper bound, the last of the centres below it and their number,
    and fills `others` with the least lower bound of the centres above it. Each loop
    writes few arrays, so that it is compiled to vector instructions.
    """
    n = products.shape[1]
    limit, best, number = (
        np.full(n, 1e300),
        np.zeros(n, dtype=np.int32),
        np.zeros(n, dtype=np.int32),
    )
    for j in range(len(products)):
        square, scale = centres.squares[j], 2 * centres.scales[j]
        blur, tail = 2 * centres.blurs[j], 2 * centres.tails[j]
        for r in range(n):
            half = blur * blurs[r] + tail * tails[r]
            limit[r] = min(
                limit[r], square - scale * np.float64(products[j, r]) + half + rounding
            )
    for j in range(len(products)):
        square, scale = centres.squares[j], 2 * centres.scales[j]
        blur, tail = 2 * centres.blurs[j], 2 * centres.tails[j]
        for r in range(n):
            low = (
                square
                - scale * np.float64(products[j, r])
                - (blur * blurs[r] + tail * tails[r])
            )
            number[r] += low <= limit[r]
            best[r] = j if low <= limit[r] else best[r]
        for r in range(len(others)):
            low = (
                square
                - scale * np.float64(products[j, r])
                - (blur * blurs[r] + tail * tails[r])
            )
            others[r] = min(others[r], 1e300 if low <= limit[r] else low)
    return limit, best, number


@jit
def assign(
    rows: RowArrays,
    state: Clustering,
    C: Array,
    centres: CentreArrays,
    uncertain: Array,
    products: Array,
) -> int:
    """Assign uncertain rows to their nearest centres; fill `moved` with those that
    changed and return their number.

    Where bounds leave several candidates, these are compared by exact products.
    """
    X, norms, labels, rounding, count = (
        rows.X,
        rows.norms,
        state.labels,
        state.rounding,
        0,
    )
    blurs, tails, others = rows.blurs, rows.tails, np.empty(0)
    if not len(rows.gram):
        blurs, tails, others = (
            blurs[uncertain],
            tails[uncertain],
            np.full(len(uncertain), 1e300),
        )
    limit, nearest, number = compare(products, blurs, tails, centres, rounding, others)
    for r in range(len(uncertain)):
        i, best = uncertain[r], nearest[r]
        first, second = np.inf, np.inf
        if number[r] > 1:
            for j in range(len(C)):
                half = centres.blurs[j] * blurs[r] + centres.tails[j] * tails[r]
                if (
                    centres.squares[j]
                    - 2 * (centres.scales[j] * np.float64(products[j, r]) + half)
                    <= limit[r]
                ):
                    score = state.halves[j] - dot(X, i, C, j)
                    if score < first:
                        best, first, second = j, score, first
                    else:
                        second = min(second, score)
        if len(others):
            reach = (
                norms[i] + 2 * first if number[r] > 1 else limit[r] + rows.squares[i]
            )
            away = min(others[r] + rows.squares[i], norms[i] + 2 * second)
            state.lower[i] = np.sqrt(max(away - rounding, 0.0))
            state.upper[i] = np.sqrt(max(reach, 0.0) + rounding)
        if best != labels[i]:
            state.moved[0, count] = i
            state.moved[1, count] = labels[i]
            labels[i] = best
            count += 1
    return count


@jit
def move_rows(rows: RowArrays, state: Clustering, moved: Array) -> None:
    """Add each moved row to the sums of its new cluster and subtract it from those of
    the old one, if there is one.
    """
    X, gram, sums, products = rows.X, rows.gram, state.sums, state.products
    for m in range(moved.shape[1]):
        i, weight = moved[0, m], rows.weight[moved[0, m]]
        for j, w in ((state.labels[i], weight), (moved[1, m], -weight)):
            if j >= 0:
                state.total[j] += w
                state.members[j] += (w > 0) - (w < 0)
                state.stale[j] = True
                for t in range(X.shape[1]):
                    sums[j, t] += w * np.float64(X[i, t])
                for t in range(gram.shape[1]):
                    products[j, t] += w * np.float64(gram[i, t])


@jit
def iterate(
    rows: RowArrays,
    state: Clustering,
    centres: Array,
    C: Array,
    iteration: int,
    limit: float,
    max_iter: int,
) -> tuple[int, bool]:
    """Lloyd's iteration on from the given centres, which move; returns the iterations
    and whether they ended.

    They are interrupted where a cluster has no rows. `C` holds the centres before, in
    float64.
    """
    everything, moved_by = np.arange(len(rows.X), dtype=np.int32), np.empty(len(C))
    origin, peak, mass = (
        np.zeros((1, C.shape[1])),
        np.sqrt(rows.norms.max()),
        rows.weight.sum(),
    )
    while True:
        shift, moved_by[:] = 0.0, 0.0
        for j in range(len(C)):
            if state.stale[j]:
                squared = squared_distance(C, j, centres, j)
                shift += squared
                moved_by[j] = np.sqrt(squared) * (1 + 1e-12) + 2e-6 * np.sqrt(
                    state.rounding
                )
                C[j] = centres[j]
                state.halves[j] = squared_distance(C, j, origin, 0) / 2
        state.stale[:] = False
        if len(rows.gram):
            # products are means: they miss by the rounding of the Gram matrix, of
            # centres to float32 and of additions
            scales, additions = (
                1 / state.total,
                mass * ((iteration + 1) * len(rows.X) + C.shape[1] + 16),
            )
            blur = (
                1.001 * ROUNDOFF32 * 2 * peak
                + 4 * additions * ROUNDOFF64 * peak * scales.max()
            )
            bounds = CentreArrays(
                2 * state.halves, scales, np.full(len(C), blur), np.zeros(len(C))
            )
            count = assign(rows, state, C, bounds, everything, state.products)
        else:
            uncertain = uncertain_rows(state, moved_by)
            short, bounds = sketch(C, rows)
            count = assign(
                rows,
                state,
                C,
                bounds,
                uncertain,
                np.dot(short, rows.sketches[:, uncertain]),
            )
        if iteration and (shift <= limit or iteration == max_iter):
            return iteration, True
        if iteration and count == 0:
            return iteration + 1, True
        if iteration == 0:
            state.total[:], state.products[:] = 0, 0
        move_rows(rows, state, state.moved[:, :count])
        iteration += 1
        if state.members.min() == 0:
            return iteration, False
        for j in range(len(C)):
            if state.stale[j]:
                centres[j] = state.sums[j] / state.total[j]
