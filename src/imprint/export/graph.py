"""ONNX nodes, added one call at a time, and those that compute a head's scores, probabilities and p-values."""

from typing import Any

import numpy as np

from imprint.aggregators._base import Aggregator
from imprint.calibration import Calibration
from imprint.calibration.temperature import SMALLEST
from imprint.core.errors import ParameterError
from imprint.head import Decider
from imprint.tags.calibration import LARGEST_LOGIT, TagCalibration

SCORES, PROBABILITIES, KNOWN = "scores", "probabilities", "known"
OPSET = 17
OLDEST = 13  # earlier opsets pass axes as attributes


class Graph:
    """Nodes and constants; every call adds one and returns the name of its result."""

    def __init__(self, opset: int = OPSET):
        self.opset = opset
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, value: Any, dtype: Any) -> str:
        """A stored array."""
        from onnx import numpy_helper

        name = f"imprint/constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.array(value, dtype, order="C"), name))
        return name

    def add(self, kind: str, *inputs: str, result: str | None = None, **attributes: Any) -> str:
        """One operator."""
        from onnx import helper

        name = result or f"imprint/{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name=name, **attributes))
        return name

    def split(self, kind: str, results: int, *inputs: str, **attributes: Any) -> list[str]:
        """One operator with several results."""
        from onnx import helper

        names = [f"imprint/{kind}_{len(self.nodes)}_{i}" for i in range(results)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, name=names[0], **attributes))
        return names

    def reduce(self, kind: str, x: str, axis: int, keep: bool = False) -> str:
        """A reduction, such as `ReduceMax`, along one axis."""
        if kind == "ReduceSum" or self.opset >= 18:
            return self.add(kind, x, self.constant([axis], np.int64), keepdims=int(keep))
        return self.add(kind, x, axes=[axis], keepdims=int(keep))

    def cast(self, x: str, dtype: Any, result: str | None = None) -> str:
        """Conversion to another data type."""
        return self.add("Cast", x, result=result, to=element(dtype))

    def unsqueeze(self, x: str, axis: int) -> str:
        """One more axis, of length one."""
        return self.add("Unsqueeze", x, self.constant([axis], np.int64))

    def unit_rows(self, x: str, dtype: Any) -> str:
        """Rows divided by their lengths; first by their largest absolute value, so that no square overflows."""
        tiny = self.constant(np.finfo(dtype).tiny, dtype)
        peak = self.add("Max", self.reduce("ReduceMax", self.add("Abs", x), 1, keep=True), tiny)
        scaled = self.add("Div", x, peak)
        length = self.add("Sqrt", self.reduce("ReduceSumSquare", scaled, 1, keep=True))
        return self.add("Div", scaled, self.add("Max", length, tiny))


def element(dtype: Any) -> int:
    """The ONNX code of a data type."""
    from onnx import helper

    return int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


def decide(g: Graph, x: str, head: Decider) -> tuple[str, ...]:
    """Add the nodes that turn embeddings `x` into outputs, and return the names of the outputs.

    These are scores and probabilities, and the p-values `known` if the model is calibrated and its doubt has a graph.
    """
    norm, aggregator, dtype = head.norm_inf, head.aggregator, head.proxies.weights.dtype
    query = norm.graph(g, x, dtype)
    if query is None:
        raise ParameterError(f"export(to='onnx'): {norm} has no graph.")
    nodes = aggregator.graph(g, query, head.proxies, head.prepared)
    if nodes is None:
        raise ParameterError(f"export(to='onnx'): {aggregator} has no graph.")
    S, P = nodes
    g.add("Identity", S, result=SCORES)
    calibration = head.calibration if head.calibrated else None
    if isinstance(calibration, TagCalibration):
        calibrated = _calibrated_tags(g, S, calibration)
    elif isinstance(calibration, Calibration):
        calibrated = _calibrated(g, P, calibration, len(head))
    else:
        g.add("Identity", P, result=PROBABILITIES)
        return SCORES, PROBABILITIES
    g.add("Identity", g.cast(calibrated, dtype), result=PROBABILITIES)
    doubt = aggregator.graph_doubt(g, query, head.proxies, head.prepared)
    if doubt is None and type(aggregator).doubt is not Aggregator.doubt:
        return SCORES, PROBABILITIES
    p_values = calibration.conformal.graph(g, S, None if doubt is None else g.cast(doubt, dtype))
    g.add("Identity", p_values, result=KNOWN)
    return SCORES, PROBABILITIES, KNOWN


def _calibrated_tags(g: Graph, S: str, calibration: TagCalibration) -> str:
    """The same computation as `TagCalibration.probabilities`."""
    scaled = g.add("Mul", g.cast(S, np.float64), g.constant(calibration.slopes, np.float64))
    logits = g.add("Add", scaled, g.constant(calibration.offsets, np.float64))
    limits = [g.constant(limit, np.float64) for limit in (-LARGEST_LOGIT, LARGEST_LOGIT)]
    return g.add("Sigmoid", g.add("Clip", logits, *limits))


def _calibrated(g: Graph, P: str, calibration: Calibration, n_classes: int) -> str:
    """The same computation as `Calibration.probabilities`."""
    logs = g.add("Log", g.add("Max", g.cast(P, np.float64), g.constant(SMALLEST, np.float64)))
    tempered = g.add("Softmax", g.add("Div", logs, g.constant(calibration.temperature, np.float64)), axis=1)
    scaled = g.add("Mul", tempered, g.constant(1 - calibration.floor, np.float64))
    return g.add("Add", scaled, g.constant(calibration.floor / n_classes, np.float64))
