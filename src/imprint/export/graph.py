"""ONNX nodes, written one call at a time."""

from typing import Any

import numpy as np

OPSET = 17
OLDEST = 13  # earlier operators take their axes elsewhere


class Graph:
    """Nodes and constants; every call adds one and gives the name of its result."""

    def __init__(self, opset: int = OPSET):
        self.opset = opset
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, value: Any, dtype: Any) -> str:
        """A stored array."""
        from onnx import numpy_helper

        name = f"imprint/constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.array(value, dtype, order="C"), name))
        return name

    def add(self, kind: str, *inputs: str, result: str | None = None, **attributes: Any) -> str:
        """One operator."""
        from onnx import helper

        name = result or f"imprint/{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name=name, **attributes))
        return name

    def split(self, kind: str, results: int, *inputs: str, **attributes: Any) -> list[str]:
        """One operator with several results."""
        from onnx import helper

        names = [f"imprint/{kind}_{len(self.nodes)}_{i}" for i in range(results)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, name=names[0], **attributes))
        return names

    def reduce(self, kind: str, x: str, axis: int, keep: bool = False) -> str:
        """A sum, a maximum and so on along one axis."""
        if kind == "ReduceSum" or self.opset >= 18:
            return self.add(kind, x, self.constant([axis], np.int64), keepdims=int(keep))
        return self.add(kind, x, axes=[axis], keepdims=int(keep))

    def cast(self, x: str, dtype: Any, result: str | None = None) -> str:
        """Numbers of another type."""
        return self.add("Cast", x, result=result, to=element(dtype))

    def unsqueeze(self, x: str, axis: int) -> str:
        """One more axis, of length one."""
        return self.add("Unsqueeze", x, self.constant([axis], np.int64))

    def unit_rows(self, x: str, dtype: Any) -> str:
        """Rows over their lengths; scaled by their largest entry first, so that no square is too large or small."""
        tiny = self.constant(np.finfo(dtype).tiny, dtype)
        peak = self.add("Max", self.reduce("ReduceMax", self.add("Abs", x), 1, keep=True), tiny)
        scaled = self.add("Div", x, peak)
        length = self.add("Sqrt", self.reduce("ReduceSumSquare", scaled, 1, keep=True))
        return self.add("Div", scaled, self.add("Max", length, tiny))


def element(dtype: Any) -> int:
    """ONNX's number for a type."""
    from onnx import helper

    return int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
