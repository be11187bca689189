"""The loops of `kernels.scores`, `kernels.stacks` and `kernels.quantiles`."""

import numpy as np

from imprint.core.arrays import Array
from imprint.kernels.compiled import jit
from imprint.kernels.scores import DISTANCE_OFFSET, Counts


@jit
def count_many(
    scores: Array,
    rows: Array,
    truth: Array,
    rounding: float,
    counts: Counts,
) -> None:
    """Count the queries of every decision by the largest score, as `Counts` does; on a
    tie the first class wins.
    """
    correct, predicted, near_ties = counts
    decisions, n_classes = rows.shape
    n = len(truth)
    best = np.empty(n, scores.dtype)
    second = np.empty(n, scores.dtype)
    winner = np.empty(n, np.int32)
    for t in range(decisions):
        best[:] = scores[rows[t, 0]]
        second[:] = -np.inf
        winner[:] = 0
        for c in range(1, n_classes):
            class_scores = scores[rows[t, c]]
            for i in range(n):
                second[i] = max(second[i], min(best[i], class_scores[i]))
                winner[i] = c if class_scores[i] > best[i] else winner[i]
                best[i] = max(best[i], class_scores[i])
        ties = 0
        for i in range(n):
            ties += best[i] - second[i] <= rounding * abs(best[i])
        near_ties[t] += ties
        for i in range(n):
            predicted[t, winner[i]] += 1
            correct[t, winner[i]] += winner[i] == truth[i]


@jit
def maxima_of_sets(
    scores: Array,
    first: Array,
    size: Array,
    unit: Array,
    factors: Array,
    best: Array,
) -> None:
    """Fill in the largest scores among the rows of every set; a set that continues the
    one before it starts from that.

    NaN is the largest of all.
    """
    for s in range(len(first)):
        row = first[s]
        maxima = best[s]
        if s > 0 and first[s] == first[s - 1] and unit[s] == unit[s - 1]:
            row += size[s - 1]
            maxima[:] = best[s - 1]
        else:
            maxima[:] = -np.inf
        for r in range(row, first[s] + size[s]):
            factor = factors[r] if unit[s] else scores.dtype.type(1)
            for i in range(scores.shape[1]):
                score = scores[r, i] * factor
                maxima[i] = score if score > maxima[i] or score != score else maxima[i]


@jit
def smallest(
    D: Array,
    first: Array,
    size: Array,
    starts: Array,
    m: int,
    out: Array,
) -> None:
    """Fill `out` from column `starts[s]` on with the m smallest of the values
    `first[s]` to `first[s] + size[s]`.

    A set that begins where the one before does, and is no smaller, goes on with its
    list.
    """
    shortest = np.empty(m)
    for i in range(D.shape[0]):
        held = 0
        done = 0
        for s in range(len(first)):
            if s == 0 or first[s] != first[s - 1] or size[s] < size[s - 1]:
                held = 0
                done = 0
            for r in range(first[s] + done, first[s] + size[s]):
                distance = D[i, r]
                if held < m:
                    position = held
                    held += 1
                elif distance < shortest[m - 1]:
                    position = m - 1
                else:
                    continue
                while position > 0 and shortest[position - 1] > distance:
                    shortest[position] = shortest[position - 1]
                    position -= 1
                shortest[position] = distance
            done = size[s]
            for j in range(held):
                out[i, starts[s] + j] = shortest[j]


@jit
def vote(
    lists: Array,
    starts: Array,
    rows: Array,
    truth: Array,
    ballots: Array,
    rounding: float,
    counts: Counts,
) -> None:
    """Merge the lists of the classes, nearest first, and decide whenever the m
    neighbours of a vote have been seen.

    Each row of `ballots` is a vote: its m, whether it is uniform, and its number. They
    are sorted by m.
    """
    m = ballots[:, 0]
    is_uniform = ballots[:, 1]
    number = ballots[:, 2]
    correct, predicted, near_ties = counts
    decisions, n_classes = rows.shape
    at = np.empty(n_classes, np.int64)
    end = np.empty(n_classes, np.int64)
    nearest = np.empty(n_classes)
    votes = np.empty(n_classes)
    members = np.empty(n_classes)
    earliest = np.empty(n_classes)
    for i in range(len(truth)):
        for t in range(decisions):
            total = 0
            for c in range(n_classes):
                at[c] = starts[rows[t, c]]
                end[c] = starts[rows[t, c] + 1]
                nearest[c] = lists[i, at[c]]
                total += end[c] - at[c]
            votes[:] = 0
            members[:] = 0
            earliest[:] = 0
            v = 0
            for j in range(min(total, m[-1])):
                label = 0
                for c in range(1, n_classes):
                    label = c if nearest[c] < nearest[label] else label
                votes[label] += 1 / (nearest[label] + DISTANCE_OFFSET)
                earliest[label] = j if members[label] == 0 else earliest[label]
                members[label] += 1
                at[label] += 1
                nearest[label] = (
                    lists[i, at[label]] if at[label] < end[label] else np.inf
                )
                while v < len(m) and m[v] == j + 1:
                    best = -1.0
                    second = -1.0
                    winner = 0
                    for c in range(n_classes):
                        score = votes[c]
                        if is_uniform[v]:
                            score = members[c] + (members[c] > 0) * (
                                m[v] - earliest[c]
                            ) / (2 * m[v])
                        if score > best:
                            best, second, winner = score, best, c
                        else:
                            second = max(second, score)
                    decision = t * len(m) + number[v]
                    predicted[decision, winner] += 1
                    correct[decision, winner] += winner == truth[i]
                    near_ties[decision] += (
                        n_classes > 1 and best - second <= rounding * best
                    )
                    v += 1


@jit
def successive_targets(
    pool: Array,
    counts: Array,
    used: int,
    sizes: Array,
    levels: Array,
    targets: Array,
) -> None:
    """Fill in every target: the quantiles of the pool and of the earlier targets, each
    counted `sizes` times.

    The first `used` values of the pool are ascending, and each counts as often as
    `counts` says. The pool has space for all targets, which are merged into it from the
    end, so that nothing is overwritten.
    """
    d = len(levels)
    total = counts[:used].sum()
    for turn in range(len(targets)):
        target = targets[turn]
        # the entry that holds a position, and the position after its last copy
        entry = 0
        end = counts[0]
        for i in range(d):
            position = levels[i] * (total - 1)
            low = int(position)
            share = position - low
            while end <= low:
                entry += 1
                end += counts[entry]
            below = pool[entry]
            above = below if low + 1 < end or entry + 1 == used else pool[entry + 1]
            step = above - below
            target[i] = (
                below + step * share if share < 0.5 else above - step * (1 - share)
            )
        last = used - 1
        to = used + d - 1
        for i in range(d - 1, -1, -1):
            while last >= 0 and pool[last] > target[i]:
                pool[to] = pool[last]
                counts[to] = counts[last]
                last -= 1
                to -= 1
            pool[to] = target[i]
            counts[to] = sizes[turn]
            to -= 1
        used += d
        total += d * sizes[turn]
