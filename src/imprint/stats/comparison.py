"""`compare`: average ranks of methods over instances, and which differences are significant."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from imprint.core.errors import ParameterError
from imprint.core.family import unknown
from imprint.stats.rank_tests import Friedman, friedman, holm, rank_rows, wilcoxon
from imprint.stats.scores import read_scores


class Pair(NamedTuple):
    """Two methods: the p-value of the Wilcoxon test, the same adjusted by Holm, and whether they differ."""

    first: str
    second: str
    p: float
    adjusted: float
    significant: bool


@dataclass(frozen=True)
class Comparison:
    """The result of `compare`, an immutable value."""

    names: tuple[str, ...]  # the methods in the order of the input
    ranks: tuple[float, ...]
    """The average rank of each method, in the order of `names`; rank 1 is the highest score."""
    friedman: Friedman
    pairs: tuple[Pair, ...]  # every pair once, in the order of `names`
    alpha: float
    instances: int  # the number of instances

    @property
    def order(self) -> tuple[str, ...]:
        """The methods from best to worst average rank; equal ranks in the order of their names."""
        return tuple(name for _, name in sorted(zip(self.ranks, self.names)))

    @cached_property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """The maximal runs of methods, in the order of their ranks, of which no two differ significantly."""
        differ = {frozenset((pair.first, pair.second)) for pair in self.pairs if pair.significant}
        order, end, groups = self.order, 0, []
        for start in range(len(order)):
            previous_end = end
            while end < len(order) and not any(frozenset((order[end], other)) in differ for other in order[start:end]):
                end += 1
            if end > previous_end and end - start > 1:
                groups.append(order[start:end])
        return tuple(groups)

    def rank(self, name: str) -> float:
        """The average rank of one method."""
        if name not in self.names:
            raise unknown("method", name, self.names)
        return self.ranks[self.names.index(name)]

    def pair(self, first: str, second: str) -> Pair:
        """The comparison of two methods, in either order."""
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
    """Rank methods over instances and test which differences are significant; higher scores are better.

    `scores` is one of

    - an array, instances x methods, with the `names` of the methods (`instances`: labels of the rows);
    - a mapping of methods, `{method: {instance: score}}`: methods are aligned by instance;
    - a wide table, one column per method: pandas, pyarrow, a mapping of columns or a list of dict rows, with
      `instances` the name of the instance column (`names`: the columns of the methods [default: all others]);
    - a long table, one row per score, with `names` and `instances` the names of the columns of the method and of
      the instance; the remaining column holds the scores.

    A score that is missing, duplicate or not finite is an error that names it. With three or more methods, a pair is
    significant if Friedman's test rejects at `alpha` and the Holm-adjusted Wilcoxon p-value is at most `alpha`; with
    two methods, the Wilcoxon test decides.

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
    methods, values = read_scores(scores, names, instances)
    overall, ranks = friedman(values), tuple(rank_rows(values).mean(axis=0).tolist())
    testable = len(methods) == 2 or overall.p <= alpha
    p = np.array([wilcoxon(first, second) for first, second in combinations(values.T, 2)])
    pairs = tuple(
        Pair(*two, raw, adjusted, testable and adjusted <= alpha)
        for two, raw, adjusted in zip(combinations(methods, 2), p.tolist(), holm(p).tolist())
    )
    return Comparison(methods, ranks, overall, pairs, float(alpha), len(values))
