"""What components need of a graph in the ONNX format, to which they add their nodes."""

from typing import Any, Protocol

from numpy.typing import ArrayLike, DTypeLike


class GraphBuilder(Protocol):
    """A graph under construction (`imprint.export.onnx.Graph`).

    Values are known by their names: each method adds nodes and returns the name of the
    result.
    """

    def constant(self, value: ArrayLike, dtype: DTypeLike) -> str:
        """A stored array."""

    def add(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """One operator, such as `Div`."""

    def unit_rows(self, x: str, dtype: DTypeLike) -> str:
        """Rows divided by their lengths."""
