"""Many k-means problems at once on a GPU, by Triton programs: ragged classes, several k
and seeds in one batch.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor

from imprint.core.arrays import Array
from imprint.kernels.kmeans import KMeansResult, Problem
from imprint.kernels.lloyd import trials

BLOCK_VALUES = 2**24  # values held at once where they are summed by label
# rows x centres over all problems of a batch, in memory at a time
MAX_BATCH_DISTANCES = 2**29


class Batch(NamedTuple):
    """Problems over classes of rows."""

    rows: list[Tensor]  # (n, d) of every class
    owner: list[int]  # the class of every problem
    k: list[int]
    draws: Array  # (p, K, T) uniform numbers; [:, 0, 0] picks the first centre
    tried: list[int]  # how many of the T draws count
    tol: float


class ClusterEnds(NamedTuple):
    """The clusterings of a batch; centres beyond a problem's k and rows beyond its
    class are padding.
    """

    centres: Tensor  # (p, K, d)
    labels: Tensor  # (p, n)
    counts: Tensor  # (p, K) float64
    scatter: Tensor  # (p, K) float64, squared distances of rows to their centre, summed
    steps: Tensor  # (p,)


def kmeans_many(
    rows: Sequence[Tensor],
    problems: Sequence[Problem],
    *,
    max_iter: int = 300,
    tol: float = 1e-4,
) -> list[KMeansResult]:
    """Solve several problems in batches, as `kernels.kmeans.kmeans_many` does; labels
    stay tensors.

    The random numbers are those of the NumPy version, and results agree with it up to
    the rounding of float32 distances. The host checks only every few iterations whether
    all problems have converged.
    """
    results: dict[int, KMeansResult] = {}
    for chosen in _batches(rows, problems):
        batch = _pack(rows, [problems[i] for i in chosen], tol)
        results.update(zip(chosen, _solve(batch, max_iter)))
    return [results[i] for i in range(len(problems))]


def _batches(rows: Sequence[Tensor], problems: Sequence[Problem]) -> list[list[int]]:
    """Problems of like k together, as many as memory allows."""
    order = sorted(
        range(len(problems)), key=lambda i: (problems[i].k, problems[i].rows)
    )
    widest = max(map(len, rows))
    batches: list[list[int]] = [[]]
    for i in order:
        if (
            batches[-1]
            and (len(batches[-1]) + 1) * problems[i].k * widest > MAX_BATCH_DISTANCES
        ):
            batches.append([])
        batches[-1].append(i)
    return batches


def _pack(
    rows: Sequence[Tensor],
    problems: Sequence[Problem],
    tol: float,
) -> Batch:
    used = sorted({p.rows for p in problems})
    K = max(p.k for p in problems)
    draws = np.zeros((len(problems), K, trials(K)))
    for i, p in enumerate(problems):
        rng = np.random.default_rng(p.seed)
        draws[i, 0, 0] = rng.random()
        draws[i, 1 : p.k, : trials(p.k)] = rng.random((p.k - 1, trials(p.k)))
    owner = [used.index(p.rows) for p in problems]
    k = [min(p.k, len(rows[p.rows])) for p in problems]
    return Batch(
        [rows[c] for c in used],
        owner,
        k,
        draws,
        [trials(p.k) for p in problems],
        tol,
    )


def _solve(batch: Batch, max_iter: int) -> list[KMeansResult]:
    from imprint.kernels.tensor.fused import Fused

    solver = Fused(batch)
    ends = solver.iterate(solver.seed(), max_iter)
    filled = ends.counts > 0
    results = []
    rank = filled.cumsum(1) - 1
    small = (ends.centres, ends.counts, ends.scatter, ends.steps)
    centres, counts, scatter, steps = (t.cpu().numpy() for t in small)
    for i, (c, k) in enumerate(zip(batch.owner, batch.k)):
        full = counts[i, :k] > 0
        cluster_of_row = ends.labels[i, : len(batch.rows[c])]
        mass = counts[i, :k][full]
        squares = scatter[i, :k][full]
        labels = cluster_of_row if full.all() else rank[i][cluster_of_row]
        sums = mass, squares / mass, float(squares.sum())
        results.append(
            KMeansResult(centres[i, :k][full], cast(Any, labels), *sums, int(steps[i]))
        )
    return results


def by_label(
    values: Tensor,
    labels: Tensor,
    K: int,
) -> Tensor:
    """Sums of values with the same label, in a fixed order, so that they repeat bit for
    bit.  # (p, n) -> (p, K)
    """
    several = torch.split(
        torch.arange(K, device=labels.device), max(1, BLOCK_VALUES // labels.numel())
    )
    return torch.cat(
        [
            torch.where(labels[:, None] == j[:, None], values[:, None], 0).sum(2)
            for j in several
        ],
        dim=1,
    )


def relocate(
    batch: Batch,
    origin: Tensor,
    centres: Tensor,
    gaps: Tensor,
    counts: Tensor,
) -> Tensor:
    """Give empty clusters, in place, the rows farthest from their centres, as
    scikit-learn does.  # (p,) moved?

    Centres are around the origin of their class.
    """
    moved = torch.zeros(len(counts), dtype=torch.bool, device=counts.device)
    for i in torch.nonzero((counts == 0).any(1)).ravel().tolist():
        slots = torch.nonzero(counts[i, : batch.k[i]] == 0).ravel()
        if len(slots):
            c = batch.owner[i]
            X = batch.rows[c] - origin[c]
            value, row = gaps[i].topk(len(slots))
            # else a row that is its centre, up to float32
            apart = value > 1e-12 * X.square().sum(1).max()
            slots = slots[apart]
            row = row[apart]
            centres[i, slots] = X[row]
            moved[i] = len(row) > 0
    return moved
