"""From embeddings to scores, probabilities and p-values, as ONNX nodes."""

import numpy as np

from imprint.aggregators._base import Aggregator
from imprint.calibration import Calibration
from imprint.calibration.temperature import SMALLEST
from imprint.core.errors import ParameterError
from imprint.export.graph import Graph
from imprint.export.head import calibration_of
from imprint.head import Decider

SCORES, PROBABILITIES, KNOWN = "scores", "probabilities", "known"


def decide(g: Graph, x: str, head: Decider) -> tuple[str, ...]:
    """Add the nodes that turn embeddings `x` into outputs, and give their names: scores and probabilities, and the
    p-values `known` of a calibrated model whose doubt has a graph."""
    norm, aggregator, dtype = head.norm_inf, head.aggregator, head.proxies.weights.dtype
    query = norm.graph(g, x, dtype)
    if query is None:
        raise ParameterError(f"export(to='onnx'): {norm} has no graph.")
    nodes = aggregator.graph(g, query, head.proxies, head.prepared)
    if nodes is None:
        raise ParameterError(f"export(to='onnx'): {aggregator} has no graph.")
    S, P = nodes
    g.add("Identity", S, result=SCORES)
    calibration = calibration_of(head)
    if calibration is None:
        g.add("Identity", P, result=PROBABILITIES)
        return SCORES, PROBABILITIES
    g.add("Identity", g.cast(_calibrated(g, P, calibration, len(head)), dtype), result=PROBABILITIES)
    doubt = aggregator.graph_doubt(g, query, head.proxies, head.prepared)
    if doubt is None and type(aggregator).doubt is not Aggregator.doubt:
        return SCORES, PROBABILITIES
    p_values = calibration.conformal.graph(g, S, None if doubt is None else g.cast(doubt, dtype))
    g.add("Identity", p_values, result=KNOWN)
    return SCORES, PROBABILITIES, KNOWN


def _calibrated(g: Graph, P: str, calibration: Calibration, n_classes: int) -> str:
    """As `Calibration.probabilities`."""
    logs = g.add("Log", g.add("Max", g.cast(P, np.float64), g.constant(SMALLEST, np.float64)))
    tempered = g.add("Softmax", g.add("Div", logs, g.constant(calibration.temperature, np.float64)), axis=1)
    scaled = g.add("Mul", tempered, g.constant(1 - calibration.floor, np.float64))
    return g.add("Add", scaled, g.constant(calibration.floor / n_classes, np.float64))
