"""ONNX files through ONNX Runtime."""

import re
from typing import Any

import numpy as np

from imprint.backbones.backbone import PictureBackbone, reason, thread_count
from imprint.backbones.preprocess import Preprocess
from imprint.backbones.record import Record, weights
from imprint.core.errors import FileError, ParameterError
from imprint.core.family import unknown
from imprint.core.types import Array

VERSION = 1


class OnnxBackbone(PictureBackbone):
    """One input, one of the outputs; the batch is the first axis."""

    def __init__(self, record: Record, device: str, threads: int | None):
        content, digest = weights(record)
        super().__init__(record, digest, VERSION)
        self._session = _session(record.name, content, device, threads)
        inputs, outputs = self._session.get_inputs(), [o.name for o in self._session.get_outputs()]
        if len(inputs) != 1:
            raise ParameterError(f"{record.name} has {len(inputs)} inputs; a backbone must have one.")
        _check_input(record.name, inputs[0], self.preprocess)
        self._input, self._layer = inputs[0].name, record.layer or outputs[0]
        self._one_by_one = inputs[0].shape[:1] == [1]
        if self._layer not in outputs:
            raise unknown("layer", self._layer, outputs)

    def _forward(self, batch: Array) -> Array:
        x = self.preprocess.arrange(np.ascontiguousarray(batch))
        if self._one_by_one:
            return np.concatenate([self._run(x[i : i + 1]) for i in range(len(x))])
        return self._run(x)

    def _run(self, x: Array) -> Array:
        out: Array = self._session.run([self._layer], {self._input: x})[0]
        return out


def _check_input(name: str, node: Any, rule: Preprocess) -> None:
    """Refuse a record that feeds the network another type or size than it takes."""
    picture = (*rule.size, rule.channels) if rule.layout == "NHWC" else (rule.channels, *rule.size)
    kind = {"uint8": "tensor(uint8)", "float32": "tensor(float)"}[rule.dtype]
    fits = len(node.shape) == 4 and all(not isinstance(n, int) or n == f for n, f in zip(node.shape[1:], picture))
    if node.type != kind or not fits:
        raise ParameterError(
            f"The record of {name} feeds it {kind} {['n', *picture]}, but its input is {node.type} {node.shape}."
        )


def _session(name: str, content: bytes, device: str, threads: int | None) -> Any:
    import onnxruntime as ort
    from onnxruntime.capi import onnxruntime_pybind11_state as failures

    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = thread_count(threads)
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        return ort.InferenceSession(content, options, providers=_providers(ort, name, device))
    except (failures.InvalidProtobuf, failures.InvalidGraph, failures.Fail, failures.InvalidArgument) as e:
        raise FileError(f"{name} is not a model ONNX Runtime can run: {reason(e)}.") from None
    except (failures.NotImplemented, failures.RuntimeException) as e:
        raise FileError(f"{name} needs more than this ONNX Runtime has: {reason(e)}.") from None


def _providers(ort: Any, name: str, device: str) -> list[Any]:
    if device == "cpu":
        return ["CPUExecutionProvider"]
    match = re.fullmatch(r"cuda(?::(\d+))?", device)
    if not match or "CUDAExecutionProvider" not in ort.get_available_providers():
        raise ParameterError(
            f"load({name!r}, device={device!r}): this ONNX Runtime runs on 'cpu' alone; "
            "'cuda' needs the package onnxruntime-gpu in the place of onnxruntime."
        )
    return [("CUDAExecutionProvider", {"device_id": int(match[1] or 0)}), "CPUExecutionProvider"]


def load(source: Record, device: str, threads: int | None) -> OnnxBackbone:
    """Open the file the record names."""
    return OnnxBackbone(source, device, threads)
