"""How embeddings are normalised before and at inference, with L2-normalised means as proxies."""

from imprint.paper.tables import Found, Row, Table
from imprint.report.sections import Claim, Verdict


def claims(found: Found) -> list[Claim]:
    least = min(pair.adjusted for pair in found.comparison.pairs)
    differ = any(pair.significant for pair in found.comparison.pairs)
    spread = max(found.means.values()) - min(found.means.values())
    return [
        Claim(
            "With L2-normalised proxies, norm_pre and norm_inf make no significant difference.",
            found.decide(not differ),
            f"means within {spread:.2f} points; smallest adjusted p {least:.2g}",
            Verdict.HOLDS,
            "means within 0.05 points",
        )
    ]


artefact = Table(
    title="Normalisation of embeddings",
    where="Table 4",
    order=50,
    rows=tuple(
        Row(f"pre {pre}, inf {inf}", (f"{pre} / mean / l2 / {inf} / max",), mean, std)
        for pre, inf, mean, std in (
            ("none", "l2", 86.84, 7.80),
            ("none", "none", 86.84, 7.80),
            ("l2", "l2", 86.79, 7.83),
        )
    ),
    claims=claims,
    again=True,
)
