"""Processor time of generation, measured once per task and seed and kept."""

import time
from pathlib import Path

import numpy as np

from imprint import tasks
from imprint.kernels.cpu import one_thread
from imprint.paper.artefact import Report
from imprint.paper.places import Places, regularisation
from imprint.paper.results import Results, write_json
from imprint.paper.work import SEEDS, TASKS
from imprint.study import Packs

NAME = "runtime"
GENERATORS = {
    "mean": "mean",
    "k-means, k = 5": "kmeans(k=5)",
    "k-means, k = 20": "kmeans(k=20)",
    "least squares": "least_squares(reg={reg})",
    "5-least-squares": "k_least_squares(k=5, reg={reg})",
    "20-least-squares": "k_least_squares(k=20, reg={reg})",
}


def measure(places: Places, folder: Path, report: Report) -> None:
    """Fit every generator on every task with every seed, one thread, nothing shared, nothing normalised."""
    found, group = Results(folder).measured(NAME), places.benchmark
    wanted = [(b, d, t) for b in group.backbones for d in group.datasets for t in TASKS]
    with one_thread():
        for i, point in enumerate(wanted):
            key = " / ".join(point)
            if key not in found:
                found[key] = _measure(places, *point)
                write_json(folder / f"{NAME}.json", found)
            report("Runtime", i + 1, len(wanted))


def _measure(places: Places, backbone: str, dataset: str, task: str) -> dict[str, list[float]]:
    data = Packs(places.embeddings).open(backbone, dataset)
    chosen = tasks.resolve(task).select(data.y)
    X, times = np.asarray(data.X[chosen.rows]), {}
    for label, text in GENERATORS.items():
        generator = text.format(reg=regularisation(backbone))
        times[label] = [_seconds(generator, X, chosen.labels, seed) for seed in SEEDS]
    return times


def _seconds(generator: str, X: np.ndarray, y: np.ndarray, seed: int) -> float:
    from imprint import ImprintClassifier

    clf = ImprintClassifier(
        norm_pre="none", generator=generator, norm_post="none", norm_inf="none", aggregator="max", random_state=seed
    )
    start = time.process_time()
    clf.fit(X, y)
    return time.process_time() - start
