import os
import stat
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from imprint.core.arrays import Array
from imprint.core.component import Component
from imprint.core.errors import ParameterError, UnreadableInput

MAX_FILE_BYTES = 1 << 30


@dataclass(frozen=True, kw_only=True)
class Modality(Component):
    """One kind of input: its files, how to read, name, count and show it, and its
    default backbone.
    """

    family: ClassVar[str] = "imprint.modalities"
    noun: ClassVar[str]  # one input, such as `picture`
    backbone: ClassVar[str | None] = None  # the default backbone
    needs_backbone: ClassVar[bool] = True  # False: the inputs are embeddings already
    # whether users type inputs: on the command line, in a text field on the page
    typed: ClassVar[bool] = False

    @abstractmethod
    def read(self, raw: bytes) -> Any:
        """The input that the bytes of a file hold; raises `UnreadableInput` if they
        hold none.
        """

    @abstractmethod
    def convert(self, value: Any) -> Any:
        """The input that a Python value holds, other than a path or bytes; raises
        `ParameterError` if it holds none.
        """

    def pixels(self, raw: bytes) -> int:
        """The number of pixels that the header of a file states, so that a large image
        can be refused before it is decoded; 0 for inputs that are not images.
        """
        return 0

    def recognises(self, value: Any) -> bool:
        """Whether a Python value is an input of this modality; used before a backbone
        is chosen.
        """
        return False

    def suffixes(self) -> frozenset[str]:
        """The suffixes of files of this modality, in lower case."""
        return frozenset()

    def suffix_of(self, raw: bytes) -> str:
        """The usual suffix of a file with these bytes; empty if there is none."""
        return ""

    def file_name(self, name: str, raw: bytes) -> str:
        """A name with a suffix by which a folder is read: that of the bytes is appended
        unless the name has one of this modality.
        """
        suffixes = self.suffixes()
        is_named = os.path.splitext(name)[1].lower() in suffixes or not suffixes
        return name if is_named else name + self.suffix_of(raw)

    def show(self, item: Any) -> "str | Array | None":
        """An input as a text or a uint8 picture, for terminals and pages; None if it
        cannot be shown.
        """
        return None

    def sample(self, size: int) -> list[Any]:
        """Artificial inputs of typical size, to measure the speed of a backbone."""
        raise ParameterError(
            f"There are no artificial {self.plural} to measure a backbone with."
        )

    def listed(self, values: Any) -> Sequence[Any]:
        """Several inputs as a sequence; a single input is refused."""
        if isinstance(values, str | bytes | os.PathLike):
            shown = repr(
                os.fspath(values) if isinstance(values, os.PathLike) else values[:40]
            )
            raise ParameterError(
                f"{shown} is one {self.noun}; give a list of them: [{shown}]."
            )
        return list(values)

    @property
    def name(self) -> str:
        """The name in records and data sets, such as `image`."""
        return self.public_name() or type(self).__qualname__.lower()

    @property
    def plural(self) -> str:
        """Several inputs, such as `pictures`."""
        return f"{self.noun}s"

    def count(self, n: int) -> str:
        """A number of inputs in words, such as `2,000 pictures`."""
        return f"{n:,} {self.noun if n == 1 else self.plural}"

    def name_of(self, value: Any, i: int) -> str:
        """The name of an input: its path, or its number, from 1."""
        is_path = isinstance(value, os.PathLike) or (
            isinstance(value, str) and not self.typed
        )
        return os.fspath(value) if is_path else f"{self.noun} {i + 1}"


def refused(reason: str) -> UnreadableInput:
    """The error for bytes that do not hold an input; the caller adds the name of the
    file.
    """
    return UnreadableInput("the given bytes", reason)


def read_file(path: str | os.PathLike[str]) -> bytes:
    """The bytes of an ordinary file; a pipe, a device, a folder or a missing file
    raises `UnreadableInput`.
    """
    name = os.fspath(path)
    try:
        with open(
            os.open(
                name,
                os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0),
            ),
            "rb",
        ) as f:
            status = os.fstat(f.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise UnreadableInput(name, "not a file")
            if status.st_size > MAX_FILE_BYTES:
                raise UnreadableInput(
                    name, f"{status.st_size:,} bytes; the limit is {MAX_FILE_BYTES:,}"
                )
            return f.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as e:  # ValueError: a null character in the name
        reason = (
            "not a file"
            if isinstance(e, IsADirectoryError)
            else getattr(e, "strerror", None) or str(e)
        )
        raise UnreadableInput(name, reason) from None
