"""The Triton programs behind `fused`: one tile of rows, one centre or one problem each."""

import triton
import triton.language as tl


@triton.jit
def nearer(
    X, owner, sizes, candidates, closest, out, cost, n, d, T, blocks,
    TP: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):  # fmt: skip
    """Squared distances, by differences, of a tile of rows to a few rows of its class, where less than `closest`."""
    b, p = tl.program_id(0), tl.program_id(1).to(tl.int64)
    c = tl.load(owner + p)
    size = tl.load(sizes + c)
    r = b * BN + tl.arange(0, BN)
    t = tl.arange(0, TP)
    picked = tl.load(candidates + p * T + t, mask=t < T, other=0)
    base = X + c * n * d
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
    near = tl.where((r < size)[:, None], tl.minimum(total, known[:, None]), 0.0)
    tl.store(out + (p * T + t[None, :]) * n + r[:, None], near, mask=(r < n)[:, None] & (t < T)[None, :])
    tl.store(cost + (p * blocks + b) * TP + t, tl.sum(near.to(tl.float64), axis=0))


@triton.jit
def choose(
    near, cost, closest, candidates, chosen, draws, owner, sizes, tried, j, K, n, T, blocks,
    TP: tl.constexpr, BB: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """Keep the best candidate of one problem as centre j; draw the next candidates by what is left uncovered."""
    p = tl.program_id(0).to(tl.int64)
    t, b = tl.arange(0, TP), tl.arange(0, BB)
    size = tl.load(sizes + tl.load(owner + p))
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
        tl.store(candidates + p * T + t, tl.minimum(index, size - 1), mask=t < T)


@triton.jit
def assign(
    X, C, half, owner, sizes, done, labels, before, changed, n, d, blocks,
    KP: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):  # fmt: skip
    """Nearest centre of a tile of rows, and how many of them changed theirs."""
    b, p = tl.program_id(0), tl.program_id(1).to(tl.int64)
    if tl.load(done + p) == 0:
        c = tl.load(owner + p)
        r = b * BN + tl.arange(0, BN)
        j = tl.arange(0, KP)
        ok = r < tl.load(sizes + c)
        rows = X + c * n * d + r[:, None] * d
        score = tl.zeros((BN, KP), tl.float32)
        for s in range(0, d, BD):
            z = s + tl.arange(0, BD)
            x = tl.load(rows + z[None, :], mask=ok[:, None] & (z < d)[None, :], other=0.0)
            w = tl.load(C + (p * KP + j[None, :]) * d + z[:, None], mask=(z < d)[:, None], other=0.0)
            score = tl.dot(x, w, score, input_precision="tf32x3")
        best = tl.argmin(tl.load(half + p * KP + j)[None, :] - score, axis=1)
        old = tl.load(labels + p * n + r, mask=ok, other=0)
        tl.store(before + p * n + r, old, mask=ok)
        tl.store(labels + p * n + r, best, mask=ok)
        tl.store(changed + p * blocks + b, tl.sum(((best != old) & ok).to(tl.int32), axis=0))


@triton.jit
def add_up(
    X, owner, sizes, done, labels, before, partial, counts, n, d, groups,
    KP: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr, TILES: tl.constexpr, WHOLE: tl.constexpr,
):  # fmt: skip
    """Sums of a few columns over a group of tiles, by centre; or what the changed rows add to and take from them."""
    g, p = tl.program_id(0), tl.program_id(2).to(tl.int64)
    if tl.load(done + p) == 0:
        c = tl.load(owner + p)
        size = tl.load(sizes + c)
        j = tl.arange(0, KP)
        z = tl.program_id(1) * BD + tl.arange(0, BD)
        total = tl.zeros((KP, BD), tl.float32)
        count = tl.zeros((KP,), tl.float32)
        for i in range(TILES):
            r = (g * TILES + i) * BN + tl.arange(0, BN)
            now = tl.load(labels + p * n + r, mask=r < size, other=-1)
            mine = (now[None, :] == j[:, None]).to(tl.float32)
            moved = BN
            if not WHOLE:
                old = tl.load(before + p * n + r, mask=r < size, other=-1)
                mine -= (old[None, :] == j[:, None]).to(tl.float32)
                moved = tl.sum((now != old).to(tl.int32), axis=0)
            if moved > 0:
                both = (r < size)[:, None] & (z < d)[None, :]
                x = tl.load(X + c * n * d + r[:, None] * d + z[None, :], mask=both, other=0.0)
                total = tl.dot(mine, x, total, input_precision="tf32x3")
                count += tl.sum(mine, axis=1)
        at = (p * groups + g) * KP
        tl.store(partial + (at + j[:, None]) * d + z[None, :], total, mask=(z < d)[None, :])
        if tl.program_id(1) == 0:
            tl.store(counts + at + j, count)


@triton.jit
def move(
    C, half, k, done, sums, partial, counts, mass, shift, d, groups,
    KP: tl.constexpr, BD: tl.constexpr, GP: tl.constexpr, WHOLE: tl.constexpr,
):  # fmt: skip
    """One centre becomes the mean of its rows; one without rows stays."""
    j, p = tl.program_id(0), tl.program_id(1).to(tl.int64)
    if tl.load(done + p) == 0:  # noqa: SIM102 - Triton does not short-circuit
        if j < tl.load(k + p):
            at = p * KP + j
            g = tl.arange(0, GP)
            group = (p * groups + g) * KP + j
            count = tl.sum(tl.load(counts + group, mask=g < groups, other=0.0).to(tl.float64), axis=0)
            if not WHOLE:
                count += tl.load(mass + at)
            tl.store(mass + at, count)
            moved = tl.zeros((), tl.float64)
            length = tl.zeros((), tl.float64)
            for s in range(0, d, BD):
                z = s + tl.arange(0, BD)
                both = (g < groups)[:, None] & (z < d)[None, :]
                part = tl.load(partial + group[:, None] * d + z[None, :], mask=both, other=0.0)
                total = tl.sum(part.to(tl.float64), axis=0)
                if not WHOLE:
                    total += tl.load(sums + at * d + z, mask=z < d, other=0.0)
                tl.store(sums + at * d + z, total, mask=z < d)
                old = tl.load(C + at * d + z, mask=z < d, other=0.0)
                new = tl.where(count > 0, total / tl.maximum(count, 1.0), old.to(tl.float64)).to(tl.float32)
                tl.store(C + at * d + z, new, mask=z < d)
                gap = new.to(tl.float64) - old.to(tl.float64)
                moved += tl.sum(gap * gap, axis=0)
                length += tl.sum(new.to(tl.float64) * new.to(tl.float64), axis=0)
            tl.store(half + at, (length / 2).to(tl.float32))
            tl.store(shift + at, moved)


@triton.jit
def judge(done, changed, shift, limit, steps, blocks, most, KP: tl.constexpr, BB: tl.constexpr):
    """A problem ends when no row changed its centre, when the centres hardly moved, or after `most` steps."""
    p = tl.program_id(0)
    if tl.load(done + p) == 0:
        b = tl.arange(0, BB)
        moved = tl.sum(tl.load(changed + p * blocks + b, mask=b < blocks, other=0), axis=0)
        far = tl.sum(tl.load(shift + p * KP + tl.arange(0, KP)), axis=0)
        step = tl.load(steps + p) + 1
        tl.store(steps + p, step)
        if (moved == 0) | (far <= tl.load(limit + p)) | (step >= most):
            tl.store(done + p, 1)


@triton.jit
def gaps(X, C, owner, sizes, labels, out, n, d, KP: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr):
    """Squared distance of a tile of rows to their own centres, 0 for padding."""
    b, p = tl.program_id(0), tl.program_id(1).to(tl.int64)
    c = tl.load(owner + p)
    r = b * BN + tl.arange(0, BN)
    ok = r < tl.load(sizes + c)
    own = tl.load(labels + p * n + r, mask=ok, other=0)
    total = tl.zeros((BN,), tl.float64)
    for s in range(0, d, BD):
        z = s + tl.arange(0, BD)
        both = ok[:, None] & (z < d)[None, :]
        x = tl.load(X + c * n * d + r[:, None] * d + z[None, :], mask=both, other=0.0)
        w = tl.load(C + (p * KP + own[:, None]) * d + z[None, :], mask=both, other=0.0)
        total += tl.sum(((x - w) * (x - w)).to(tl.float64), axis=1)
    tl.store(out + p * n + r, total, mask=r < n)
