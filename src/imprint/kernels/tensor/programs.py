"""The Triton programs behind `fused`: one tile of rows, one centre or one problem each."""

import triton
import triton.language as tl


@triton.jit
def nearer(X, owner, sizes, candidates, closest, out, n, d, T, TP: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr):
    """Squared distances of a block of rows to a few rows of its own class, by differences."""
    p = tl.program_id(1)
    c = tl.load(owner + p)
    size = tl.load(sizes + c)
    r = tl.program_id(0) * BN + tl.arange(0, BN)
    t = tl.arange(0, TP)
    picked = tl.load(candidates + p * T + t, mask=t < T, other=0)
    base = X + c * n * d
    total = tl.zeros((BN, TP), tl.float32)
    for s in range(0, d, BD):
        z = s + tl.arange(0, BD)
        x = tl.load(base + r[:, None] * d + z[None, :], mask=(r < size)[:, None] & (z < d)[None, :], other=0.0)
        w = tl.load(base + picked[:, None] * d + z[None, :], mask=(z < d)[None, :], other=0.0)
        gap = x[:, None, :] - w[None, :, :]
        total += tl.sum(gap * gap, axis=2)
    known = tl.load(closest + p * n + r, mask=r < n, other=0.0)
    near = tl.where((r < size)[:, None], tl.minimum(total, known[:, None]), 0.0)
    tl.store(out + (p * T + t[None, :]) * n + r[:, None], near, mask=(r < n)[:, None] & (t < T)[None, :])


@triton.jit
def assign(
    X, C, half, owner, sizes, done, labels, changed, partial, counts,
    n, d, blocks, KP: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr, SUM: tl.constexpr,
):  # fmt: skip
    """Nearest centre of a block of rows, how many changed, and the sums of the block's rows by centre."""
    b, p = tl.program_id(0), tl.program_id(1).to(tl.int64)
    if tl.load(done + p) == 0:
        c = tl.load(owner + p)
        size = tl.load(sizes + c)
        r = b * BN + tl.arange(0, BN)
        j = tl.arange(0, KP)
        ok = r < size
        rows = X + c * n * d + r[:, None] * d
        score = tl.zeros((BN, KP), tl.float32)
        for s in range(0, d, BD):
            z = s + tl.arange(0, BD)
            x = tl.load(rows + z[None, :], mask=ok[:, None] & (z < d)[None, :], other=0.0)
            w = tl.load(C + (p * KP + j[None, :]) * d + z[:, None], mask=(z < d)[:, None], other=0.0)
            score = tl.dot(x, w, score, input_precision="tf32x3")
        best = tl.argmin(tl.load(half + p * KP + j)[None, :] - score, axis=1)
        old = tl.load(labels + p * n + r, mask=ok, other=0)
        tl.store(labels + p * n + r, best, mask=ok)
        mine = ((best[None, :] == j[:, None]) & ok[None, :]).to(tl.float32)  # (KP, BN)
        tl.store(counts + (p * blocks + b) * KP + j, tl.sum(mine, axis=1))
        tl.store(changed + p * blocks + b, tl.sum(((best != old) & ok).to(tl.int32), axis=0))
        if SUM:
            for s in range(0, d, BD):
                z = s + tl.arange(0, BD)
                x = tl.load(rows + z[None, :], mask=ok[:, None] & (z < d)[None, :], other=0.0)
                part = tl.dot(mine, x, input_precision="tf32x3")
                tl.store(partial + ((p * blocks + b) * KP + j[:, None]) * d + z[None, :], part, mask=(z < d)[None, :])


@triton.jit
def move(C, half, k, done, partial, counts, mass, shift, d, blocks, KP: tl.constexpr, BD: tl.constexpr):
    """One centre becomes the mean of its rows; one without rows stays."""
    j, p = tl.program_id(0), tl.program_id(1).to(tl.int64)
    if tl.load(done + p) == 0:  # noqa: SIM102 - Triton does not short-circuit
        if j < tl.load(k + p):
            count = tl.zeros((), tl.float64)
            for b in range(blocks):
                count += tl.load(counts + (p * blocks + b) * KP + j).to(tl.float64)
            tl.store(mass + p * KP + j, count)
            moved = tl.zeros((), tl.float64)
            length = tl.zeros((), tl.float64)
            for s in range(0, d, BD):
                z = s + tl.arange(0, BD)
                total = tl.zeros((BD,), tl.float64)
                for b in range(blocks):
                    part = partial + ((p * blocks + b) * KP + j) * d + z
                    total += tl.load(part, mask=z < d, other=0.0).to(tl.float64)
                old = tl.load(C + (p * KP + j) * d + z, mask=z < d, other=0.0)
                new = tl.where(count > 0, total / tl.maximum(count, 1.0), old.to(tl.float64)).to(tl.float32)
                tl.store(C + (p * KP + j) * d + z, new, mask=z < d)
                gap = new.to(tl.float64) - old.to(tl.float64)
                moved += tl.sum(gap * gap, axis=0)
                length += tl.sum(new.to(tl.float64) * new.to(tl.float64), axis=0)
            tl.store(half + p * KP + j, (length / 2).to(tl.float32))
            tl.store(shift + p * KP + j, moved)


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
