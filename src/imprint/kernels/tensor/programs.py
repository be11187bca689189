"""The Triton programs behind `fused` (k-means) and `swaps` (k-medoids): one tile of rows or one centre each.

`rows` holds the address of every class. The last program of a class or problem to finish a pass does what the pass
leaves to do for the whole of it; a ticket tells which one that is. Sums over rows are of integers (`scale` times the
number), hence exact and free of order. A number is `big + small`: as much of it as TF32 holds, then of the rest.
"""

import triton
import triton.language as tl

NONE = tl.constexpr(2**62)


@triton.jit
def address(rows, c):
    """Where the rows of a class begin."""
    return tl.multiple_of(tl.load(rows + c).to(tl.pointer_type(tl.float32)), 16)


@triton.jit
def tf32(x):
    """The nearest number of 11 bits."""
    return ((x.to(tl.int32, bitcast=True) + 4096) & -8192).to(tl.float32, bitcast=True)


@triton.jit
def split(x):
    """As much as TF32 holds of a number, and as much as it holds of the rest."""
    big = tf32(x)
    return big, tf32(x - big)


@triton.jit
def measure(
    rows, sizes, partial, squares, largest, origin, spread, tickets, d, groups,
    BN: tl.constexpr, BD: tl.constexpr,
):  # fmt: skip
    """Mean, variance per column and largest number of every class, a tile of rows at a time."""
    g, c = tl.program_id(0), tl.program_id(1).to(tl.int64)
    size = tl.load(sizes + c)
    r = g * BN + tl.arange(0, BN)
    base, at = address(rows, c), c * groups + g
    square = tl.zeros((BD,), tl.float64)
    most = tl.zeros((BD,), tl.float32)
    for s in range(0, d, BD):
        z = s + tl.arange(0, BD)
        x = tl.load(base + r[:, None] * d + z[None, :], mask=(r < size)[:, None] & (z < d)[None, :], other=0.0)
        tl.store(partial + at * d + z, tl.sum(x.to(tl.float64), axis=0), mask=z < d)
        square += tl.sum((x * x).to(tl.float64), axis=0)
        most = tl.maximum(most, tl.max(tl.abs(x), axis=0))
    tl.store(squares + at, tl.sum(square, axis=0))
    tl.store(largest + at, tl.max(most, axis=0))
    tl.debug_barrier()
    if tl.atomic_add(tickets + c, 1) == groups - 1:
        tl.store(tickets + c, 0)
        length = tl.zeros((), tl.float64)
        for s in range(0, d, BD):
            z = s + tl.arange(0, BD)
            total = tl.zeros((BD,), tl.float64)
            for h in range(0, groups, BN):
                i = h + tl.arange(0, BN)
                both = (i < groups)[:, None] & (z < d)[None, :]
                total += tl.sum(
                    tl.load(partial + (c * groups + i[:, None]) * d + z[None, :], mask=both, other=0.0), axis=0
                )
            mean = total / size
            length += tl.sum(mean * mean, axis=0)
            tl.store(origin + c * d + z, mean.to(tl.float32), mask=z < d)
        whole = tl.zeros((BN,), tl.float64)
        top = tl.zeros((BN,), tl.float32)
        for h in range(0, groups, BN):
            i = h + tl.arange(0, BN)
            whole += tl.load(squares + c * groups + i, mask=i < groups, other=0.0)
            top = tl.maximum(top, tl.load(largest + c * groups + i, mask=i < groups, other=0.0))
        tl.store(spread + c, tl.maximum(tl.sum(whole, axis=0) / size - length, 0.0) / d)
        tl.debug_barrier()
        tl.store(largest + c * groups, tl.max(top, axis=0))


