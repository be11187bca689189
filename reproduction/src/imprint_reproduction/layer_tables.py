"""The tables of `beyond/layers`."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from imprint.collapse import GainFit, gain_fit
from imprint.extend import Array
from imprint.report import TextTable
from imprint.stats import compare, holm, wilcoxon
from imprint_reproduction.layers import (
    ALL,
    EQUAL,
    FIXED_METRIC,
    KERNEL,
    LAST,
    LAYERS,
    MOST_ROWS,
    ORACLE,
    PUBLISHED,
    QI,
    QUARTERS,
    ROWS,
    SELECTIONS,
    SPREADS,
    SUFFIXES,
    WESTERHOFF,
    WHOLE,
    Accuracies,
    Column,
    Instance,
    Layouts,
    Network,
)
from imprint_reproduction.table_result import TableResult

LIKE_IMAGENET = ("dtd10", "flowers5", "grocery20", "intel6", "rsscn7")
"""Photographs of objects, textures and scenes. The other sets are microscopy, steel,
signs, characters, sketches and hands."""
RECIPES = (*PUBLISHED, KERNEL)
SHOWN = (LAST, LAYERS, QUARTERS, ALL)
FEWEST = 5  # points that a correlation needs
WAYS = {
    LAST: Column(KERNEL, LAST),
    "last + layers": Column(KERNEL, LAYERS),
    "last + quarters": Column(KERNEL, QUARTERS),
    "last + spreads": Column(KERNEL, SPREADS),
    "all, chosen": Column(KERNEL, ALL),
    "all, chosen, no metric": Column(FIXED_METRIC, ALL),
    "all, equal weights": Column(EQUAL, ALL),
}
"""What `kernel` reads of a network with places, and how blocks are weighted."""


@dataclass(frozen=True)
class LayerResults:
    """The results of `beyond/layers`: of finished networks."""

    networks: tuple[Network, ...]
    accuracies: Accuracies
    layouts: Layouts

    def pairs(self, has_places: bool = True) -> list[tuple[str, str]]:
        """Networks and data sets: of networks with places, or of networks of tokens."""
        return [
            (network.name, dataset)
            for network in self.networks
            for dataset in network.datasets
            if network.has_places == has_places
        ]

    def scores(
        self,
        pairs: Sequence[tuple[str, str]],
        columns: Iterable[Column],
        rows: Sequence[int] = ROWS,
    ) -> Array:
        """Accuracies, the mean over numbers of rows per class.  # (pairs, columns)"""
        listed = list(columns)
        values = np.empty((len(pairs), len(listed)))
        for i, pair in enumerate(pairs):
            for j, column in enumerate(listed):
                values[i, j] = self.accuracy(pair, column, rows)
        # far below one test row, so that equal accuracies are ties
        return values.round(9)

    def accuracy(
        self, pair: tuple[str, str], column: Column, rows: Sequence[int] = ROWS
    ) -> float:
        """The mean over numbers of rows per class."""
        found = [self.accuracies[Instance(*pair, n)][column] for n in rows]
        return float(np.mean(found))

    def compare(self, columns: Mapping[str, Column]) -> TableResult:
        """Columns by label, compared over networks with places and data sets."""
        scores = self.scores(self.pairs(), columns.values())
        means = scores.mean(axis=0).tolist()
        spread = scores.std(axis=0, ddof=1).tolist() if len(scores) > 1 else means
        return TableResult(
            {label: column.recipe for label, column in columns.items()},
            dict(zip(columns, means)),
            dict(zip(columns, spread)),
            compare(scores, list(columns)),
        )

    def gain(self, pair: tuple[str, str], recipe: str = KERNEL) -> float:
        """Points that all blocks gain over the last layer."""
        whole = self.accuracy(pair, Column(recipe, ALL))
        return whole - self.accuracy(pair, Column(recipe, LAST))


