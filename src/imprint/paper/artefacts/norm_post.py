"""How proxies are normalised: one mean per class, best other norms."""

from imprint.paper.norms import every_norm
from imprint.paper.tables import Found, Row, Table
from imprint.report.sections import Claim, Verdict


def claims(found: Found) -> list[Claim]:
    others = ("quantile", "none")
    return [
        Claim(
            "L2 is the best normalisation of proxies, significantly.",
            found.judge("l2", others),
            f"ahead by {found.lead('l2', others):.2f} points; largest adjusted p {found.worst_p('l2', others):.2g}",
            Verdict.HOLDS,
            f"ahead by {found.published_lead('l2', others):.2f} points",
        )
    ]


artefact = Table(
    title="Normalisation of proxies, one mean per class",
    where="Table 3",
    order=40,
    rows=tuple(
        Row(post, tuple(m for m in every_norm("mean") if m.split(" / ")[2] == post), mean, std)
        for post, mean, std in (("l2", 86.84, 7.80), ("quantile", 82.90, 12.87), ("none", 83.26, 9.18))
    ),
    claims=claims,
    again=True,
    note="The best norm_pre and norm_inf stand for each row.",
)
