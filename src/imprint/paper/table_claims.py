"""What the paper claims of its tables, checked on the rows of a result."""

from collections.abc import Sequence

from imprint.paper.tables import KMEDOIDS, OTHERS, TableResult, readable
from imprint.report.sections import Claim, Verdict, verdict

EARLIER = ("Qi et al.", "Hosoda et al.", "Janson et al.")
FIVE, TWENTY, ALL = "kernel, k = 5", "kernel, k = 20", "kernel, all"
BEST, NEIGHBOURS, ORACLE = "max, k = 20", "5-nn, all", "oracle"


def checked_claim(
    text: str, holds: bool | Verdict, figures: str, published_figures: str, published: bool = True
) -> Claim:
    """A claim with the figures of these results and of the published ones, and whether either bears it out."""
    here = holds if isinstance(holds, Verdict) else verdict(holds)
    return Claim(text, here, figures, verdict(published), published_figures)


def _lead(r: TableResult, label: str, others: Sequence[str], of: str = "", p: str = "largest adjusted p") -> str:
    return f"ahead by {r.lead(label, others):.2f} points{of}; {p} {r.worst_p(label, others):.2g}"


def _published_lead(r: TableResult, label: str, others: Sequence[str]) -> str:
    return f"ahead by {r.published_lead(label, others):.2f} points"


def table1(r: TableResult) -> list[Claim]:
    """Table 1."""
    lead = r.lead("Ours", EARLIER)
    return [
        checked_claim(
            "k-means with 20 proxies, L2 throughout and max beats all earlier methods significantly.",
            r.judge("Ours", EARLIER),
            _lead(r, "Ours", EARLIER, " of the best of them"),
            f"{_published_lead(r, 'Ours', EARLIER)}; every p = 7.1e-15",
        ),
        checked_claim(
            "The margin is 4 points.",
            lead >= 4,
            f"{lead:.2f} points",
            f"{r.published_lead('Ours', EARLIER):.2f} points",
        ),
        checked_claim(
            "The oracle (least squares over all classes) is above every imprinting method.",
            r.judge("Oracle", (*EARLIER, "Ours")),
            f"ahead of Ours by {r.lead('Oracle', ['Ours']):.2f} points, p {r.worst_p('Oracle', ['Ours']):.2g}",
            "3.48 points, p = 7.1e-15, first in 48 of 48 instances",
        ),
        checked_claim(
            "The new method closes half of the gap between one mean per class and the oracle, or more.",
            *r.closes_half("Ours", "Qi et al.", "Oracle"),
            f"{100 * (91.06 - 86.79) / (94.54 - 86.79):.0f} % of 7.75 points",
        ),
    ]


def generators_20(r: TableResult) -> list[Claim]:
    """Table 2."""
    method = dict(zip(r.labels, r.chosen))
    on_par = r.comparison.pair(KMEDOIDS, "mean")
    largest = [g for g in (*OTHERS, "kmeans", "kmedoids") if g != "mean" and "(k=20" in method[g]]
    gaps = {g: r.means[g] - r.means["mean"] for g in ("covmax", "random", "fps")}
    return [
        checked_claim(
            "k-means is significantly better than every other generator (k ≤ 20).",
            r.judge("kmeans", OTHERS),
            _lead(r, "kmeans", OTHERS, " of the best other"),
            _published_lead(r, "kmeans", OTHERS),
        ),
        checked_claim(
            "The best number of proxies is the largest allowed.",
            len(largest) == 6,
            f"k = 20 is best for {', '.join(largest) or 'none'}",
            "k = 20 for all five",
        ),
        checked_claim(
            "k-medoids (alternating search) with 20 proxies is on par with the mean.",
            r.decide(not on_par.significant),
            f"{r.means[KMEDOIDS] - r.means['mean']:+.2f} points, adjusted p {on_par.adjusted:.2g}",
            "+0.17 points",
        ),
        checked_claim(
            "Covariance maximisation, random choice and furthest points are weaker than the mean.",
            all(r.means[g] < r.means["mean"] for g in gaps),
            ", ".join(f"{g} {gap:+.2f}" for g, gap in gaps.items()),
            "-2.86, -4.70, -21.28",
        ),
    ]


def generators_5(r: TableResult) -> list[Claim]:
    """Table A.1."""
    text = "k-means is significantly better than every other generator (k ≤ 5), the mean included."
    here = _lead(r, "kmeans", OTHERS, p="largest p")
    return [checked_claim(text, r.judge("kmeans", OTHERS), here, _published_lead(r, "kmeans", OTHERS))]


def norm_post(r: TableResult) -> list[Claim]:
    """Table 3."""
    others = ("quantile", "none")
    text = "L2 is the best normalisation of proxies, significantly."
    return [checked_claim(text, r.judge("l2", others), _lead(r, "l2", others), _published_lead(r, "l2", others))]


def norm_pre_inf(r: TableResult) -> list[Claim]:
    """Table 4."""
    text = "With L2-normalised proxies, norm_pre and norm_inf make no significant difference."
    differ = any(pair.significant for pair in r.comparison.pairs)
    spread = max(r.means.values()) - min(r.means.values())
    least = min(pair.adjusted for pair in r.comparison.pairs)
    here = f"means within {spread:.2f} points; smallest adjusted p {least:.2g}"
    return [checked_claim(text, r.decide(not differ), here, "means within 0.05 points")]