def recipes_table(results: LayerResults) -> TextTable:
    """Every recipe on every selection, with ranks on the last layer and on all blocks,
    and Wilcoxon's test of the gain with Holm's correction.
    """
    pairs = results.pairs()
    ranks = {s: results.compare(recipe_columns(s)).comparison for s in (LAST, ALL)}
    tested = {}
    for recipe in RECIPES:
        scores = results.scores(pairs, [Column(recipe, s) for s in SHOWN])
        tested[recipe] = wilcoxon(scores[:, -1], scores[:, 0])
    adjusted = dict(zip(tested, holm(list(tested.values())).tolist()))
    lines = []
    for recipe in RECIPES:
        means = results.scores(pairs, [Column(recipe, s) for s in SHOWN]).mean(axis=0)
        line = (
            recipe,
            *(f"{mean:.1f}" for mean in means),
            f"{means[-1] - means[0]:+.1f}",
            f"{adjusted[recipe]:.2g}",
            *(f"{ranks[s].rank(recipe):.2f}" for s in (LAST, ALL)),
        )
        lines.append(line)
    oracle = results.scores(pairs, [Column(ORACLE, LAST)]).mean()
    lines.append((ORACLE, f"{oracle:.1f}", *("" for _ in range(7))))
    head = (
        "accuracy, %",
        "last layer",
        "+ layers",
        "+ quarters",
        "all blocks",
        "gain",
        "p of the gain",
        "rank, last",
        "rank, all",
    )
    frame = ", ".join(
        f"{name}: p = {ranks[s].friedman.p:.2g}"
        for s, name in ((LAST, "last layer"), (ALL, "all blocks"))
    )
    return TextTable(head, tuple(lines), 1, f"Friedman's test of the recipes, {frame}.")


def recipe_columns(selection: str) -> dict[str, Column]:
    """All recipes on one selection."""
    return {recipe: Column(recipe, selection) for recipe in RECIPES}


def selections_table(results: LayerResults) -> TextTable:
    """What `kernel` reads: ranks, wins against the last layer, and p-values."""
    pairs = results.pairs()
    result = results.compare(WAYS)
    scores = results.scores(pairs, WAYS.values())
    lines = []
    for i, label in enumerate(WAYS):
        cells = ("", "", "")
        if label != LAST:
            better = int((scores[:, i] > scores[:, 0]).sum())
            worse = int((scores[:, i] < scores[:, 0]).sum())
            p = result.comparison.pair(label, LAST).adjusted
            cells = (str(better), str(worse), f"{p:.2g}")
        rank = f"{result.comparison.rank(label):.2f}"
        lines.append((label, f"{result.means[label]:.1f}", rank, *cells))
    head = ("`kernel` on", "accuracy, %", "rank", "better", "worse", "p (Holm)")
    caption = (
        f"{len(pairs)} pairs of a network and a data set, each the mean over"
        f" {_listed(ROWS)} rows per class; better and worse than the last layer."
        f" Friedman's test: p = {result.comparison.friedman.p:.2g}."
    )
    return TextTable(head, tuple(lines), 1, caption)


def _listed(values: Sequence[int]) -> str:
    *first, last = map(str, values)
    return f"{', '.join(first)} and {last}"


def rows_table(results: LayerResults) -> TextTable:
    """By rows per class: `max` and the oracle on the last layer, `kernel` on both, and
    the share of the gap that is closed.
    """
    lines = []
    for rows in ROWS:
        means = gap_means(results, [rows])
        lines.append(
            (
                str(rows),
                *(f"{value:.1f}" for value in means.values()),
                *(closed_share(means, label) for label in ("kernel, last", BEST)),
            )
        )
    head = (
        "rows per class",
        *gap_means(results, ROWS),
        "gap closed, kernel, last",
        "gap closed, all",
    )
    caption = (
        "The gap is that between one mean with `max` and the oracle, both on the last"
        " layer; over 100 % is above the oracle."
    )
    return TextTable(head, tuple(lines), 1, caption)


BEST = "kernel, all"
GAP = {
    "max, one mean": Column(QI, LAST),
    "max, k-means": Column(WESTERHOFF, LAST),
    "oracle": Column(ORACLE, LAST),
    "kernel, last": Column(KERNEL, LAST),
    BEST: Column(KERNEL, ALL),
}


def gap_means(results: LayerResults, rows: Sequence[int]) -> dict[str, float]:
    """The mean accuracies between `max` and the oracle."""
    scores = results.scores(results.pairs(), GAP.values(), rows)
    return dict(zip(GAP, scores.mean(axis=0).tolist()))


def closed_share(means: Mapping[str, float], label: str) -> str:
    """The share of the gap between one mean with `max` and the oracle; empty if the
    oracle is not above.
    """
    gap = means["oracle"] - means["max, one mean"]
    if gap <= 0:
        return ""
    return f"{100 * (means[label] - means['max, one mean']) / gap:.0f} %"


