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
    """The passes over the data, for one batch."""

    def seed(self) -> Tensor:
        """Rows to start from, by greedy k-means++ with the batch's draws.  # (p, K)"""

    def iterate(self, centres: Tensor, max_iter: int) -> Tensor:
        """Lloyd's iteration of all problems to their ends: `centres` (p, K, d) are moved in place.  # (p,) steps"""

    def assign(self, centres: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Labels, counts and inertia.  # (p, n), (p, K), (p,)"""


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
    lengths = [len(rows[c]) for c in used]
    per_problem = [(min(p.k, len(rows[p.rows])), used.index(p.rows), trials(p.k)) for p in problems]
    whole = torch.tensor([*lengths, *(v for column in zip(*per_problem) for v in column)]).to(device)  # one copy
    sizes, k, owner, tried = torch.split(whole, [len(used), *[len(problems)] * 3])
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
    centres = batch.X[batch.owner[:, None], engine.seed()]
    steps = engine.iterate(centres, max_iter)
    labels, counts, inertia = engine.assign(centres)
    kept, results = counts > 0, []
    rank = kept.cumsum(1) - 1
    all_kept = (kept.sum(1) == batch.k).double()
    summary = torch.stack([inertia, steps.double(), batch.k.double(), batch.sizes[batch.owner].double(), all_kept])
    for i, (energy, step, k, size, whole) in enumerate(summary.T.tolist()):
        use = slice(0, int(k)) if whole else torch.nonzero(kept[i]).ravel()
        own = labels[i, : int(size)]
        own = own if whole else rank[i][own]
        results.append(TensorKMeans(centres[i, use], own, counts[i, use], energy, int(step)))
    return results


def relocate(batch: Batch, centres: Tensor, gaps: Tensor, counts: Tensor) -> Tensor:
    """Give empty clusters, in place, the rows farthest from their centres, as scikit-learn does.  # (p,) moved?"""
    used = torch.arange(counts.shape[1], device=counts.device) < batch.k[:, None]
    empty = (counts == 0) & used
    moved = torch.zeros(len(counts), dtype=torch.bool, device=counts.device)
    rounding = 1e-12 * batch.X.square().sum(2).amax(1).double()  # a row that is its centre, up to float32
    for i in torch.nonzero(empty.any(1)).ravel().tolist():
        slots = torch.nonzero(empty[i]).ravel()
        value, row = gaps[i].topk(len(slots))
        apart = value > rounding[batch.owner[i]]
        slots, row = slots[apart], row[apart]
        centres[i, slots] = batch.X[batch.owner[i], row]
        moved[i] = len(row) > 0
    return moved
