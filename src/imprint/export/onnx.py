"""One ONNX graph: the head alone, or an image backbone followed by the head."""

import json
from typing import IO, Any

import numpy as np
import onnx
from onnx import checker, compose, helper, numpy_helper

from imprint.aggregators._base import Aggregator
from imprint.backbones import Backbone, Preprocess
from imprint.backbones.adapters.onnx import with_blocks
from imprint.backbones.record import read_weights
from imprint.calibration import Calibration
from imprint.calibration.calibration import MIN_PROBABILITY
from imprint.core.errors import ParameterError
from imprint.export import MARK, Portable
from imprint.head import Decider
from imprint.tags.calibration import MAX_LOGIT, TagCalibration

PICTURES, EMBEDDINGS = "pictures", "embeddings"
SCORES, PROBABILITIES, KNOWN = "scores", "probabilities", "known"
NETWORK = "backbone/"  # prefix of every name in the graph of the backbone
IR, OPSET = 8, 17
OLDEST = 13  # earlier opsets pass axes as attributes


class Graph:
    """Nodes and constants; every call adds one and returns the name of its result."""

    def __init__(self, opset: int = OPSET):
        self.opset = opset
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, value: Any, dtype: Any) -> str:
        """A stored array."""
        name = f"imprint/constant_{len(self.constants)}"
        self.constants.append(
            numpy_helper.from_array(np.array(value, dtype, order="C"), name)
        )
        return name

    def add(
        self, kind: str, *inputs: str, result: str | None = None, **attributes: Any
    ) -> str:
        """One operator."""
        name = result or f"imprint/{kind}_{len(self.nodes)}"
        self.nodes.append(
            helper.make_node(kind, list(inputs), [name], name=name, **attributes)
        )
        return name

    def split(
        self, kind: str, results: int, *inputs: str, **attributes: Any
    ) -> list[str]:
        """One operator with several results."""
        names = [f"imprint/{kind}_{len(self.nodes)}_{i}" for i in range(results)]
        self.nodes.append(
            helper.make_node(kind, list(inputs), names, name=names[0], **attributes)
        )
        return names

    def reduce(self, kind: str, x: str, axis: int, keep: bool = False) -> str:
        """A reduction, such as `ReduceMax`, along one axis."""
        if kind == "ReduceSum" or self.opset >= 18:
            return self.add(
                kind, x, self.constant([axis], np.int64), keepdims=int(keep)
            )
        return self.add(kind, x, axes=[axis], keepdims=int(keep))

    def cast(self, x: str, dtype: Any) -> str:
        """Conversion to another data type."""
        return self.add("Cast", x, to=element(dtype))

    def unsqueeze(self, x: str, axis: int) -> str:
        """One more axis, of length one."""
        return self.add("Unsqueeze", x, self.constant([axis], np.int64))

    def unit_rows(self, x: str, dtype: Any) -> str:
        """Rows divided by their lengths; first by their largest absolute value, so that
        no square overflows.
        """
        tiny = self.constant(np.finfo(dtype).tiny, dtype)
        peak = self.add(
            "Max", self.reduce("ReduceMax", self.add("Abs", x), 1, keep=True), tiny
        )
        scaled = self.add("Div", x, peak)
        length = self.add("Sqrt", self.reduce("ReduceSumSquare", scaled, 1, keep=True))
        return self.add("Div", scaled, self.add("Max", length, tiny))


def write_onnx(file: IO[bytes], model: Portable, network: Backbone | None) -> None:
    """Write a graph with `embeddings` (n, d) as its input or, with a network,
    `pictures`.

    The description and the labels are in its metadata, which every runtime can read.
    """
    graph = _graph(model.head, network)
    graph.producer_name, graph.doc_string = "imprint", model.about["use"]
    metadata = {p.key: p.value for p in graph.metadata_props}
    metadata |= {
        "classes": json.dumps(model.about["classes"]),
        MARK: json.dumps(model.about),
    }
    if network is not None:
        metadata["preprocess"] = json.dumps(model.about["backbone"]["preprocess"])
    helper.set_model_props(graph, metadata)
    checker.check_model(graph)
    file.write(graph.SerializeToString())


def _graph(head: Decider, network: Backbone | None) -> Any:
    """The head after embeddings, after the pixels themselves, or after a network of
    pictures.
    """
    g, x, dtype = Graph(), EMBEDDINGS, head.imprinted.dtype
    given = _tensor(x, dtype, ["n", head.proxies.weights.shape[1]])
    if network is not None:
        record, rule = network.record, network.record.preprocess
        if record.adapter == "onnx" and rule is not None:
            content, layer = with_blocks(record, read_weights(record)[0])
            return _joined(head, content, rule, layer)
        if record.adapter != "raw" or rule is None:
            requirement = (
                "one graph can hold the pixels themselves, or a picture network that"
                " ONNX Runtime runs"
            )
            advice = (
                "export the head, which takes embeddings: head_only=True, --head-only"
                " on the command line"
            )
            raise ParameterError(
                f"export(to='onnx'): {requirement}, not {record.name}; {advice}."
            )
        given = _tensor(PICTURES, np.uint8, ["n", *rule.size, rule.channels])
        x = g.add("Flatten", _arranged(g, rule), axis=1)
    outputs = _head(g, x, head, "n")
    graph = helper.make_graph(
        g.nodes, "imprint", [given], outputs, initializer=g.constants
    )
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", g.opset)], ir_version=IR
    )


