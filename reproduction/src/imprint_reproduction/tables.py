"""Tables over the benchmark: a row is a method, or the best of several; mean and
standard deviation over instances.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from imprint.report import TextTable, critical_difference
from imprint.stats import Comparison, compare, rank_rows
from imprint.study import Study
from imprint_reproduction.artefact import (
    Artefact,
    Finding,
    NotRunError,
    Results,
    Scores,
)
from imprint_reproduction.sections import Section, Verdict, verdict
from imprint_reproduction.setting import (
    MAX,
    Setting,
    every_norm,
    role_study,
    with_aggregator,
)

COMPONENTS = "pre / generator / post / inf / aggregator"
OTHER_BACKBONES = (
    "The published values are of other backbones: compare orders and margins, not"
    " values."
)


@dataclass(frozen=True)
class TableResult:
    """The results of the rows of a table by label, in percent.

    The methods that return a `Finding` are the tests that `artefacts.toml` names.
    """

    chosen: Mapping[str, str]  # the method that represents the row
    means: Mapping[str, float]
    stds: Mapping[str, float]
    comparison: Comparison

    def decide(self, holds: bool) -> Verdict:
        """The verdict on significance; untestable if no difference can be significant
        with so few instances.
        """
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


@dataclass(frozen=True, kw_only=True)
class Table(Artefact):
    """A table of accuracies over the benchmark, with a critical-difference diagram."""

    text: str = "{instances} instances, the median over {seeds} seeds of each."
    caption: str = "Average ranks over {instances} instances."
    rows: Sequence[Sequence[Any]]
    budgets: Sequence[int] = ()  # values of {k}
    repeated_budgets: Sequence[int] = ()  # the same with another aggregator

    def methods(self, aggregator: str) -> dict[str, list[str]]:
        """The methods that the pattern of each row describes, by label.

        With another aggregator than `max`, a table over several numbers of proxies
        leaves out `quantile`, which changes directions.
        """
        budgets, rows = self.budgets if aggregator == MAX else self.repeated_budgets, {}
        for label, pattern, *_ in self.rows:
            texts = dict.fromkeys(pattern.replace("{k}", str(k)) for k in budgets) or [
                pattern
            ]
            rows[label] = [method for text in texts for method in every_norm(text)]
            if budgets and aggregator != MAX:
                rows[label] = [
                    method for method in rows[label] if "quantile" not in method
                ]
        return rows

    def check(self, result: TableResult) -> dict[str, Finding]:
        """Test the claims of the table."""
        tests = {name: dict(claim["test"]) for name, claim in self.claims.items()}
        return {
            name: getattr(result, test.pop("name"))(**test)
            for name, test in tests.items()
        }

    def studies(self, setting: Setting) -> list[Study]:
        methods = (
            method
            for row in self.methods(setting.aggregator).values()
            for method in row
        )
        return role_study(setting, "benchmark", methods)

    def show(self, results: Results) -> Section:
        scores = self.scores(results)
        result = compare_rows(self.methods(results.aggregator), scores)
        diagram = self.picture(critical_difference(result.comparison))
        words = {"instances": len(scores.instances), "seeds": scores.values.shape[2]}
        return self.make_section(
            results, [self.cells(result, results), diagram], self.check(result), **words
        )

    def cells(self, result: TableResult, results: Results) -> TextTable:
        """The rows next to the published values; those with another aggregator next to
        the rows with `max`.

        In a method, λ is the weight decay of the backbone.
        """
        name, reference, lines = (
            results.aggregator,
            {label: numbers for label, _, *numbers in self.rows},
            [],
        )
        caption = "" if results.setting.published else OTHER_BACKBONES
        head = ("", "published, %", "here, %", "difference", "rank here", COMPONENTS)
        if name != MAX:
            caption, head = (
                "",
                (
                    "",
                    "max, %",
                    f"{name}, %",
                    "difference",
                    f"rank with {name}",
                    COMPONENTS,
                ),
            )
            reference = {}
            with suppress(NotRunError):
                with_max = compare_rows(
                    self.methods(MAX), self.scores(replace(results, aggregator=MAX))
                )
                reference = {
                    label: [mean, with_max.stds[label]]
                    for label, mean in with_max.means.items()
                }
        for label, method in result.chosen.items():
            # `numbers`: mean and standard deviation
            numbers, mean = reference.get(label, []), result.means[label]
            other = " ± ".join(f"{v:.2f}" for v in numbers)
            difference = f"{mean - numbers[0]:+.2f}" if numbers else ""
            here, rank = (
                f"{mean:.2f} ± {result.stds[label]:.2f}",
                f"{result.comparison.rank(label):.2f}",
            )
            components = with_aggregator(method, name).replace("reg={reg}", "reg=λ")
            lines.append((label, other, here, difference, rank, components))
        return TextTable(head, tuple(lines), 1, caption, remarks=1)


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
