"""NC1 of the embeddings that the studies use, measured once and kept."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from imprint import tasks
from imprint.collapse import nc1
from imprint.normalisers.l2 import L2
from imprint.paper.artefact import Report
from imprint.paper.modes import maps
from imprint.paper.places import MAPS, Places
from imprint.paper.results import Results, write_json
from imprint.study import Packs

NAME = "collapse"


class Point(NamedTuple):
    """Where NC1 is measured: as published on the training rows, of "d in 1" on the test rows."""

    backbone: str
    dataset: str
    task: str
    split: str

    @property
    def key(self) -> str:
        """The name of the measurement."""
        return " / ".join(self)


def points(places: Places) -> Iterator[Point]:
    """All measurements that the paper shows."""
    for role in ("benchmark", "combined"):
        group = places.group(role)
        yield from (Point(b, d, "all", "train") for b in group.backbones for d in group.datasets)
    for b in places.many.backbones:
        yield from (Point(b, places.many.datasets[0], task, "test") for task in maps(MAPS))


def measure(places: Places, folder: Path, report: Report) -> None:
    """Measure what is missing: NC1 of L2-normalised rows, and the same by the published computation."""
    found, source, wanted = Results(folder).measured(NAME), Packs(places.embeddings), list(points(places))
    for i, point in enumerate(wanted):
        data = source.open(point.backbone, point.dataset)
        known = found.get(point.key, {})
        if known.get("fingerprint") != data.fingerprint:
            values = _measure(point, places)
            found[point.key] = {"fingerprint": data.fingerprint, **values}
            if i % 25 == 0:
                write_json(folder / f"{NAME}.json", found)
        report("Neural collapse", i + 1, len(wanted))
    write_json(folder / f"{NAME}.json", found)


def _measure(point: Point, places: Places) -> dict[str, float]:
    data = Packs(places.embeddings).open(point.backbone, point.dataset)
    X, y = (data.X, data.y) if point.split == "train" else (data.X_test, data.y_test)
    chosen = tasks.resolve(point.task).select(y, 0, np.unique(data.y).tolist())
    rows = L2().apply(np.asarray(X[chosen.rows]))
    return {"nc1": nc1(rows, chosen.labels), "published": nc1(rows, chosen.labels, legacy=True)}


def set_values(results: Results, kind: str = "nc1") -> dict[tuple[str, str], float]:
    """NC1 of the whole ten-class sets."""
    found = results.measured(NAME)
    every = (p for p in points(results.places) if p.task == "all" and p.key in found)
    return {(p.backbone, p.dataset): found[p.key][kind] for p in every}


def map_values(results: Results, kind: str = "nc1") -> dict[str, list[list[float]]]:
    """NC1 of the "d in 1" maps of every backbone, by d."""
    found = results.measured(NAME)
    out: dict[str, list[list[float]]] = {}
    for p in points(results.places):
        if p.task != "all" and p.key in found:
            own = out.setdefault(p.backbone, [[]])
            if len(own[-1]) == MAPS:
                own.append([])
            own[-1].append(found[p.key][kind])
    return out