@triton.jit
def seed(
    rows, owner, sizes, candidates, closest, near, cost, chosen, draws, tried, turn, tickets, K, n, d, T, blocks,
    TP: tl.constexpr, BB: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr, BC: tl.constexpr,
):  # fmt: skip
    """What each candidate for the next centre would leave uncovered of a tile of rows; the last tile then chooses."""
    b, p = tl.program_id(0), tl.program_id(1).to(tl.int64)
    c = tl.load(owner + p)
    size = tl.load(sizes + c)
    r = b * BN + tl.arange(0, BN)
    t = tl.arange(0, TP)
    picked = tl.load(candidates + p * T + t, mask=t < T, other=0)
    base = address(rows, c)
    total = tl.zeros((BN, TP), tl.float32)
    for s in range(0, d, BD):
        z = s + tl.arange(0, BD)
        x = tl.load(base + r[:, None] * d + z[None, :], mask=(r < size)[:, None] & (z < d)[None, :], other=0.0)
        for i in tl.static_range(TP):
            gap = (
                x - tl.load(base + tl.sum(tl.where(t == i, picked, 0), axis=0) * d + z, mask=z < d, other=0.0)[None, :]
            )
            total += tl.where(t[None, :] == i, tl.sum(gap * gap, axis=1)[:, None], 0.0)
    known = tl.load(closest + p * n + r, mask=r < n, other=0.0)
    left = tl.where((r < size)[:, None], tl.minimum(total, known[:, None]), 0.0)
    tl.store(near + (p * T + t[None, :]) * n + r[:, None], left, mask=(r < n)[:, None] & (t < T)[None, :])
    tl.store(cost + (p * blocks + b) * TP + t, tl.sum(left.to(tl.float64), axis=0))
    tl.debug_barrier()
    if tl.atomic_add(tickets + p, 1) == blocks - 1:
        tl.store(tickets + p, 0)
        choose(near, cost, closest, candidates, chosen, draws, tried, turn, size, p, K, n, T, blocks, TP, BB, BC)


