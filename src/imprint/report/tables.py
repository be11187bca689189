"""Tables of texts in all their forms, and the tables of a study: mean score and average
rank of every method.
"""

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from imprint import recipes
from imprint.core.arrays import Array
from imprint.core.component import PARTS
from imprint.core.errors import ParameterError
from imprint.method import Method
from imprint.report import html
from imprint.stats import Comparison, compare
from imprint.stats.rank_tests import rank_rows

METRICS = ("accuracy", "macro_f1", "weighted_f1")
BACKBONE, DATASET, TASK = range(3)  # positions in an instance
WORDS = {BACKBONE: "backbone", DATASET: "data set", TASK: "task"}
LATEX = str.maketrans({"_": r"\_", "%": r"\%", "&": r"\&", "#": r"\#", "±": r"$\pm$"})


def number(value: float, form: str = ".2f") -> str:
    """A number as text; empty for NaN."""
    return "" if value != value else format(value, form)


@dataclass(frozen=True)
class TextTable:
    """A table of texts. Columns from `numbers` on are right-aligned, except the last
    `remarks`.
    """

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: int = 1
    caption: str = ""
    remarks: int = 0

    def right_aligned(self, column: int) -> bool:
        """Whether a column is right-aligned."""
        return self.numbers <= column < len(self.head) - self.remarks

    def text(self) -> list[str]:
        """The lines for a terminal, padded to columns."""
        widths = [max(map(len, column)) for column in zip(self.head, *self.rows)]
        align = [
            str.rjust if self.right_aligned(j) else str.ljust
            for j in range(len(widths))
        ]
        padded = (
            [pad(v, w) for pad, v, w in zip(align, row, widths)]
            for row in (self.head, *self.rows)
        )
        return ["  ".join(row).rstrip() for row in padded]

    def csv(self) -> str:
        """The table as CSV."""
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows([self.head, *self.rows])
        return out.getvalue()

    def latex(self) -> str:
        """The table as LaTeX (booktabs)."""
        head, *rows = (
            " & ".join(text.translate(LATEX) for text in row) + r" \\"
            for row in (self.head, *self.rows)
        )
        columns = "".join(
            "r" if self.right_aligned(j) else "l" for j in range(len(self.head))
        )
        top, bottom = (
            [rf"\begin{{tabular}}{{{columns}}}", r"\toprule"],
            [r"\bottomrule", r"\end{tabular}", ""],
        )
        return "\n".join([*top, head, r"\midrule", *rows, *bottom])

    def markdown(self) -> list[str]:
        """The lines of a Markdown table, and its caption."""
        rule = [
            "---:" if self.right_aligned(j) else "---" for j in range(len(self.head))
        ]
        lines = [
            "| " + " | ".join(map(markdown_cell, row)) + " |"
            for row in (self.head, rule, *self.rows)
        ]
        return [*lines, "", *([self.caption, ""] if self.caption else [])]

    def html(self) -> str:
        """The table as HTML, and its caption."""
        css = [
            ' class="n"' if self.right_aligned(j) else "" for j in range(len(self.head))
        ]

        def row(tag: str, texts: Sequence[str]) -> str:
            return html.row(
                *(
                    f"<{tag}{c}>{escape(v).replace(' %', '&nbsp;%')}</{tag}>"
                    for v, c in zip(texts, css)
                )
            )

        caption = f"<small>{escape(self.caption)}</small>" if self.caption else ""
        return (
            html.table(row("th", self.head), [row("td", texts) for texts in self.rows])
            + caption
        )


def markdown_cell(text: str) -> str:
    """Text for a cell of a Markdown table."""
    return text.replace("|", "\\|").replace("\n", " ")


@dataclass(frozen=True)
class MethodLine:
    """One method over the instances of a study. The score of an instance is the median
    over its seeds.
    """

    name: str  # of a recipe, or the components in which the methods differ
    method: str  # all five components
    instances: int
    mean: float
    std: float  # over instances, with n - 1; NaN for one instance
    # average rank among the methods that have all instances; NaN for the others
    rank: float
    # mean CPU seconds of an experiment: its share of generation and evaluation
    seconds: float


