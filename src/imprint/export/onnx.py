"""One ONNX graph: the head alone, or an image backbone followed by the head."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from imprint.backbones import Backbone, Preprocess
from imprint.backbones.backbone import extra
from imprint.backbones.record import weights
from imprint.core.errors import ParameterError
from imprint.core.files.atomic import atomic_write
from imprint.export.graph import KNOWN, OLDEST, OPSET, PROBABILITIES, SCORES, Graph, decide, element
from imprint.export.portable import MARK, Portable
from imprint.head import Decider

PICTURES, EMBEDDINGS = "pictures", "embeddings"
NETWORK = "backbone/"  # prefix of every name in the graph of the backbone
IR = 8


def write_onnx(path: Path, model: Portable, network: Backbone | None) -> None:
    """Write a graph with `embeddings` (n, d) as its input or, with a network, `pictures`."""
    extra("onnx", "export", "export(to='onnx')")
    graph = _head(model.head) if network is None else _whole(model.head, network)
    _describe(graph, model)
    import onnx

    onnx.checker.check_model(graph)
    with atomic_write(path) as f:
        f.write(graph.SerializeToString())


def _head(head: Decider) -> Any:
    g = Graph()
    outputs = decide(g, EMBEDDINGS, head)
    given = _tensor(EMBEDDINGS, head.imprinted.dtype, ["n", head.proxies.weights.shape[1]])
    return _model(g, given, _outputs(head, outputs, "n"))


def _whole(head: Decider, network: Backbone) -> Any:
    record, rule = network.record, network.record.preprocess
    if record.adapter == "onnx" and rule is not None:
        return _joined(head, weights(record)[0], rule, record.layer)
    if record.adapter == "raw" and rule is not None:
        g = Graph()
        outputs = decide(g, g.add("Flatten", _arranged(g, rule), axis=1), head)
        given = _tensor(PICTURES, np.uint8, ["n", *rule.size, rule.channels])
        return _model(g, given, _outputs(head, outputs, "n"))
    requirement = "one graph can hold the pixels themselves, or a picture network that ONNX Runtime runs"
    advice = "export the head, which takes embeddings: head_only=True, --head-only on the command line"
    raise ParameterError(f"export(to='onnx'): {requirement}, not {record.name}; {advice}.")


def _joined(head: Decider, content: bytes, rule: Preprocess, layer: str | None) -> Any:
    """The graph of the network, with the preprocessing before it and the head after it."""
    import onnx
    from onnx import compose

    model = compose.add_prefix(onnx.load_from_string(content), NETWORK)
    graph, stored = model.graph, {t.name for t in model.graph.initializer}
    (old,) = (i for i in graph.input if i.name not in stored)
    rows = old.type.tensor_type.shape.dim[0].dim_value or "n"
    g = Graph(_opset(model))
    g.add("Identity", _arranged(g, rule), result=old.name)
    g.nodes.extend(graph.node)
    embeddings = g.cast(NETWORK + layer if layer else graph.output[0].name, head.imprinted.dtype)
    outputs = decide(g, g.add("Flatten", embeddings, axis=1), head)
    graph.input.remove(old)
    graph.input.insert(0, _tensor(PICTURES, np.uint8, [rows, *rule.size, rule.channels]))
    graph.initializer.extend(g.constants)
    for field, values in ((graph.node, g.nodes), (graph.output, _outputs(head, outputs, rows))):
        del field[:]
        field.extend(values)
    return model


def _opset(model: Any) -> int:
    version = next((int(o.version) for o in model.opset_import if o.domain in ("", "ai.onnx")), OPSET)
    if version < OLDEST:
        raise ParameterError(f"export(to='onnx'): the network has ONNX opset {version}; it must be {OLDEST} or later.")
    return version


def _arranged(g: Graph, rule: Preprocess) -> str:
    """Pictures as the network takes them; the same computation as `Preprocess.arrange`."""
    x = PICTURES
    if rule.dtype == "float32":
        x = g.cast(x, np.float32)
        for kind, value in (("Div", rule.divide), ("Sub", rule.mean), ("Div", rule.std)):
            if value is not None and value != 1:
                x = g.add(kind, x, g.constant(value, np.float32))
    return g.add("Transpose", x, perm=[0, 3, 1, 2]) if rule.layout == "NCHW" else x


def _model(g: Graph, given: Any, outputs: list[Any]) -> Any:
    from onnx import helper

    graph = helper.make_graph(g.nodes, "imprint", [given], outputs, initializer=g.constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", g.opset)], ir_version=IR)


def _outputs(head: Decider, names: tuple[str, ...], rows: int | str) -> list[Any]:
    dtype = head.imprinted.dtype
    tensors = {
        SCORES: _tensor(SCORES, dtype, [rows, len(head)]),
        PROBABILITIES: _tensor(PROBABILITIES, dtype, [rows, len(head)]),
        KNOWN: _tensor(KNOWN, np.float64, [rows]),
    }
    return [tensors[name] for name in names]


def _tensor(name: str, dtype: Any, shape: list[int | str]) -> Any:
    from onnx import helper

    return helper.make_tensor_value_info(name, element(dtype), shape)


def _describe(graph: Any, model: Portable) -> None:
    """Store the description and the labels in the metadata, which every runtime can read."""
    from onnx import helper

    graph.producer_name, graph.doc_string = "imprint", model.about["use"]
    facts = {"classes": json.dumps(model.about["classes"]), MARK: json.dumps(model.about)}
    if any(i.name == PICTURES for i in graph.graph.input):
        facts["preprocess"] = json.dumps(model.about["backbone"]["preprocess"])
    metadata = {p.key: p.value for p in graph.metadata_props}
    helper.set_model_props(graph, {**metadata, **facts})
