"""All cells of a unit at once: every class summarised once, every product formed once, every decision made once."""

import time
from collections import defaultdict
from functools import partial
from typing import NamedTuple

import numpy as np

from imprint.aggregators._base import Aggregator
from imprint.core.errors import ImprintError
from imprint.core.types import Array
from imprint.kernels.decisions import Counts, count_decisions
from imprint.normalisers._base import Normaliser
from imprint.study.arrange import Arrangement, Bundle, Decisions, Lineup, View, arrange
from imprint.study.best import BestScores
from imprint.study.blocks import Blocks, Place
from imprint.study.generate import Made
from imprint.study.memory import peak_memory, reset_peak
from imprint.study.plan import Unit
from imprint.study.scores import ROUNDING, tally
from imprint.study.shortlists import Shortlists

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
    plan = arrange(unit, data.y, data.y_test)
    X, queries = np.asarray(data.X), np.asarray(data.X_test)
    work = _Work(unit, plan, Made(plan, X, unit.device), queries)
    work.charge_generation()
    for bundles in plan.groups(X.shape[1]):
        work.evaluate(bundles)
    work.columns["peak_memory"][:] = peak_memory()
    return work.columns


class Look(NamedTuple):
    """What is to be decided on the proxies of one lineup."""

    place: Place
    chosen: Decisions


class _Work:
    """One unit under evaluation."""

    def __init__(self, unit: Unit, plan: Arrangement, made: Made, queries: Array):
        self.plan, self.made, self.queries, self.device = plan, made, queries, unit.device
        self.scaled: dict[tuple[Normaliser, int], Array] = {}
        self.columns = {name: np.zeros(len(unit.cells), dtype) for name, dtype in COLUMNS.items()}

    def evaluate(self, bundles: list[Bundle]) -> None:
        """All cells of bundles that may share rows."""
        blocks = Blocks()
        looks: dict[View, list[Look]] = defaultdict(list)
        start, cells = time.process_time(), []
        served = [(m, i) for m in dict.fromkeys(m for m, _ in bundles) for i in self.plan.lineups_of(m)]
        raw = {(m, i): self.made.lineup(m, self.plan.lineups[i].classes) for m, i in served}
        blocks.foresee([post for _, posts in bundles for post in posts], [r for raws in raw.values() for r in raws])
        for m, posts in bundles:
            for i in self.plan.lineups_of(m):
                for post in posts:
                    for view, decisions in self.plan.branches[m][post].items():
                        if i in decisions:
                            blocks.add(place := Place(m, post, i), raw[m, i])
                            looks[view].append(Look(place, decisions[i]))
                            cells += _all_cells(decisions[i])
        self._charge(cells, start)
        for view, wanted in looks.items():
            self._view(blocks, view, wanted)

    def _view(self, blocks: Blocks, view: View, looks: list[Look]) -> None:
        """All decisions of one view."""
        if next(iter(looks[0].chosen)).by_best_score:
            self._by_best_score(blocks, view, looks)
            return
        together: dict[object, list[Look]] = defaultdict(list)
        for look in looks:
            together[look.place[:2]].append(look)
        for own in together.values():
            start = time.process_time()
            lists = Shortlists(_deepest(*(look.chosen for look in own)), blocks, self.plan, self.device)
            lists.fill([look.place for look in own], partial(self._queries, view.norm_inf))
            self._charge_by_proxies(blocks, own, start)
            for look in own:
                self._decide(look, lists.of(look.place), blocks.proxies(look.place))

    def _by_best_score(self, blocks: Blocks, view: View, looks: list[Look]) -> None:
        """Decisions of a view by the largest inner product: all products at once, then lineup by lineup."""
        start = time.process_time()
        queries = partial(self._queries, view.norm_inf)
        places = [look.place for look in looks]
        best = BestScores(blocks, self.plan, places, queries, self.queries.dtype, self.device)
        self._charge_by_proxies(blocks, looks, start)
        by_lineup: dict[int, list[Look]] = defaultdict(list)
        for look in looks:
            by_lineup[look.place.lineup].append(look)
        for i, own in by_lineup.items():
            start = time.process_time()
            counts = best.count([blocks.places[look.place] for look in own], i, ROUNDING)
            cells = [_all_cells(look.chosen) for look in own]
            self._record(counts, self.plan.lineups[i], cells, [blocks.proxies(look.place) for look in own])
            self._charge([cell for group in cells for cell in group], start)

    def _decide(self, look: Look, lists: list[Array], proxies: int) -> None:
        """All decisions of one view on the proxies of one lineup."""
        start = time.process_time()
        lineup = self.plan.lineups[look.place.lineup]
        gathered = _deepest(look.chosen).gather(lists)
        self._charge(_all_cells(look.chosen), start)
        for aggregator, cells in look.chosen.items():
            start = time.process_time()
            if aggregator.depth > proxies:
                raise ImprintError(f"{aggregator}: the classes gave only {proxies} proxies.")
            counts = count_decisions(aggregator.decide(gathered), lineup.truth, ROUNDING)
            self._record(counts, lineup, [cells], [proxies])
            self._charge(cells, start)

    def _queries(self, norm_inf: Normaliser, union: int) -> Array:
        """The test rows of a union of lineups as they meet the proxies."""
        if (norm_inf, union) not in self.scaled:
            self.scaled[norm_inf, union] = norm_inf.apply(self.queries[self.plan.unions[union]])
        return self.scaled[norm_inf, union]

    def _record(self, counts: Counts, lineup: Lineup, cells: list[list[int]], proxies: list[int]) -> None:
        """Keep what decisions came to, each for its cells."""
        index, repeats = [cell for group in cells for cell in group], [len(group) for group in cells]
        for name, value in tally(counts)._asdict().items():
            self.columns[name][index] = np.repeat(value, repeats)
        self.columns["proxies"][index] = np.repeat(proxies, repeats)
        self.columns["test_rows"][index] = len(lineup.rows)

    def _charge(self, cells: list[int], start: float, shares: Array | None = None) -> None:
        """Divide the time since `start` among the cells that needed what was done, equally or in these shares."""
        parts = 1 / len(cells) if shares is None else shares / shares.sum()
        self.columns["seconds_evaluation"][cells] += (time.process_time() - start) * parts

    def _charge_by_proxies(self, blocks: Blocks, looks: list[Look], start: float) -> None:
        """The same in shares of how many proxies each has."""
        shares = {cell: blocks.proxies(look.place) for look in looks for cell in _all_cells(look.chosen)}
        self._charge(list(shares), start, np.array(list(shares.values()), dtype=float))

    def charge_generation(self) -> None:
        """Divide the cost of every class among the cells that use it."""
        for m, branch in enumerate(self.plan.branches):
            cells: dict[int, list[int]] = defaultdict(list)
            for views in branch.values():
                for decisions in views.values():
                    for i, chosen in decisions.items():
                        cells[i] += _all_cells(chosen)
            users: dict[int, int] = defaultdict(int)
            for i, own in cells.items():
                for c in self.plan.lineups[i].classes:
                    users[c] += len(own)
            for i, own in cells.items():
                share = sum(self.made.spent[c, m] / users[c] for c in self.plan.lineups[i].classes)
                self.columns["seconds_generation"][own] = share


def _all_cells(chosen: Decisions) -> list[int]:
    return [cell for cells in chosen.values() for cell in cells]


def _deepest(*chosen: Decisions) -> Aggregator:
    return max((a for decisions in chosen for a in decisions), key=lambda a: a.depth)
