"""`compare`: who ranks where, and which differences are more than chance."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from imprint.core.errors import ParameterError
from imprint.core.family import unknown
from imprint.core.types import Array
from imprint.stats.rank_tests import Friedman, friedman, holm, rank_rows, wilcoxon
from imprint.stats.scores import read_scores


class Pair(NamedTuple):
    """Two methods compared: the Wilcoxon p, the same adjusted by Holm, and the verdict."""

    first: str
    second: str
    p: float
    adjusted: float
    significant: bool


@dataclass(frozen=True)
class Comparison:
    """What `compare` found. A value: frozen, comparable, hashable."""

    names: tuple[str, ...]
    """The methods, in the order in which they were given."""
    ranks: tuple[float, ...]
    """The average rank of each method, in the order of `names`; 1 is the highest score on every instance."""
    friedman: Friedman
    pairs: tuple[Pair, ...]
    """Every pair once, in the order of `names`."""
    groups: tuple[tuple[str, ...], ...]
    """The largest runs of two or more methods, neighbours by rank, of which no two differ significantly."""
    alpha: float
    instances: int
    """How many instances were compared."""

    @property
    def order(self) -> tuple[str, ...]:
        """The methods from best to worst average rank; equal ranks in the order of their names."""
        return _order(self.names, self.ranks)

    def rank(self, name: str) -> float:
        """The average rank of one method."""
        if name not in self.names:
            raise unknown("method", name, self.names)
        return self.ranks[self.names.index(name)]

    def pair(self, first: str, second: str) -> Pair:
        """The comparison of two methods, whichever is named first."""
        for pair in self.pairs:
            if {first, second} == {pair.first, pair.second}:
                return pair
        raise unknown("pair of methods", f"{first}, {second}", [f"{p.first}, {p.second}" for p in self.pairs])


def compare(
    scores: Any,
    names: Sequence[str] | str | None = None,
    instances: Sequence[Any] | str | None = None,
    alpha: float = 0.05,
) -> Comparison:
    """Rank methods over instances and tell which differences are significant; higher scores are better.

    `scores` is one of

    - an array, instances x methods, with the `names` of the methods (`instances`: labels of the rows);
    - a mapping of methods, `{method: {instance: score}}`: methods are aligned by instance;
    - a wide table, one column per method: pandas, pyarrow, a mapping of columns or a list of dict rows, with
      `instances` the name of the instance column (`names`: which columns are methods; by default all others);
    - a long table, one row per score, with `names` and `instances` the names of the two columns that say
      whose and where; the one column left holds the scores.

    A score that is missing, twice there or not finite is an error that names it. With three or more methods,
    a pair is significant only where Friedman's test rejects at `alpha` and the Holm-adjusted Wilcoxon p does
    too; with two methods the one Wilcoxon test decides.

    >>> result = compare([[90, 80, 70]] * 6, ["a", "b", "c"])
    >>> result.ranks, result.friedman.p < 0.05
    ((1.0, 2.0, 3.0), True)
    >>> result.pair("a", "b")
    Pair(first='a', second='b', p=0.03125, adjusted=0.09375, significant=False)
    >>> result.groups
    (('a', 'b', 'c'),)
    """
    if not (isinstance(alpha, int | float) and 0 < alpha < 1):
        raise ParameterError(f"compare(alpha={alpha!r}): alpha must be a number between 0 and 1.")
    table = read_scores(scores, names, instances)
    omnibus = friedman(table.values)
    ranks = tuple(rank_rows(table.values).mean(axis=0).tolist())
    pairs = _pairs(table.names, table.values, alpha, open_=len(table.names) == 2 or omnibus.p <= alpha)
    groups = _groups(_order(table.names, ranks), pairs)
    return Comparison(table.names, ranks, omnibus, pairs, groups, float(alpha), len(table.values))


def _pairs(names: Sequence[str], values: Array, alpha: float, open_: bool) -> tuple[Pair, ...]:
    both = list(combinations(range(len(names)), 2))
    raw = np.array([wilcoxon(values[:, i], values[:, j]) for i, j in both])
    return tuple(
        Pair(names[i], names[j], p, adjusted, open_ and adjusted <= alpha)
        for (i, j), p, adjusted in zip(both, raw.tolist(), holm(raw).tolist())
    )


def _order(names: Sequence[str], ranks: Sequence[float]) -> tuple[str, ...]:
    return tuple(name for _, name in sorted(zip(ranks, names)))


def _groups(order: tuple[str, ...], pairs: Iterable[Pair]) -> tuple[tuple[str, ...], ...]:
    """From every method as far down the order as nothing differs, unless the run before reached as far."""
    differ = {frozenset((pair.first, pair.second)) for pair in pairs if pair.significant}
    groups, reached = [], 0
    for start in range(len(order)):
        end = start + 1
        while end < len(order) and not _any_differ(order[end], order[start:end], differ):
            end += 1
        if end > reached and end - start > 1:
            groups.append(order[start:end])
        reached = max(reached, end)
    return tuple(groups)


def _any_differ(name: str, others: Iterable[str], differ: set[frozenset[str]]) -> bool:
    return any(frozenset((name, other)) in differ for other in others)