@dataclass(frozen=True)
class BreakdownRow:
    """One method: its mean in every column, over all columns, and its average rank."""

    name: str
    values: tuple[float, ...]
    mean: float
    rank: float


@dataclass(frozen=True)
class Breakdown:
    """The instances of one data set or one backbone. A value is NaN if the method lacks
    some of the instances.
    """

    kind: str  # "data set" or "backbone"
    name: str
    across: str  # what the columns are: "backbone", "data set" or "task"
    columns: tuple[str, ...]
    instances: int
    rows: tuple[BreakdownRow, ...]


@dataclass(frozen=True)
class Tables:
    """The contents of `study report`."""

    metric: str
    instances: int
    experiments: int
    decisions: int  # predicted test rows, over all experiments
    near_ties: int  # those whose two best scores are equal up to float rounding
    heading: str  # of the column of method names: recipes, or certain components
    # a sentence: the components that all methods without a recipe's name share
    common: str
    # by average rank; then the methods that lack instances, by mean
    lines: tuple[MethodLine, ...]
    # of the best methods; None with fewer than two methods or instances
    comparison: Comparison | None
    # a table for every data set and for every backbone
    breakdowns: tuple[Breakdown, ...]


def tabulate(
    table: pa.Table, metric: str = "accuracy", best: int = 10, named: Iterable[str] = ()
) -> Tables:
    """Summarise the results of a study: mean and standard deviation over instances of
    the median over seeds.

    The diagram compares the `best` methods by rank. Recipes in `named` keep their
    names.
    """
    if metric not in METRICS:
        raise ParameterError(
            f"tabulate(metric={metric!r}): metric must be one of {', '.join(METRICS)}."
        )
    if not len(table):
        raise ParameterError(
            "tabulate(table): the study has no finished experiment yet."
        )
    instances, instance = _groups(table, ("backbone", "dataset", "task"))
    methods, method = _groups(table, PARTS)
    names, heading, common = name_methods(methods, named)
    scores = _medians(
        instance, method, table[metric].to_numpy(), (len(instances), len(methods))
    )
    seconds = (
        table["seconds_generation"].to_numpy() + table["seconds_evaluation"].to_numpy()
    )
    cost, ranks, lines = (
        np.bincount(method, seconds) / np.bincount(method),
        _average_ranks(scores),
        [],
    )
    for i, components in enumerate(methods):
        known = scores[np.isfinite(scores[:, i]), i]
        std = float(known.std(ddof=1)) if len(known) > 1 else float("nan")
        numbers = float(known.mean()), std, float(ranks[i]), float(cost[i])
        lines.append(MethodLine(names[i], " / ".join(components), len(known), *numbers))
    order = sorted(
        range(len(methods)),
        key=lambda i: (np.isnan(ranks[i]), ranks[i], -lines[i].mean),
    )
    ordered, sorted_names = scores[:, order], [names[i] for i in order]
    count = min(best, int(np.isfinite(ranks).sum()))
    comparable = count > 1 and len(instances) > 1
    return Tables(
        metric,
        len(instances),
        len(table),
        sum(table["test_rows"].to_pylist()),
        sum(table["near_ties"].to_pylist()),
        heading,
        common,
        tuple(lines[i] for i in order),
        compare(ordered[:, :count], sorted_names[:count]) if comparable else None,
        break_down(instances, ordered, sorted_names),
    )


def _groups(
    table: pa.Table, columns: Sequence[str]
) -> tuple[list[tuple[str, ...]], Array]:
    """The distinct combinations of some text columns in order of appearance, and the
    index of each row's.
    """
    texts = (table[name].cast(pa.string()) for name in columns)
    codes = (
        pc.binary_join_element_wise(*texts, "\0").combine_chunks().dictionary_encode()
    )
    return [
        tuple(text.split("\0")) for text in codes.dictionary.to_pylist()
    ], codes.indices.to_numpy()