def networks_table(results: LayerResults) -> TextTable:
    """The gain of every network, by recipe; of tokens, that of inner layers."""
    lines = []
    for network in results.networks:
        pairs = [(network.name, dataset) for dataset in network.datasets]
        last, widest = (
            results.scores(pairs, [Column(recipe, s) for recipe in RECIPES])
            for s in (LAST, network.widest)
        )
        kernel = RECIPES.index(KERNEL)
        gains = (widest - last).mean(axis=0)
        lines.append(
            (
                network.name,
                f"{len(pairs)}",
                network.widest,
                f"{last[:, kernel].mean():.1f}",
                f"{widest[:, kernel].mean():.1f}",
                *(f"{gain:+.1f}" for gain in gains),
            )
        )
    head = (
        "network",
        "sets",
        "blocks",
        "kernel, last",
        "kernel, blocks",
        *(f"gain, {recipe}" for recipe in RECIPES),
    )
    return TextTable(head, tuple(lines), 3)


def sets_table(results: LayerResults) -> TextTable:
    """The gain of `kernel` on every data set, the mean over networks with places."""
    selections = [s for s in SELECTIONS if s != LAST]
    lines = []
    for dataset, pairs in by_dataset(results).items():
        columns = [Column(KERNEL, s) for s in (LAST, *selections)]
        means = results.scores(pairs, columns).mean(axis=0)
        few = gain_with(results, pairs, ROWS[0])
        many = gain_with(results, pairs, MOST_ROWS)
        lines.append(
            (
                dataset,
                "yes" if dataset in LIKE_IMAGENET else "no",
                f"{means[0]:.1f}",
                *(f"{mean - means[0]:+.1f}" for mean in means[1:]),
                f"{few:+.1f}",
                f"{many:+.1f}",
            )
        )
    head = (
        "data set",
        "like ImageNet",
        "last, %",
        *(f"+ {s}" if s != ALL else ALL for s in selections),
        f"all, {ROWS[0]} row",
        f"all, {MOST_ROWS} rows",
    )
    return TextTable(head, tuple(lines), 2)


def gain_with(
    results: LayerResults, pairs: Sequence[tuple[str, str]], rows: int
) -> float:
    """The mean gain of `kernel` with a number of rows per class."""
    columns = [Column(KERNEL, LAST), Column(KERNEL, ALL)]
    last, whole = results.scores(pairs, columns, [rows]).mean(axis=0)
    return float(whole - last)


def by_dataset(results: LayerResults) -> dict[str, list[tuple[str, str]]]:
    """The pairs of networks with places, by data set."""
    found: dict[str, list[tuple[str, str]]] = {}
    for network, dataset in sorted(results.pairs(), key=lambda pair: pair[1]):
        found.setdefault(dataset, []).append((network, dataset))
    return found


def blocks_table(results: LayerResults) -> TextTable:
    """Which layers for which images: `kernel` on the best block of each kind alone, and
    the mean share that chosen weights give to each kind.
    """
    lines = []
    for dataset, pairs in by_dataset(results).items():
        alone = [best_alone(results, pair) for pair in pairs]
        last = np.mean([values[LAST][1] for values in alone])
        differences = [
            f"{np.mean([values[kind][1] for values in alone]) - last:+.1f}"
            for kind in SUFFIXES
        ]
        shares = np.mean([kind_shares(results, pair) for pair in pairs], axis=0)
        winners = [max(values.values(), key=lambda v: v[1])[0] for values in alone]
        lines.append(
            (
                dataset,
                f"{last:.1f}",
                *differences,
                *(f"{100 * share:.0f}" for share in shares),
                ", ".join(winners),
            )
        )
    head = (
        "data set",
        "last alone, %",
        "best mean",
        "best quarters",
        "best spread",
        "weight of last, %",
        "quarters",
        "spreads",
        "best block alone, by network",
    )
    return TextTable(head, tuple(lines), 1, remarks=1)


def best_alone(
    results: LayerResults, pair: tuple[str, str]
) -> dict[str, tuple[str, float]]:
    """The last layer, and the best block of each kind alone: names and accuracies with
    the most rows.
    """
    columns = results.accuracies[Instance(*pair, MOST_ROWS)]
    best = {LAST: (LAST, columns[Column(KERNEL, LAST)])}
    for kind, suffix in SUFFIXES.items():
        found = [
            (column.selection, value)
            for column, value in columns.items()
            if column.recipe == KERNEL and column.selection.endswith(suffix)
        ]
        best[kind] = max(found, key=lambda item: item[1])
    return best


