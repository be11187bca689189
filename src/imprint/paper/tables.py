"""Tables over the benchmark: a row is a method, or the best of several; mean and deviation over the instances."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from imprint.paper.artefact import Artefact, Results, Scores
from imprint.paper.setting import MAX, Setting
from imprint.paper.work import Work, decided_by, every_norm, work
from imprint.report.critical_difference import critical_difference, ranks_by_row
from imprint.report.sections import Cells, Claim, Picture, Section, Verdict, verdict
from imprint.stats import Comparison

K = (1, 2, 3, 5, 10, 20)
KMEDOIDS = "kmedoids, alternate"
TEXTS = {
    "kmeans": "kmeans(k={k})",
    KMEDOIDS: "kmedoids(k={k}, method='alternate')",
    "kmedoids": "kmedoids(k={k})",
    "mean": "mean",
    "covmax": "covmax(k={k})",
    "random": "random(k={k})",
    "fps": "fps(k={k})",
}
OTHERS = (KMEDOIDS, "mean", "covmax", "random", "fps")
"""What the paper sets k-means against; FasterPAM is an addition."""


def generator_rows(
    published: Mapping[str, tuple[float, float]], most: int, few: bool = False
) -> "tuple[TableRow, ...]":
    """Every generator with a given maximum number of proxies, under all norms.

    With `few`, 5 or 20 proxies and the norms that leave directions alone are the only candidates.
    """
    budgets = [k for k in ((20, 5) if few else reversed(K)) if k <= most]
    rows = []
    for label, text in TEXTS.items():
        generators = dict.fromkeys(text.format(k=k) for k in budgets)
        methods = [m for generator in generators for m in every_norm(generator) if not (few and "quantile" in m)]
        rows.append(TableRow(label, tuple(methods), *published.get(label, (None, None))))
    return tuple(rows)


PARTS = "pre / generator / post / inf / aggregator"


@dataclass(frozen=True)
class TableRow:
    """A row of a published table. Of several candidates the one with the best average rank stands for it."""

    label: str
    methods: tuple[str, ...]
    mean: float | None = None
    std: float | None = None


@dataclass(frozen=True)
class TableResult:
    """What came out for the rows of a table, in percent."""

    labels: tuple[str, ...]
    chosen: tuple[str, ...]
    means: dict[str, float]
    stds: dict[str, float]
    published: dict[str, float]
    comparison: Comparison

    @property
    def winner(self) -> str:
        """The row with the best average rank."""
        return self.comparison.order[0]

    def lead(self, label: str, others: Sequence[str]) -> float:
        """By how many points a row is above the best of some others."""
        return self.means[label] - max(self.means[o] for o in others)

    def published_lead(self, label: str, others: Sequence[str]) -> float:
        """The same of the published means."""
        return self.published[label] - max(self.published[o] for o in others)

    def beats(self, label: str, others: Sequence[str]) -> bool:
        """Whether a row ranks before all the others and differs significantly from each."""
        rank = self.comparison.rank
        return all(rank(label) < rank(o) and self.comparison.pair(label, o).significant for o in others)

    def judge(self, label: str, others: Sequence[str]) -> Verdict:
        """Whether a row beats the others."""
        return self.decide(self.beats(label, others))

    def decide(self, significant: bool) -> Verdict:
        """A verdict on significance; with too few instances no difference could ever be significant."""
        least = 2.0 ** (1 - self.comparison.instances) * len(self.comparison.pairs)
        return Verdict.UNTESTABLE if least > self.comparison.alpha else verdict(significant)

    def closes_half(self, label: str, low: str, high: str) -> tuple[Verdict, str]:
        """Whether a row closes half of the gap between two others or more, and the figures."""
        gap, closed = self.means[high] - self.means[low], self.means[label] - self.means[low]
        if gap <= 0:
            return Verdict.UNTESTABLE, f"there is no gap: {high} is {-gap:.2f} points below {low}"
        return verdict(closed >= gap / 2), f"{100 * closed / gap:.0f} % of {gap:.2f} points"

    def worst_p(self, label: str, others: Sequence[str]) -> float:
        """The largest adjusted p of a row against the others."""
        return max(self.comparison.pair(label, o).adjusted for o in others)


@dataclass(frozen=True, kw_only=True)
class Table(Artefact):
    """A table of accuracies over the benchmark, with a diagram of ranks."""

    rows: tuple[TableRow, ...]
    repeated_rows: tuple[TableRow, ...] = ()
    """The same rows with fewer candidates, for an aggregator that takes longer than `max`."""
    claims: Callable[[TableResult], list[Claim]]
    note: str = ""

    def studies(self, setting: Setting) -> list[Work]:
        return work(setting, "benchmark", dict.fromkeys(m for row in self.rows_for(setting) for m in row.methods))

    def rows_for(self, setting: Setting) -> tuple[TableRow, ...]:
        """The rows with the candidates that stand for them."""
        return self.repeated_rows if self.repeated_rows and setting.aggregator != MAX else self.rows

    def section(self, name: str, results: Results) -> Section:
        scores = self.scores(results)
        if scores is None:
            return self.missing(name, results)
        rows = self.rows_for(results.setting)
        found = find(rows, scores)
        caption = f"Average ranks over {len(scores.instances)} instances."
        picture = Picture(name, critical_difference(found.comparison), caption, ranks_by_row(found.comparison))
        cells = self._against_max(found, results) if results.aggregator != MAX else self._cells(found, results)
        text = f"{len(scores.instances)} instances, the median over {scores.values.shape[2]} seeds of each."
        claims = tuple(self.claims(found))
        return Section(name, self.title, self.where, text, (cells, picture), claims, self.note)

    def _cells(self, found: TableResult, results: Results) -> Cells:
        lines = []
        for row, method in zip(self.rows, found.chosen):
            here = _percent(found, row.label)
            published = "" if row.mean is None else f"{row.mean:.2f}" + ("" if row.std is None else f" ± {row.std:.2f}")
            differs = "" if row.mean is None else f"{found.means[row.label] - row.mean:+.2f}"
            rank = f"{found.comparison.rank(row.label):.2f}"
            lines.append((row.label, published, here, differs, rank, readable(method)))
        head = ("", "published, %", "here, %", "difference", "rank here")
        other = "The published values are of other backbones: compare orders and margins, not values."
        return Cells((*head, PARTS), tuple(lines), 1, "" if results.setting.published else other, remarks=1)

    def _against_max(self, found: TableResult, results: Results) -> Cells:
        """The rows with another aggregator, beside the same with `max`; each with its own best candidate."""
        name = results.aggregator
        scores = self.scores(replace(results, aggregator=MAX))
        before = None if scores is None else find(self.rows, scores)
        lines = []
        for label, method in zip(found.labels, found.chosen):
            then = "" if before is None else _percent(before, label)
            gained = "" if before is None else f"{found.means[label] - before.means[label]:+.2f}"
            rank = f"{found.comparison.rank(label):.2f}"
            lines.append((label, then, _percent(found, label), gained, rank, readable(decided_by(name, method))))
        head = ("", "max, %", f"{name}, %", "difference", f"rank with {name}")
        return Cells((*head, PARTS), tuple(lines), 1, remarks=1)


def _percent(found: TableResult, label: str) -> str:
    return f"{found.means[label]:.2f} ± {found.stds[label]:.2f}"


def readable(method: str) -> str:
    """A method for people; λ is the weight decay of the backbone at hand."""
    return method.replace("reg={reg}", "reg=λ")


def find(rows: Sequence[TableRow], scores: Scores) -> TableResult:
    """Choose a method for every row, and compare the rows."""
    chosen = tuple(row.methods[0] if len(row.methods) == 1 else scores.best(row.methods) for row in rows)
    labels = tuple(row.label for row in rows)
    medians = scores.medians(chosen)
    spread = medians.std(axis=0, ddof=1) if len(medians) > 1 else medians[0] * float("nan")
    return TableResult(
        labels,
        chosen,
        dict(zip(labels, medians.mean(axis=0).tolist())),
        dict(zip(labels, spread.tolist())),
        {row.label: row.mean for row in rows if row.mean is not None},
        scores.compare(chosen, labels),
    )


@dataclass(frozen=True, kw_only=True)
class KernelTable(Table):
    """A table that the paper does not have; it is made where `kernel` is asked for beside `max`."""

    def served(self, setting: Setting) -> bool:
        return super().served(setting) and setting.beside == "kernel"

    def section(self, name: str, results: Results) -> Section:
        if results.setting.beside != "kernel":
            return self.missing(name, results, "Made with --beside kernel only.")
        return super().section(name, results)
