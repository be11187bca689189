"""`compare`: ranks methods over instances, and tests which differences are significant.

The tables of scores that it takes are read in `imprint.stats.scores`.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import NamedTuple

from imprint.core.arrays import Array
from imprint.core.errors import ParameterError, unknown
from imprint.stats.rank_tests import (
    Friedman,
    friedman,
    holm,
    rank_rows,
    wilcoxon,
)
from imprint.stats.scores import Scores, read_scores


class Pair(NamedTuple):
    """Two methods, and whether they differ significantly.

    Examples
    --------
    >>> from imprint.stats import compare
    >>> compare([[90, 80]] * 6, ["a", "b"]).pairs[0]
    Pair(first='a', second='b', p=0.03125, adjusted=0.03125, significant=True)
    """

    first: str
    second: str
    p: float  # of the Wilcoxon test
    adjusted: float  # the same, adjusted by Holm for the number of pairs
    significant: bool

    @property
    def methods(self) -> frozenset[str]:
        """The two methods, without an order."""
        return frozenset((self.first, self.second))


@dataclass(frozen=True)
class Comparison:
    """The result of `compare`, an immutable value.

    Examples
    --------
    >>> from imprint.stats import compare
    >>> result = compare([[90, 80, 70]] * 8, ["a", "b", "c"])
    >>> result.order, result.rank("b"), result.instances
    (('a', 'b', 'c'), 2.0, 8)
    >>> round(result.friedman.p, 6)
    0.000335
    >>> result.pair("c", "a").significant, result.groups
    (True, ())
    """

    names: tuple[str, ...]  # the methods in the order of the input
    ranks: tuple[float, ...]
    """The average rank of each method, in the order of `names`; rank 1 is the highest
    score.
    """
    friedman: Friedman  # the test of the hypothesis that all methods perform alike
    pairs: tuple[Pair, ...]  # every pair once, in the order of `names`
    alpha: float  # the level of significance
    instances: int  # the number of instances

    @property
    def order(self) -> tuple[str, ...]:
        """The methods from best to worst average rank; equal ranks in the order of
        their names.
        """
        ranked = sorted(zip(self.ranks, self.names))
        return tuple(name for _, name in ranked)

    @cached_property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """The maximal runs of methods, in the order of their ranks, of which no two
        differ significantly.
        """
        differ = {pair.methods for pair in self.pairs if pair.significant}
        order = self.order

        def may_join(method: str, run: Sequence[str]) -> bool:
            return all(frozenset((method, other)) not in differ for other in run)

        groups = []
        end = 0
        for start in range(len(order)):
            # The longest run from here. It never ends before that of the start before,
            # because a part of a run without a difference has none either.
            previous_end = end
            while end < len(order) and may_join(order[end], order[start:end]):
                end += 1
            # A run that ends where the one before ended is a part of that one.
            is_maximal = end > previous_end
            if is_maximal and end - start > 1:
                groups.append(order[start:end])
        return tuple(groups)

    def rank(self, name: str) -> float:
        """The average rank of one method."""
        if name not in self.names:
            raise unknown("method", name, self.names)
        position = self.names.index(name)
        return self.ranks[position]

    def pair(self, first: str, second: str) -> Pair:
        """The comparison of two methods, in either order."""
        for pair in self.pairs:
            if pair.methods == {first, second}:
                return pair
        known = [f"{pair.first}, {pair.second}" for pair in self.pairs]
        raise unknown("pair of methods", f"{first}, {second}", known)


def compare(
    scores: Scores,
    names: Sequence[Hashable] | str | None = None,
    instances: Sequence[Hashable] | str | None = None,
    alpha: float = 0.05,
) -> Comparison:
    """Rank methods over instances and test which differences are significant.

    With three or more methods, a pair is significant if Friedman's test rejects at
    `alpha` and the Holm-adjusted Wilcoxon p-value is at most `alpha`; with two methods,
    the Wilcoxon test decides. `scores` is one of

    - an array, instances x methods, with the `names` of the methods (`instances`:
      labels of the rows);
    - a mapping of methods, `{method: {instance: score}}`: methods are aligned by
      instance;
    - a wide table, one column per method: pandas, pyarrow, a mapping of columns or a
      list of dict rows, with `instances` the name of the instance column (`names`: the
      columns of the methods [default: all others]);
    - a long table, one row per score, with `names` and `instances` the names of the
      columns of the method and of the instance; the remaining column holds the scores.

    Parameters
    ----------
    scores : array-like, mapping or table
        Higher scores are better.
    names : sequence or str, optional
        The methods, or the column that names them.
    instances : sequence or str, optional
        Labels of the rows, or the column that holds them. [default: row numbers]
    alpha : float
        The level of significance, between 0 and 1. [default: 0.05]

    Returns
    -------
    Comparison
        Ranks, tests, and groups of methods that do not differ.

    Raises
    ------
    ParameterError
        A score is missing, duplicate or not finite; the message names it.

    Examples
    --------
    >>> from imprint.stats import compare
    >>> result = compare([[90, 80, 70]] * 6, ["a", "b", "c"])
    >>> result.ranks, result.friedman.p < 0.05
    ((1.0, 2.0, 3.0), True)
    >>> result.pair("a", "b")
    Pair(first='a', second='b', p=0.03125, adjusted=0.09375, significant=False)
    >>> result.groups
    (('a', 'b', 'c'),)
    """
    if not (isinstance(alpha, int | float) and 0 < alpha < 1):
        raise ParameterError(
            f"compare(alpha={alpha!r}): alpha must be a number between 0 and 1."
        )
    methods, values = read_scores(scores, names, instances)
    overall = friedman(values)
    average_ranks = rank_rows(values).mean(axis=0)
    # Of two methods, Friedman's test is a sign test: weaker than Wilcoxon's.
    may_differ = len(methods) == 2 or overall.p <= alpha
    # p-values are never 0, so no pair is significant at level 0.
    level = alpha if may_differ else 0.0
    return Comparison(
        names=methods,
        ranks=tuple(average_ranks.tolist()),
        friedman=overall,
        pairs=_pairs(methods, values, level),
        alpha=float(alpha),
        instances=len(values),
    )


def _pairs(
    methods: Sequence[str],
    values: Array,
    level: float,
) -> tuple[Pair, ...]:
    """The Wilcoxon tests of every pair of methods, at a level of significance."""
    columns = combinations(values.T, 2)
    raw = [wilcoxon(first, second) for first, second in columns]
    pairs = []
    for names, p, adjusted in zip(
        combinations(methods, 2),
        raw,
        holm(raw).tolist(),
    ):
        pairs.append(Pair(*names, p, adjusted, significant=adjusted <= level))
    return tuple(pairs)
