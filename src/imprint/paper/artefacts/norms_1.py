"""All settings of the norms, one mean per class."""

from imprint.paper.tables import Found, Row, Table
from imprint.report.sections import Claim, Verdict

PUBLISHED = {
    ("l2", "none", "l2"): (86.84, 7.80),
    ("none", "none", "l2"): (86.84, 7.80),
    ("l2", "l2", "l2"): (86.79, 7.83),
    ("l2", "none", "quantile"): (82.90, 12.87),
    ("none", "none", "quantile"): (82.90, 12.87),
    ("l2", "l2", "quantile"): (82.83, 12.86),
    ("l2", "l2", "none"): (83.26, 9.18),
    ("l2", "none", "none"): (67.66, 22.12),
    ("none", "none", "none"): (67.66, 22.12),
}
"""By norm_inf, norm_pre and norm_post."""


def claims(found: Found) -> list[Claim]:
    bare = ("inf none, pre none, post none", "inf none, pre none, post l2")
    cost = found.means[bare[1]] - found.means[bare[0]]
    return [
        Claim(
            "Without any normalisation means fail: L2 on the proxies is essential.",
            found.decide(found.beats(bare[1], bare[:1]) and cost > 5),
            f"{cost:.2f} points lost, adjusted p {found.worst_p(bare[1], bare[:1]):.2g}",
            Verdict.HOLDS,
            "19.18 points lost",
        )
    ]


def norm_rows(generator: str, published: dict[tuple[str, str, str], tuple[float, float]]) -> tuple[Row, ...]:
    """A generator under all norms, in the published order."""
    return tuple(
        Row(f"inf {inf}, pre {pre}, post {post}", (f"{pre} / {generator} / {post} / {inf} / max",), *values)
        for (inf, pre, post), values in published.items()
    )


artefact = Table(
    title="All norms, one mean per class",
    where="Table A.2",
    order=210,
    rows=norm_rows("mean", PUBLISHED),
    claims=claims,
    again=True,
)
