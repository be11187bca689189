"""Convert published networks to the files that the package ships.

    python ship.py efficientnet --network efficientnet_lite0.onnx --head efficientnet_lite0_head.npz --out DIR
    python ship.py minilm --network minilm_l6_int8.onnx --tokenizer minilm_l6_tokenizer.json --out DIR

EfficientNet-Lite0: ONNX Runtime folds the constants of the exported graph (padding, reshapes); weights are stored in
half precision and cast to single precision by the graph itself, once, when the file is opened. MiniLM: the graph is
unchanged, and its tokeniser is written into the metadata of the file, so that one checksum covers both.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import save_file

SMALL = 2048  # number of values; smaller constants (biases, scalars) stay in single precision


def folded(path: Path) -> onnx.ModelProto:
    """The same network without the nodes that only compute constants."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    with tempfile.TemporaryDirectory() as folder:
        options.optimized_model_filepath = f"{folder}/folded.onnx"
        ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        model = onnx.load(options.optimized_model_filepath)
    standard = [o for o in model.opset_import if not o.domain]
    del model.opset_import[:]
    model.opset_import.extend(standard)
    return model


def halved(model: onnx.ModelProto) -> onnx.ModelProto:
    """Large single-precision constants stored in half precision, each behind a cast."""
    casts, constants = [], []
    for tensor in model.graph.initializer:
        values = numpy_helper.to_array(tensor)
        if values.dtype == np.float32 and values.size >= SMALL:
            stored = f"{tensor.name}/half"
            constants.append(numpy_helper.from_array(values.astype(np.float16), stored))
            casts.append(
                helper.make_node("Cast", [stored], [tensor.name], to=TensorProto.FLOAT)
            )
        else:
            constants.append(tensor)
    nodes = [*casts, *model.graph.node]
    for field, values in (
        (model.graph.initializer, constants),
        (model.graph.node, nodes),
    ):
        del field[:]
        field.extend(values)
    return model


def write(model: onnx.ModelProto, path: Path) -> None:
    onnx.checker.check_model(model)
    path.write_bytes(model.SerializeToString(deterministic=True))


def efficientnet(args: argparse.Namespace) -> None:
    write(halved(folded(args.network)), args.out / "efficientnet_lite0.onnx")
    raw = np.load(args.head)
    classes = {key: json.dumps(raw[key].tolist()) for key in ("ids", "names")}
    head = {
        "weight": raw["weight"].astype(np.float16),
        "bias": raw["bias"].astype(np.float32),
    }
    save_file(head, args.out / "efficientnet_lite0_head.safetensors", metadata=classes)


def minilm(args: argparse.Namespace) -> None:
    model = onnx.load(args.network)
    tokenizer = json.loads(args.tokenizer.read_text("utf-8"))
    tokenizer |= {"padding": None}
    helper.set_model_props(
        model,
        {"tokenizer": json.dumps(tokenizer, ensure_ascii=False, separators=(",", ":"))},
    )
    write(model, args.out / "minilm.onnx")


def main() -> None:
    p = argparse.ArgumentParser(
        description="Convert published networks for the package."
    )
    kinds = p.add_subparsers(required=True)
    for run, beside in ((efficientnet, "--head"), (minilm, "--tokenizer")):
        kind = kinds.add_parser(run.__name__)
        kind.set_defaults(run=run)
        for option in ("--network", beside, "--out"):
            kind.add_argument(option, type=Path, required=True)
    args = p.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
