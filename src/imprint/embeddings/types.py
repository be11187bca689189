"""What the pipeline takes, and what it reports."""

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol


class NamedInputs(Protocol):
    """Inputs with one name each.

    `inputs[i]` may raise `UnreadableInput`, and several threads read at once. Inputs in files also have `raw(i)`, the
    bytes of a file, and `decode(i, raw)`. The Ray engine needs both sequences to be sliceable.
    """

    @property
    def inputs(self) -> Any: ...
    @property
    def names(self) -> Any: ...


@dataclass(frozen=True)
class Skipped:
    """An input that could not be read: its index in the data, its name, and the reason."""

    index: int
    name: str
    reason: str


class EmbeddingProgress(NamedTuple):
    """Progress of an embedding run. `rate` is in inputs per second of this run, `eta` in seconds."""

    done: int
    total: int
    skipped: int = 0
    rate: float | None = None
    eta: float | None = None
    waiting: bool = False
    """Another process extracts the same embeddings, and this one waits for it."""
