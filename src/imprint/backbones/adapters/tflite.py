"""TFLite files through LiteRT."""

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from imprint.backbones.array_blocks import pooled
from imprint.backbones.backbone import (
    ImageBackbone,
    check_cpu,
    import_extra,
    thread_count,
)
from imprint.backbones.record import Record, read_weights
from imprint.core.arrays import Array
from imprint.core.errors import FileError, ParameterError, first_line, unknown

VERSION = 1
# fields of the flatbuffer schema's SubGraph, as offsets into its vtable
OUTPUTS, OPERATORS = 8, 10


class Interpreter:
    """LiteRT with the model of a record, which ends at the last tensor that the record
    reads; `digest` is that of its weights.
    """

    def __init__(self, record: Record, device: str, threads: int | None):
        check_cpu(record.name, device)
        content, self.digest = read_weights(record)
        runtime = import_extra("ai_edge_litert.interpreter", "litert", record.name)
        tensors = tensors_of(record)
        if tensors:
            content = truncated(content, record.name, tensors)
        try:
            self._runtime = runtime.Interpreter(
                model_content=content, num_threads=thread_count(threads)
            )
            self._runtime.allocate_tensors()
        except (ValueError, RuntimeError) as e:
            raise FileError(
                f"{record.name} is not a model LiteRT can run: {first_line(e)}."
            ) from None
        self._network = record.name
        self._blocks = record.blocks
        self._tensors = tensors
        self.inputs = self._runtime.get_input_details()
        self._outputs = self._runtime.get_output_details()
        self._shape = tuple(self.inputs[0]["shape"])

    def run(self, x: Array) -> Array:
        """The output of the network, or the blocks of its record side by side."""
        index = self.inputs[0]["index"]
        if x.shape != self._shape:
            self._runtime.resize_tensor_input(index, x.shape, strict=False)
            self._runtime.allocate_tensors()
            self._shape = x.shape
        self._runtime.set_tensor(index, x)
        self._runtime.invoke()
        if not self._blocks:
            return self._values(self._outputs[0])
        values = {
            name: self._values(output)
            for name, output in zip(self._tensors, self._outputs)
        }
        rows = [pooled(self._network, b, values[b.tensor]) for b in self._blocks]
        return np.hstack(rows)

    def _values(self, output: dict[str, Any]) -> Array:
        """A tensor; a quantised one comes back as (byte - zero) x scale."""
        values = np.asarray(self._runtime.get_tensor(output["index"]))
        scale, zero = output["quantization"]
        if not scale:
            return values
        return (values.astype(np.float32) - np.float32(zero)) * np.float32(scale)


def tensors_of(record: Record) -> list[str]:
    """The tensors that a record reads, each once; none for the model's own output."""
    if record.blocks:
        return list(dict.fromkeys(b.tensor for b in record.blocks))
    if record.layer is not None:
        return [record.layer]
    return []


class TfliteBackbone(ImageBackbone):
    """A network of images."""

    def __init__(self, record: Record, device: str, threads: int | None):
        self._interpreter = Interpreter(record, device, threads)
        super().__init__(record, self._interpreter.digest, VERSION)
        types = [np.dtype(tensor["dtype"]).name for tensor in self._interpreter.inputs]
        if types != [self.preprocess.dtype]:
            problem = (
                f"feeds it {self.preprocess.dtype}, but its inputs are:"
                f" {', '.join(types)}"
            )
            raise ParameterError(f"The record of {record.name} {problem}.")

    def _forward(self, batch: Array) -> Array:
        return self._interpreter.run(
            self.preprocess.arrange(np.ascontiguousarray(batch))
        )


def truncated(content: bytes, network: str, tensors: Sequence[str]) -> bytes:
    """The model with `tensors` as its outputs and without the operators after them.

    A copy of the flatbuffer gets a new vector of outputs at its end, to which the graph
    then points, and a smaller number of operators (they are stored in the order in
    which they run). So the tensors after the last output need no memory.
    """
    schema = import_extra("ai_edge_litert.schema_py_generated", "litert", network)
    buffer = bytearray(content)
    try:
        graph = schema.Model.GetRootAs(buffer).Subgraphs(0)
        operators = [graph.Operators(i) for i in range(graph.OperatorsLength())]
        operator_of = {
            int(t): i for i, op in enumerate(operators) for t in op.OutputsAsNumpy()
        }
        # converters join the names of fused operators by ';', and the first one counts
        named = {
            str(graph.Tensors(t).Name().decode().split(";")[0]): t for t in operator_of
        }
        table = graph._tab
        pointer = table.Pos + table.Offset(OUTPUTS)
        count = table.Vector(table.Offset(OPERATORS)) - 4
    except (struct.error, IndexError, TypeError, AttributeError):
        raise FileError(f"{network} is not a TFLite model.") from None
    for name in tensors:
        if name not in named:
            raise unknown("layer", name, named)
    outputs = [named[name] for name in tensors]
    last_operator = max(operator_of[tensor] for tensor in outputs)
    struct.pack_into("<I", buffer, count, last_operator + 1)
    buffer += bytes(-len(buffer) % 4)  # vectors begin at a multiple of four bytes
    # offsets of a flatbuffer count from the place where they are stored
    struct.pack_into("<I", buffer, pointer, len(buffer) - pointer)
    buffer += struct.pack(f"<I{len(outputs)}i", len(outputs), *outputs)
    return bytes(buffer)


load = TfliteBackbone
