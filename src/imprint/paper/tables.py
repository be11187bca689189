"""Tables over the benchmark: a row is a method, or the best of several; mean and standard deviation over instances."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from imprint.paper.artefact import Artefact, Findings, Results, Scores
from imprint.paper.setting import MAX, Setting
from imprint.paper.table_claims import CHECKS, TableResult, readable
from imprint.paper.work import Work, decided_by, work
from imprint.report.critical_difference import critical_difference, ranks_by_row
from imprint.report.sections import Cells, Picture, Section

COMPONENTS = "pre / generator / post / inf / aggregator"


@dataclass(frozen=True)
class TableRow:
    """A row of a published table, represented by the method with the best average rank."""

    label: str
    methods: tuple[str, ...]
    mean: float | None = None
    std: float | None = None


@dataclass(frozen=True, kw_only=True)
class Table(Artefact):
    """A table of accuracies over the benchmark, with a critical-difference diagram."""

    rows: tuple[TableRow, ...]
    repeated_rows: tuple[TableRow, ...]
    """The rows with another aggregator; with fewer methods if the table searches over the number of proxies."""

    @property
    def check(self) -> Callable[[TableResult], Findings]:
        """Tests the claims of the table."""
        return CHECKS[self.name]

    def studies(self, setting: Setting) -> list[Work]:
        return work(setting, "benchmark", dict.fromkeys(m for row in self.rows_for(setting) for m in row.methods))

    def rows_for(self, setting: Setting) -> tuple[TableRow, ...]:
        """The rows with the methods to compare."""
        return self.rows if setting.aggregator == MAX else self.repeated_rows

    def show(self, results: Results) -> Section | None:
        scores = self.scores(results)
        if scores is None:
            return None
        result = find(self.rows_for(results.setting), scores)
        caption = f"Average ranks over {len(scores.instances)} instances."
        diagram = critical_difference(result.comparison), caption, ranks_by_row(result.comparison)
        cells = self._cells(result, results) if results.aggregator == MAX else self._against_max(result, results)
        text = f"{len(scores.instances)} instances, the median over {scores.values.shape[2]} seeds of each."
        return self.filled(text, (cells, Picture(self.name, *diagram)), self.check(result))

    def _cells(self, result: TableResult, results: Results) -> Cells:
        """The rows next to the published values."""
        lines = []
        for row, method in zip(self.rows, result.chosen):
            published = "" if row.mean is None else f"{row.mean:.2f}" + ("" if row.std is None else f" ± {row.std:.2f}")
            difference = "" if row.mean is None else f"{result.means[row.label] - row.mean:+.2f}"
            rank = f"{result.comparison.rank(row.label):.2f}"
            lines.append((row.label, published, result.percent(row.label), difference, rank, readable(method)))
        head = ("", "published, %", "here, %", "difference", "rank here", COMPONENTS)
        other = "The published values are of other backbones: compare orders and margins, not values."
        return Cells(head, tuple(lines), 1, "" if results.setting.published else other, remarks=1)

    def _against_max(self, result: TableResult, results: Results) -> Cells:
        """The rows with another aggregator next to those with `max`, each with its own best method."""
        name = results.aggregator
        scores = self.scores(replace(results, aggregator=MAX))
        before = None if scores is None else find(self.rows, scores)
        lines = []
        for label, method in zip(result.labels, result.chosen):
            with_max = "" if before is None else before.percent(label)
            gain = "" if before is None else f"{result.means[label] - before.means[label]:+.2f}"
            rank = f"{result.comparison.rank(label):.2f}"
            lines.append((label, with_max, result.percent(label), gain, rank, readable(decided_by(name, method))))
        head = ("", "max, %", f"{name}, %", "difference", f"rank with {name}", COMPONENTS)
        return Cells(head, tuple(lines), 1, remarks=1)


def find(rows: Sequence[TableRow], scores: Scores) -> TableResult:
    """Choose a method for every row, and compare the rows."""
    chosen = tuple(row.methods[0] if len(row.methods) == 1 else scores.best(row.methods) for row in rows)
    labels = tuple(row.label for row in rows)
    medians = scores.medians(chosen)
    spread = medians.std(axis=0, ddof=1) if len(medians) > 1 else medians[0] * float("nan")
    means, stds = (dict(zip(labels, values.tolist())) for values in (medians.mean(axis=0), spread))
    return TableResult(labels, chosen, means, stds, scores.compare(chosen, labels))


@dataclass(frozen=True, kw_only=True)
class KernelTable(Table):
    """A table that the paper does not have; it is shown if `kernel` is compared with `max`."""

    def served(self, setting: Setting) -> bool:
        return super().served(setting) and setting.beside == "kernel"

    def show(self, results: Results) -> Section | None:
        return super().show(results) if results.setting.beside == "kernel" else None

    def missing(self, setting: Setting) -> str:
        return super().missing(setting) if setting.beside == "kernel" else "Made with --beside kernel only."
