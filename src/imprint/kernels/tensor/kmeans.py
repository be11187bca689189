"""Many k-means problems at once: ragged classes, several k and seeds in one batch."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from imprint.kernels.kmeans import Problem
from imprint.kernels.seeding import trials

LARGEST_BATCH = 2**29  # distances held at once: rows x centres over all problems of a batch


class TensorKMeans(NamedTuple):
    """Centres without empty clusters, and what belongs to each; as `kernels.kmeans.KMeansResult`, in tensors."""

    centres: Tensor  # (k', d)
    labels: Tensor  # (n,)
    mass: Tensor  # (k',) float64
    inertia: float
    iterations: int


class Batch(NamedTuple):
    """Problems over padded classes; a problem's rows are `X[owner, :sizes[owner]]`."""

    X: Tensor  # (c, n, d)
    sizes: Tensor  # (c,)
    owner: Tensor  # (p,) class of every problem
    k: Tensor  # (p,)
    draws: Tensor  # (p, K, T) uniform numbers; [:, 0, 0] picks the first centre
    tried: Tensor  # (p,) how many of the T draws count
    limit: Tensor  # (p,) squared shift of the centres that counts as none


class Engine(Protocol):
    """The two passes over the data, for one batch."""

    def nearer(self, candidates: Tensor, closest: Tensor) -> Tensor:
        """Squared distances to candidate rows where less than `closest`; 0 for padding.  # (p, t) -> (p, t, n)"""

    def iterate(self, centres: Tensor, max_iter: int) -> Tensor:
        """Lloyd's iteration of all problems to their ends: `centres` (p, K, d) are moved in place.  # (p,) steps"""

    def assign(self, centres: Tensor) -> tuple[Tensor, Tensor]:
        """Labels and counts.  # (p, n), (p, K)"""


def kmeans_many(
    rows: Sequence[Tensor], problems: Sequence[Problem], *, max_iter: int = 300, tol: float = 1e-4
) -> list[TensorKMeans]:
    """Solve several problems in batches; the contract of `kernels.kmeans.kmeans_many`.

    The random numbers are those of the NumPy version, and results agree with it up to the rounding of float32
    distances. On a GPU no step waits for the host but a look, every few iterations, at whether all have converged.
    """
    results: dict[int, TensorKMeans] = {}
    for chosen in _batches(rows, problems):
        batch = _pack(rows, [problems[i] for i in chosen], tol)
        results.update(zip(chosen, _solve(batch, _engine(batch), max_iter)))
    return [results[i] for i in range(len(problems))]


def _batches(rows: Sequence[Tensor], problems: Sequence[Problem]) -> list[list[int]]:
    """Problems of like k together, as many as memory allows."""
    order = sorted(range(len(problems)), key=lambda i: (problems[i].k, problems[i].rows))
    widest = max(map(len, rows))
    batches: list[list[int]] = [[]]
    for i in order:
        if batches[-1] and (len(batches[-1]) + 1) * problems[i].k * widest > LARGEST_BATCH:
            batches.append([])
        batches[-1].append(i)
    return batches


def _pack(rows: Sequence[Tensor], problems: Sequence[Problem], tol: float) -> Batch:
    used = sorted({p.rows for p in problems})
    K = max(p.k for p in problems)
    draws = np.zeros((len(problems), K, trials(K)))
    for i, p in enumerate(problems):
        rng = np.random.default_rng(p.seed)
        draws[i, 0, 0] = rng.random()
        draws[i, 1 : p.k, : trials(p.k)] = rng.random((p.k - 1, trials(p.k)))
    device = rows[0].device
    X = torch.nn.utils.rnn.pad_sequence([rows[c] for c in used], batch_first=True)
    sizes = torch.tensor([len(rows[c]) for c in used])
    k = torch.tensor([min(p.k, len(rows[p.rows])) for p in problems])
    owner = torch.tensor([used.index(p.rows) for p in problems])
    tried = torch.tensor([trials(p.k) for p in problems])
    sizes, k, owner, tried = (t.to(device) for t in (sizes, k, owner, tried))
    mean = X.sum(1, dtype=torch.float64) / sizes[:, None]
    square = torch.linalg.vector_norm(X, dim=2, dtype=torch.float64).square().sum(1) / sizes
    limit = tol * (square - mean.square().sum(1)).clamp(min=0) / X.shape[2]
    return Batch(X, sizes, owner, k, torch.from_numpy(draws).to(device), tried, limit[owner])


