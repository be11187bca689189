"""The claims of `beyond/layers`, each a function of its results.

The docstring of a function is the text of the claim. Claims are what one may expect
before the experiments; those that do not hold are results too.
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from imprint.stats import wilcoxon
from imprint_reproduction.artefact import Finding
from imprint_reproduction.layer_tables import (
    BEST,
    GAP,
    LIKE_IMAGENET,
    NC1_BLOCK,
    NC1_LAST,
    NC1_WHOLE,
    WAYS,
    LayerResults,
    best_alone,
    by_dataset,
    collapse_points,
    fit_of,
    gain_with,
    gap_means,
    recipe_columns,
)
from imprint_reproduction.layers import (
    ALL,
    JANSON,
    KERNEL,
    LAST,
    LAYERS,
    MOST_ROWS,
    ORACLE,
    PUBLISHED,
    QI,
    QUARTERS,
    ROWS,
    SPREADS,
    WESTERHOFF,
    Column,
)
from imprint_reproduction.sections import Claim, Verdict, verdict

Check: TypeAlias = Callable[[LayerResults], Finding]
ALLOWED_LOSS = 1.0  # points on a single set, the limit that the defaults have
LEVEL = 0.05  # of significance


def layers_help(results: LayerResults) -> Finding:
    """With `kernel`, several layers are significantly better than the last alone."""
    result = results.compare(WAYS)
    return result.ahead(
        rows=["last + layers"],
        of=[LAST],
    )


def places_help(results: LayerResults) -> Finding:
    """Quarters of inner maps are significantly better than their means."""
    result = results.compare(WAYS)
    return result.ahead(
        rows=["last + quarters"],
        of=["last + layers"],
    )


def all_help(results: LayerResults) -> Finding:
    """Quarters and spreads together are significantly better than either."""
    result = results.compare(WAYS)
    return result.ahead(
        rows=["all, chosen"],
        of=["last + quarters", "last + spreads"],
    )


def chosen_help(results: LayerResults) -> Finding:
    """Weights that each task chooses are significantly better than equal weights."""
    result = results.compare(WAYS)
    return result.ahead(
        rows=["all, chosen, no metric"],
        of=["all, equal weights"],
    )


def metric_helps(results: LayerResults) -> Finding:
    """The metric of the shrunk within-class covariance adds to chosen weights,
    significantly."""
    result = results.compare(WAYS)
    return result.ahead(
        rows=["all, chosen"],
        of=["all, chosen, no metric"],
    )


def every_recipe_gains(results: LayerResults) -> Finding:
    """Every recipe of the paper gains significantly from all blocks, at equal
    weights."""
    gains = {}
    holds = True
    for recipe in PUBLISHED:
        columns = {s: Column(recipe, s) for s in (LAST, ALL)}
        result = results.compare(columns)
        finding = result.ahead([ALL], [LAST])
        holds = holds and finding.holds == Verdict.HOLDS
        gains[recipe] = result.means[ALL] - result.means[LAST]
    figures = ", ".join(f"{recipe} {gain:+.1f}" for recipe, gain in gains.items())
    return Finding(holds, f"{figures} points")


def same_best_recipe(results: LayerResults) -> Finding:
    """The best recipe of the paper stays the best with all blocks."""
    best = []
    for selection in (LAST, ALL):
        columns = {r: c for r, c in recipe_columns(selection).items() if r != KERNEL}
        best.append(results.compare(columns).comparison.order[0])
    return Finding(best[0] == best[1], f"last layer: {best[0]}; all blocks: {best[1]}")


def kernel_first(results: LayerResults) -> Finding:
    """`kernel` is significantly better than every recipe of the paper, with all
    blocks."""
    result = results.compare(recipe_columns(ALL))
    return result.ahead(
        rows=[KERNEL],
        of=list(PUBLISHED),
    )


def never_loses(results: LayerResults) -> Finding:
    """With 20 rows per class, no set loses more than one point by all blocks (mean over
    networks)."""
    gains = {}
    for dataset, pairs in by_dataset(results).items():
        gains[dataset] = gain_with(results, pairs, MOST_ROWS)
    worst = min(gains, key=gains.__getitem__)
    lost = sum(gain < -ALLOWED_LOSS for gain in gains.values())
    figures = f"{lost} of {len(gains)} do; smallest gain {gains[worst]:+.1f} ({worst})"
    return Finding(lost == 0, figures)


def gap_closed(results: LayerResults) -> Finding:
    """`kernel` on all blocks closes the gap between one mean with `max` and the oracle,
    both on the last layer."""
    means = gap_means(results, ROWS)
    gap = means["oracle"] - means["max, one mean"]
    if gap <= 0:
        return Finding(Verdict.UNTESTABLE, f"the oracle is {-gap:.1f} points below")
    closed = means[BEST] - means["max, one mean"]
    return Finding(closed >= gap, f"{100 * closed / gap:.0f} % of {gap:.1f} points")


def above_oracle(results: LayerResults) -> Finding:
    """`kernel` on all blocks is significantly above the oracle on the last layer."""
    result = results.compare(GAP)
    return result.ahead(
        rows=[BEST],
        of=["oracle"],
    )


def max_above_oracle(results: LayerResults) -> Finding:
    """One mean with `max` on all blocks is as good as the oracle on the last layer."""
    columns = {
        "max": Column(QI, ALL),
        "oracle": Column(ORACLE, LAST),
    }
    result = results.compare(columns)
    return result.points(
        rows=["max"],
        over=["oracle"],
        at_least=0,
    )


def more_proxies(results: LayerResults) -> Finding:
    """With all blocks, k-means proxies are significantly better than one mean, as in
    the paper."""
    result = results.compare(recipe_columns(ALL))
    return result.ahead(
        rows=[WESTERHOFF],
        of=[QI, JANSON],
    )


def collapse_of_last(results: LayerResults) -> Finding:
    """The less collapsed the last layer, the more `kernel` gains from blocks."""
    return _rises(results, NC1_LAST)


def collapse_of_whole(results: LayerResults) -> Finding:
    """The more the weighted blocks lower NC1, the more `kernel` gains."""
    return _rises(results, NC1_WHOLE)


def collapse_of_blocks(results: LayerResults) -> Finding:
    """A block alone is the better compared with the last layer, the lower its NC1 is
    compared with that of the last layer."""
    return _rises(results, NC1_BLOCK, sign=-1)


def _rises(results: LayerResults, points: str, sign: int = 1) -> Finding:
    """Whether a rank correlation has this sign, significantly."""
    fit = fit_of(collapse_points(results)[points])
    if fit is None:
        return Finding(Verdict.UNTESTABLE, "too few points")
    figures = f"ρ = {fit.spearman:.2f} (p = {fit.p_value:.2g}, n = {fit.n})"
    return Finding(sign * fit.spearman > 0 and fit.p_value < LEVEL, figures)


def unlike_imagenet(results: LayerResults) -> Finding:
    """Images unlike those of ImageNet gain more than photographs of objects, textures
    and scenes."""
    gains: dict[bool, list[float]] = {True: [], False: []}
    for dataset, pairs in by_dataset(results).items():
        mean = float(np.mean([results.gain(pair) for pair in pairs]))
        gains[dataset in LIKE_IMAGENET].append(mean)
    if not all(gains.values()):
        return Finding(Verdict.UNTESTABLE, "there are only sets of one kind")
    like, unlike = (np.mean(gains[is_like]) for is_like in (True, False))
    overlap = "" if min(gains[False]) > max(gains[True]) else "; the ranges overlap"
    figures = f"{unlike:+.1f} against {like:+.1f} points{overlap}"
    return Finding(bool(unlike > like), figures)


def inner_layers_alone(results: LayerResults) -> Finding:
    """On images unlike those of ImageNet, the best block alone beats the last layer
    significantly."""
    return _best_block(results, is_like=False)


def last_layer_alone(results: LayerResults) -> Finding:
    """On photographs of objects, textures and scenes, no block alone beats the last
    layer significantly."""
    finding = _best_block(results, is_like=True)
    if finding.holds == Verdict.UNTESTABLE:
        return finding
    return finding._replace(holds=finding.holds == Verdict.FAILS)


def _best_block(results: LayerResults, is_like: bool) -> Finding:
    """Whether the kind of block that is best on average, alone, beats the last layer.

    Within a kind, the best block of each pair is chosen on the test rows, which favours
    the block.
    """
    pairs = [p for p in results.pairs() if (p[1] in LIKE_IMAGENET) == is_like]
    if len(pairs) < 6:  # no p-value of Wilcoxon's test is below 0.05
        return Finding(Verdict.UNTESTABLE, "too few sets")
    alone = [best_alone(results, pair) for pair in pairs]
    kinds = {}
    for kind in (LAST, LAYERS, QUARTERS, SPREADS):
        values = [best[kind][1] for best in alone]
        kinds[kind] = np.array(values)
    last = kinds.pop(LAST)
    best = max(kinds, key=lambda kind: float(kinds[kind].mean()))
    p = wilcoxon(kinds[best], last)
    lead = float(np.mean(kinds[best] - last))
    holds = lead > 0 and p < LEVEL
    return Finding(verdict(holds), f"{best} {lead:+.1f} points, p = {p:.2g}")


def tokens_gain(results: LayerResults) -> Finding:
    """Networks of tokens gain from several layers with `kernel`, on most sets."""
    pairs = results.pairs(has_places=False)
    if not pairs:
        return Finding(Verdict.UNTESTABLE, "there are no packs of such networks")
    columns = [Column(KERNEL, LAST), Column(KERNEL, LAYERS)]
    scores = results.scores(pairs, columns)
    gains = scores[:, 1] - scores[:, 0]
    better = int((gains > 0).sum())
    figures = f"{better} of {len(gains)} sets, {gains.mean():+.1f} points"
    return Finding(better > len(gains) / 2, figures)


CHECKS: tuple[Check, ...] = (
    layers_help,
    places_help,
    all_help,
    chosen_help,
    metric_helps,
    every_recipe_gains,
    same_best_recipe,
    more_proxies,
    kernel_first,
    never_loses,
    gap_closed,
    above_oracle,
    max_above_oracle,
    collapse_of_last,
    collapse_of_whole,
    collapse_of_blocks,
    unlike_imagenet,
    inner_layers_alone,
    last_layer_alone,
    tokens_gain,
)


def judge(results: LayerResults) -> list[Claim]:
    """All claims with their verdicts."""
    claims = []
    for check in CHECKS:
        finding = check(results)
        text = " ".join(str(check.__doc__).split())
        claims.append(Claim(text, verdict(finding.holds), finding.figures))
    return claims
