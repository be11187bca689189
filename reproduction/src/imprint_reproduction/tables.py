"""Tables over the benchmark: a row is a method, or the best of several; mean and
standard deviation over instances.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from imprint.report import TextTable, critical_difference
from imprint.study import Study
from imprint_reproduction.artefact import (
    Artefact,
    Finding,
    NotRunError,
    Results,
)
from imprint_reproduction.claims import TABLE_CLAIMS
from imprint_reproduction.sections import Section
from imprint_reproduction.setting import (
    MAX,
    Setting,
    every_norm,
    role_study,
    with_aggregator,
)
from imprint_reproduction.table_result import TableResult, compare_rows

COMPONENTS = "pre / generator / post / inf / aggregator"
OTHER_BACKBONES = (
    "The published values are of other backbones: compare orders and margins, not"
    " values."
)


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
        checks = TABLE_CLAIMS.get(self.name, {})
        return {claim: check(result) for claim, check in checks.items()}

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
        diagram = self.image(critical_difference(result.comparison))
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
