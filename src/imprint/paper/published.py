"""Published values that several artefacts use; the others are in `artefacts.toml`."""

import csv
from functools import cache
from importlib.resources import files

K, D = tuple(range(1, 16)), tuple(range(1, 11))
"""Proxies per class, and classes per label of "d in 1", in the figures of the paper."""


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


KMEDOIDS_3 = {("resnet50", "mnist"): 76.55, ("resnet50", "fashionmnist"): 72.41}
"""Accuracy in percent of k-medoids with k = 3, L2 throughout, max: single results that were printed."""

NC1 = {
    "resnet18": (0.39, 0.83, 1.22, 1.65, 2.15, 2.52, 2.89, 3.34, 3.74, 4.33),
    "resnet50": (0.30, 0.58, 0.85, 1.17, 1.46, 1.77, 2.02, 2.36, 2.61, 3.00),
    "vit_b_16": (0.15, 0.22, 0.26, 0.32, 0.36, 0.41, 0.44, 0.48, 0.52, 0.55),
    "swin_b": (0.12, 0.17, 0.21, 0.26, 0.31, 0.35, 0.38, 0.41, 0.45, 0.47),
}
"""Mean NC1 over the ten maps for d = 1, ..., 10, read from a drawing to 0.02; with the published centring."""

NC1_OF_SETS = {
    "resnet18": {"mnist": 1.92, "fashionmnist": 4.58, "cifar10": 2.34, "combidigits": 14.04},
    "resnet50": {"mnist": 5.42, "fashionmnist": 2.86, "cifar10": 1.58, "combidigits": 27.2},
    "vit_b_16": {"mnist": 2.80, "fashionmnist": 1.954377, "cifar10": 0.427542, "combidigits": 10.668107},
    "swin_b": {"mnist": 7.510301, "fashionmnist": 2.043176, "cifar10": 0.431034, "combidigits": 36.962592},
}
"""NC1 of the whole sets, with the published centring; two decimals where read from a drawing."""
