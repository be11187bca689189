"""ResNet-50 with the weights of Keras compared with the published ResNet-50: accuracy over k, NC1, gain and k-medoids.

    python benchmarks/other_weights.py PACKS RESULTS [--svg FILE]

Runs the study on the packs of `resnet50_keras` in PACKS into the folder RESULTS, then prints the tables and findings of
`reproduction/docs/beyond/architecture.md` as Markdown. FILE is the figure for that page.
"""

import argparse
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from imprint.collapse import nc1
from imprint.normalisers.l2 import L2
from imprint.report.figures import Panel, Series, draw, interval
from imprint.report.text_table import TextTable
from imprint.study import Packs, Study, run
from imprint_reproduction.modes import KMEANS, KMEANS_OVER_K, NC1_OF_SETS, K
from imprint_reproduction.setting import cosine, discover, role_study

PUBLISHED, OTHER_WEIGHTS = "resnet50", "resnet50_keras"
KMEDOIDS_3 = {
    PUBLISHED: {"mnist": 76.55, "fashionmnist": 72.41}
}  # the published text has these two
KMEDOIDS = cosine("kmedoids(k=3, method='alternate')")
NC1, GAIN = "NC1 by the published computation", "points gained by k = 5 over k = 1"
SINGLE = (NC1, GAIN, "k-medoids, k = 3 (alternate)")
COLUMNS = ("published", "here (other weights)", "difference")
Values = Mapping[str, Mapping[str, float]]
"""By data set: the accuracy for every k in `K`, by its text, and the `SINGLE` values."""


def values_by_name(curve: np.ndarray, nc1: float, kmedoids: float) -> dict[str, float]:
    """The values of a data set by name; NaN if a value is unknown."""
    return dict(zip(map(str, K), curve)) | dict(
        zip(SINGLE, (nc1, curve[4] - curve[0], kmedoids))
    )


def published_values(backbone: str, dataset: str) -> dict[str, float]:
    """The published values of a backbone on a data set."""
    kmedoids = KMEDOIDS_3.get(backbone, {}).get(dataset, np.nan)
    return values_by_name(
        KMEANS_OVER_K[backbone, dataset], NC1_OF_SETS[backbone][dataset], kmedoids
    )


def accuracies(study: Study, folder: Path) -> dict[str, np.ndarray]:
    """By data set: accuracies in percent.  # (methods, seeds)"""
    shape = len(study.instances), len(study.methods), len(study.seeds)
    values = 100 * study.results(folder)["accuracy"].to_numpy().astype(
        np.float64
    ).reshape(shape)
    return {
        at.dataset: rows
        for at, rows in zip(study.instances, values)
        if (PUBLISHED, at.dataset) in KMEANS_OVER_K
    }


def measured_nc1(embeddings: str, dataset: str) -> float:
    """NC1 of the L2-normalised training rows, by the published computation."""
    data = Packs(embeddings).open(OTHER_WEIGHTS, dataset)
    return nc1(L2().apply(np.asarray(data.X)), data.y, legacy=True)


def tables(published: Values, here: Values) -> list[TextTable]:
    """Tables of the curves and of the single published values."""

    def cells(dataset: str, name: str) -> tuple[str, ...]:
        theirs, ours = published[dataset][name], here[dataset][name]
        return f"{theirs:.2f}", f"{ours:.2f}", f"{ours - theirs:+.2f}"

    curves = ((k, *(cell for d in here for cell in cells(d, k))) for k in map(str, K))
    known = [
        (name, d) for name in SINGLE for d in here if not np.isnan(published[d][name])
    ]
    single = ((f"{name}, {d}", *cells(d, name)) for name, d in known)
    head = ("k", *(f"{d}, {column}" for d in here for column in COLUMNS))
    return [TextTable(("", *COLUMNS), tuple(single)), TextTable(head, tuple(curves))]


def findings(published: Values, here: Values) -> dict[str, tuple[bool, str]]:
    """By claim: whether it holds, and its figures."""

    def distance(dataset: str, values: Mapping[str, float]) -> float:
        """The mean distance of a curve over k from the published curve, in percentage points."""
        return float(
            np.mean([abs(values[k] - published[dataset][k]) for k in map(str, K)])
        )

    def same_order(name: str) -> tuple[bool, str]:
        shown = ", ".join(
            f"{d} {v[name]:.2f} (published {published[d][name]:.2f})"
            for d, v in here.items()
        )
        ours, theirs = (
            sorted(here, key=lambda d: -values[d][name]) for values in (here, published)
        )
        return ours == theirs, shown

    others = [b for b in NC1_OF_SETS if b != PUBLISHED]
    distances = {d: distance(d, values) for d, values in here.items()}
    nearest = {
        d: min(distance(d, published_values(b, d)) for b in others) for d in here
    }
    shown = ", ".join(f"{d} {distances[d]:.2f} against {nearest[d]:.2f}" for d in here)
    near = (
        all(distances[d] < nearest[d] for d in here),
        f"mean distance in points: {shown}",
    )
    return {
        "it is nearer to the published resnet50 over k than any other published backbone": near,
        "data sets keep their order by NC1": same_order(NC1),
        "data sets keep their order by the gain of five proxies over one": same_order(
            GAIN
        ),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("packs", type=Path)
    parser.add_argument("results", type=Path)
    parser.add_argument("--svg", type=Path)
    args = parser.parse_args()
    methods = [*(KMEANS.replace("{k}", str(k)) for k in K), KMEDOIDS]
    (study,) = role_study(
        discover(args.packs, [OTHER_WEIGHTS]), "benchmark", methods, ["all"]
    )
    run(study, args.results)
    curves = accuracies(study, args.results)
    published = {d: published_values(PUBLISHED, d) for d in curves}
    medians = {d: np.median(values, axis=1) for d, values in curves.items()}
    here = {
        d: values_by_name(m[:-1], measured_nc1(study.embeddings, d), m[-1])
        for d, m in medians.items()
    }
    for table in tables(published, here):
        print("\n".join(table.markdown()))
    for claim, (holds, figures) in findings(published, here).items():
        print(f"- {'✓ holds' if holds else '✗ does not hold'}: {claim} ({figures}).")
    if args.svg:
        panels = [
            Panel(
                d,
                [
                    Series(f"published: {PUBLISHED}", K, KMEANS_OVER_K[PUBLISHED, d]),
                    Series(f"here: {OTHER_WEIGHTS}", K, *interval(values[:-1])),
                ],
            )
            for d, values in curves.items()
        ]
        args.svg.write_bytes(draw(panels, "proxies per class, k", "accuracy, %"))


if __name__ == "__main__":
    main()
