"""From embeddings to scores and probabilities, as ONNX nodes."""

import numpy as np

from imprint.calibration import Calibration, CrossValidation
from imprint.calibration.temperature import SMALLEST
from imprint.core.errors import ParameterError
from imprint.export.graph import Graph
from imprint.head import Decider

SCORES, PROBABILITIES = "scores", "probabilities"


def decide(g: Graph, x: str, head: Decider) -> None:
    """Add the nodes that turn embeddings `x` into the two outputs; the parts of the method know their own."""
    norm, aggregator = head.norm_inf, head.aggregator
    query = norm.graph(g, x, head.proxies.weights.dtype)
    if query is None:
        raise ParameterError(f"export(to='onnx'): {norm} has no graph.")
    found = aggregator.graph(g, query, head.proxies, head.prepared)
    if found is None:
        raise ParameterError(f"export(to='onnx'): {aggregator} has no graph.")
    S, P = found
    g.add("Identity", S, result=SCORES)
    if isinstance(head.imprinted.folds, CrossValidation) and head.calibrated:
        P = g.cast(_calibrated(g, P, head.imprinted.folds.calibration, len(head)), head.proxies.weights.dtype)
    g.add("Identity", P, result=PROBABILITIES)


def _calibrated(g: Graph, P: str, found: Calibration, n_classes: int) -> str:
    """As `Calibration.probabilities`."""
    logs = g.add("Log", g.add("Max", g.cast(P, np.float64), g.constant(SMALLEST, np.float64)))
    tempered = g.add("Softmax", g.add("Div", logs, g.constant(found.temperature, np.float64)), axis=1)
    scaled = g.add("Mul", tempered, g.constant(1 - found.floor, np.float64))
    return g.add("Add", scaled, g.constant(found.floor / n_classes, np.float64))