def _engine(batch: Batch) -> Engine:
    if batch.X.is_cuda and batch.X.dtype == torch.float32:
        from imprint.kernels.tensor.fused import Fused

        return Fused(batch)
    from imprint.kernels.tensor.plain import Plain

    return Plain(batch)


def _solve(batch: Batch, engine: Engine, max_iter: int) -> list[TensorKMeans]:
    centres = _rows(batch, _seed(batch, engine))
    steps = engine.iterate(centres, max_iter)
    labels, counts = engine.assign(centres)
    inertia = squared_gaps(batch, centres, labels).sum(1)
    summary = torch.stack([inertia, steps.double(), batch.k.double(), batch.sizes[batch.owner].double()])
    kept, results = counts > 0, []
    rank = kept.cumsum(1) - 1
    all_kept = bool((kept.sum(1) == batch.k).all())
    for i, (energy, step, k, size) in enumerate(summary.T.tolist()):
        use = slice(0, int(k)) if all_kept else torch.nonzero(kept[i]).ravel()
        own = labels[i, : int(size)]
        own = own if all_kept else rank[i][own]
        results.append(TensorKMeans(centres[i, use], own, counts[i, use], energy, int(step)))
    return results


def _seed(batch: Batch, engine: Engine) -> Tensor:
    """Greedy k-means++ for all problems at once.  # (p, K)"""
    p, K, T = batch.draws.shape
    sizes = batch.sizes[batch.owner]  # (p,)
    chosen = torch.empty((p, K), dtype=torch.long, device=batch.X.device)
    chosen[:, 0] = torch.minimum((batch.draws[:, 0, 0] * sizes).long(), sizes - 1)
    unbounded = torch.full((p, batch.X.shape[1]), torch.inf, dtype=batch.X.dtype, device=batch.X.device)
    closest = engine.nearer(chosen[:, :1].contiguous(), unbounded)[:, 0]
    counted = torch.arange(T, device=batch.X.device) < batch.tried[:, None]  # (p, T)
    for j in range(1, K):
        total = closest.cumsum(1, dtype=torch.float64)
        drawn = torch.searchsorted(total, batch.draws[:, j] * total[:, -1:], right=True)
        drawn = torch.minimum(drawn, sizes[:, None] - 1)
        nearer = engine.nearer(drawn, closest)  # (p, T, n)
        cost = torch.where(counted, nearer.sum(2, dtype=torch.float64), torch.inf)
        best = cost.argmin(1, keepdim=True)
        chosen[:, j] = drawn.gather(1, best)[:, 0]
        closest = nearer.gather(1, best[:, :, None].expand(-1, 1, nearer.shape[2]))[:, 0]
    return chosen


def _rows(batch: Batch, index: Tensor) -> Tensor:
    """Rows of every problem's own class.  # (p, t) -> (p, t, d)"""
    return batch.X[batch.owner[:, None], index]


def squared_gaps(batch: Batch, centres: Tensor, labels: Tensor) -> Tensor:
    """Squared distance of every row to its own centre, 0 for padding, in float64.  # (p, n)"""
    gaps = torch.zeros(labels.shape, dtype=torch.float64, device=labels.device)
    places = torch.arange(labels.shape[1], device=labels.device)
    for i in range(len(labels)):
        own = batch.X[batch.owner[i]] - centres[i].index_select(0, labels[i])
        gaps[i] = torch.linalg.vector_norm(own, dim=1, dtype=torch.float64).square()
    return gaps * (places < batch.sizes[batch.owner][:, None])


def relocate(batch: Batch, centres: Tensor, labels: Tensor, counts: Tensor) -> Tensor:
    """Give empty clusters, in place, the rows farthest from their centres, as scikit-learn does.  # (p,) moved?"""
    used = torch.arange(counts.shape[1], device=counts.device) < batch.k[:, None]
    empty = (counts == 0) & used
    moved = torch.zeros(len(counts), dtype=torch.bool, device=counts.device)
    gaps = squared_gaps(batch, centres, labels)
    for i in torch.nonzero(empty.any(1)).ravel().tolist():
        slots = torch.nonzero(empty[i]).ravel()
        value, row = gaps[i].topk(len(slots))
        slots, row = slots[value > 0], row[value > 0]
        centres[i, slots] = batch.X[batch.owner[i], row]
        moved[i] = len(row) > 0
    return moved
