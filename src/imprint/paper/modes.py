"""Classes of several modes: "d in 1" maps, and the ten-class sets beside them, over the number of proxies."""

from collections.abc import Callable

import numpy as np

from imprint.core.types import Array
from imprint.paper.places import Places
from imprint.paper.results import Results
from imprint.paper.work import SEEDS, Work, work

K = tuple(range(1, 16))
D = tuple(range(1, 11))


def maps(count: int) -> list[str]:
    """The tasks, d slowest."""
    return [f"d_in_1(d={d}, i={i})" for d in D for i in range(count)]


def curve_studies(places: Places, method: Callable[[int], str]) -> list[Work]:
    """A family of methods over k on the label maps, and on the whole ten-class sets."""
    methods = [method(k) for k in K]
    beside = [w for role in ("benchmark", "combined") for w in work(places, role, methods, ["all"], SEEDS)]
    return [*work(places, "many", methods, maps(places.maps), SEEDS), *beside]


def map_curves(results: Results, method: Callable[[int], str]) -> dict[str, Array] | None:
    """Accuracy of every backbone.  # (d, map, k, seed)"""
    count = results.places.maps
    asked = work(results.places, "many", [method(k) for k in K], maps(count), SEEDS)
    scores = results.scores(asked)
    if scores is None:
        return None
    found = {}
    for backbone in results.places.many.backbones:
        own = scores.where(backbone=backbone, dataset=results.places.many.datasets[0])
        values = np.stack([own.of(method(k)) for k in K], axis=1)  # (tasks, k, seeds)
        found[backbone] = values.reshape(len(D), count, len(K), len(SEEDS))
    return found


def set_curves(results: Results, method: Callable[[int], str]) -> dict[tuple[str, str], Array]:
    """Accuracy on the whole ten-class sets, by backbone and data set.  # (k, seed)"""
    found: dict[tuple[str, str], Array] = {}
    for role in ("benchmark", "combined"):
        asked = work(results.places, role, [method(k) for k in K], ["all"], SEEDS)
        scores = results.scores(asked)
        if scores is not None:
            values = np.stack([scores.of(method(k)) for k in K], axis=1)  # (instances, k, seeds)
            found |= {(at.backbone, at.dataset): own for at, own in zip(scores.instances, values)}
    return found
