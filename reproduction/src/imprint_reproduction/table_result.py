"""The results of the rows of a table, and what can be claimed about them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from imprint.stats import Comparison, compare, rank_rows
from imprint_reproduction.artefact import Finding, Scores
from imprint_reproduction.sections import Verdict, verdict


@dataclass(frozen=True)
class TableResult:
    """The results of the rows of a table by label, in percent.

    The methods that return a `Finding` are what the claims of the paper are made of.
    """

    chosen: Mapping[str, str]  # the method that represents the row
    means: Mapping[str, float]
    stds: Mapping[str, float]
    comparison: Comparison

    def decide(self, holds: bool) -> Verdict:
        """The verdict on significance; untestable if no difference can be significant
        with so few instances.
        """
        # The smallest p-value of Wilcoxon's test on n instances is 2^(1 - n); Holm
        # multiplies the smallest by the number of pairs.
        smallest_p = 2.0 ** (1 - self.comparison.instances) * len(self.comparison.pairs)
        return (
            Verdict.UNTESTABLE if smallest_p > self.comparison.alpha else verdict(holds)
        )

    def ahead(self, rows: Sequence[str], of: Sequence[str], by: float = 0.0) -> Finding:
        """Whether the rows rank before all others, differ significantly from each, and
        lead by some points.
        """
        rank, pairs = (
            self.comparison.rank,
            {(row, o): self.comparison.pair(row, o) for row in rows for o in of},
        )
        leads = self._leads(rows, of)
        better = all(
            rank(row) < rank(o) and pair.significant for (row, o), pair in pairs.items()
        )
        figures = (
            f"{_points(leads)}, largest adjusted p"
            f" {max(pair.adjusted for pair in pairs.values()):.2g}"
        )
        return Finding(
            self.decide(better and (not by or min(leads.values()) > by)), figures
        )

    def points(
        self,
        rows: Sequence[str],
        over: Sequence[str],
        at_least: float = float("-inf"),
        below: float = float("inf"),
        needs_instances: bool = False,
    ) -> Finding:
        """Whether the leads of the rows over the best of some others are in a range, in
        percentage points.
        """
        leads = self._leads(rows, over)
        holds = all(at_least <= lead < below for lead in leads.values())
        return Finding(self.decide(holds) if needs_instances else holds, _points(leads))

    def alike(self, rows: Sequence[str]) -> Finding:
        """Whether no two of the rows differ significantly."""
        pairs = [self.comparison.pair(*two) for two in combinations(rows, 2)]
        means = [self.means[row] for row in rows]
        smallest_p = f"smallest adjusted p {min(pair.adjusted for pair in pairs):.2g}"
        figures = f"means within {max(means) - min(means):.2f} points, {smallest_p}"
        return Finding(
            self.decide(not any(pair.significant for pair in pairs)), figures
        )

    def closes_half(self, row: str, low: str, high: str) -> Finding:
        """Whether a row closes at least half of the gap between two others."""
        gap, closed = (
            self.means[high] - self.means[low],
            self.means[row] - self.means[low],
        )
        if gap <= 0:
            return Finding(
                Verdict.UNTESTABLE,
                f"there is no gap: {high} is {-gap:.2f} points below {low}",
            )
        return Finding(
            closed >= gap / 2, f"{100 * closed / gap:.0f} % of {gap:.2f} points"
        )

    def first(self, row: str) -> Finding:
        """Whether a row has the best average rank."""
        best = self.comparison.order[0]
        return Finding(best == row, f"{best} has the best average rank")

    def equal(self, rows: Sequence[str]) -> Finding:
        """Whether the rows have the same mean."""
        means = [self.means[row] for row in rows]
        return Finding(
            len(set(means)) == 1, " and ".join(f"{mean:.2f}" for mean in means)
        )

    def largest_k(self, rows: Sequence[str], k: int) -> Finding:
        """Whether the best method of each row has k proxies."""
        largest = [row for row in rows if f"(k={k}" in self.chosen[row]]
        return Finding(
            largest == list(rows), f"k = {k} is best for {', '.join(largest) or 'none'}"
        )

    def _leads(self, rows: Sequence[str], others: Sequence[str]) -> dict[str, float]:
        """By how many points each row is above the best of some others."""
        return {
            row: self.means[row] - max(self.means[o] for o in others) for row in rows
        }


def _points(leads: Mapping[str, float]) -> str:
    named = [
        f"{lead:+.2f}" if len(leads) == 1 else f"{row} {lead:+.2f}"
        for row, lead in leads.items()
    ]
    return f"{'; '.join(named)} points"


def compare_rows(methods: Mapping[str, Sequence[str]], scores: Scores) -> TableResult:
    """Choose the method with the best average rank of those of each row, and compare
    the rows.
    """
    chosen = {}
    for label, texts in methods.items():
        ranks = rank_rows(np.round(scores.medians(texts), 9)).mean(axis=0)
        # the first if several are equal
        chosen[label] = texts[int(np.argmin(np.round(ranks, 9)))]
    medians = scores.medians(list(chosen.values()))
    spread = (
        medians.std(axis=0, ddof=1) if len(medians) > 1 else medians[0] * float("nan")
    )
    means, stds = (
        dict(zip(chosen, values.tolist())) for values in (medians.mean(axis=0), spread)
    )
    return TableResult(chosen, means, stds, compare(np.round(medians, 9), list(chosen)))
