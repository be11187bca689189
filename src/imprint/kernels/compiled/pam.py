"""The loops of `kernels.medoids`."""

import numpy as np

from imprint.core.arrays import Array
from imprint.kernels.compiled import jit, jit_sums
from imprint.kernels.compiled.lloyd import distances_to_assigned

# Every choice in a loop over rows is between two values: LLVM 22 vectorises choices
# within choices wrongly.

LANES = 4  # partial sums, because each addition to one sum waits for the previous one


@jit
def rank(
    M: Array,
    labels: Array,
    two_nearest: Array,
) -> None:
    """The nearest medoid of every row, the first on a tie, and the distances to it and
    to the second.  # M: (k, n)
    """
    labels[:] = 0
    two_nearest[0] = M[0]
    two_nearest[1] = np.inf
    for j in range(1, M.shape[0]):
        slot = np.int32(j)
        for o in range(M.shape[1]):
            new = M[j, o]
            label = labels[o]
            first = two_nearest[0, o]
            second = two_nearest[1, o]
            leads = new < first
            runner_up = new if new < second else second
            labels[o] = slot if leads else label
            two_nearest[0, o] = new if leads else first
            two_nearest[1, o] = first if leads else runner_up


@jit
def sums_by_medoid(
    values: Array,
    labels: Array,
    sums: Array,
) -> None:
    """Fill `sums[0]` with the sum of the values of each medoid's rows; the other lanes
    are working memory.
    """
    rest = len(values) % LANES
    sums[:] = 0
    for o in range(0, len(values) - rest, LANES):
        for lane in range(LANES):
            sums[lane, labels[o + lane]] += values[o + lane]
    for o in range(len(values) - rest, len(values)):
        sums[0, labels[o]] += values[o]
    for lane in range(1, LANES):
        sums[0] += sums[lane]


@jit_sums
def removal_losses(
    weight: Array,
    two_nearest: Array,
    out: Array,
) -> float:
    """The increase in cost of every row if its nearest medoid is removed; returns the
    present total cost.
    """
    cost = 0.0
    for o in range(len(out)):
        first = np.float64(two_nearest[0, o])
        cost += weight[o] * first
        out[o] = weight[o] * (np.float64(two_nearest[1, o]) - first)
    return cost


@jit_sums
def changes(
    distances: Array,
    a: int,
    weight: Array,
    two_nearest: Array,
    out: Array,
) -> float:
    """The increase in cost of every row if a new medoid replaces its nearest; returns
    the part common to all swaps.
    """
    shared = 0.0
    for o in range(len(out)):
        new = np.float64(distances[a, o])
        first = np.float64(two_nearest[0, o])
        second = np.float64(two_nearest[1, o])
        shared += weight[o] * min(new - first, 0.0)
        out[o] = weight[o] * (max(min(new, second), first) - first)
    return shared


@jit_sums
def largest_gain(
    distances: Array,
    a: int,
    weight: Array,
    two_nearest: Array,
) -> float:
    """In float32, the gain of a new medoid if every row were at its second-nearest: no
    swap gains more than that.
    """
    gain = np.float32(0)
    for o in range(len(weight)):
        gain += weight[o] * max(two_nearest[1, o] - distances[a, o], np.float32(0))
    return np.float64(gain)


@jit
def eager_swaps(
    distances: Array,
    start: int,
    weight: Array,
    M: Array,
    medoids: Array,
    labels: Array,
    two_nearest: Array,
    idle: int,
) -> int:
    """Try each row of a block as a medoid and swap whenever that lowers the cost; rows
    since the last swap.

    A swap removes one medoid, which costs at least `least_loss`, and gains at most
    `largest_gain`; rows that this bound rules out are skipped (twice as fast).
    """
    n = M.shape[1]
    k = M.shape[0]
    sums = np.empty((LANES, k))
    values = np.empty(n)
    largest = weight.max() if weight.max() > 0 else 1.0
    relative = (weight / largest).astype(np.float32)
    # with the relative error of a float32 sum of one sign
    gain_unit = largest * (1 + (n + 8) * 2.0**-24)
    enough = 0.0
    least_loss = 0.0
    swapped = True
    for a in range(distances.shape[0]):
        if idle >= n:
            break
        if swapped:
            enough = 1e-10 * removal_losses(weight, two_nearest, values)
            sums_by_medoid(values, labels, sums)
            least_loss = sums[0].min()
            swapped = False
        idle += 1
        if (
            least_loss - largest_gain(distances, a, relative, two_nearest) * gain_unit
            >= -0.999 * enough
        ):
            continue
        shared = changes(distances, a, weight, two_nearest, values)
        sums_by_medoid(values, labels, sums)
        slot = int(np.argmin(sums[0]))
        if sums[0, slot] + shared < -enough:
            M[slot] = distances[a]
            rank(M, labels, two_nearest)
            medoids[slot] = start + a
            swapped = True
            idle = 0
    return idle


@jit
def squared_distances(X: Array, centre: Array) -> Array:
    """Squared distance of every row to a point."""
    return distances_to_assigned(
        X, centre.reshape(1, -1), np.zeros(X.shape[0], dtype=np.int32)
    )
