"""k-means passes fused in Triton; converged problems cost nothing.

Distances are products of float32 in three TF32 parts, as exact as float32; sums run in float32 over a group of rows
and in float64 over the groups, in a fixed order, so results repeat bit for bit. Between two whole sums only the rows
that changed their centre are added and taken.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
import triton
from torch import Tensor

from imprint.kernels.tensor import programs
from imprint.kernels.tensor.kmeans import Batch, relocate

CHECK_EVERY = 8  # iterations between two looks at whether everything has converged


class Tile(NamedTuple):
    """How the data is cut for one program."""

    rows: int
    columns: int
    warps: int
    stages: int


ASSIGN = Tile(64, 64, 4, 3)
ADD_UP = Tile(32, 128, 4, 3)
GROUP = 16  # tiles that one program adds up
NEARER = Tile(32, 64, 4, 2)


class Fused:
    def __init__(self, batch: Batch):
        self.batch, self.X = batch, batch.X.contiguous()
        self.n, self.d = batch.X.shape[1:]
        self.p, self.K, self.T = batch.draws.shape
        self.KP = max(16, triton.next_power_of_2(self.K))
        self.blocks = triton.cdiv(self.n, ASSIGN.rows)
        self.groups = triton.cdiv(self.n, ADD_UP.rows * GROUP)

    def _new(self, *shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
        return torch.zeros(shape, dtype=dtype, device=self.X.device)

    # Seeding

    def seed(self) -> Tensor:
        blocks, TP = triton.cdiv(self.n, NEARER.rows), max(2, triton.next_power_of_2(self.T))
        near, cost = self._new(self.p, self.T, self.n), self._new(self.p, blocks, TP, dtype=torch.float64)
        closest = torch.full((self.p, self.n), torch.inf, device=self.X.device)
        chosen = self._new(self.p, self.K, dtype=torch.long)
        sizes = self.batch.sizes[self.batch.owner]
        first = torch.minimum((self.batch.draws[:, 0, 0] * sizes).long(), sizes - 1)
        candidates = first[:, None].repeat(1, self.T)
        tile = dict(TP=TP, num_warps=NEARER.warps, num_stages=NEARER.stages)
        for j in range(self.K):
            programs.nearer[(blocks, self.p)](
                self.X, self.batch.owner, self.batch.sizes, candidates, closest, near, cost, self.n, self.d, self.T,
                blocks, BN=NEARER.rows, BD=NEARER.columns, **tile,
            )  # fmt: skip
            programs.choose[(self.p,)](
                near, cost, closest, candidates, chosen, self.batch.draws, self.batch.owner, self.batch.sizes,
                self.batch.tried, j, self.K, self.n, self.T, blocks,
                TP=TP, BB=triton.next_power_of_2(blocks), BN=1024, num_warps=8,
            )  # fmt: skip
        return chosen

    # Lloyd

    def _load(self, centres: Tensor) -> None:
        """Room for one batch of centres, padded; those beyond a problem's k are infinitely far."""
        self.C, self.half = self._new(self.p, self.KP, self.d), self._new(self.p, self.KP)
        self.C[:, : self.K] = centres
        self.labels = torch.full((self.p, self.n), -1, dtype=torch.int32, device=self.X.device)
        self.before = torch.empty_like(self.labels)
        self.sums = self._new(self.p, self.KP, self.d, dtype=torch.float64)
        self.changed = self._new(self.p, self.blocks, dtype=torch.int32)
        self.counts = self._new(self.p, self.groups, self.KP)
        self.partial = torch.empty((self.p, self.groups, self.KP, self.d), device=self.X.device)
        self.mass, self.shift = (self._new(self.p, self.KP, dtype=torch.float64) for _ in range(2))
        self.done, self.steps = (self._new(self.p, dtype=torch.int32) for _ in range(2))
        self._halve()

    def _halve(self) -> None:
        unused = torch.arange(self.KP, device=self.X.device) >= self.batch.k[:, None]
        half = torch.linalg.vector_norm(self.C, dim=2, dtype=torch.float64).square() / 2
        self.half.copy_(half.masked_fill(unused, torch.inf))

    def _nearest(self) -> None:
        programs.assign[(self.blocks, self.p)](
            self.X, self.C, self.half, self.batch.owner, self.batch.sizes, self.done, self.labels, self.before,
            self.changed, self.n, self.d, self.blocks,
            KP=self.KP, BN=ASSIGN.rows, BD=ASSIGN.columns, num_warps=ASSIGN.warps, num_stages=ASSIGN.stages,
        )  # fmt: skip

    def _sum(self, whole: bool = True) -> None:
        programs.add_up[(self.groups, triton.cdiv(self.d, ADD_UP.columns), self.p)](
            self.X, self.batch.owner, self.batch.sizes, self.done, self.labels, self.before, self.partial,
            self.counts, self.n, self.d, self.groups,
            KP=self.KP, BN=ADD_UP.rows, BD=ADD_UP.columns, TILES=GROUP,
            WHOLE=whole, num_warps=ADD_UP.warps, num_stages=ADD_UP.stages,
        )  # fmt: skip

    def _step(self, most: int, whole: bool = True) -> None:
        self._nearest()
        self._sum(whole)
        programs.move[(self.K, self.p)](
            self.C, self.half, self.batch.k, self.done, self.sums, self.partial, self.counts, self.mass, self.shift,
            self.d, self.groups, KP=self.KP, BD=min(512, triton.next_power_of_2(self.d)),
            GP=triton.next_power_of_2(self.groups), WHOLE=whole, num_warps=8,
        )  # fmt: skip
        programs.judge[(self.p,)](
            self.done, self.changed, self.shift, self.batch.limit, self.steps, self.blocks, most,
            KP=self.KP, BB=triton.next_power_of_2(self.blocks),
        )  # fmt: skip

    def _steps(self, most: int) -> None:
        for i in range(CHECK_EVERY):
            self._step(most, whole=i == 0)

    def iterate(self, centres: Tensor, max_iter: int) -> Tensor:
        self._load(centres)
        used = torch.arange(self.KP, device=self.X.device) < self.batch.k[:, None]
        several = self._recorded(max_iter)
        several()
        left, seen = True, torch.empty(2, dtype=torch.bool, pin_memory=self.X.is_cuda)
        while left:
            flags = torch.stack([(self.done == 0).any(), ((self.mass == 0) & used).any()])
            seen.copy_(flags, non_blocking=True)
            copied = torch.cuda.Event() if self.X.is_cuda else None  # type: ignore[no-untyped-call]
            if copied is not None:
                copied.record()
            several()  # while the host looks; what has converged costs next to nothing
            if copied is not None:
                copied.synchronize()
            left, emptied = seen.tolist()
            if emptied and self._revive(max_iter):
                left = True
        centres.copy_(self.C[:, : self.K])
        return self.steps

    def _recorded(self, most: int) -> Callable[[], object]:
        """A few iterations as one call: on a GPU recorded once and replayed."""
        if not self.X.is_cuda:
            return lambda: self._steps(most)
        self._step(most)
        self._step(most, whole=False)  # compiled, if they were not, before they are recorded
        graph, side = torch.cuda.CUDAGraph(), torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            graph.capture_begin()
            self._steps(most)
            graph.capture_end()
        torch.cuda.current_stream().wait_stream(side)
        return graph.replay

    def _revive(self, max_iter: int) -> bool:
        centres = self.C[:, : self.K].clone()
        far = self.squared_gaps(self.labels.clamp(min=0))
        moved = relocate(self.batch, centres, far, self.mass[:, : self.K]) & (self.steps < max_iter)
        if not bool(moved.any()):
            return False
        self.C[:, : self.K] = torch.where(moved[:, None, None], centres, self.C[:, : self.K])
        self.done.masked_fill_(moved, 0)
        self._halve()
        return True

    def squared_gaps(self, labels: Tensor) -> Tensor:
        out = torch.empty((self.p, self.n), dtype=torch.float64, device=self.X.device)
        programs.gaps[(triton.cdiv(self.n, 32), self.p)](
            self.X, self.C, self.batch.owner, self.batch.sizes, labels.int(), out, self.n, self.d,
            KP=self.KP, BN=32, BD=64,
        )  # fmt: skip
        return out

    def assign(self, centres: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        self.C[:, : self.K] = centres
        self._halve()
        self.done.zero_()
        self._nearest()
        labels = self.labels.clamp(min=0).long()
        real = torch.arange(self.n, device=self.X.device) < self.batch.sizes[self.batch.owner][:, None]
        counts = self._new(self.p, self.K, dtype=torch.float64).scatter_add_(1, labels, real.double())
        return labels, counts, self.squared_gaps(labels).sum(1)
