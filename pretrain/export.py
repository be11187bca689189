"""Convert the trained TinyNet to the files that the package ships: an ONNX network and its pre-trained head.

    python export.py --weights DIR/tinynet.safetensors --classes classes.txt --out ../src/imprint/backbones/weights

Batch normalisation is folded into the convolutions. Weights are stored in half precision and cast to single
precision by the graph itself; ONNX Runtime does this once, when it opens the file. The network takes unsigned
bytes, height x width x channel, the memory layout of pictures.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import load_file, save_file
from tinynet import EMBEDDING, MEAN, STAGES, STD

BATCH_NORM_EPS = 1e-5  # torch's default
SIZE = 64


class Graph:
    """Collects nodes and initialisers in order; each call returns the name of its output."""

    def __init__(self, weights: dict[str, np.ndarray], half: bool):
        self.weights, self.half = weights, half
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def node(
        self, kind: str, inputs: list[str], output: str = "", **attributes: object
    ) -> str:
        output = output or f"{kind.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [output], **attributes))
        return output

    def constant(self, name: str, value: np.ndarray) -> str:
        self.constants.append(
            numpy_helper.from_array(np.ascontiguousarray(value), name)
        )
        return name

    def weight(self, name: str, value: np.ndarray) -> str:
        if not self.half:
            return self.constant(name, value)
        return self.node(
            "Cast",
            [self.constant(name, value.astype(np.float16))],
            to=TensorProto.FLOAT,
        )

    def conv(
        self, x: str, key: str, stride: int = 1, groups: int = 1, act: bool = True
    ) -> str:
        """Convolution, batch normalisation and ReLU of the block `key` as one convolution and a ReLU."""
        w, (gamma, beta, mean, var) = (
            self.weights[f"{key}.0.weight"],
            (
                self.weights[f"{key}.1.{part}"]
                for part in ("weight", "bias", "running_mean", "running_var")
            ),
        )
        gain = gamma / np.sqrt(var.astype(np.float64) + BATCH_NORM_EPS)
        kernel = (w * gain[:, None, None, None]).astype(np.float32)
        bias = (beta - mean * gain).astype(np.float32)
        pad = kernel.shape[-1] // 2
        inputs = [
            x,
            self.weight(f"{key}.kernel", kernel),
            self.constant(f"{key}.bias", bias),
        ]
        x = self.node(
            "Conv", inputs, strides=[stride] * 2, pads=[pad] * 4, group=groups
        )
        return self.node("Relu", [x]) if act else x

    def block(self, x: str, key: str, inputs: int, outputs: int, stride: int) -> str:
        """An inverted residual."""
        y = self.conv(x, f"{key}.body.0")
        y = self.conv(y, f"{key}.body.1", stride, groups=4 * inputs)
        y = self.conv(y, f"{key}.body.2", act=False)
        return self.node("Add", [x, y]) if stride == 1 and inputs == outputs else y


def network(weights: dict[str, np.ndarray], half: bool = True) -> onnx.ModelProto:
    g = Graph(weights, half)
    mean, std = (np.array(v, np.float32).reshape(1, 3, 1, 1) for v in (MEAN, STD))
    x = g.node("Cast", ["pictures"], to=TensorProto.FLOAT)
    x = g.node("Transpose", [x], perm=[0, 3, 1, 2])
    x = g.node("Mul", [x, g.constant("gain", 1 / (255 * std))])
    x = g.node("Sub", [x, g.constant("shift", mean / std)])
    x, width, at = g.conv(x, "features.0", 2), STAGES[0][0], 1
    for outputs, count, stride in STAGES:
        for i in range(count):
            x = g.block(x, f"features.{at}", width, outputs, stride if i == 0 else 1)
            width, at = outputs, at + 1
    x = g.node("GlobalAveragePool", [g.conv(x, f"features.{at}")])
    g.node("Flatten", [x], "embedding", axis=1)
    graph = helper.make_graph(
        g.nodes,
        "tinynet",
        [
            helper.make_tensor_value_info(
                "pictures", TensorProto.UINT8, ["n", SIZE, SIZE, 3]
            )
        ],
        [
            helper.make_tensor_value_info(
                "embedding", TensorProto.FLOAT, ["n", EMBEDDING]
            )
        ],
        g.constants,
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    )
    onnx.checker.check_model(model, full_check=True)
    return model


def main() -> None:
    p = argparse.ArgumentParser(
        description="Convert TinyNet's weights for the package."
    )
    p.add_argument("--weights", type=Path, required=True)
    p.add_argument(
        "--classes", type=Path, required=True, help="200 lines: WordNet id, tab, name"
    )
    p.add_argument("--out", type=Path, required=True)
    p.add_argument("--full", action="store_true", help="keep single precision")
    args = p.parse_args()
    weights = load_file(args.weights)
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "tinynet.onnx").write_bytes(
        network(weights, not args.full).SerializeToString(deterministic=True)
    )
    ids, names = zip(
        *(line.split("\t") for line in args.classes.read_text("utf-8").splitlines())
    )
    head = {
        "weight": weights["head.weight"].astype(np.float16),
        "bias": weights["head.bias"].astype(np.float32),
    }
    classes = {"ids": json.dumps(ids), "names": json.dumps(names)}
    save_file(head, args.out / "tinynet_head.safetensors", metadata=classes)


if __name__ == "__main__":
    main()
