from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from imprint.core.arrays import Array
from imprint.core.component import Component

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
    def apply(self, X: Array, reference: Array | None = None) -> Array:
        """The normalised rows. `reference` holds the proxies imprinted before, None for
        the first class.
        """

    def graph(self, g: Any, x: str, dtype: Any) -> str | None:
        """The name of the normalised value `x` in an ONNX graph `g`
        (`export.onnx.Graph`); None: not exportable.
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
