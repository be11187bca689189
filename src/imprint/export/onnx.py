"""One ONNX graph: the head alone, or a backbone of images or texts followed by the
head.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import IO, Any

import numpy as np
import onnx
from onnx import checker, compose, helper, numpy_helper

from imprint.aggregators._base import Aggregator
from imprint.backbones import Backbone, Preprocess
from imprint.backbones.adapters.onnx import with_blocks
from imprint.backbones.adapters.text import averaged_tensors
from imprint.backbones.record import Record, read_weights
from imprint.calibration import Calibration
from imprint.calibration.calibration import MIN_PROBABILITY
from imprint.core.arrays import Array
from imprint.core.errors import ParameterError
from imprint.export.portable import MARK, Portable
from imprint.head import Decider
from imprint.tags.calibration import MAX_LOGIT, TagCalibration

IMAGES, TOKENS, EMBEDDINGS = "images", "tokens", "embeddings"
SCORES, PROBABILITIES, KNOWN = "scores", "probabilities", "known"
LABELS = "labels"
NETWORK = "backbone/"  # prefix of every name in the graph of the backbone
IR, OPSET = 8, 17
OLDEST = 13  # earlier opsets pass axes as attributes


class Graph:
    """Nodes and constants; every call adds one and returns the name of its result.

    An equal constant or an equal node is added once: scores and `known` follow from the
    same kernels.
    """

    def __init__(self, opset: int = OPSET, prefix: str = "imprint"):
        self.opset = opset
        self.prefix = prefix  # of the names of its nodes and constants
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._named: dict[Any, str] = {}  # of what was added before

    def constant(self, value: Any, dtype: Any) -> str:
        """A stored array."""
        array = np.array(value, dtype, order="C")
        is_text = array.dtype.kind == "O"
        content = repr(array.tolist()).encode() if is_text else array.tobytes()
        digest = hashlib.sha256(content).digest()
        key = (digest, array.dtype.str, array.shape)
        if key not in self._named:
            name = f"{self.prefix}/constant_{len(self.constants)}"
            self.constants.append(numpy_helper.from_array(array, name))
            self._named[key] = name
        return self._named[key]

    def add(
        self, kind: str, *inputs: str, result: str | None = None, **attributes: Any
    ) -> str:
        """One operator."""
        key = (kind, inputs, repr(attributes))
        if result is None and key in self._named:
            return self._named[key]
        name = result or f"{self.prefix}/{kind}_{len(self.nodes)}"
        self.nodes.append(
            helper.make_node(kind, list(inputs), [name], name=name, **attributes)
        )
        self._named.setdefault(key, name)
        return name

    def split(
        self, kind: str, results: int, *inputs: str, **attributes: Any
    ) -> list[str]:
        """One operator with several results."""
        names = [f"{self.prefix}/{kind}_{len(self.nodes)}_{i}" for i in range(results)]
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
        largest = self.reduce("ReduceMax", self.add("Abs", x), 1, keep=True)
        # a row of zeros stays one
        scaled = self.add("Div", x, self.add("Max", largest, tiny))
        squares = self.reduce("ReduceSumSquare", scaled, 1, keep=True)
        length = self.add("Sqrt", squares)
        return self.add("Div", scaled, self.add("Max", length, tiny))


def write_onnx(
    file: IO[bytes], model: Portable, network: Backbone | None, labels: bool = False
) -> None:
    """Write a graph with `embeddings` (n, d) as its input or, with a network,
    `images` or `tokens`.

    The description and the labels are in its metadata, which every runtime can read.
    With `labels`, the predicted labels are an output too.
    """
    graph = _graph(model.head, network)
    if labels:
        _add_labels(graph, model.head)
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
    images or texts.
    """
    g, x, dtype = Graph(), EMBEDDINGS, head.imprinted.dtype
    given = _tensor(x, dtype, ["n", head.proxies.weights.shape[1]])
    if network is not None:
        record, rule = network.record, network.record.preprocess
        if record.adapter == "text":
            return _after_texts(head, record)
        if record.adapter == "onnx" and rule is not None:
            return _after_images(head, record, rule)
        if record.adapter != "raw" or rule is None:
            requirement = (
                "one graph can hold the pixels themselves, or a network that ONNX"
                " Runtime runs"
            )
            advice = (
                "export the head, which takes embeddings: head_only=True, --head-only"
                " on the command line"
            )
            raise ParameterError(
                f"export(to='onnx'): {requirement}, not {record.name}; {advice}."
            )
        given = _tensor(IMAGES, np.uint8, ["n", *rule.size, rule.channels])
        x = g.add("Flatten", _arranged(g, rule), axis=1)
    outputs = _head(g, x, head, "n")
    graph = helper.make_graph(
        g.nodes, "imprint", [given], outputs, initializer=g.constants
    )
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", g.opset)], ir_version=IR
    )


