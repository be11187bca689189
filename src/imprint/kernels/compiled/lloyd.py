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
# Above the relative rounding of d squares summed in float64, d 2^-53, up to d = 9,000.
SQUARES_MARGIN = 1e-12
# Above the relative rounding of a sketch to float32, 2^-24 = 6e-8.
SKETCH_MARGIN = 1e-7
# Times the square root of `rounding`, which is at least 6e-8 times the longest row: so
# above 1e-13 of that row, and above the rounding of a bound to which it is added.
ADDITION_MARGIN = 2e-6
# Above the product of two roundings to float32, which first-order bounds leave out.
SECOND_ORDER = 1.001
# Beyond all bounds, but finite: loops of `jit_sums` assume that nothing is NaN, and the
# difference of two infinities would be.
BEYOND = 1e300


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
def dot(
    X: Array,
    i: int,
    C: Array,
    j: int,
) -> float:
    """The product of row `i` and row `j` of `C`, in float64."""
    total = 0.0
    for t in range(X.shape[1]):
        total += np.float64(X[i, t]) * C[j, t]
    return total


@jit_sums
def squared_distance(
    X: Array,
    i: int,
    C: Array,
    j: int,
) -> float:
    """Between row `i` and row `j` of `C`, by differences in float64."""
    total = 0.0
    for t in range(X.shape[1]):
        delta = np.float64(X[i, t]) - np.float64(C[j, t])
        total += delta * delta
    return total


@jit
def distances_to_assigned(
    X: Array,
    C: Array,
    labels: Array,
) -> Array:
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
    # the squared length that the sketch leaves out, never below the true one
    left_out = squares * (1 + SQUARES_MARGIN) - squared_lengths(short)
    tails = np.sqrt(np.maximum(left_out, 0)) + SKETCH_MARGIN * lengths
    scales = np.ones(len(C))
    bounds = CentreArrays(squares, scales, lengths, tails)
    return short.astype(np.float32), bounds


@jit
def uncertain_rows(state: Clustering, moved_by: Array) -> Array:
    """Rows whose bounds do not prove that they keep their label, after centres moved by
    no more than given.
    """
    uncertain = np.empty(len(state.labels), dtype=np.int32)
    count = 0
    step = moved_by.max()
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
    limit = np.full(n, BEYOND)
    best = np.zeros(n, dtype=np.int32)
    number = np.zeros(n, dtype=np.int32)
    for j in range(len(products)):
        square = centres.squares[j]
        scale = 2 * centres.scales[j]
        blur = 2 * centres.blurs[j]
        tail = 2 * centres.tails[j]
        for r in range(n):
            half = blur * blurs[r] + tail * tails[r]
            product = scale * np.float64(products[j, r])
            limit[r] = min(limit[r], square - product + half + rounding)
    for j in range(len(products)):
        square = centres.squares[j]
        scale = 2 * centres.scales[j]
        blur = 2 * centres.blurs[j]
        tail = 2 * centres.tails[j]
        for r in range(n):
            half = blur * blurs[r] + tail * tails[r]
            low = square - scale * np.float64(products[j, r]) - half
            number[r] += low <= limit[r]
            best[r] = j if low <= limit[r] else best[r]
        for r in range(len(others)):
            half = blur * blurs[r] + tail * tails[r]
            low = square - scale * np.float64(products[j, r]) - half
            others[r] = min(others[r], BEYOND if low <= limit[r] else low)
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
    X = rows.X
    norms = rows.norms
    labels = state.labels
    rounding = state.rounding
    count = 0
    blurs = rows.blurs
    tails = rows.tails
    others = np.empty(0)
    if not len(rows.gram):
        blurs = blurs[uncertain]
        tails = tails[uncertain]
        others = np.full(len(uncertain), BEYOND)
    limit, nearest, number = compare(products, blurs, tails, centres, rounding, others)
    for r in range(len(uncertain)):
        i = uncertain[r]
        best = nearest[r]
        first = np.inf
        second = np.inf
        if number[r] > 1:
            for j in range(len(C)):
                half = centres.blurs[j] * blurs[r] + centres.tails[j] * tails[r]
                product = centres.scales[j] * np.float64(products[j, r])
                if centres.squares[j] - 2 * (product + half) <= limit[r]:
                    score = state.halves[j] - dot(X, i, C, j)
                    if score < first:
                        second = first
                        first = score
                        best = j
                    else:
                        second = min(second, score)
        if len(others):
            # squared distances to the assigned centre and to the nearest other one
            reach = limit[r] + rows.squares[i]
            if number[r] > 1:
                reach = norms[i] + 2 * first
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
def move_rows(
    rows: RowArrays,
    state: Clustering,
    moved: Array,
) -> None:
    """Add each moved row to the sums of its new cluster and subtract it from those of
    the old one, if there is one.
    """
    X = rows.X
    gram = rows.gram
    sums = state.sums
    products = state.products
    for m in range(moved.shape[1]):
        i = moved[0, m]
        weight = rows.weight[moved[0, m]]
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
    everything = np.arange(len(rows.X), dtype=np.int32)
    moved_by = np.empty(len(C))
    origin = np.zeros((1, C.shape[1]))
    peak = np.sqrt(rows.norms.max())
    mass = rows.weight.sum()
    addition_error = ADDITION_MARGIN * np.sqrt(state.rounding)
    while True:
        shift = 0.0
        moved_by[:] = 0.0
        for j in range(len(C)):
            if state.stale[j]:
                squared = squared_distance(C, j, centres, j)
                shift += squared
                distance = np.sqrt(squared) * (1 + SQUARES_MARGIN)
                moved_by[j] = distance + addition_error
                C[j] = centres[j]
                state.halves[j] = squared_distance(C, j, origin, 0) / 2
        state.stale[:] = False
        if len(rows.gram):
            # Products are means of entries of the Gram matrix. Both the entries and the
            # centres are rounded to float32, and every addition to a sum rounds once.
            # All errors are relative to the length of the row, times the longest.
            scales = 1 / state.total
            additions = mass * ((iteration + 1) * len(rows.X) + C.shape[1] + 16)
            rounded = SECOND_ORDER * ROUNDOFF32 * 2 * peak
            added = 4 * additions * ROUNDOFF64 * peak * scales.max()
            blur = rounded + added
            bounds = CentreArrays(
                2 * state.halves,
                scales,
                np.full(len(C), blur),
                np.zeros(len(C)),
            )
            count = assign(rows, state, C, bounds, everything, state.products)
        else:
            uncertain = uncertain_rows(state, moved_by)
            short, bounds = sketch(C, rows)
            products = np.dot(short, rows.sketches[:, uncertain])
            count = assign(rows, state, C, bounds, uncertain, products)
        if iteration and (shift <= limit or iteration == max_iter):
            return iteration, True
        if iteration and count == 0:
            return iteration + 1, True
        if iteration == 0:
            state.total[:] = 0
            state.products[:] = 0
        move_rows(rows, state, state.moved[:, :count])
        iteration += 1
        if state.members.min() == 0:
            return iteration, False
        for j in range(len(C)):
            if state.stale[j]:
                centres[j] = state.sums[j] / state.total[j]
