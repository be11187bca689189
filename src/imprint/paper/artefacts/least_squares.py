"""Least squares with one and with many proxies per class."""

from imprint.paper.norms import bare, cosine, every_norm
from imprint.paper.tables import Found, Row, Table, readable
from imprint.report.sections import Claim, Verdict, verdict

ONE, MANY = "least_squares(reg={reg})", "k_least_squares(k=20, reg={reg})"


def claims(found: Found) -> list[Claim]:
    drop = found.means["least squares"] - found.means["20-least-squares"]
    helps = found.means["20-least-squares, best norms"] - found.means["20-least-squares"]
    one = found.means["least squares, best norms"] - found.means["least squares"]
    return [
        Claim(
            "Least squares with 20 proxies per class is worse than with one.",
            found.judge("least squares", ["20-least-squares"]),
            f"{drop:.2f} points lost, p {found.worst_p('least squares', ['20-least-squares']):.2g}",
            Verdict.HOLDS,
            "3.34 points lost",
        ),
        Claim(
            "Additional normalisation impairs least squares with one proxy.",
            verdict(one <= 0.05),
            f"the best norms bring {one:+.2f} points",
            Verdict.HOLDS,
            "the best norms of the 40-instance table are none, none, none",
        ),
        Claim(
            "Additional normalisation impairs least squares with several proxies.",
            verdict(helps <= 0.05),
            f"the best norms bring {helps:+.2f} points ({readable(found.chosen[-1])})",
            Verdict.FAILS,
            "93.64 with L2 on the proxies (40 instances) against 91.20 without (48): L2 was best for every k > 1",
        ),
        Claim(
            "20 k-means proxies, made one class at a time, reach 20-least-squares to within a point or surpass it.",
            verdict(found.means["k-means, k = 20"] >= found.means["20-least-squares"] - 1),
            f"{found.means['k-means, k = 20'] - found.means['20-least-squares']:+.2f} points",
            Verdict.HOLDS,
            f"{91.06 - 91.20:+.2f} points",
        ),
    ]


artefact = Table(
    title="Least squares with one and with 20 proxies per class",
    where="Appendix, learned weights",
    order=260,
    rows=(
        Row("least squares", (bare(ONE),), 94.54, 5.00),
        Row("20-least-squares", (bare(MANY),), 91.20),
        Row("k-means, k = 20", (cosine("kmeans(k=20)"),), 91.06, 6.21),
        Row("least squares, best norms", every_norm(ONE)),
        Row("20-least-squares, best norms", every_norm(MANY)),
    ),
    claims=claims,
)
