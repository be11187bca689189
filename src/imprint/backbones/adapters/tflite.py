"""TFLite files through LiteRT."""

import struct

import numpy as np

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


class Interpreter:
    """LiteRT with the model of a record, which ends at the layer of the record;
    `digest` is that of its weights.
    """

    def __init__(self, record: Record, device: str, threads: int | None):
        check_cpu(record.name, device)
        content, self.digest = read_weights(record)
        runtime = import_extra("ai_edge_litert.interpreter", "litert", record.name)
        model = truncated(content, record)
        try:
            self._runtime = runtime.Interpreter(
                model_content=model, num_threads=thread_count(threads)
            )
            self._runtime.allocate_tensors()
        except (ValueError, RuntimeError) as e:
            raise FileError(
                f"{record.name} is not a model LiteRT can run: {first_line(e)}."
            ) from None
        self.inputs, self._output = (
            self._runtime.get_input_details(),
            self._runtime.get_output_details()[0],
        )
        self._shape = tuple(self.inputs[0]["shape"])

    def run(self, x: Array) -> Array:
        """The output of the network; a quantised one comes back as (byte - zero) x
        scale.
        """
        index, (scale, zero) = self.inputs[0]["index"], self._output["quantization"]
        if x.shape != self._shape:
            self._runtime.resize_tensor_input(index, x.shape, strict=False)
            self._runtime.allocate_tensors()
            self._shape = x.shape
        self._runtime.set_tensor(index, x)
        self._runtime.invoke()
        values = self._runtime.get_tensor(self._output["index"])
        return (
            (values.astype(np.float32) - np.float32(zero)) * np.float32(scale)
            if scale
            else values
        )


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


def truncated(content: bytes, record: Record) -> bytes:
    """The model with the record's layer as its only output and without the operators
    after it.

    Three numbers of the flatbuffer are overwritten in a copy: the number of outputs,
    the tensor of the first output, and the number of operators (they are stored in the
    order in which they run). So the other tensors need no memory.
    """
    if record.layer is None:
        return content
    schema = import_extra("ai_edge_litert.schema_py_generated", "litert", record.name)
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
        # fields 2 (outputs) and 3 (operators) of the schema's SubGraph
        table = graph._tab
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
