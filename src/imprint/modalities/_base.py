import os
import stat
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from imprint.core.component import Component
from imprint.core.errors import ParameterError, UnreadableInput
from imprint.core.types import Array

LARGEST_FILE = 1 << 30  # bytes


@dataclass(frozen=True, kw_only=True)
class Modality(Component):
    """One kind of input: its files, how to read, name, count and show it, and its default backbone."""

    family: ClassVar[str] = "imprint.modalities"
    noun: ClassVar[str]
    """One input, such as `picture`."""
    backbone: ClassVar[str | None] = None
    """The default backbone."""
    needs_backbone: ClassVar[bool] = True
    """False where the inputs are embeddings already."""
    typed: ClassVar[bool] = False
    """Whether inputs are typed: as arguments on the command line, in a text field on the page."""

    @abstractmethod
    def read(self, raw: bytes) -> Any:
        """The input in the bytes of a file; raises `UnreadableInput` if they hold none."""

    @abstractmethod
    def convert(self, value: Any) -> Any:
        """The input in a Python value that is neither a path nor bytes; raises `ParameterError` if it holds none."""

    def recognises(self, value: Any) -> bool:
        """Whether a Python value is such an input; used if there is no backbone yet."""
        return False

    def suffixes(self) -> frozenset[str]:
        """The suffixes of its files, in lower case."""
        return frozenset()

    def show(self, item: Any) -> "str | Array | None":
        """An input as a text or as a uint8 picture, for terminals and pages; None if it cannot be shown."""
        return None

    def sample(self, size: int) -> list[Any]:
        """Artificial inputs of ordinary size, to measure the speed of a backbone."""
        raise ParameterError(f"There are no artificial {self.plural} to measure a backbone with.")

    def listed(self, values: Any) -> Sequence[Any]:
        """Several inputs as a sequence of single ones."""
        if isinstance(values, str | bytes | os.PathLike):
            shown = repr(os.fspath(values) if isinstance(values, os.PathLike) else values[:40])
            raise ParameterError(f"{shown} is one {self.noun}; give a list of them: [{shown}].")
        return list(values)

    @property
    def name(self) -> str:
        """`image`, `text`, ..., as in records and data sets."""
        return self.public_name() or type(self).__qualname__.lower()

    @property
    def plural(self) -> str:
        """Several inputs, such as `pictures`."""
        return f"{self.noun}s"

    def count(self, n: int) -> str:
        """`1 picture`, `2,000 pictures`."""
        return f"{n:,} {self.noun if n == 1 else self.plural}"

    def name_of(self, value: Any, i: int) -> str:
        """The name of an input: its path, or its number, counted from 1."""
        is_path = isinstance(value, os.PathLike) or (isinstance(value, str) and not self.typed)
        return os.fspath(value) if is_path else f"{self.noun} {i + 1}"


def refused(reason: str) -> UnreadableInput:
    """The error for bytes that do not hold an input; the caller adds their name."""
    return UnreadableInput("the given bytes", reason)


def read_file(path: str | os.PathLike[str]) -> bytes:
    """The bytes of an ordinary file; a pipe, a device, a directory or a missing file raises `UnreadableInput`."""
    name = os.fspath(path)
    try:
        with open(os.open(name, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)), "rb") as f:
            facts = os.fstat(f.fileno())
            if not stat.S_ISREG(facts.st_mode):
                raise UnreadableInput(name, "not a file")
            if facts.st_size > LARGEST_FILE:
                raise UnreadableInput(name, f"{facts.st_size:,} bytes; the limit is {LARGEST_FILE:,}")
            return f.read(LARGEST_FILE + 1)
    except (OSError, ValueError) as e:  # ValueError: a null character in the name
        reason = "not a file" if isinstance(e, IsADirectoryError) else getattr(e, "strerror", None) or str(e)
        raise UnreadableInput(name, reason) from None