def kind_shares(results: LayerResults, pair: tuple[str, str]) -> list[float]:
    """The weights that `kernel` chose for the last layer, quarters and spreads."""
    weights = results.layouts[pair].weights
    shares = [weights[LAST]]
    for kind in (QUARTERS, SPREADS):
        suffix = SUFFIXES[kind]
        of_kind = [w for name, w in weights.items() if name.endswith(suffix)]
        shares.append(sum(of_kind))
    return shares


def collapse_table(results: LayerResults) -> TextTable:
    """How gains and accuracies follow NC1."""
    lines = []
    for label, points in collapse_points(results).items():
        fit = fit_of(points)
        if fit is not None:
            numbers = f"{fit.spearman:+.2f}", f"{fit.p_value:.2g}"
            lines.append((label, str(fit.n), *numbers))
    return TextTable(("", "n", "Spearman ρ", "p"), tuple(lines), 1)


NC1_LAST = "gain of `kernel` against NC1 of the last layer"
NC1_WHOLE = "gain of `kernel` against NC1 of the last layer over that of the whole"
NC1_BLOCK = "accuracy of a block alone minus last against NC1 of the block over last"
Points = list[tuple[float, float]]


def collapse_points(results: LayerResults) -> dict[str, Points]:
    """NC1 and what it may predict."""
    found: dict[str, Points] = {NC1_LAST: []}
    for recipe in PUBLISHED:
        found[f"gain of {recipe} against NC1 of the last layer"] = []
    found |= {NC1_WHOLE: [], NC1_BLOCK: []}
    for pair in results.pairs():
        collapse = results.layouts[pair].collapse
        last = collapse[LAST]
        for recipe in RECIPES:
            name = f"`{KERNEL}`" if recipe == KERNEL else recipe
            point = (last, results.gain(pair, recipe))
            found[f"gain of {name} against NC1 of the last layer"].append(point)
        found[NC1_WHOLE].append((last / collapse[WHOLE], results.gain(pair)))
        columns = results.accuracies[Instance(*pair, MOST_ROWS)]
        for block, value in collapse.items():
            if block not in (LAST, WHOLE):
                lead = columns[Column(KERNEL, block)] - columns[Column(KERNEL, LAST)]
                found[NC1_BLOCK].append((value / last, lead))
    return found


def fit_of(points: Points) -> GainFit | None:
    """The fit of some points; None if there are too few, or all are level."""
    if len(points) < FEWEST or len({y for _, y in points}) < 2:
        return None
    return gain_fit([x for x, _ in points], [y for _, y in points])


def nc1_table(results: LayerResults) -> TextTable:
    """NC1 of every block, the median over data sets, by network."""
    lines = []
    for network in results.networks:
        for block in (*network.blocks, WHOLE):
            values = [
                results.layouts[network.name, dataset].collapse[block]
                for dataset in network.datasets
            ]
            selected = network.selections[network.widest]
            cell = f"{len(selected)} blocks, weighted" if block == WHOLE else block
            lines.append((network.name, cell, f"{np.median(values):.2f}"))
    return TextTable(("network", "block", "NC1, median over sets"), tuple(lines), 2)


def tokens_table(results: LayerResults) -> TextTable:
    """Networks of tokens: the last layer, and several layers."""
    lines = []
    for pair, recipe in product(
        results.pairs(has_places=False), (QI, WESTERHOFF, KERNEL)
    ):
        last, several = results.scores(
            [pair], [Column(recipe, LAST), Column(recipe, LAYERS)]
        )[0]
        cells = (f"{last:.1f}", f"{several:.1f}", f"{several - last:+.1f}")
        lines.append((*pair, recipe, *cells))
    head = ("network", "data set", "recipe", "last, %", "+ layers, %", "gain")
    return TextTable(head, tuple(lines), 3)


TABLES = {
    "recipes": recipes_table,
    "selections": selections_table,
    "rows": rows_table,
    "networks": networks_table,
    "sets": sets_table,
    "blocks": blocks_table,
    "collapse": collapse_table,
    "nc1": nc1_table,
    "tokens": tokens_table,
}
"""The tables by name, in the order of the page."""