class BackboneGraph:
    """The graph of a backbone, to which nodes are added before and after it."""

    def __init__(self, content: bytes):
        self._model = compose.add_prefix(onnx.load_from_string(content), NETWORK)
        graph = self._model.graph
        stored = {tensor.name for tensor in graph.initializer}
        # in old files, the weights are inputs too
        self.inputs = [given for given in graph.input if given.name not in stored]
        self.first_output = graph.output[0].name
        self.opset = OPSET
        for used in self._model.opset_import:
            if used.domain in ("", "ai.onnx"):
                self.opset = int(used.version)
        if self.opset < OLDEST:
            raise ParameterError(
                f"export(to='onnx'): the network has ONNX opset {self.opset}; it must"
                f" be {OLDEST} or later."
            )

    def feed(self, g: Graph, inputs: Mapping[str, str]) -> None:
        """Add the network to a graph, with the results of nodes as its inputs."""
        for name, value in inputs.items():
            g.add("Identity", value, result=name)
        g.nodes.extend(self._model.graph.node)

    def finished(self, g: Graph, given: Any, outputs: list[Any]) -> Any:
        """The whole model, with one input."""
        graph = self._model.graph
        for old in self.inputs:
            graph.input.remove(old)
        graph.input.insert(0, given)
        graph.initializer.extend(g.constants)
        del graph.node[:]
        graph.node.extend(g.nodes)
        del graph.output[:]
        graph.output.extend(outputs)
        return self._model


def _after_images(head: Decider, record: Record, rule: Preprocess) -> Any:
    """The head after a network that reads images of one size."""
    content, layer = with_blocks(record, read_weights(record)[0])
    network = BackboneGraph(content)
    (old,) = network.inputs
    rows = old.type.tensor_type.shape.dim[0].dim_value or "n"
    g = Graph(network.opset)
    network.feed(g, {old.name: _arranged(g, rule)})
    # networks for images may keep axes of length one
    output = NETWORK + layer if layer else network.first_output
    flat = g.add("Flatten", output, axis=1)
    x = g.cast(flat, head.imprinted.dtype)
    given = _tensor(IMAGES, np.uint8, [rows, *rule.size, rule.channels])
    return network.finished(g, given, _head(g, x, head, rows))


def _after_texts(head: Decider, record: Record) -> Any:
    """The head after a network that reads texts as tokens. The texts of one batch have
    the same length, so that nothing is padded.
    """
    network = BackboneGraph(read_weights(record)[0])
    g = Graph(network.opset)
    shape = g.add("Shape", TOKENS)

    def filled(value: int) -> str:
        tensor = numpy_helper.from_array(np.array([value], np.int64))
        return g.add("ConstantOfShape", shape, value=tensor)

    inputs = {
        f"{NETWORK}input_ids": TOKENS,
        f"{NETWORK}attention_mask": filled(1),
        f"{NETWORK}token_type_ids": filled(0),
    }
    network.feed(g, inputs)
    # one block of the embedding from each tensor
    tensors = averaged_tensors(record)
    means = [g.reduce("ReduceMean", NETWORK + tensor, 1) for tensor in tensors]
    x = g.cast(g.add("Concat", *means, axis=1), head.imprinted.dtype)
    given = _tensor(TOKENS, np.int64, ["n", "length"])
    return network.finished(g, given, _head(g, x, head, "n"))


