"""The Triton programs that begin a k-means: measures of every class, and greedy
k-means++.

`rows` holds the address of every class. The last program of a class or problem to
finish a pass combines the results of all; the ticket, which counts finished programs,
tells which program that is.
"""

import triton
import triton.language as tl


@triton.jit
def address(rows, c):
    """Where the rows of a class begin."""
    return tl.multiple_of(tl.load(rows + c).to(tl.pointer_type(tl.float32)), 16)


@triton.jit
def measure(
    rows, sizes, partial, squares, largest, origin, spread, tickets, d, groups,
    BN: tl.constexpr, BD: tl.constexpr,
):  # fmt: skip
    """Mean, variance per column and largest number of every class, a tile of rows at a
    time.
    """
    g = tl.program_id(0)
    c = tl.program_id(1).to(tl.int64)
    size = tl.load(sizes + c)
    r = g * BN + tl.arange(0, BN)
    base = address(rows, c)
    at = c * groups + g
    square = tl.zeros((BD,), tl.float64)
    most = tl.zeros((BD,), tl.float32)
    for s in range(0, d, BD):
        z = s + tl.arange(0, BD)
        x = tl.load(
            base + r[:, None] * d + z[None, :],
            mask=(r < size)[:, None] & (z < d)[None, :],
            other=0.0,
        )
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
                    tl.load(
                        partial + (c * groups + i[:, None]) * d + z[None, :],
                        mask=both,
                        other=0.0,
                    ),
                    axis=0,
                )
            mean = total / size
            length += tl.sum(mean * mean, axis=0)
            tl.store(origin + c * d + z, mean.to(tl.float32), mask=z < d)
        whole = tl.zeros((BN,), tl.float64)
        top = tl.zeros((BN,), tl.float32)
        for h in range(0, groups, BN):
            i = h + tl.arange(0, BN)
            whole += tl.load(squares + c * groups + i, mask=i < groups, other=0.0)
            top = tl.maximum(
                top, tl.load(largest + c * groups + i, mask=i < groups, other=0.0)
            )
        tl.store(spread + c, tl.maximum(tl.sum(whole, axis=0) / size - length, 0.0) / d)
        tl.debug_barrier()
        tl.store(largest + c * groups, tl.max(top, axis=0))


@triton.jit
def seed(
    rows, owner, sizes, candidates, closest, near, cost, chosen, draws, tried, turn, tickets, K, n, d, T, blocks,
    TP: tl.constexpr, BB: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr, BC: tl.constexpr,
):  # fmt: skip
    """The cost of a tile of rows with each candidate for the next centre; the last
    program then chooses.
    """
    b = tl.program_id(0)
    p = tl.program_id(1).to(tl.int64)
    c = tl.load(owner + p)
    size = tl.load(sizes + c)
    r = b * BN + tl.arange(0, BN)
    t = tl.arange(0, TP)
    picked = tl.load(candidates + p * T + t, mask=t < T, other=0)
    base = address(rows, c)
    total = tl.zeros((BN, TP), tl.float32)
    for s in range(0, d, BD):
        z = s + tl.arange(0, BD)
        x = tl.load(
            base + r[:, None] * d + z[None, :],
            mask=(r < size)[:, None] & (z < d)[None, :],
            other=0.0,
        )
        for i in tl.static_range(TP):
            gap = (
                x
                - tl.load(
                    base + tl.sum(tl.where(t == i, picked, 0), axis=0) * d + z,
                    mask=z < d,
                    other=0.0,
                )[None, :]
            )
            total += tl.where(t[None, :] == i, tl.sum(gap * gap, axis=1)[:, None], 0.0)
    known = tl.load(closest + p * n + r, mask=r < n, other=0.0)
    left = tl.where((r < size)[:, None], tl.minimum(total, known[:, None]), 0.0)
    tl.store(
        near + (p * T + t[None, :]) * n + r[:, None],
        left,
        mask=(r < n)[:, None] & (t < T)[None, :],
    )
    tl.store(cost + (p * blocks + b) * TP + t, tl.sum(left.to(tl.float64), axis=0))
    tl.debug_barrier()
    if tl.atomic_add(tickets + p, 1) == blocks - 1:
        tl.store(tickets + p, 0)
        choose(
            near,
            cost,
            closest,
            candidates,
            chosen,
            draws,
            tried,
            turn,
            size,
            p,
            K,
            n,
            T,
            blocks,
            TP,
            BB,
            BC,
        )


@triton.jit
def choose(
    near, cost, closest, candidates, chosen, draws, tried, turn, size, p, K, n, T, blocks,
    TP: tl.constexpr, BB: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """Choose the best candidate of one problem, and draw the next candidates by squared
    distance.
    """
    t = tl.arange(0, TP)
    b = tl.arange(0, BB)
    j = tl.load(turn + p)
    part = tl.load(
        cost + (p * blocks + b[:, None]) * TP + t[None, :],
        mask=(b < blocks)[:, None],
        other=0.0,
    )
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
