"""Published values that several artefacts use; the others are in `artefacts.toml`."""

import csv
import tomllib
from functools import cache
from importlib.resources import files

K, D = tuple(range(1, 16)), tuple(range(1, 11))
"""Proxies per class, and classes per label of "d in 1", in the figures of the paper."""
_VALUES = tomllib.loads((files("imprint.paper") / "published.toml").read_text("utf-8"))
NC1: dict[str, list[float]] = _VALUES["nc1"]
"""Mean NC1 over the label maps by backbone, for every d in `D`."""
NC1_OF_SETS: dict[str, dict[str, float]] = _VALUES["nc1_of_sets"]
"""NC1 by backbone and data set."""
KMEDOIDS_3: dict[str, dict[str, float]] = _VALUES["kmedoids_3"]
"""Accuracy in percent of k-medoids with three proxies, by backbone and data set."""


@cache
def kmeans_over_k() -> dict[tuple[str, str], tuple[float, ...]]:
    """Accuracy in percent of k-means for k = 1, ..., 15 by backbone and data set, L2 throughout, max.

    "d in 1" rows are named by d and are means over ten label maps of ImageNet; every value is the median over three
    seeds, read from a published vector drawing.

    >>> kmeans_over_k()["resnet18", "mnist"][0], kmeans_over_k()["swin_b", "10_in_1"][9]
    (84.64, 94.5)
    """
    with files("imprint.paper").joinpath("kmeans_over_k.csv").open(encoding="utf-8") as file:
        rows = list(csv.reader(file))[1:]
    return {(b, d): tuple(map(float, values)) for b, d, *values in rows}