def _arranged(g: Graph, rule: Preprocess) -> str:
    """Images as the network takes them; the same computation as
    `Preprocess.arrange`.
    """
    x = IMAGES
    steps = (
        ("Div", rule.divide),
        ("Sub", rule.mean),
        ("Div", rule.std),
    )
    if rule.dtype == "float32":
        x = g.cast(x, np.float32)
        for kind, value in steps:
            # what is left out changes nothing
            if value is not None and value != 1:
                x = g.add(kind, x, g.constant(value, np.float32))
    if rule.layout == "NCHW":
        x = g.add("Transpose", x, perm=[0, 3, 1, 2])
    return x


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


def _add_labels(model: Any, head: Decider) -> None:
    """Add the predicted labels as an output: one label of each row or, for tags,
    whether the row has each label.
    """
    graph = model.graph
    dimension = graph.output[0].type.tensor_type.shape.dim[0]
    rows = dimension.dim_value or dimension.dim_param
    g = Graph(prefix="imprint/labels")
    if head.tags:
        limits = g.constant(head.calibration.thresholds, np.float64)
        g.add("GreaterOrEqual", g.cast(SCORES, np.float64), limits, result=LABELS)
        given = _tensor(LABELS, bool, [rows, len(head)])
    else:
        names = _storable(head.classes)
        best = g.add("ArgMax", SCORES, axis=1, keepdims=0)
        stored = g.constant(names, names.dtype)
        g.add("Gather", stored, best, result=LABELS)
        given = _tensor(LABELS, names.dtype, [rows])
    graph.node.extend(g.nodes)
    graph.initializer.extend(g.constants)
    graph.output.append(given)


def _storable(classes: Array) -> Array:
    """Labels of a type that ONNX has; integers beyond 64 bits become texts."""
    if classes.dtype.kind == "O":
        texts = list(map(str, classes.tolist()))
        return np.array(texts, dtype=object)
    if classes.dtype.kind == "U":
        return classes.astype(object)
    return classes


def _calibrated_tags(g: Graph, S: str, calibration: TagCalibration) -> str:
    """The same computation as `TagCalibration.probabilities`."""
    double = np.float64
    slopes = g.constant(calibration.slopes, double)
    offsets = g.constant(calibration.offsets, double)
    scaled = g.add("Mul", g.cast(S, double), slopes)
    logits = g.add("Add", scaled, offsets)
    # beyond, the exponential would overflow
    low = g.constant(-MAX_LOGIT, double)
    high = g.constant(MAX_LOGIT, double)
    return g.add("Sigmoid", g.add("Clip", logits, low, high))


def _calibrated(g: Graph, P: str, calibration: Calibration, n_classes: int) -> str:
    """The same computation as `Calibration.probabilities`."""
    double = np.float64
    smallest = g.constant(MIN_PROBABILITY, double)
    temperature = g.constant(calibration.temperature, double)
    share = g.constant(1 - calibration.floor, double)
    floor = g.constant(calibration.floor / n_classes, double)
    # zero has no logarithm
    positive = g.add("Max", g.cast(P, double), smallest)
    logs = g.add("Log", positive)
    divided = g.add("Div", logs, temperature)
    tempered = g.add("Softmax", divided, axis=1)
    shared = g.add("Mul", tempered, share)
    return g.add("Add", shared, floor)


def _tensor(name: str, dtype: Any, shape: list[int | str]) -> Any:
    return helper.make_tensor_value_info(name, element(dtype), shape)


def element(dtype: Any) -> int:
    """The ONNX code of a data type."""
    return int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