@triton.jit
def choose(
    near, cost, closest, candidates, chosen, draws, tried, turn, size, p, K, n, T, blocks,
    TP: tl.constexpr, BB: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """Keep the best candidate of one problem; draw the next candidates by what is left uncovered."""
    t, b, j = tl.arange(0, TP), tl.arange(0, BB), tl.load(turn + p)
    part = tl.load(cost + (p * blocks + b[:, None]) * TP + t[None, :], mask=(b < blocks)[:, None], other=0.0)
    costs = tl.where(t < tl.load(tried + p), tl.sum(part, axis=0), float("inf"))
    best = tl.argmin(costs, axis=0)
    tl.store(chosen + p * K + j, tl.load(candidates + p * T + best))
    if j + 1 < K:
        uniform = tl.load(draws + (p * K + j + 1) * T + t, mask=t < T, other=0.0)
        total = tl.sum(tl.where(t == best, costs, 0.0), axis=0)
        target = uniform * total
        before = tl.zeros((), tl.float64)
        index = tl.zeros((TP,), tl.int64)
        for s in range(0, n, BN):
            r = s + tl.arange(0, BN)
            v = tl.load(near + (p * T + best) * n + r, mask=r < n, other=0.0)
            tl.store(closest + p * n + r, v, mask=r < n)
            run = before + tl.cumsum(v.to(tl.float64), axis=0)
            below = (run[:, None] <= target[None, :]) & (r < size)[:, None]
            index += tl.sum(below.to(tl.int64), axis=0)
            before += tl.sum(v.to(tl.float64), axis=0)
        tl.debug_barrier()
        tl.store(candidates + p * T + t, tl.minimum(index, size - 1), mask=t < T)
        tl.store(turn + p, j + 1)


@triton.jit
def place(
    rows, origin, chosen, owner, k, centres, big, small, half, K, d,
    KP: tl.constexpr, DP: tl.constexpr, CHOSEN: tl.constexpr,
):  # fmt: skip
    """Put a centre where its chosen row or its given place is."""
    j, p = tl.program_id(0), tl.program_id(1).to(tl.int64)
    if j < tl.load(k + p):
        z, at = tl.arange(0, DP), p * KP + j
        if CHOSEN:
            c = tl.load(owner + p)
            x = tl.load(address(rows, c) + tl.load(chosen + p * K + j) * d + z, mask=z < d, other=0.0)
            x -= tl.load(origin + c * d + z, mask=z < d, other=0.0)
        else:
            x = tl.load(centres + (p * K + j) * d + z, mask=z < d, other=0.0)
        upper, lower = split(x)
        tl.store(big + at * d + z, upper, mask=z < d)
        tl.store(small + at * d + z, lower, mask=z < d)
        length = tl.sum(x.to(tl.float64) * x.to(tl.float64), axis=0)
        tl.store(half + at, (length / 2).to(tl.float32))


@triton.jit
def assign(
    rows, origin, big, small, half, scale, owner, sizes, done, labels, sums, counts, changed, n, d,
    KP: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr, DP: tl.constexpr,
):  # fmt: skip
    """Nearest centre of a tile of rows; those that changed theirs leave the old sum for the new one."""
    b, p = tl.program_id(0), tl.program_id(1).to(tl.int64)
    if tl.load(done + p) == 0:
        c = tl.load(owner + p)
        r = b * BN + tl.arange(0, BN)
        j = tl.arange(0, KP)
        ok = r < tl.load(sizes + c)
        base = address(rows, c)
        score = tl.zeros((BN, KP), tl.float32)
        for s in range(0, d, BD):
            z = s + tl.arange(0, BD)
            x = tl.load(base + r[:, None] * d + z[None, :], mask=ok[:, None] & (z < d)[None, :], other=0.0)
            xb, xs = split(x - tl.load(origin + c * d + z, mask=z < d, other=0.0)[None, :])
            w = (p * KP + j[None, :]) * d + z[:, None]
            wb = tl.load(big + w, mask=(z < d)[:, None], other=0.0)
            ws = tl.load(small + w, mask=(z < d)[:, None], other=0.0)
            score = tl.dot(xs, wb, score, input_precision="tf32")
            score = tl.dot(xb, ws, score, input_precision="tf32")
            score = tl.dot(xb, wb, score, input_precision="tf32")
        best = tl.argmin(tl.load(half + p * KP + j)[None, :] - score, axis=1)
        old = tl.load(labels + p * n + r, mask=ok, other=0)
        moved = ok & (best != old)
        number = tl.sum(moved.to(tl.int32), axis=0)
        if number > 0:
            tl.store(labels + p * n + r, best, mask=moved)
            tl.atomic_add(changed + p, number, sem="relaxed")
            tl.atomic_add(counts + p * KP + best, 1, mask=moved, sem="relaxed")
            tl.atomic_add(counts + p * KP + old, -1, mask=moved & (old >= 0), sem="relaxed")
            factor = tl.load(scale + c)
            z = tl.arange(0, DP)
            o = tl.load(origin + c * d + z, mask=z < d, other=0.0)
            waiting = tl.where(moved, (r.to(tl.int64) * KP + old + 1) * KP + best, NONE)
            at = tl.min(waiting, axis=0)
            while at != NONE:
                x = tl.load(base + at // KP**2 * d + z, mask=z < d, other=0.0)
                v = ((x - o).to(tl.float64) * factor).to(tl.int64)
                tl.atomic_add(sums + (p * KP + at % KP) * d + z, v, mask=z < d, sem="relaxed")
                left = at // KP % KP - 1
                if left >= 0:
                    tl.atomic_add(sums + (p * KP + left) * d + z, -v, mask=z < d, sem="relaxed")
                waiting = tl.where(waiting == at, NONE, waiting)
                at = tl.min(waiting, axis=0)


@triton.jit
def move(
    big, small, half, k, owner, done, sums, counts, scale, shift, changed, tickets, limit, steps, d, most,
    KP: tl.constexpr, BD: tl.constexpr,
):  # fmt: skip
    """One centre becomes the mean of its rows; one without rows stays. The last one judges its problem."""
    j, p = tl.program_id(0), tl.program_id(1).to(tl.int64)
    number = tl.load(k + p)
    if tl.load(done + p) == 0:  # noqa: SIM102 - Triton does not short-circuit
        if j < number:
            at = p * KP + j
            count = tl.load(counts + at)
            share = tl.load(scale + tl.load(owner + p)) * tl.maximum(count, 1).to(tl.float64)
            gone = tl.zeros((), tl.float64)
            length = tl.zeros((), tl.float64)
            for s in range(0, d, BD):
                z = s + tl.arange(0, BD)
                old = tl.load(big + at * d + z, mask=z < d, other=0.0)
                old += tl.load(small + at * d + z, mask=z < d, other=0.0)
                mean = tl.load(sums + at * d + z, mask=z < d, other=0).to(tl.float64) / share
                new = tl.where(count > 0, mean.to(tl.float32), old)
                upper, lower = split(new)
                tl.store(big + at * d + z, upper, mask=z < d)
                tl.store(small + at * d + z, lower, mask=z < d)
                gap = new.to(tl.float64) - old.to(tl.float64)
                gone += tl.sum(gap * gap, axis=0)
                length += tl.sum(new.to(tl.float64) * new.to(tl.float64), axis=0)
            tl.store(half + at, (length / 2).to(tl.float32))
            tl.store(shift + at, gone)
            tl.debug_barrier()
            if tl.atomic_add(tickets + p, 1) == number - 1:
                judge(done, shift, changed, tickets, limit, steps, p, most, KP)


@triton.jit
def judge(done, shift, changed, tickets, limit, steps, p, most, KP: tl.constexpr):
    """A problem ends when no row changed its centre, when the centres hardly moved, or after `most` steps."""
    far = tl.sum(tl.load(shift + p * KP + tl.arange(0, KP)), axis=0)
    moved = tl.load(changed + p)
    step = tl.load(steps + p) + 1
    tl.debug_barrier()
    tl.store(steps + p, step)
    tl.store(changed + p, 0)
    tl.store(tickets + p, 0)
    if (moved == 0) | (far <= tl.load(limit + p)) | (step >= most):
        tl.store(done + p, 1)


@triton.jit
def look(done, counts, k, flags, p, KP: tl.constexpr, BP: tl.constexpr):
    """Whether any problem goes on, and whether any has a centre without rows."""
    j = tl.arange(0, KP)
    active = tl.zeros((BP,), tl.int32)
    empty = tl.zeros((BP,), tl.int32)
    for s in range(0, p, BP):
        i = s + tl.arange(0, BP)
        active |= (tl.load(done + i, mask=i < p, other=1) == 0).to(tl.int32)
        used = (i < p)[:, None] & (j[None, :] < tl.load(k + i, mask=i < p, other=0)[:, None])
        none = tl.load(counts + i[:, None] * KP + j[None, :], mask=used, other=1) == 0
        empty |= tl.max(none.to(tl.int32), axis=1)
    tl.store(flags, tl.max(active, axis=0))
    tl.store(flags + 1, tl.max(empty, axis=0))


@triton.jit
def gaps(
    rows, origin, big, small, owner, sizes, labels, out, n, d,
    KP: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):  # fmt: skip
    """Squared distance of a tile of rows to their own centres, 0 for padding."""
    b, p = tl.program_id(0), tl.program_id(1).to(tl.int64)
    c = tl.load(owner + p)
    r = b * BN + tl.arange(0, BN)
    ok = r < tl.load(sizes + c)
    own = tl.load(labels + p * n + r, mask=ok, other=0)
    base = address(rows, c)
    total = tl.zeros((BN,), tl.float64)
    for s in range(0, d, BD):
        z = s + tl.arange(0, BD)
        both = ok[:, None] & (z < d)[None, :]
        x = tl.load(base + r[:, None] * d + z[None, :], mask=both, other=0.0)
        x -= tl.load(origin + c * d + z, mask=z < d, other=0.0)[None, :]
        w = (p * KP + own[:, None]) * d + z[None, :]
        gap = x - (tl.load(big + w, mask=both, other=0.0) + tl.load(small + w, mask=both, other=0.0))
        total += tl.sum(tl.where(both, gap * gap, 0.0).to(tl.float64), axis=1)
    tl.store(out + p * n + r, total, mask=r < n)
