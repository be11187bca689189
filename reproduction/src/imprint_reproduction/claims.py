"""The claims of the paper about its tables, each a function of the results.

A function is named after the artefact and the claim in `artefacts.toml`, where the text
of the claim and the published figures are.
"""

from collections.abc import Callable
from typing import TypeAlias

from imprint_reproduction.artefact import Finding
from imprint_reproduction.table_result import TableResult

Check: TypeAlias = Callable[[TableResult], Finding]


def table1_best(result: TableResult) -> Finding:
    """k-means with 20 proxies, L2 throughout and max beats all earlier methods
    significantly."""
    return result.ahead(
        rows=["Ours"],
        of=["Qi et al.", "Hosoda et al.", "Janson et al."],
    )


def table1_margin(result: TableResult) -> Finding:
    """The margin is 4 points."""
    return result.points(
        rows=["Ours"],
        over=["Qi et al.", "Hosoda et al.", "Janson et al."],
        at_least=4,
    )


def table1_oracle(result: TableResult) -> Finding:
    """The oracle (least squares over all classes) is above every imprinting method."""
    return result.ahead(
        rows=["Oracle"],
        of=["Qi et al.", "Hosoda et al.", "Janson et al.", "Ours"],
    )


def table1_gap(result: TableResult) -> Finding:
    """The new method closes half of the gap between one mean per class and the oracle,
    or more."""
    return result.closes_half(
        row="Ours",
        low="Qi et al.",
        high="Oracle",
    )


def generators_20_best(result: TableResult) -> Finding:
    """k-means is significantly better than every other generator (k ≤ 20)."""
    return result.ahead(
        rows=["kmeans"],
        of=["kmedoids, alternate", "mean", "covmax", "random", "fps"],
    )


def generators_20_largest_k(result: TableResult) -> Finding:
    """The best number of proxies is the largest allowed."""
    return result.largest_k(
        k=20,
        rows=["kmedoids, alternate", "covmax", "random", "fps", "kmeans", "kmedoids"],
    )


def generators_20_kmedoids(result: TableResult) -> Finding:
    """k-medoids (alternating search) with 20 proxies is on par with the mean."""
    return result.alike(
        rows=["kmedoids, alternate", "mean"],
    )


def generators_20_weaker(result: TableResult) -> Finding:
    """Covariance maximisation, random choice and furthest points are weaker than the
    mean."""
    return result.points(
        rows=["covmax", "random", "fps"],
        over=["mean"],
        below=0,
    )


def norm_post_best(result: TableResult) -> Finding:
    """L2 is the best normalisation of proxies, significantly."""
    return result.ahead(
        rows=["l2"],
        of=["quantile", "none"],
    )


def norm_pre_inf_alike(result: TableResult) -> Finding:
    """With L2-normalised proxies, norm_pre and norm_inf make no significant
    difference."""
    return result.alike(
        rows=["pre none, inf l2", "pre none, inf none", "pre l2, inf l2"],
    )


def aggregators_all_several(result: TableResult) -> Finding:
    """With all data kept, 3, 5 and 20 neighbours are significantly better than max."""
    return result.ahead(
        rows=["3-nn", "5-nn", "20-nn"],
        of=["max"],
    )


def aggregators_all_five(result: TableResult) -> Finding:
    """Five neighbours are best."""
    return result.first(
        row="5-nn",
    )


def aggregators_all_one(result: TableResult) -> Finding:
    """max equals one neighbour where proxies are L2-normalised."""
    return result.equal(
        rows=["max", "1-nn"],
    )


def aggregators_20_best(result: TableResult) -> Finding:
    """With 20 proxies max is the best aggregator."""
    return result.ahead(
        rows=["max"],
        of=["3-nn", "5-nn", "20-nn", "50-nn"],
    )


def aggregators_20_cost(result: TableResult) -> Finding:
    """Keeping 20 proxies instead of all data costs less than 3 points."""
    return result.points(
        rows=["all, 5-nn"],
        over=["max"],
        below=3,
    )


def kernel_twenty(result: TableResult) -> Finding:
    """20 proxies scored together (kernel) beat 20 scored by the best proxy (max)."""
    return result.ahead(
        rows=["kernel, k = 20"],
        of=["max, k = 20"],
    )


def kernel_five(result: TableResult) -> Finding:
    """5 proxies scored together beat 20 scored by the best proxy."""
    return result.ahead(
        rows=["kernel, k = 5"],
        of=["max, k = 20"],
    )


def kernel_neighbours(result: TableResult) -> Finding:
    """20 proxies scored together beat all embeddings with five neighbours."""
    return result.ahead(
        rows=["kernel, k = 20"],
        of=["5-nn, all"],
    )


