"""k-means passes fused in Triton: each reads the rows once; converged problems cost nothing.

Distances are products of float32 in three TF32 parts, as exact as float32; sums run in float32 over a block of rows
and in float64 over the blocks, in a fixed order, so results repeat bit for bit.
"""

from collections.abc import Callable

import torch
import triton
from torch import Tensor

from imprint.kernels.tensor import programs
from imprint.kernels.tensor.kmeans import Batch, relocate

ROWS, COLUMNS = 128, 32  # a tile of the data
CHECK_EVERY = 8  # iterations between two looks at whether everything has converged


class Fused:
    def __init__(self, batch: Batch):
        self.batch = batch
        self.n, self.d = batch.X.shape[1:]
        self.p, K = batch.draws.shape[:2]
        self.KP = max(16, triton.next_power_of_2(K))
        self.blocks = triton.cdiv(self.n, ROWS)
        self.X = batch.X.contiguous()

    def _new(self, *shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
        return torch.zeros(shape, dtype=dtype, device=self.X.device)

    def nearer(self, candidates: Tensor, closest: Tensor) -> Tensor:
        T, closest = candidates.shape[1], closest.contiguous()
        out = torch.empty((self.p, T, self.n), dtype=closest.dtype, device=closest.device)
        tile = dict(TP=triton.next_power_of_2(T), BN=32, BD=COLUMNS)
        programs.nearer[(triton.cdiv(self.n, 32), self.p)](
            self.X, self.batch.owner, self.batch.sizes, candidates, closest, out, self.n, self.d, T, **tile
        )
        return out

    def _load(self, centres: Tensor) -> None:
        """Room for one batch of centres, padded; those beyond a problem's k are infinitely far."""
        self.C, self.half = self._new(self.p, self.KP, self.d), self._new(self.p, self.KP)
        self.C[:, : centres.shape[1]] = centres
        self.labels = self._new(self.p, self.n, dtype=torch.int32) - 1
        self.changed = self._new(self.p, self.blocks, dtype=torch.int32)
        self.counts = self._new(self.p, self.blocks, self.KP)
        self.mass, self.shift = (self._new(self.p, self.KP, dtype=torch.float64) for _ in range(2))
        self.done, self.steps = (self._new(self.p, dtype=torch.int32) for _ in range(2))
        self._halve()

    def _halve(self) -> None:
        unused = torch.arange(self.KP, device=self.X.device) >= self.batch.k[:, None]
        half = torch.linalg.vector_norm(self.C, dim=2, dtype=torch.float64).square() / 2
        self.half.copy_(half.masked_fill(unused, torch.inf))

    def _nearest(self, partial: Tensor, with_sums: bool) -> None:
        programs.assign[(self.blocks, self.p)](
            self.X, self.C, self.half, self.batch.owner, self.batch.sizes, self.done, self.labels, self.changed,
            partial, self.counts, self.n, self.d, self.blocks, KP=self.KP, BN=ROWS, BD=COLUMNS, SUM=with_sums,
        )  # fmt: skip

    def _step(self, partial: Tensor, most: int) -> None:
        self._nearest(partial, True)
        columns = min(1024, triton.next_power_of_2(self.d))
        programs.move[(int(self.batch.draws.shape[1]), self.p)](
            self.C, self.half, self.batch.k, self.done, partial, self.counts, self.mass, self.shift, self.d,
            self.blocks, KP=self.KP, BD=columns,
        )  # fmt: skip
        programs.judge[(self.p,)](
            self.done, self.changed, self.shift, self.batch.limit, self.steps, self.blocks, most,
            KP=self.KP, BB=triton.next_power_of_2(self.blocks),
        )  # fmt: skip

    def iterate(self, centres: Tensor, max_iter: int) -> Tensor:
        self._load(centres)
        partial = torch.empty((self.p, self.blocks, self.KP, self.d), device=self.X.device)
        used = torch.arange(self.KP, device=self.X.device) < self.batch.k[:, None]
        several = self._recorded(partial, max_iter)
        while True:
            several()
            empty = ((self.mass == 0) & used).any()
            left, empty_now = torch.stack([(self.done == 0).any(), empty]).tolist()
            if empty_now:
                left |= self._revive(centres.shape[1], max_iter)
            if not left:
                break
        centres.copy_(self.C[:, : centres.shape[1]])
        return self.steps

    def _recorded(self, partial: Tensor, max_iter: int) -> Callable[[], object]:
        """A few iterations as one call: on a GPU recorded once and replayed."""
        self._step(partial, max_iter)
        if not self.X.is_cuda:
            return lambda: self._steps(partial, max_iter)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._steps(partial, max_iter)
        return graph.replay

    def _steps(self, partial: Tensor, max_iter: int) -> None:
        for _ in range(CHECK_EVERY):
            self._step(partial, max_iter)

    def _revive(self, K: int, max_iter: int) -> bool:
        centres = self.C[:, :K].clone()
        moved = relocate(self.batch, centres, self.labels.clamp(min=0).long(), self.mass[:, :K])
        moved &= self.steps < max_iter
        if not bool(moved.any()):
            return False
        self.C[:, :K] = torch.where(moved[:, None, None], centres, self.C[:, :K])
        self.done.masked_fill_(moved, 0)
        self._halve()
        return True

    def assign(self, centres: Tensor) -> tuple[Tensor, Tensor]:
        self._load(centres)
        self._nearest(self.counts, False)
        return self.labels.clamp(min=0).long(), self.counts.sum(1, dtype=torch.float64)[:, : centres.shape[1]]
