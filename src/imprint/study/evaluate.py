"""All experiments of a unit: each class summarised once, each decision computed once."""

import numpy as np

from imprint.core.errors import ImprintError
from imprint.core.memory import peak_memory, reset_peak
from imprint.core.types import Array
from imprint.study.decide import decide
from imprint.study.plan import Unit
from imprint.study.proxies import UnitProxies
from imprint.study.work_graph import DecisionCounts, build

COLUMNS = {
    "accuracy": np.float64,
    "macro_f1": np.float64,
    "weighted_f1": np.float64,
    "near_ties": np.int32,
    "proxies": np.int32,
    "test_rows": np.int32,
    "seconds_generation": np.float32,
    "seconds_evaluation": np.float32,
    "peak_memory": np.int64,
}
"""The stored results of an experiment. Seconds are processor time, with an equal part of shared work."""
MEASUREMENTS = ("seconds_generation", "seconds_evaluation", "peak_memory")  # all others are reproducible to the bit


def evaluate(unit: Unit) -> dict[str, Array]:
    """The columns of a unit, one row per experiment in the order of `unit.experiments`."""
    reset_peak()
    data = unit.source.open(unit.backbone, unit.dataset)
    if data.fingerprint != unit.fingerprint:
        raise ImprintError(f"{unit}: the embeddings have changed since the study was planned.")
    graph = build(unit, data.y, data.y_test)
    proxies = UnitProxies(graph, np.asarray(data.X))
    columns = {name: np.zeros(len(unit.experiments), dtype) for name, dtype in COLUMNS.items()}
    specs: list[list[int]] = [[] for _ in graph.specs]
    for i, result in decide(graph, proxies, np.asarray(data.X_test)):
        rows, split = graph.experiments[i], graph.splits[graph.decisions[i].split]
        for name, value in _scores(result, split.truth).items():
            columns[name][rows] = value
        columns["seconds_evaluation"][rows] = result.seconds / len(rows)
        specs[graph.decisions[i].spec] += rows
    for rows, seconds in zip(specs, proxies.seconds):
        columns["seconds_generation"][rows] = seconds / max(1, len(rows))
    columns["peak_memory"][:] = peak_memory()
    return columns


def _scores(result: DecisionCounts, truth: Array) -> dict[str, float]:
    """Accuracy, F1 and counts of one decision."""
    right, claimed = result.right, result.claimed
    true = np.bincount(truth, minlength=len(right))
    seen = true + claimed
    f1 = 2 * right / np.maximum(seen, 1)
    return {
        "accuracy": right.sum() / len(truth),
        "macro_f1": f1.sum() / (seen > 0).sum(),
        "weighted_f1": (f1 * true).sum() / len(truth),
        "near_ties": result.near,
        "proxies": result.proxies,
        "test_rows": len(truth),
    }