def kernel_gap(result: TableResult) -> Finding:
    """20 proxies scored together close half of the gap between max and the oracle, or
    more."""
    return result.closes_half(
        row="kernel, k = 20",
        low="max, k = 20",
        high="oracle",
    )


def kernel_all(result: TableResult) -> Finding:
    """All embeddings scored together are above the oracle."""
    return result.ahead(
        rows=["kernel, all"],
        of=["oracle"],
    )


def generators_5_best(result: TableResult) -> Finding:
    """k-means is significantly better than every other generator (k ≤ 5), the mean
    included."""
    return result.ahead(
        rows=["kmeans"],
        of=["kmedoids, alternate", "mean", "covmax", "random", "fps"],
    )


def norms_1_essential(result: TableResult) -> Finding:
    """Without any normalisation means fail: L2 on the proxies is essential."""
    return result.ahead(
        rows=["inf none, pre none, post l2"],
        of=["inf none, pre none, post none"],
        by=5,
    )


def norms_20_best(result: TableResult) -> Finding:
    """With 20 proxies L2 stays the best normalisation of proxies, significantly,
    whatever the other norms."""
    return result.ahead(
        rows=[
            "inf l2, pre none, post l2",
            "inf none, pre none, post l2",
            "inf l2, pre l2, post l2",
        ],
        of=[
            "inf l2, pre l2, post quantile",
            "inf l2, pre l2, post none",
            "inf l2, pre none, post quantile",
            "inf none, pre none, post quantile",
            "inf l2, pre none, post none",
            "inf none, pre none, post none",
        ],
    )


def norms_20_alike(result: TableResult) -> Finding:
    """With 20 proxies and L2 on them, norm_pre and norm_inf make no significant
    difference."""
    return result.alike(
        rows=[
            "inf l2, pre none, post l2",
            "inf none, pre none, post l2",
            "inf l2, pre l2, post l2",
        ],
    )


def norms_20_none(result: TableResult) -> Finding:
    """With 20 proxies, leaving out all normalisation costs at most one point compared
    with L2 throughout."""
    return result.points(
        rows=["inf none, pre none, post none"],
        over=["inf l2, pre l2, post l2"],
        at_least=-1,
        needs_instances=True,
    )


def least_squares_one(result: TableResult) -> Finding:
    """Least squares with 20 proxies per class is worse than with one."""
    return result.ahead(
        rows=["least squares"],
        of=["20-least-squares"],
    )


def least_squares_norms_of_one(result: TableResult) -> Finding:
    """Additional normalisation impairs least squares with one proxy."""
    return result.points(
        rows=["least squares, best norms"],
        over=["least squares"],
        below=0.05,
    )


def least_squares_norms_of_many(result: TableResult) -> Finding:
    """Additional normalisation impairs least squares with several proxies."""
    return result.points(
        rows=["20-least-squares, best norms"],
        over=["20-least-squares"],
        below=0.05,
    )


def least_squares_kmeans(result: TableResult) -> Finding:
    """20 k-means proxies, computed one class at a time, are at most one point below
    20-least-squares."""
    return result.points(
        rows=["k-means, k = 20"],
        over=["20-least-squares"],
        at_least=-1,
    )


# A claim without a function here would be shown without a verdict; a test forbids it.
TABLE_CLAIMS: dict[str, dict[str, Check]] = {
    "table1": {
        "best": table1_best,
        "margin": table1_margin,
        "oracle": table1_oracle,
        "gap": table1_gap,
    },
    "generators_20": {
        "best": generators_20_best,
        "largest_k": generators_20_largest_k,
        "kmedoids": generators_20_kmedoids,
        "weaker": generators_20_weaker,
    },
    "norm_post": {
        "best": norm_post_best,
    },
    "norm_pre_inf": {
        "alike": norm_pre_inf_alike,
    },
    "aggregators_all": {
        "several": aggregators_all_several,
        "five": aggregators_all_five,
        "one": aggregators_all_one,
    },
    "aggregators_20": {
        "best": aggregators_20_best,
        "cost": aggregators_20_cost,
    },
    "kernel": {
        "twenty": kernel_twenty,
        "five": kernel_five,
        "neighbours": kernel_neighbours,
        "gap": kernel_gap,
        "all": kernel_all,
    },
    "generators_5": {
        "best": generators_5_best,
    },
    "norms_1": {
        "essential": norms_1_essential,
    },
    "norms_20": {
        "best": norms_20_best,
        "alike": norms_20_alike,
        "none": norms_20_none,
    },
    "least_squares": {
        "one": least_squares_one,
        "norms_of_one": least_squares_norms_of_one,
        "norms_of_many": least_squares_norms_of_many,
        "kmeans": least_squares_kmeans,
    },
}
"""By artefact, then by the key of the claim."""
