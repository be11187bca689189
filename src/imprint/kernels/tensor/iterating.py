"""The Triton programs of Lloyd's iteration: one tile of rows or one centre each.

Sums over rows are of integers (`scale` times the number), hence exact and free of
order. A number is `big + small`: as much of it as TF32 holds, then of the rest. The
program that moves the last centre of a problem checks whether the problem has
converged; the ticket, which counts finished programs, tells which program that is.
"""

import triton
import triton.language as tl

from imprint.kernels.tensor.seeding import address

NONE = tl.constexpr(2**62)


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
def place(
    rows, origin, chosen, owner, k, centres, big, small, half, K, d,
    KP: tl.constexpr, DP: tl.constexpr, CHOSEN: tl.constexpr,
):  # fmt: skip
    """Initialise a centre by its chosen row or by given coordinates."""
    j = tl.program_id(0)
    p = tl.program_id(1).to(tl.int64)
    if j < tl.load(k + p):
        z = tl.arange(0, DP)
        at = p * KP + j
        if CHOSEN:
            c = tl.load(owner + p)
            x = tl.load(
                address(rows, c) + tl.load(chosen + p * K + j) * d + z,
                mask=z < d,
                other=0.0,
            )
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
    """Nearest centre of a tile of rows; those that changed theirs leave the old sum for
    the new one.
    """
    b = tl.program_id(0)
    p = tl.program_id(1).to(tl.int64)
    if tl.load(done + p) == 0:
        c = tl.load(owner + p)
        r = b * BN + tl.arange(0, BN)
        j = tl.arange(0, KP)
        ok = r < tl.load(sizes + c)
        base = address(rows, c)
        score = tl.zeros((BN, KP), tl.float32)
        for s in range(0, d, BD):
            z = s + tl.arange(0, BD)
            x = tl.load(
                base + r[:, None] * d + z[None, :],
                mask=ok[:, None] & (z < d)[None, :],
                other=0.0,
            )
            xb, xs = split(
                x - tl.load(origin + c * d + z, mask=z < d, other=0.0)[None, :]
            )
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
            tl.atomic_add(
                counts + p * KP + old, -1, mask=moved & (old >= 0), sem="relaxed"
            )
            factor = tl.load(scale + c)
            z = tl.arange(0, DP)
            o = tl.load(origin + c * d + z, mask=z < d, other=0.0)
            waiting = tl.where(moved, (r.to(tl.int64) * KP + old + 1) * KP + best, NONE)
            at = tl.min(waiting, axis=0)
            while at != NONE:
                x = tl.load(base + at // KP**2 * d + z, mask=z < d, other=0.0)
                v = ((x - o).to(tl.float64) * factor).to(tl.int64)
                tl.atomic_add(
                    sums + (p * KP + at % KP) * d + z, v, mask=z < d, sem="relaxed"
                )
                left = at // KP % KP - 1
                if left >= 0:
                    tl.atomic_add(
                        sums + (p * KP + left) * d + z, -v, mask=z < d, sem="relaxed"
                    )
                waiting = tl.where(waiting == at, NONE, waiting)
                at = tl.min(waiting, axis=0)


@triton.jit
def move(
    big, small, half, k, owner, done, sums, counts, scale, shift, changed, tickets, limit, steps, d, most,
    KP: tl.constexpr, BD: tl.constexpr,
):  # fmt: skip
    """Move one centre to the mean of its rows; a centre without rows stays. The last
    program checks convergence.
    """
    j = tl.program_id(0)
    p = tl.program_id(1).to(tl.int64)
    number = tl.load(k + p)
    if tl.load(done + p) == 0:  # noqa: SIM102 - Triton does not short-circuit
        if j < number:
            at = p * KP + j
            count = tl.load(counts + at)
            share = tl.load(scale + tl.load(owner + p)) * tl.maximum(count, 1).to(
                tl.float64
            )
            gone = tl.zeros((), tl.float64)
            length = tl.zeros((), tl.float64)
            for s in range(0, d, BD):
                z = s + tl.arange(0, BD)
                old = tl.load(big + at * d + z, mask=z < d, other=0.0)
                old += tl.load(small + at * d + z, mask=z < d, other=0.0)
                mean = (
                    tl.load(sums + at * d + z, mask=z < d, other=0).to(tl.float64)
                    / share
                )
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
                check_convergence(
                    done, shift, changed, tickets, limit, steps, p, most, KP
                )


@triton.jit
def check_convergence(
    done, shift, changed, tickets, limit, steps, p, most, KP: tl.constexpr
):
    """End a problem when no row changed its centre, when the centres hardly moved, or
    after `most` steps.
    """
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
def gaps(
    rows, origin, big, small, owner, sizes, labels, out, n, d,
    KP: tl.constexpr, BN: tl.constexpr, BD: tl.constexpr,
):  # fmt: skip
    """Squared distance of each row of a tile to its centre, 0 for padding."""
    b = tl.program_id(0)
    p = tl.program_id(1).to(tl.int64)
    c = tl.load(owner + p)
    r = b * BN + tl.arange(0, BN)
    ok = r < tl.load(sizes + c)
    centre = tl.load(labels + p * n + r, mask=ok, other=0)
    base = address(rows, c)
    total = tl.zeros((BN,), tl.float64)
    for s in range(0, d, BD):
        z = s + tl.arange(0, BD)
        both = ok[:, None] & (z < d)[None, :]
        x = tl.load(base + r[:, None] * d + z[None, :], mask=both, other=0.0)
        x -= tl.load(origin + c * d + z, mask=z < d, other=0.0)[None, :]
        w = (p * KP + centre[:, None]) * d + z[None, :]
        gap = x - (
            tl.load(big + w, mask=both, other=0.0)
            + tl.load(small + w, mask=both, other=0.0)
        )
        total += tl.sum(tl.where(both, gap * gap, 0.0).to(tl.float64), axis=1)
    tl.store(out + p * n + r, total, mask=r < n)
