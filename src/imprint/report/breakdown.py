"""The same figures for every data set and for every backbone by itself."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from imprint.core.types import Array
from imprint.stats.rank_tests import rank_rows

BACKBONE, DATASET, TASK = range(3)  # places in an instance
WORDS = {BACKBONE: "backbone", DATASET: "data set", TASK: "task"}


@dataclass(frozen=True)
class BreakdownRow:
    """One method: its mean in every column, over all columns, and its average rank."""

    name: str
    values: tuple[float, ...]
    mean: float
    rank: float


@dataclass(frozen=True)
class Breakdown:
    """The instances of one data set or one backbone. A value is NaN where a method lacks the instances."""

    kind: str
    """`data set` or `backbone`."""
    name: str
    across: str
    """What the columns are: backbones, data sets or tasks."""
    columns: tuple[str, ...]
    instances: int
    rows: tuple[BreakdownRow, ...]


def break_down(instances: Sequence[tuple[str, ...]], scores: Array, names: Sequence[str]) -> tuple[Breakdown, ...]:
    """A table for every data set, then for every backbone; none twice, and none for a single instance.

    `scores` are instances x methods. Each table shows the other of the two across its columns, or the tasks where
    there is only one of the other.
    """
    counts = {place: len({i[place] for i in instances}) for place in WORDS}
    found = []
    for by, other in ((DATASET, BACKBONE), (BACKBONE, DATASET)):
        alone = counts[DATASET] == counts[BACKBONE] == 1 and by == BACKBONE
        if len(instances) > 1 and not alone:
            across = other if counts[other] > 1 else TASK
            for value in dict.fromkeys(i[by] for i in instances):
                own = [n for n, i in enumerate(instances) if i[by] == value]
                columns = [instances[n][across] for n in own]
                found.append(_table(by, value, across, columns, scores[own], names))
    return tuple(found)


def _table(by: int, value: str, across: int, at: list[str], scores: Array, names: Sequence[str]) -> Breakdown:
    columns = tuple(dict.fromkeys(at))
    whole = np.flatnonzero(np.isfinite(scores).all(axis=0))
    ranks = np.full(len(names), np.nan)
    ranks[whole] = rank_rows(scores[:, whole]).mean(axis=0) if len(whole) else []
    places = [[n for n, column in enumerate(at) if column == c] for c in columns]
    rows = tuple(
        BreakdownRow(name, tuple(_mean(scores[own, j]) for own in places), _mean(scores[:, j]), float(ranks[j]))
        for j, name in enumerate(names)
    )
    return Breakdown(WORDS[by], value, WORDS[across], columns, len(at), rows)


def _mean(values: Array) -> float:
    return float(values.mean()) if np.isfinite(values).all() else float("nan")
