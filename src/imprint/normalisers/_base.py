from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from numpy.typing import DTypeLike

from imprint.core.arrays import Array
from imprint.core.component import Component
from imprint.core.graph import GraphBuilder

POSITIONS = ("pre", "post", "inf")  # training rows, proxies, queries


class Scaling(ABC):
    """Scales rows, each independently of the others. It never modifies its input."""

    @property
    @abstractmethod
    def instruction(self) -> str | None:
        """The instruction for users of exported arrays, empty if there is nothing to
        do. None: it cannot be exported.
        """

    @abstractmethod
    def apply(
        self,
        X: Array,
        reference: Array | None = None,
    ) -> Array:
        """Normalise rows.

        Parameters
        ----------
        X : array of shape (n, d)
            The rows: a NumPy array or a torch tensor.
        reference : array of shape (p, d), optional
            The proxies imprinted before; None for the first class.

        Returns
        -------
        array of shape (n, d)
            The normalised rows, of the type of X.
        """

    def pullback(self, x: Array, gradient: Array) -> Array | None:
        """The gradient with respect to one row, from that with respect to the
        normalised row; None: not available.  # (d,)
        """
        return None

    def graph(
        self,
        g: GraphBuilder,
        x: str,
        dtype: DTypeLike,
    ) -> str | None:
        """Add this scaling of the value `x` to an ONNX graph.

        Returns the name of the result, or None if it cannot be exported.
        """
        return None


@dataclass(frozen=True, kw_only=True)
class Normaliser(Component, Scaling):
    """A named scaling of whole rows, or of each of their blocks."""

    family: ClassVar[str] = "imprint.normalisers"
    positions: ClassVar[tuple[str, ...]] = POSITIONS  # in which it may be used
    # whether the result depends on the proxies imprinted before
    uses_reference: ClassVar[bool] = False
    use: ClassVar[str | None] = None  # the `instruction` of all its values

    @property
    def instruction(self) -> str | None:
        return self.use