def _joined(head: Decider, content: bytes, rule: Preprocess, layer: str | None) -> Any:
    """The graph of the network, with the preprocessing before it and the head after
    it.
    """
    model = compose.add_prefix(onnx.load_from_string(content), NETWORK)
    opset = next(
        (int(o.version) for o in model.opset_import if o.domain in ("", "ai.onnx")),
        OPSET,
    )
    if opset < OLDEST:
        raise ParameterError(
            f"export(to='onnx'): the network has ONNX opset {opset}; it must be"
            f" {OLDEST} or later."
        )
    graph, stored = model.graph, {t.name for t in model.graph.initializer}
    (old,) = (i for i in graph.input if i.name not in stored)
    rows = old.type.tensor_type.shape.dim[0].dim_value or "n"
    g = Graph(opset)
    g.add("Identity", _arranged(g, rule), result=old.name)
    g.nodes.extend(graph.node)
    embeddings = g.cast(
        NETWORK + layer if layer else graph.output[0].name, head.imprinted.dtype
    )
    outputs = _head(g, g.add("Flatten", embeddings, axis=1), head, rows)
    graph.input.remove(old)
    graph.input.insert(
        0, _tensor(PICTURES, np.uint8, [rows, *rule.size, rule.channels])
    )
    graph.initializer.extend(g.constants)
    for field, values in ((graph.node, g.nodes), (graph.output, outputs)):
        del field[:]
        field.extend(values)
    return model


def _arranged(g: Graph, rule: Preprocess) -> str:
    """Pictures as the network takes them; the same computation as
    `Preprocess.arrange`.
    """
    x = PICTURES
    if rule.dtype == "float32":
        x = g.cast(x, np.float32)
        for kind, value in (
            ("Div", rule.divide),
            ("Sub", rule.mean),
            ("Div", rule.std),
        ):
            if value is not None and value != 1:
                x = g.add(kind, x, g.constant(value, np.float32))
    return g.add("Transpose", x, perm=[0, 3, 1, 2]) if rule.layout == "NCHW" else x


def _head(g: Graph, x: str, head: Decider, rows: int | str) -> list[Any]:
    """Add the nodes that turn embeddings `x` into outputs, and return the outputs.

    These are scores and probabilities, and the p-values `known` if the model is
    calibrated and its doubt has a graph.
    """
    norm, aggregator, dtype = head.norm_inf, head.aggregator, head.proxies.weights.dtype
    query = norm.graph(g, x, dtype)
    nodes = (
        None
        if query is None
        else aggregator.graph(g, query, head.proxies, head.prepared)
    )
    if query is None or nodes is None:
        raise ParameterError(
            f"export(to='onnx'): {norm if query is None else aggregator} has no graph."
        )
    S, P = nodes
    calibration = head.calibration if head.calibrated else None
    if isinstance(calibration, TagCalibration):
        P = g.cast(_calibrated_tags(g, S, calibration), dtype)
    elif isinstance(calibration, Calibration):
        P = g.cast(_calibrated(g, P, calibration, len(head)), dtype)
    g.add("Identity", S, result=SCORES)
    g.add("Identity", P, result=PROBABILITIES)
    outputs = [
        _tensor(name, head.imprinted.dtype, [rows, len(head)])
        for name in (SCORES, PROBABILITIES)
    ]
    if isinstance(calibration, TagCalibration | Calibration):
        doubt = aggregator.graph_doubt(g, query, head.proxies, head.prepared)
        if doubt is not None or type(aggregator).doubt is Aggregator.doubt:
            p_values = calibration.graph_p_values(
                g, S, None if doubt is None else g.cast(doubt, dtype)
            )
            g.add("Identity", p_values, result=KNOWN)
            outputs.append(_tensor(KNOWN, np.float64, [rows]))
    return outputs


def _calibrated_tags(g: Graph, S: str, calibration: TagCalibration) -> str:
    """The same computation as `TagCalibration.probabilities`."""
    scaled = g.add(
        "Mul", g.cast(S, np.float64), g.constant(calibration.slopes, np.float64)
    )
    logits = g.add("Add", scaled, g.constant(calibration.offsets, np.float64))
    limits = [g.constant(limit, np.float64) for limit in (-MAX_LOGIT, MAX_LOGIT)]
    return g.add("Sigmoid", g.add("Clip", logits, *limits))


def _calibrated(g: Graph, P: str, calibration: Calibration, n_classes: int) -> str:
    """The same computation as `Calibration.probabilities`."""
    logs = g.add(
        "Log",
        g.add("Max", g.cast(P, np.float64), g.constant(MIN_PROBABILITY, np.float64)),
    )
    tempered = g.add(
        "Softmax",
        g.add("Div", logs, g.constant(calibration.temperature, np.float64)),
        axis=1,
    )
    scaled = g.add("Mul", tempered, g.constant(1 - calibration.floor, np.float64))
    return g.add("Add", scaled, g.constant(calibration.floor / n_classes, np.float64))


def _tensor(name: str, dtype: Any, shape: list[int | str]) -> Any:
    return helper.make_tensor_value_info(name, element(dtype), shape)


def element(dtype: Any) -> int:
    """The ONNX code of a data type."""
    return int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
