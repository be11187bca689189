"""ONNX files through ONNX Runtime."""

import math
import os
import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from imprint.backbones.backbone import ImageBackbone, thread_count
from imprint.backbones.block import Block
from imprint.backbones.onnx_blocks import Shape, add_blocks
from imprint.backbones.onnx_graph import (
    Additions,
    Node,
    nodes_by_output,
    tensor_names,
)
from imprint.backbones.places import BlockMap, averaged_tensor, block_map
from imprint.backbones.preprocess import Preprocess
from imprint.backbones.record import Record, read_weights
from imprint.core.arrays import Array
from imprint.core.errors import FileError, ParameterError, first_line, unknown

VERSION = 1
# input values per pass of the network; more do not fit into the caches of a processor
PASS_VALUES = 2**20
# the variable that keeps ONNX Runtime from reporting its use; users may set it to 0
NO_REPORTS = "ORT_DISABLE_TELEMETRY"
# where ONNX Runtime looks for weights outside the file; it cannot exist
NO_FOLDER = f"{os.devnull}/external-data"


class OnnxBackbone(ImageBackbone):
    """A network with one input, whose first axis is the batch.

    Its embedding is one output, or its blocks.
    """

    def __init__(self, record: Record, device: str, threads: int | None):
        content, digest = read_weights(record)
        super().__init__(record, digest, VERSION)
        self.device = device
        content, layer = with_blocks(record, content)
        self._threads = threads
        self._taps: _Taps | None = None  # of `maps`
        self._session = session(record.name, content, device, threads)
        outputs = [o.name for o in self._session.get_outputs()]
        node = _only_input(record.name, self._session)
        _check_input(record.name, node, self.preprocess)
        self._input = node.name
        self._layer = layer or outputs[0]
        values = math.prod(self.preprocess.size) * self.preprocess.channels
        has_batches = node.shape[:1] != [1]
        self.slice_rows = max(1, PASS_VALUES // values) if has_batches else 1
        if self._layer not in outputs:
            raise unknown("layer", self._layer, outputs)

    def _forward(self, batch: Array) -> Array:
        step = self.slice_rows or len(batch)
        parts = (
            np.ascontiguousarray(batch[i : i + step])
            for i in range(0, len(batch), step)
        )
        inputs = ({self._input: self.preprocess.arrange(part)} for part in parts)
        return np.concatenate([self._session.run([self._layer], x)[0] for x in inputs])

    def maps(self, prepared: Array) -> list[BlockMap | None]:
        if self._taps is None:
            self._taps = _Taps(self.record, self._layer, self.device, self._threads)
        inputs = {self._input: self.preprocess.arrange(prepared[None])}
        return self._taps.maps(inputs)


class _Taps:
    """The network with the tensors that its blocks pool as outputs; loaded when the
    first image is explained.
    """

    def __init__(
        self,
        record: Record,
        layer: str,
        device: str,
        threads: int | None,
    ):
        content, _ = read_weights(record)
        nodes = nodes_by_output(content)
        last = Block(name="last", tensor=layer, width=record.width)
        self._blocks = record.blocks or (last,)
        self._sources = [_source(block, nodes) for block in self._blocks]
        present = [name for name in self._sources if name is not None]
        self._tensors = list(dict.fromkeys(present))
        tapped = with_outputs(record.name, content, self._tensors)
        self._session = session(record.name, tapped, device, threads)

    def maps(self, inputs: dict[str, Array]) -> list[BlockMap | None]:
        """The map of each block for one image."""
        if not self._tensors:
            return [None] * len(self._blocks)
        outputs = self._session.run(self._tensors, inputs)
        values = dict(zip(self._tensors, outputs))
        maps: list[BlockMap | None] = []
        for block, source in zip(self._blocks, self._sources):
            if source is None:
                maps.append(None)
                continue
            tensor = values[source][0]
            if block.pooling == "none":
                maps.append(BlockMap("mean", tensor))
            else:
                maps.append(block_map(block, tensor))
        return maps


def _source(
    block: Block,
    nodes: dict[str, Node],
) -> str | None:
    """The tensor with the places of a block; None if it has none."""
    if block.pooling == "none":
        return averaged_tensor(nodes, block.tensor)
    return block.tensor


def _check_input(name: str, node: Any, rule: Preprocess) -> None:
    """Refuse a record whose input type or size is not that of the network."""
    shape = (
        (*rule.size, rule.channels)
        if rule.layout == "NHWC"
        else (rule.channels, *rule.size)
    )
    tensor = {"uint8": "tensor(uint8)", "float32": "tensor(float)"}[rule.dtype]
    fixed_sizes = [
        (actual, size)
        for actual, size in zip(node.shape[1:], shape)
        if isinstance(actual, int)
    ]
    if (
        node.type != tensor
        or len(node.shape) != 4
        or any(actual != size for actual, size in fixed_sizes)
    ):
        stated = f"{tensor} {['n', *shape]}"
        raise ParameterError(
            f"The record of {name} feeds it {stated}, but its input is {node.type}"
            f" {node.shape}."
        )


def with_blocks(record: Record, model: bytes) -> tuple[bytes, str | None]:
    """The model of a record, and the output that is the embedding; None means the
    first.

    Blocks are one more output.
    """
    if not record.blocks:
        return model, record.layer
    added = Additions()
    shapes = tensor_shapes(record, model)
    output = add_blocks(added, record.name, record.blocks, shapes)
    return added.after(model), output


def tensor_shapes(record: Record, model: bytes) -> dict[str, Shape]:
    """The shapes of the tensors that blocks read, measured with a blank image."""
    tensors = list(dict.fromkeys(block.tensor for block in record.blocks))
    tapped = with_outputs(record.name, model, tensors)
    runtime = session(record.name, tapped, "cpu", 1, optimise=False)
    rule = record.preprocess
    if rule is None:
        raise ParameterError(f"The record of {record.name} has no preprocess.")
    node = _only_input(record.name, runtime)
    _check_input(record.name, node, rule)
    blank = np.zeros((1, *rule.size, rule.channels), np.uint8)
    values = runtime.run(tensors, {node.name: rule.arrange(blank)})
    return {tensor: value.shape for tensor, value in zip(tensors, values)}


def with_outputs(name: str, model: bytes, tensors: Iterable[str]) -> bytes:
    """The model with inner tensors as further outputs; unknown ones are refused."""
    known = tensor_names(model)
    added = Additions()
    for tensor in tensors:
        # ONNX Runtime refuses a file that is not a model
        if known and tensor not in known:
            raise unknown(f"tensor of {name}", tensor, known)
        added.output(tensor)
    return added.after(model)


def _only_input(name: str, runtime: Any) -> Any:
    inputs = runtime.get_inputs()
    if len(inputs) != 1:
        raise ParameterError(
            f"{name} has {len(inputs)} inputs; a backbone must have one."
        )
    return inputs[0]


def session(
    name: str,
    content: bytes,
    device: str,
    threads: int | None,
    *,
    optimise: bool = True,
) -> Any:
    """An ONNX Runtime session; `name` is what errors call the network."""
    # From 1.31 on, ONNX Runtime would report its use to Microsoft. The variable counts
    # before the import, the call also where another package has imported it before.
    os.environ.setdefault(NO_REPORTS, "1")
    import onnxruntime as ort

    if os.environ[NO_REPORTS] != "0":
        ort.disable_telemetry_events()
    from onnxruntime.capi import onnxruntime_pybind11_state as failures

    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = thread_count(threads)
    options.inter_op_num_threads = 1
    if not optimise:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry(
        "session.model_external_initializers_file_folder_path", NO_FOLDER
    )
    try:
        return ort.InferenceSession(
            content, options, providers=_providers(ort, name, device)
        )
    except (
        failures.InvalidProtobuf,
        failures.InvalidGraph,
        failures.Fail,
        failures.InvalidArgument,
    ) as e:
        if re.search("external (data|tensor)|external-data", str(e), re.IGNORECASE):
            raise FileError(
                f"{name} keeps its weights in another file (external data), which its"
                " fingerprint would not cover: save the model as one file, such as by"
                " onnx.save(onnx.load(FILE), NEW_FILE)."
            ) from None
        raise FileError(
            f"{name} is not a model ONNX Runtime can run: {first_line(e)}."
        ) from None
    except (failures.NotImplemented, failures.RuntimeException) as e:
        raise FileError(
            f"{name} needs more than this ONNX Runtime has: {first_line(e)}."
        ) from None


def _providers(ort: Any, name: str, device: str) -> list[Any]:
    if device == "cpu":
        return ["CPUExecutionProvider"]
    match = re.fullmatch(r"cuda(?::(\d+))?", device)
    if not match or "CUDAExecutionProvider" not in ort.get_available_providers():
        raise ParameterError(
            f"load({name!r}, device={device!r}): this ONNX Runtime runs on 'cpu' only; "
            "'cuda' needs the package onnxruntime-gpu instead of onnxruntime."
        )
    return [
        ("CUDAExecutionProvider", {"device_id": int(match[1] or 0)}),
        "CPUExecutionProvider",
    ]


load = OnnxBackbone
