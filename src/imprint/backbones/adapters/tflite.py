"""TFLite files through LiteRT."""

import struct
from typing import Any

import numpy as np

from imprint.backbones.backbone import PictureBackbone, extra, only_cpu, reason, thread_count
from imprint.backbones.record import Record, weights
from imprint.core.errors import FileError, ParameterError
from imprint.core.family import unknown
from imprint.core.types import Array

VERSION = 1


class TfliteBackbone(PictureBackbone):
    """A network that ends at the layer of its record; quantised embeddings come back as (byte - zero) x scale."""

    def __init__(self, record: Record, device: str, threads: int | None):
        only_cpu(f"tflite:{record.name}", device)
        content, digest = weights(record)
        super().__init__(record, digest, VERSION)
        self._interpreter = open_interpreter(record, content, threads)
        details, dtype = self._interpreter.get_input_details(), self.preprocess.dtype
        if len(details) != 1 or np.dtype(details[0]["dtype"]).name != dtype:
            inputs = ", ".join(np.dtype(d["dtype"]).name for d in details)
            raise ParameterError(f"The record of {record.name} feeds it {dtype}, but its inputs are: {inputs}.")
        self._input = details[0]["index"]
        output = self._interpreter.get_output_details()[0]
        self._output, self._quantisation = output["index"], output["quantization"]
        self._rows = 0

    def _forward(self, batch: Array) -> Array:
        x = self.preprocess.arrange(np.ascontiguousarray(batch))
        if len(x) != self._rows:
            self._interpreter.resize_tensor_input(self._input, x.shape, strict=False)
            self._interpreter.allocate_tensors()
            self._rows = len(x)
        self._interpreter.set_tensor(self._input, x)
        self._interpreter.invoke()
        out: Array = self._interpreter.get_tensor(self._output)
        return dequantised(out, self._quantisation)


def open_interpreter(record: Record, content: bytes, threads: int | None) -> Any:
    """LiteRT with a model that ends at the layer of its record."""
    runtime = extra("ai_edge_litert.interpreter", "litert", record.name)
    model = truncated(content, record)
    try:
        interpreter = runtime.Interpreter(model_content=model, num_threads=thread_count(threads))
        interpreter.allocate_tensors()
    except (ValueError, RuntimeError) as e:
        raise FileError(f"{record.name} is not a model LiteRT can run: {reason(e)}.") from None
    return interpreter


def dequantised(values: Array, quantisation: tuple[float, int]) -> Array:
    """The values of a quantised tensor; other tensors, whose scale is 0, are returned unchanged."""
    scale, zero = quantisation
    return (values.astype(np.float32) - np.float32(zero)) * np.float32(scale) if scale else values


def truncated(content: bytes, record: Record) -> bytes:
    """The model with the record's layer as its only output and without the operators after it.

    Three numbers of the flatbuffer are overwritten in a copy: the number of outputs, the tensor of the first output,
    and the number of operators (they are stored in the order in which they run). So the other tensors need no memory.
    """
    if record.layer is None:
        return content
    schema = extra("ai_edge_litert.schema_py_generated", "litert", record.name)
    buffer = bytearray(content)
    try:
        graph = schema.Model.GetRootAs(buffer).Subgraphs(0)
        operators = [graph.Operators(i) for i in range(graph.OperatorsLength())]
        operator_of = {int(t): i for i, op in enumerate(operators) for t in op.OutputsAsNumpy()}
        # converters join the names of fused operators by ';', and the first one counts
        named = {str(graph.Tensors(t).Name().decode().split(";")[0]): t for t in operator_of}
        table = graph._tab  # fields 2 (outputs) and 3 (operators) of the schema's SubGraph
        first, count = table.Vector(table.Offset(8)), table.Vector(table.Offset(10)) - 4
    except (struct.error, IndexError, TypeError, AttributeError):
        raise FileError(f"{record.name} is not a TFLite model.") from None
    if record.layer not in named:
        raise unknown("layer", record.layer, named)
    index = named[record.layer]
    struct.pack_into("<Ii", buffer, first - 4, 1, index)
    struct.pack_into("<I", buffer, count, operator_of[index] + 1)
    return bytes(buffer)


load = TfliteBackbone
