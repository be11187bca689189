"""k-means passes fused in Triton, on the rows where they lie; converged problems cost
nothing.

Distances are products of float32 in three TF32 parts, as exact as float32. Sums of rows
are kept as integers of 62 bits to which changed rows are added and from which they are
taken: exact in any order, so results repeat bit for bit.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
import triton
from torch import Tensor

from imprint.kernels.tensor import iterating, seeding
from imprint.kernels.tensor.kmeans import Batch, ClusterEnds, by_label, relocate

RECORDED_STEPS = 4  # iterations that are recorded, to be replayed as one call
REPLAYS_PER_CHECK = 3  # between two checks whether all problems have converged


class Tile(NamedTuple):
    """How the data is cut for one program."""

    rows: int
    columns: int
    warps: int
    stages: int


MEASURE = Tile(64, 64, 4, 2)
SEED = Tile(32, 64, 4, 2)
ASSIGN = Tile(64, 32, 4, 3)


class Fused:
    """The passes over the data of one batch, all problems at once."""

    def __init__(self, batch: Batch):
        self.batch = batch
        self.device = batch.rows[0].device
        rows = [r.contiguous() for r in batch.rows]
        # programs read 16 bytes at a time
        self.rows = [r if r.data_ptr() % 16 == 0 else r.clone() for r in rows]
        self.n = max(map(len, self.rows))
        self.d = self.rows[0].shape[1]
        self.p, self.K, self.T = batch.draws.shape
        self.KP = max(16, triton.next_power_of_2(self.K))
        where = [r.data_ptr() for r in self.rows]
        sizes = [len(r) for r in self.rows]
        c = len(self.rows)
        # one copy
        numbers = torch.tensor(
            [*where, *sizes, *batch.owner, *batch.k, *batch.tried]
        ).to(self.device)
        self.where, self.sizes, self.owner, self.k, self.tried = torch.split(
            numbers, [c, c, *[self.p] * 3]
        )
        self.tickets = self._new(max(self.p, c), dtype=torch.int32)
        self.replays: list[Callable[[], object]] = []
        self._measure()

    def _new(self, *shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
        return torch.zeros(shape, dtype=dtype, device=self.device)

    def _room(self, *shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
        return torch.empty(shape, dtype=dtype, device=self.device)

    def _measure(self) -> None:
        c = len(self.rows)
        groups = triton.cdiv(self.n, MEASURE.rows)
        partial = self._room(c, groups, self.d, dtype=torch.float64)
        squares = self._room(c, groups, dtype=torch.float64)
        largest = self._room(c, groups)
        self.origin = self._room(c, self.d)
        self.spread = self._room(c, dtype=torch.float64)
        seeding.measure[(groups, c)](
            self.where, self.sizes, partial, squares, largest, self.origin, self.spread, self.tickets, self.d, groups,
            BN=MEASURE.rows, BD=MEASURE.columns, num_warps=MEASURE.warps, num_stages=MEASURE.stages,
        )  # fmt: skip
        self.largest = largest[:, 0]

    def _recorded(self, work: Callable[[], object]) -> Callable[[], object]:
        """A call that repeats `work`, which has run once, without the host. It is
        stored while a replay may run.
        """
        graph = torch.cuda.CUDAGraph()
        side = torch.cuda.Stream(self.device)  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(side):
            graph.capture_begin()
            work()
            graph.capture_end()
        torch.cuda.current_stream(self.device).wait_stream(side)
        self.replays.append(graph.replay)
        return self.replays[-1]

    # Seeding

    def seed(self) -> Tensor:
        blocks = triton.cdiv(self.n, SEED.rows)
        TP = max(2, triton.next_power_of_2(self.T))
        draws = torch.from_numpy(self.batch.draws).to(self.device)
        near = self._room(self.p, self.T, self.n)
        closest = self._room(self.p, self.n).fill_(torch.inf)
        cost = self._room(self.p, blocks, TP, dtype=torch.float64)
        chosen = self._new(self.p, self.K, dtype=torch.long)
        turn = self._new(self.p, dtype=torch.int32)
        sizes = self.sizes[self.owner]
        first = torch.minimum((draws[:, 0, 0] * sizes).long(), sizes - 1)
        candidates = first[:, None].repeat(1, self.T)

        def choose_next() -> None:
            seeding.seed[(blocks, self.p)](
                self.where, self.owner, self.sizes, candidates, closest, near, cost, chosen, draws, self.tried, turn,
                self.tickets, self.K, self.n, self.d, self.T, blocks, TP=TP, BB=triton.next_power_of_2(blocks),
                BN=SEED.rows, BD=SEED.columns, BC=1024, num_warps=SEED.warps, num_stages=SEED.stages,
            )  # fmt: skip

        choose_next()
        again = self._recorded(choose_next) if self.K > 3 else choose_next
        for _ in range(1, self.K):
            again()
        return chosen

    # Lloyd

    def iterate(self, chosen: Tensor, max_iter: int) -> ClusterEnds:
        self._load(chosen)
        self._step(max_iter)
        several = self._recorded(lambda: self._steps(max_iter))
        is_centre = torch.arange(self.KP, device=self.device) < self.k[:, None]
        left = True
        seen = torch.empty(2, dtype=torch.bool, pin_memory=True)
        several()
        while left:
            is_empty = ((self.counts == 0) & is_centre).any()
            seen.copy_(
                torch.stack([(self.done == 0).any(), is_empty]), non_blocking=True
            )
            copied = torch.cuda.Event()  # type: ignore[no-untyped-call]
            copied.record()
            for _ in range(REPLAYS_PER_CHECK):
                # while the host looks; what has converged costs next to nothing
                several()
            copied.synchronize()
            left, emptied = seen.tolist()
            if emptied and self._revive(chosen, max_iter):
                left = True
        self.done.zero_()
        self._nearest()
        counts = self.counts[:, : self.K].double()
        labels = self.labels.long()
        inside = (
            torch.arange(self.n, device=self.device) < self.sizes[self.owner][:, None]
        )
        scatter = by_label(torch.where(inside, self._gaps(), 0), labels, self.K)
        return ClusterEnds(
            self._centres() + self.origin[self.owner][:, None],
            labels,
            counts,
            scatter,
            self.steps,
        )

    def _load(self, chosen: Tensor) -> None:
        """Room for one batch of centres, padded."""
        self.big = self._new(self.p, self.KP, self.d)
        self.small = self._new(self.p, self.KP, self.d)
        # centres beyond a problem's k are infinitely far
        self.half = self._room(self.p, self.KP).fill_(torch.inf)
        self.labels = self._room(self.p, self.n, dtype=torch.int32).fill_(-1)
        self.sums = self._new(self.p, self.KP, self.d, dtype=torch.int64)
        self.shift = self._new(self.p, self.KP, dtype=torch.float64)
        self.counts = self._new(self.p, self.KP, dtype=torch.int32)
        self.changed, self.done, self.steps = self._new(3, self.p, dtype=torch.int32)
        self.limit = (self.batch.tol * self.spread)[self.owner]
        reach = self.n * self.largest.double().clamp(
            min=torch.finfo(torch.float32).tiny
        )
        # sums around the origin stay within 62 bits
        self.scale = torch.exp2(torch.floor(61 - torch.log2(reach)))
        self._place(chosen)

    def _place(self, chosen: Tensor, centres: Tensor | None = None) -> None:
        """Put the centres where the chosen rows or where the given centres are."""
        iterating.place[(self.K, self.p)](
            self.where, self.origin, chosen, self.owner, self.k, centres, self.big, self.small, self.half, self.K,
            self.d, KP=self.KP, DP=triton.next_power_of_2(self.d), CHOSEN=centres is None,
        )  # fmt: skip

    def _nearest(self) -> None:
        iterating.assign[(triton.cdiv(self.n, ASSIGN.rows), self.p)](
            self.where, self.origin, self.big, self.small, self.half, self.scale, self.owner, self.sizes, self.done,
            self.labels, self.sums, self.counts, self.changed, self.n, self.d, KP=self.KP, BN=ASSIGN.rows,
            BD=ASSIGN.columns, DP=triton.next_power_of_2(self.d), num_warps=ASSIGN.warps, num_stages=ASSIGN.stages,
        )  # fmt: skip

    def _step(self, most: int) -> None:
        self._nearest()
        iterating.move[(self.K, self.p)](
            self.big, self.small, self.half, self.k, self.owner, self.done, self.sums, self.counts, self.scale,
            self.shift, self.changed, self.tickets, self.limit, self.steps, self.d, most,
            KP=self.KP, BD=min(512, triton.next_power_of_2(self.d)), num_warps=4,
        )  # fmt: skip

    def _steps(self, most: int) -> None:
        for _ in range(RECORDED_STEPS):
            self._step(most)

    def _centres(self) -> Tensor:
        """Around the origins.  # (p, K, d)"""
        return self.big[:, : self.K] + self.small[:, : self.K]

    def _gaps(self) -> Tensor:
        """Squared distances to the centres.  # (p, n)"""
        out = self._room(self.p, self.n, dtype=torch.float64)
        iterating.gaps[(triton.cdiv(self.n, 32), self.p)](
            self.where, self.origin, self.big, self.small, self.owner, self.sizes, self.labels, out, self.n, self.d,
            KP=self.KP, BN=32, BD=64,
        )  # fmt: skip
        return out

    def _revive(self, chosen: Tensor, max_iter: int) -> bool:
        """Move empty clusters to rows far from their centres; returns whether any
        problem has to go on.
        """
        centres = self._centres()
        moved = relocate(
            self.batch, self.origin, centres, self._gaps(), self.counts[:, : self.K]
        )
        moved &= self.steps < max_iter
        if not bool(moved.any()):
            return False
        self._place(chosen, torch.where(moved[:, None, None], centres, self._centres()))
        self.done.masked_fill_(moved, 0)
        return True
