"""All settings of the norms, 20 k-means proxies per class."""

from imprint.paper.artefacts.norms_1 import norm_rows
from imprint.paper.tables import Found, Table
from imprint.report.sections import Claim, Verdict

PUBLISHED = {
    ("l2", "none", "l2"): (91.04, 6.26),
    ("none", "none", "l2"): (91.04, 6.26),
    ("l2", "l2", "l2"): (91.06, 6.21),
    ("l2", "l2", "quantile"): (90.51, 6.40),
    ("l2", "l2", "none"): (89.55, 6.70),
    ("l2", "none", "quantile"): (79.21, 15.20),
    ("none", "none", "quantile"): (79.21, 15.20),
    ("l2", "none", "none"): (73.53, 21.05),
    ("none", "none", "none"): (73.53, 21.05),
}
"""By norm_inf, norm_pre and norm_post."""


def claims(found: Found) -> list[Claim]:
    l2 = [name for name in found.labels if name.endswith("post l2")]
    others = [name for name in found.labels if name not in l2]
    pairs = [p for p in found.comparison.pairs if {p.first, p.second} <= set(l2)]
    best = all(found.beats(name, others) for name in l2)
    lead = min(found.means[name] for name in l2) - max(found.means[name] for name in others)
    bare = found.means["inf none, pre none, post none"] - found.means["inf l2, pre l2, post l2"]
    return [
        Claim(
            "With 20 proxies L2 stays the best normalisation of proxies, significantly, whatever the other norms.",
            found.decide(best),
            f"the worst of the three with L2 is {lead:+.2f} points from the best of the six without",
            Verdict.HOLDS,
            "+0.53 points",
        ),
        Claim(
            "With 20 proxies and L2 on them, norm_pre and norm_inf make no significant difference.",
            found.decide(not any(p.significant for p in pairs)),
            f"smallest adjusted p {min(p.adjusted for p in pairs):.2g}",
            Verdict.HOLDS,
            "means within 0.02 points",
        ),
        Claim(
            "With 20 proxies nothing normalised is as good as L2 throughout, to within a point.",
            found.decide(bare >= -1),
            f"{bare:+.2f} points",
            Verdict.FAILS,
            f"{73.53 - 91.06:+.2f} points",
        ),
    ]


artefact = Table(
    title="All norms, 20 k-means proxies per class",
    where="Table A.3",
    order=220,
    rows=norm_rows("kmeans(k=20)", PUBLISHED),
    claims=claims,
    again=True,
)