def aggregators_all(r: TableResult) -> list[Claim]:
    """Table 5."""
    several = ("3-nn", "5-nn", "20-nn")
    better = [m for m in several if r.beats(m, ["max"])]
    gaps = ", ".join(f"{m} {r.means[m] - r.means['max']:+.2f}" for m in several)
    return [
        checked_claim(
            "With all data kept, 3, 5 and 20 neighbours are significantly better than max.",
            r.decide(len(better) == 3),
            f"{gaps} points; significant: {', '.join(better) or 'none'}",
            "+0.69, +0.93, +0.75 points, all significant",
        ),
        checked_claim(
            "Five neighbours are best.",
            r.winner == "5-nn",
            f"{r.winner} has the best average rank",
            "best in 27 of 48 instances",
        ),
        checked_claim(
            "max equals one neighbour where proxies are L2-normalised.",
            r.means["max"] == r.means["1-nn"],
            f"{r.means['max']:.2f} and {r.means['1-nn']:.2f}",
            "92.81 and 92.81 (the published code calls identical results significantly different, p = 0)",
        ),
    ]


def aggregators_20(r: TableResult) -> list[Claim]:
    """Table 6."""
    others = ("3-nn", "5-nn", "20-nn", "50-nn")
    cost = r.means["all, 5-nn"] - r.means["max"]
    return [
        checked_claim(
            "With 20 proxies max is the best aggregator.",
            r.judge("max", others),
            _lead(r, "max", others),
            f"{_published_lead(r, 'max', others)}; largest p 5.4e-12",
        ),
        checked_claim(
            "Keeping 20 proxies instead of all data costs less than 3 points.",
            cost < 3,
            f"{cost:.2f} points (all with 5-nn {r.means['all, 5-nn']:.2f})",
            f"{93.74 - 91.06:.2f} points",
        ),
    ]


def kernel(r: TableResult) -> list[Claim]:
    """`kernel`, which the paper does not have: nothing was published."""

    def beats(text: str, label: str, other: str) -> Claim:
        gap, p = r.means[label] - r.means[other], r.worst_p(label, [other])
        return Claim(text, r.judge(label, [other]), f"{gap:+.2f} points, adjusted p {p:.2g}")

    half = "20 proxies that decide together close half of the gap between max and the oracle, or more."
    return [
        beats("20 proxies that decide together (kernel) beat 20 of which the best decides (max).", TWENTY, BEST),
        beats("5 proxies that decide together beat 20 of which the best decides.", FIVE, BEST),
        beats("20 proxies that decide together beat all embeddings with five neighbours.", TWENTY, NEIGHBOURS),
        Claim(half, *r.closes_half(TWENTY, BEST, ORACLE)),
        beats("All embeddings that decide together are above the oracle.", ALL, ORACLE),
    ]


def norms_1(r: TableResult) -> list[Claim]:
    """Table A.2."""
    bare, l2 = "inf none, pre none, post none", "inf none, pre none, post l2"
    cost = r.means[l2] - r.means[bare]
    text = "Without any normalisation means fail: L2 on the proxies is essential."
    here = f"{cost:.2f} points lost, adjusted p {r.worst_p(l2, [bare]):.2g}"
    return [checked_claim(text, r.decide(r.beats(l2, [bare]) and cost > 5), here, "19.18 points lost")]


def norms_20(r: TableResult) -> list[Claim]:
    """Table A.3."""
    l2 = [name for name in r.labels if name.endswith("post l2")]
    others = [name for name in r.labels if name not in l2]
    pairs = [p for p in r.comparison.pairs if {p.first, p.second} <= set(l2)]
    lead = min(r.means[name] for name in l2) - max(r.means[name] for name in others)
    bare = r.means["inf none, pre none, post none"] - r.means["inf l2, pre l2, post l2"]
    return [
        checked_claim(
            "With 20 proxies L2 stays the best normalisation of proxies, significantly, whatever the other norms.",
            r.decide(all(r.beats(name, others) for name in l2)),
            f"the worst of the three with L2 is {lead:+.2f} points from the best of the six without",
            "+0.53 points",
        ),
        checked_claim(
            "With 20 proxies and L2 on them, norm_pre and norm_inf make no significant difference.",
            r.decide(not any(p.significant for p in pairs)),
            f"smallest adjusted p {min(p.adjusted for p in pairs):.2g}",
            "means within 0.02 points",
        ),
        checked_claim(
            "With 20 proxies nothing normalised is as good as L2 throughout, to within a point.",
            r.decide(bare >= -1),
            f"{bare:+.2f} points",
            f"{73.53 - 91.06:+.2f} points",
            published=False,
        ),
    ]


def least_squares(r: TableResult) -> list[Claim]:
    """Least squares, in the text of the appendix."""
    one, many, proxies = r.means["least squares"], r.means["20-least-squares"], r.means["k-means, k = 20"]
    gain_of_one = r.means["least squares, best norms"] - one
    gain_of_many = r.means["20-least-squares, best norms"] - many
    p = r.worst_p("least squares", ["20-least-squares"])
    return [
        checked_claim(
            "Least squares with 20 proxies per class is worse than with one.",
            r.judge("least squares", ["20-least-squares"]),
            f"{one - many:.2f} points lost, p {p:.2g}",
            "3.34 points lost",
        ),
        checked_claim(
            "Additional normalisation impairs least squares with one proxy.",
            gain_of_one <= 0.05,
            f"the best norms bring {gain_of_one:+.2f} points",
            "the best norms of the 40-instance table are none, none, none",
        ),
        checked_claim(
            "Additional normalisation impairs least squares with several proxies.",
            gain_of_many <= 0.05,
            f"the best norms bring {gain_of_many:+.2f} points ({readable(r.chosen[-1])})",
            "93.64 with L2 on the proxies (40 instances) against 91.20 without (48): L2 was best for every k > 1",
            published=False,
        ),
        checked_claim(
            "20 k-means proxies, made one class at a time, reach 20-least-squares to within a point or surpass it.",
            proxies >= many - 1,
            f"{proxies - many:+.2f} points",
            f"{91.06 - 91.20:+.2f} points",
        ),
    ]
