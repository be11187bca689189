"""All experiments of a unit: every class summarised once, every decision made once."""

import numpy as np

from imprint.core.errors import ImprintError
from imprint.core.memory import peak_memory, reset_peak
from imprint.core.types import Array
from imprint.study.decide import DecisionCounts, decide
from imprint.study.plan import Unit
from imprint.study.proxies import UnitProxies
from imprint.study.work_graph import build

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
"""What is kept of every experiment. Seconds are of processor time; shared work is divided among those who share it."""
MEASUREMENTS = ("seconds_generation", "seconds_evaluation", "peak_memory")  # all others repeat bit for bit


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
    for i, found in decide(graph, proxies, np.asarray(data.X_test)):
        own, split = graph.experiments[i], graph.splits[graph.decisions[i].split]
        for name, value in _scores(found, split.truth).items():
            columns[name][own] = value
        columns["seconds_evaluation"][own] = found.seconds / len(own)
        specs[graph.decisions[i].spec] += own
    for own, seconds in zip(specs, proxies.seconds):
        columns["seconds_generation"][own] = seconds / max(1, len(own))
    columns["peak_memory"][:] = peak_memory()
    return columns


def _scores(found: DecisionCounts, truth: Array) -> dict[str, float]:
    """The numbers of one decision, from how many rows of each class were decided, and rightly."""
    right, claimed = found.right, found.claimed
    true = np.bincount(truth, minlength=len(right))
    seen = true + claimed
    f1 = 2 * right / np.maximum(seen, 1)
    return {
        "accuracy": right.sum() / len(truth),
        "macro_f1": f1.sum() / (seen > 0).sum(),
        "weighted_f1": (f1 * true).sum() / len(truth),
        "near_ties": found.near,
        "proxies": found.proxies,
        "test_rows": len(truth),
    }
