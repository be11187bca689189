"""What extraction needs of a backbone and of data, and what it hands back."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from imprint.core.types import Array


class Named(Protocol):
    """A record with a name."""

    @property
    def name(self) -> str: ...


class Backbone(Protocol):
    """A frozen network. `prepare` runs in several threads at once, `embed` in one."""

    @property
    def record(self) -> Named: ...
    @property
    def width(self) -> int: ...
    @property
    def fingerprint(self) -> str: ...
    def prepare(self, item: Any, /) -> Any:
        """One input as `embed` wants it: an array, or a text."""

    def embed(self, batch: Any, /) -> Array:
        """Stacked arrays, or a list of texts, as float32 (n, width)."""


class Inputs(Protocol):
    """Pictures or texts; `[i]` may raise `UnreadableInput` and runs in several threads at once."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> Any: ...


class NameOf(Protocol):
    """What each input is called."""

    def __getitem__(self, index: int, /) -> str: ...


class Unlabelled(Protocol):
    """Inputs with one name each."""

    @property
    def inputs(self) -> Inputs: ...
    @property
    def names(self) -> NameOf: ...


class Split(Protocol):
    """Labelled inputs with one name each, and a fingerprint of them all."""

    @property
    def inputs(self) -> Inputs: ...
    @property
    def labels(self) -> Array: ...
    @property
    def names(self) -> Sequence[str]: ...
    @property
    def fingerprint(self) -> str: ...


@dataclass(frozen=True)
class Skipped:
    """An input that could not be read: its place in the data, its name, and why."""

    index: int
    name: str
    reason: str


class EmbeddingProgress(NamedTuple):
    """How far an extraction is. `rate` is in inputs per second of this run; `eta` in seconds."""

    done: int
    total: int
    skipped: int = 0
    rate: float | None = None
    eta: float | None = None
    waiting: bool = False
    """Another process is extracting the same embeddings, and this one waits for it."""
