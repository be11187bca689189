"""Tests of the paper's claims about its tables, by the names of the tables in `artefacts.toml`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from imprint.paper.artefact import Finding, Findings
from imprint.report.sections import Verdict, verdict
from imprint.stats import Comparison

EARLIER = ("Qi et al.", "Hosoda et al.", "Janson et al.")
KMEDOIDS = "kmedoids, alternate"
OTHERS = (KMEDOIDS, "mean", "covmax", "random", "fps")
"""The generators that the paper compares with k-means; FasterPAM is an addition."""
FIVE, TWENTY, ALL = "kernel, k = 5", "kernel, k = 20", "kernel, all"
BEST, NEIGHBOURS, ORACLE = "max, k = 20", "5-nn, all", "oracle"


@dataclass(frozen=True)
class TableResult:
    """The results of the rows of a table, in percent."""

    labels: tuple[str, ...]
    chosen: tuple[str, ...]
    means: dict[str, float]
    stds: dict[str, float]
    comparison: Comparison

    @property
    def winner(self) -> str:
        """The row with the best average rank."""
        return self.comparison.order[0]

    def percent(self, label: str) -> str:
        """The mean and standard deviation of a row."""
        return f"{self.means[label]:.2f} ± {self.stds[label]:.2f}"

    def lead(self, label: str, others: Sequence[str]) -> float:
        """By how many points a row is above the best of some others."""
        return self.means[label] - max(self.means[o] for o in others)

    def beats(self, label: str, others: Sequence[str]) -> bool:
        """Whether a row ranks before all the others and differs significantly from each."""
        rank = self.comparison.rank
        return all(rank(label) < rank(o) and self.comparison.pair(label, o).significant for o in others)

    def judge(self, label: str, others: Sequence[str]) -> Verdict:
        """Whether a row beats the others."""
        return self.decide(self.beats(label, others))

    def decide(self, significant: bool) -> Verdict:
        """A verdict on significance; untestable if no difference can be significant with so few instances."""
        least = 2.0 ** (1 - self.comparison.instances) * len(self.comparison.pairs)
        return Verdict.UNTESTABLE if least > self.comparison.alpha else verdict(significant)

    def closes_half(self, label: str, low: str, high: str) -> Finding:
        """Whether a row closes at least half of the gap between two others."""
        gap, closed = self.means[high] - self.means[low], self.means[label] - self.means[low]
        if gap <= 0:
            return Finding(Verdict.UNTESTABLE, f"there is no gap: {high} is {-gap:.2f} points below {low}")
        return Finding(closed >= gap / 2, f"{100 * closed / gap:.0f} % of {gap:.2f} points")

    def worst_p(self, label: str, others: Sequence[str]) -> float:
        """The largest adjusted p of a row compared with the others."""
        return max(self.comparison.pair(label, o).adjusted for o in others)

    def ahead(self, label: str, others: Sequence[str], of: str = "", p: str = "largest adjusted p") -> Finding:
        """Whether a row beats the others, and by how much."""
        figures = f"ahead by {self.lead(label, others):.2f} points{of}; {p} {self.worst_p(label, others):.2g}"
        return Finding(self.judge(label, others), figures)


def readable(method: str) -> str:
    """A method for people; λ is the weight decay of the backbone."""
    return method.replace("reg={reg}", "reg=λ")


def _table1(r: TableResult) -> Findings:
    lead, above_ours = r.lead("Ours", EARLIER), r.lead("Oracle", ["Ours"])
    p = r.worst_p("Oracle", ["Ours"])
    return {
        "best": r.ahead("Ours", EARLIER, " of the best of them"),
        "margin": Finding(lead >= 4, f"{lead:.2f} points"),
        "oracle": Finding(
            r.judge("Oracle", (*EARLIER, "Ours")), f"ahead of Ours by {above_ours:.2f} points, p {p:.2g}"
        ),
        "gap": r.closes_half("Ours", "Qi et al.", "Oracle"),
    }


def _generators_20(r: TableResult) -> Findings:
    method, on_par = dict(zip(r.labels, r.chosen)), r.comparison.pair(KMEDOIDS, "mean")
    largest = [g for g in (*OTHERS, "kmeans", "kmedoids") if g != "mean" and "(k=20" in method[g]]
    gaps = {g: r.means[g] - r.means["mean"] for g in ("covmax", "random", "fps")}
    difference = f"{r.means[KMEDOIDS] - r.means['mean']:+.2f} points, adjusted p {on_par.adjusted:.2g}"
    return {
        "best": r.ahead("kmeans", OTHERS, " of the best other"),
        "largest_k": Finding(len(largest) == 6, f"k = 20 is best for {', '.join(largest) or 'none'}"),
        "kmedoids": Finding(r.decide(not on_par.significant), difference),
        "weaker": Finding(
            all(gap < 0 for gap in gaps.values()), ", ".join(f"{g} {gap:+.2f}" for g, gap in gaps.items())
        ),
    }


def _norm_pre_inf(r: TableResult) -> Findings:
    differ = any(pair.significant for pair in r.comparison.pairs)
    spread = max(r.means.values()) - min(r.means.values())
    least = min(pair.adjusted for pair in r.comparison.pairs)
    figures = f"means within {spread:.2f} points; smallest adjusted p {least:.2g}"
    return {"alike": Finding(r.decide(not differ), figures)}


def _aggregators_all(r: TableResult) -> Findings:
    several = ("3-nn", "5-nn", "20-nn")
    better = [m for m in several if r.beats(m, ["max"])]
    gaps = ", ".join(f"{m} {r.means[m] - r.means['max']:+.2f}" for m in several)
    return {
        "several": Finding(r.decide(len(better) == 3), f"{gaps} points; significant: {', '.join(better) or 'none'}"),
        "five": Finding(r.winner == "5-nn", f"{r.winner} has the best average rank"),
        "one": Finding(r.means["max"] == r.means["1-nn"], f"{r.means['max']:.2f} and {r.means['1-nn']:.2f}"),
    }


def _aggregators_20(r: TableResult) -> Findings:
    cost = r.means["all, 5-nn"] - r.means["max"]
    return {
        "best": r.ahead("max", ("3-nn", "5-nn", "20-nn", "50-nn")),
        "cost": Finding(cost < 3, f"{cost:.2f} points (all with 5-nn {r.means['all, 5-nn']:.2f})"),
    }


def _kernel(r: TableResult) -> Findings:
    def beats(label: str, other: str) -> Finding:
        gap, p = r.lead(label, [other]), r.worst_p(label, [other])
        return Finding(r.judge(label, [other]), f"{gap:+.2f} points, adjusted p {p:.2g}")

    return {
        "twenty": beats(TWENTY, BEST),
        "five": beats(FIVE, BEST),
        "neighbours": beats(TWENTY, NEIGHBOURS),
        "gap": r.closes_half(TWENTY, BEST, ORACLE),
        "all": beats(ALL, ORACLE),
    }


def _norms_1(r: TableResult) -> Findings:
    none, l2 = "inf none, pre none, post none", "inf none, pre none, post l2"
    cost = r.means[l2] - r.means[none]
    figures = f"{cost:.2f} points lost, adjusted p {r.worst_p(l2, [none]):.2g}"
    return {"essential": Finding(r.decide(r.beats(l2, [none]) and cost > 5), figures)}


def _norms_20(r: TableResult) -> Findings:
    l2 = [name for name in r.labels if name.endswith("post l2")]
    others = [name for name in r.labels if name not in l2]
    pairs = [p for p in r.comparison.pairs if {p.first, p.second} <= set(l2)]
    lead = min(r.means[name] for name in l2) - max(r.means[name] for name in others)
    none = r.means["inf none, pre none, post none"] - r.means["inf l2, pre l2, post l2"]
    figures = f"the worst of the three with L2 is {lead:+.2f} points from the best of the six without"
    smallest = f"smallest adjusted p {min(p.adjusted for p in pairs):.2g}"
    return {
        "best": Finding(r.decide(all(r.beats(name, others) for name in l2)), figures),
        "alike": Finding(r.decide(not any(p.significant for p in pairs)), smallest),
        "none": Finding(r.decide(none >= -1), f"{none:+.2f} points"),
    }


def _least_squares(r: TableResult) -> Findings:
    one, many, proxies = r.means["least squares"], r.means["20-least-squares"], r.means["k-means, k = 20"]
    gain_of_one, gain_of_many = (
        r.means["least squares, best norms"] - one,
        r.means["20-least-squares, best norms"] - many,
    )
    p, chosen = r.worst_p("least squares", ["20-least-squares"]), readable(r.chosen[-1])
    worse = r.judge("least squares", ["20-least-squares"])
    return {
        "one": Finding(worse, f"{one - many:.2f} points lost, p {p:.2g}"),
        "norms_of_one": Finding(gain_of_one <= 0.05, f"the best norms bring {gain_of_one:+.2f} points"),
        "norms_of_many": Finding(gain_of_many <= 0.05, f"the best norms bring {gain_of_many:+.2f} points ({chosen})"),
        "kmeans": Finding(proxies >= many - 1, f"{proxies - many:+.2f} points"),
    }


CHECKS: dict[str, Callable[[TableResult], Findings]] = {
    "table1": _table1,
    "generators_20": _generators_20,
    "generators_5": lambda r: {"best": r.ahead("kmeans", OTHERS, p="largest p")},
    "norm_post": lambda r: {"best": r.ahead("l2", ("quantile", "none"))},
    "norm_pre_inf": _norm_pre_inf,
    "aggregators_all": _aggregators_all,
    "aggregators_20": _aggregators_20,
    "kernel": _kernel,
    "norms_1": _norms_1,
    "norms_20": _norms_20,
    "least_squares": _least_squares,
}
