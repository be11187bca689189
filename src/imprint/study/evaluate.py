"""All cells of a unit at once: every class summarised once, every product formed once, every decision made once."""

import time
from collections import defaultdict

import numpy as np

from imprint.aggregators._base import Aggregator
from imprint.core.errors import ImprintError
from imprint.core.types import Array, State
from imprint.normalisers._base import Normaliser
from imprint.study.arrange import Arrangement, Decisions, Lineup, Maker, View, arrange
from imprint.study.blocks import Blocks, pick
from imprint.study.memory import peak_memory, reset_peak
from imprint.study.plan import Unit
from imprint.study.scores import judge

COLUMNS = {
    "accuracy": np.float64,
    "macro_f1": np.float64,
    "weighted_f1": np.float64,
    "near_ties": np.int32,
    "proxies": np.int32,
    "test_rows": np.int32,
    "seconds_generation": np.float32,
    "seconds_evaluation": np.float32,
    "peak_memory": np.int64,
}
"""What is kept of every cell. Seconds are of processor time; shared work is divided among those who share it."""
MEASUREMENTS = ("seconds_generation", "seconds_evaluation", "peak_memory")
"""Columns that differ from run to run; all others repeat bit for bit."""


def evaluate(unit: Unit) -> dict[str, Array]:
    """The columns of a unit, one row per cell in the order of `unit.cells`."""
    reset_peak()
    data = unit.source.open(unit.backbone, unit.dataset)
    if data.fingerprint != unit.fingerprint:
        raise ImprintError(f"{unit}: the embeddings have changed since the study was planned.")
    work = _Work(unit, arrange(unit, data.y, data.y_test), np.asarray(data.X), np.asarray(data.X_test))
    work.generate()
    for maker, posts in work.plan.tree.items():
        work.evaluate(maker, posts)
    work.columns["peak_memory"][:] = peak_memory()
    return work.columns


class _Work:
    """One unit under evaluation."""

    def __init__(self, unit: Unit, arrangement: Arrangement, X: Array, queries: Array):
        self.plan, self.queries, self.dtype, self.device = arrangement, queries, X.dtype, unit.device
        self.X = unit.methods[0].norm_pre.apply(X)
        self.states: dict[tuple[int, Maker], State] = {}
        self.spent: dict[tuple[int, Maker], float] = {}
        self.scaled: dict[Normaliser, Array] = {}
        self.columns = {name: np.zeros(len(unit.cells), dtype) for name, dtype in COLUMNS.items()}

    def generate(self) -> None:
        """Summarise every class for every maker that needs it."""
        for c, wanted in self.plan.requests().items():
            start = time.process_time()
            requests = [request for _, request in wanted]
            rows = self.plan.classes[c].rows
            found = type(requests[0].generator).summarise_many(self.X[rows], requests, self.device)
            size = np.array([r.generator.most(len(rows)) for r in requests], dtype=float)
            shares = (time.process_time() - start) * size / size.sum()
            for (maker, _), state, share in zip(wanted, found, shares):
                self.states[c, maker], self.spent[c, maker] = state, float(share)

    def evaluate(self, maker: Maker, posts: dict[Normaliser, dict[View, dict[int, Decisions]]]) -> None:
        """All cells of one maker; its states are let go afterwards."""
        cells: dict[int, list[int]] = defaultdict(list)
        for post, views in posts.items():
            start = time.process_time()
            blocks = Blocks(maker.generator, post, self.dtype, self.device)
            for i in dict.fromkeys(i for decisions in views.values() for i in decisions):
                classes = self.plan.lineups[i].classes
                blocks.add(i, classes, [self.states[c, maker] for c in classes])
            served = [(i, _all_cells(chosen)) for decisions in views.values() for i, chosen in decisions.items()]
            for i, own in served:
                cells[i] += own
            self._charge([cell for _, own in served for cell in own], start)
            for view, decisions in views.items():
                self._look(blocks, view, decisions)
        self._charge_generation(maker, cells)
        for c in {c for i in cells for c in self.plan.lineups[i].classes}:
            del self.states[c, maker]

    def _look(self, blocks: Blocks, view: View, decisions: dict[int, Decisions]) -> None:
        """All decisions of one view."""
        start = time.process_time()
        if view.norm_inf not in self.scaled:
            self.scaled[view.norm_inf] = view.norm_inf.apply(self.queries)
        lineups = {i: self.plan.lineups[i] for i in decisions}
        lists = blocks.shortlists(_deepest(*decisions.values()), self.scaled[view.norm_inf], self.plan, decisions)
        self._charge([cell for chosen in decisions.values() for cell in _all_cells(chosen)], start)
        for i, chosen in decisions.items():
            start = time.process_time()
            keys = blocks.lineups[i]
            gathered = _deepest(chosen).gather([pick(*lists[key], lineups[i].rows) for key in keys])
            self._charge(_all_cells(chosen), start)
            proxies = sum(len(blocks.parts[key]) for key in keys)
            for aggregator, cells in chosen.items():
                start = time.process_time()
                if aggregator.depth > proxies:
                    raise ImprintError(f"{aggregator}: the classes gave only {proxies} proxies.")
                self._record(aggregator.decide(gathered), lineups[i], cells, proxies)
                self._charge(cells, start)

    def _record(self, scores: Array, lineup: Lineup, cells: list[int], proxies: int) -> None:
        for name, value in judge(scores, lineup.truth)._asdict().items():
            self.columns[name][cells] = value
        self.columns["proxies"][cells] = proxies
        self.columns["test_rows"][cells] = len(lineup.rows)

    def _charge(self, cells: list[int], start: float) -> None:
        """Divide the time since `start` among the cells that needed what was done."""
        self.columns["seconds_evaluation"][cells] += (time.process_time() - start) / len(cells)

    def _charge_generation(self, maker: Maker, cells: dict[int, list[int]]) -> None:
        """Divide the cost of every class among the cells that use it."""
        users: dict[int, int] = defaultdict(int)
        for i, own in cells.items():
            for c in self.plan.lineups[i].classes:
                users[c] += len(own)
        for i, own in cells.items():
            share = sum(self.spent[c, maker] / users[c] for c in self.plan.lineups[i].classes)
            self.columns["seconds_generation"][own] = share


def _all_cells(chosen: Decisions) -> list[int]:
    return [cell for cells in chosen.values() for cell in cells]


def _deepest(*chosen: Decisions) -> Aggregator:
    return max((a for decisions in chosen for a in decisions), key=lambda a: a.depth)
