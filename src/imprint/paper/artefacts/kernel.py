"""Proxies that decide together, beside the best of the paper."""

from dataclasses import dataclass

from imprint.paper.norms import bare, cosine
from imprint.paper.places import Places
from imprint.paper.results import Results
from imprint.paper.tables import Found, Row, Table
from imprint.report.sections import Claim, Section

FIVE, TWENTY, ALL = "kernel, k = 5", "kernel, k = 20", "kernel, all"
BEST, NEIGHBOURS, ORACLE = "max, k = 20", "5-nn, all", "oracle"


@dataclass(frozen=True, kw_only=True)
class Together(Table):
    """A table that the paper does not have; it is made where `kernel` is asked for beside `max`."""

    def served(self, places: Places) -> bool:
        return super().served(places) and places.beside == "kernel"

    def section(self, name: str, results: Results) -> Section:
        if results.places.beside != "kernel":
            return self.missing(name, results, "Made with --beside kernel only.")
        return super().section(name, results)


def claims(found: Found) -> list[Claim]:
    def beats(text: str, label: str, other: str) -> Claim:
        gap, p = found.means[label] - found.means[other], found.worst_p(label, [other])
        return Claim(text, found.judge(label, [other]), f"{gap:+.2f} points, adjusted p {p:.2g}")

    return [
        beats("20 proxies that decide together (kernel) beat 20 of which the best decides (max).", TWENTY, BEST),
        beats("5 proxies that decide together beat 20 of which the best decides.", FIVE, BEST),
        beats("20 proxies that decide together beat all embeddings with five neighbours.", TWENTY, NEIGHBOURS),
        Claim(
            "20 proxies that decide together close half of the gap between max and the oracle, or more.",
            *found.closes_half(TWENTY, BEST, ORACLE),
        ),
        beats("All embeddings that decide together are above the oracle.", ALL, ORACLE),
    ]


artefact = Together(
    title="Proxies that decide together",
    where="Beyond the paper",
    order=75,
    rows=(
        Row(BEST, (cosine("kmeans(k=20)"),), 91.06, 6.21),
        Row(NEIGHBOURS, (cosine("all", "nearest(m=5)"),), 93.74, 4.97),
        Row(ORACLE, (bare("least_squares(reg={reg})"),), 94.54, 5.00),
        Row(FIVE, ("l2 / kmeans(k=5) / none / l2 / kernel",)),
        Row(TWENTY, ("l2 / kmeans(k=20) / none / l2 / kernel",)),
        Row(ALL, ("l2 / all / none / l2 / kernel",)),
    ),
    claims=claims,
    note="kernel is not in the paper: one linear system joins all proxies, which are those of max.",
)
