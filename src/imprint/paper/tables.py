"""Tables over the benchmark: a row is a method, or the best of several; mean and standard deviation over instances."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import combinations

from imprint.paper.artefact import Artefact, Finding, NotRunError, Results, Scores
from imprint.paper.setting import MAX, Setting
from imprint.paper.studies import role_study, with_aggregator
from imprint.report.critical_difference import critical_difference, ranks_by_row
from imprint.report.sections import Section, Verdict, verdict
from imprint.report.text_table import TextTable
from imprint.stats import Comparison
from imprint.study import Study

COMPONENTS = "pre / generator / post / inf / aggregator"


@dataclass(frozen=True)
class TableRow:
    """A row of a published table, represented by the method with the best average rank."""

    label: str
    methods: tuple[str, ...]
    mean: float | None = None
    std: float | None = None


@dataclass(frozen=True)
class TableResult:
    """The results of the rows of a table, in percent.

    The methods that return a `Finding` are the tests that `artefacts.toml` names.
    """

    labels: tuple[str, ...]
    chosen: tuple[str, ...]
    means: dict[str, float]
    stds: dict[str, float]
    comparison: Comparison

    def percent(self, label: str) -> str:
        """The mean and standard deviation of a row."""
        return f"{self.means[label]:.2f} ± {self.stds[label]:.2f}"

    def decide(self, holds: bool) -> Verdict:
        """The verdict on significance; untestable if no difference can be significant with so few instances."""
        smallest_p = 2.0 ** (1 - self.comparison.instances) * len(self.comparison.pairs)
        return Verdict.UNTESTABLE if smallest_p > self.comparison.alpha else verdict(holds)

    def ahead(self, rows: Sequence[str], of: Sequence[str], by: float = 0.0) -> Finding:
        """Whether the rows rank before all others, differ significantly from each, and lead by some points."""
        rank, pairs = self.comparison.rank, {(row, o): self.comparison.pair(row, o) for row in rows for o in of}
        leads = self._leads(rows, of)
        better = all(rank(row) < rank(o) and pair.significant for (row, o), pair in pairs.items())
        figures = f"{_points(leads)}, largest adjusted p {max(pair.adjusted for pair in pairs.values()):.2g}"
        return Finding(self.decide(better and (not by or min(leads.values()) > by)), figures)

    def points(
        self,
        rows: Sequence[str],
        over: Sequence[str],
        at_least: float = float("-inf"),
        below: float = float("inf"),
        needs_instances: bool = False,
    ) -> Finding:
        """Whether the leads of the rows over the best of some others are in a range, in percentage points."""
        leads = self._leads(rows, over)
        holds = all(at_least <= lead < below for lead in leads.values())
        return Finding(self.decide(holds) if needs_instances else holds, _points(leads))

    def alike(self, rows: Sequence[str]) -> Finding:
        """Whether no two of the rows differ significantly."""
        pairs, means = [self.comparison.pair(*two) for two in combinations(rows, 2)], [self.means[row] for row in rows]
        smallest_p = f"smallest adjusted p {min(pair.adjusted for pair in pairs):.2g}"
        figures = f"means within {max(means) - min(means):.2f} points, {smallest_p}"
        return Finding(self.decide(not any(pair.significant for pair in pairs)), figures)

    def closes_half(self, row: str, low: str, high: str) -> Finding:
        """Whether a row closes at least half of the gap between two others."""
        gap, closed = self.means[high] - self.means[low], self.means[row] - self.means[low]
        if gap <= 0:
            return Finding(Verdict.UNTESTABLE, f"there is no gap: {high} is {-gap:.2f} points below {low}")
        return Finding(closed >= gap / 2, f"{100 * closed / gap:.0f} % of {gap:.2f} points")

    def first(self, row: str) -> Finding:
        """Whether a row has the best average rank."""
        best = self.comparison.order[0]
        return Finding(best == row, f"{best} has the best average rank")

    def equal(self, rows: Sequence[str]) -> Finding:
        """Whether the rows have the same mean."""
        means = [self.means[row] for row in rows]
        return Finding(len(set(means)) == 1, " and ".join(f"{mean:.2f}" for mean in means))

    def largest_k(self, rows: Sequence[str], k: int) -> Finding:
        """Whether the best method of each row has k proxies."""
        method = dict(zip(self.labels, self.chosen))
        largest = [row for row in rows if f"(k={k}" in method[row]]
        return Finding(largest == list(rows), f"k = {k} is best for {', '.join(largest) or 'none'}")

    def _leads(self, rows: Sequence[str], others: Sequence[str]) -> dict[str, float]:
        """By how many points each row is above the best of some others."""
        return {row: self.means[row] - max(self.means[o] for o in others) for row in rows}


def _points(leads: dict[str, float]) -> str:
    named = [f"{lead:+.2f}" if len(leads) == 1 else f"{row} {lead:+.2f}" for row, lead in leads.items()]
    return f"{'; '.join(named)} points"


@dataclass(frozen=True, kw_only=True)
class Table(Artefact):
    """A table of accuracies over the benchmark, with a critical-difference diagram."""

    text: str = "{instances} instances, the median over {seeds} seeds of each."
    caption: str = "Average ranks over {instances} instances."
    rows: tuple[TableRow, ...]
    repeated_rows: tuple[TableRow, ...]
    """The rows with another aggregator; with fewer methods if the table searches over the number of proxies."""

    def check(self, result: TableResult) -> dict[str, Finding]:
        """Test the claims of the table."""
        tests = {name: dict(claim["test"]) for name, claim in self.claims.items()}
        return {name: getattr(result, test.pop("name"))(**test) for name, test in tests.items()}

    def studies(self, setting: Setting) -> list[Study]:
        return role_study(setting, "benchmark", dict.fromkeys(m for row in self.rows_for(setting) for m in row.methods))

    def rows_for(self, setting: Setting) -> tuple[TableRow, ...]:
        """The rows with the methods to compare."""
        return self.rows if setting.aggregator == MAX else self.repeated_rows

    def show(self, results: Results) -> Section:
        scores = self.scores(results)
        result = find(self.rows_for(results.setting), scores)
        diagram = critical_difference(result.comparison), ranks_by_row(result.comparison)
        cells = self._cells(result, results) if results.aggregator == MAX else self._against_max(result, results)
        words = {"instances": len(scores.instances), "seeds": scores.values.shape[2]}
        return self.make_section(results, [cells, diagram], self.check(result), **words)

    def _cells(self, result: TableResult, results: Results) -> TextTable:
        """The rows next to the published values."""
        lines = []
        for row, method in zip(self.rows, result.chosen):
            published = "" if row.mean is None else f"{row.mean:.2f}" + ("" if row.std is None else f" ± {row.std:.2f}")
            difference = "" if row.mean is None else f"{result.means[row.label] - row.mean:+.2f}"
            lines.append(_line(result, row.label, published, difference, method))
        head = ("", "published, %", "here, %", "difference", "rank here", COMPONENTS)
        other = "The published values are of other backbones: compare orders and margins, not values."
        return TextTable(head, tuple(lines), 1, "" if results.setting.published else other, remarks=1)

    def _against_max(self, result: TableResult, results: Results) -> TextTable:
        """The rows with another aggregator next to those with `max`, each with its own best method."""
        name, with_max, lines = results.aggregator, None, []
        with suppress(NotRunError):
            with_max = find(self.rows, self.scores(replace(results, aggregator=MAX)))
        for label, method in zip(result.labels, result.chosen):
            before = "" if with_max is None else with_max.percent(label)
            gain = "" if with_max is None else f"{result.means[label] - with_max.means[label]:+.2f}"
            lines.append(_line(result, label, before, gain, with_aggregator(method, name)))
        head = ("", "max, %", f"{name}, %", "difference", f"rank with {name}", COMPONENTS)
        return TextTable(head, tuple(lines), 1, remarks=1)


def _line(result: TableResult, label: str, other: str, difference: str, method: str) -> tuple[str, ...]:
    """A row of a table; λ is the weight decay of the backbone."""
    rank, readable = f"{result.comparison.rank(label):.2f}", method.replace("reg={reg}", "reg=λ")
    return label, other, result.percent(label), difference, rank, readable


def find(rows: Sequence[TableRow], scores: Scores) -> TableResult:
    """Choose a method for every row, and compare the rows."""
    chosen = tuple(row.methods[0] if len(row.methods) == 1 else scores.best(row.methods) for row in rows)
    labels = tuple(row.label for row in rows)
    medians = scores.medians(chosen)
    spread = medians.std(axis=0, ddof=1) if len(medians) > 1 else medians[0] * float("nan")
    means, stds = (dict(zip(labels, values.tolist())) for values in (medians.mean(axis=0), spread))
    return TableResult(labels, chosen, means, stds, scores.compare(chosen, labels))