def _medians(
    instance: Array, method: Array, values: Array, shape: tuple[int, int]
) -> Array:
    """The median over seeds of every instance and method; NaN if there is no result.  #
    (instances, methods)
    """
    from scipy.ndimage import median

    group = instance * shape[1] + method
    present = np.unique(group)
    medians = np.full(shape[0] * shape[1], np.nan)
    medians[present] = median(values, group, present)
    return medians.reshape(shape)


def _average_ranks(scores: Array) -> Array:
    """Average ranks among the methods that have all instances; NaN for the others.  #
    (methods,)
    """
    complete = np.flatnonzero(np.isfinite(scores).all(axis=0))
    ranks = np.full(scores.shape[1], np.nan)
    ranks[complete] = (
        rank_rows(scores[:, complete]).mean(axis=0) if len(complete) else []
    )
    return ranks


def name_methods(
    methods: Sequence[tuple[str, ...]], named: Iterable[str] = ()
) -> tuple[list[str], str, str]:
    """Name methods, given as texts of their components; those in `named` that are
    recipes keep their names.

    Returns a different name for each method, the heading of a column of such names, and
    a sentence with the components that the methods without a recipe's name share.
    """
    parts = {
        name: Method.of(**recipes.describe(name).parts())
        for name in named
        if name in recipes.names()
    }
    recipe_of = {
        tuple(str(getattr(method, part)) for part in PARTS): name
        for name, method in parts.items()
    }
    others = [m for m in methods if m not in recipe_of]
    varying = [j for j in range(len(PARTS)) if len({m[j] for m in others}) > 1] or list(
        range(len(PARTS))
    )
    names = [recipe_of.get(m) or " / ".join(m[j] for j in varying) for m in methods]
    components, some_named = (
        " / ".join(PARTS[j] for j in varying),
        len(others) < len(methods),
    )
    heading = " or ".join(["recipe"] * some_named + [components] * bool(others))
    shared = ", ".join(
        f"{PARTS[j]} {others[0][j]}"
        for j in range(len(PARTS))
        if others and j not in varying
    )
    scope = "Methods that are not recipes" if some_named else "All methods"
    return names, heading, f"{scope}: {shared}." if shared else ""


def break_down(
    instances: Sequence[tuple[str, ...]], scores: Array, names: Sequence[str]
) -> tuple[Breakdown, ...]:
    """A table for every data set, then for every backbone; none for a single instance,
    and no table twice.

    `scores` has shape (instances, methods). The table of a data set has backbones as
    columns, that of a backbone data sets; if there is only one of these, the columns
    are tasks.
    """
    counts = {part: len({i[part] for i in instances}) for part in WORDS}
    breakdowns = []
    for by, other in ((DATASET, BACKBONE), (BACKBONE, DATASET)):
        repeated = counts[DATASET] == counts[BACKBONE] == 1 and by == BACKBONE
        if len(instances) == 1 or repeated:
            continue
        across = other if counts[other] > 1 else TASK
        for value in dict.fromkeys(i[by] for i in instances):
            members = [n for n, i in enumerate(instances) if i[by] == value]
            column_of, chosen = (
                np.array([instances[n][across] for n in members]),
                scores[members],
            )
            columns = tuple(dict.fromkeys(column_of.tolist()))
            # NaN if one is missing
            means = [
                chosen[column_of == column].mean(axis=0).tolist() for column in columns
            ]
            numbers = zip(
                zip(*means),
                chosen.mean(axis=0).tolist(),
                _average_ranks(chosen).tolist(),
            )
            rows = tuple(
                BreakdownRow(name, *values) for name, values in zip(names, numbers)
            )
            breakdowns.append(
                Breakdown(WORDS[by], value, WORDS[across], columns, len(members), rows)
            )
    return tuple(breakdowns)
