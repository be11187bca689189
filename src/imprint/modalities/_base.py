import os
import stat
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np

from imprint.core.arrays import Array
from imprint.core.component import Component
from imprint.core.errors import ParameterError, UnreadableInput

MAX_FILE_BYTES = 1 << 30
MAX_TIMES = 32  # parts of a recording or a series


class Collection(NamedTuple):
    """Several inputs that one file holds, and their labels."""

    inputs: Sequence[Any] | Array
    labels: Sequence[str] | None


class TableInputs(NamedTuple):
    """Inputs that consist of one or more rows of a table."""

    inputs: Sequence[Any] | Array
    owner: Array  # (rows,) the index of the input to which each row belongs
    names: Sequence[str] | None  # None: inputs are named by their rows


class InputParts(NamedTuple):
    """An input taken apart, to see what an answer owes to each part."""

    shape: tuple[int, ...]  # (rows, columns) of an image, or the number of parts
    names: tuple[str, ...]  # words, or times; empty for the places of an image
    without: Callable[[int], Any]  # the input without one part, counted in rows


def time_parts(
    samples: Array, rate: float | None, without: Callable[[slice], Any]
) -> InputParts:
    """Equal parts of samples over time, the last axis; `rate` is per second."""
    length = samples.shape[-1]
    count = min(MAX_TIMES, length)
    edges = np.linspace(0, length, count + 1).round().astype(int)
    names = []
    for start, end in pairwise(edges):
        times = [f"{t / rate:.2f} s" if rate else str(t) for t in (start, end)]
        names.append("-".join(times))
    return InputParts(
        (count,), tuple(names), lambda i: without(slice(edges[i], edges[i + 1]))
    )


@dataclass(frozen=True, kw_only=True)
class Modality(Component):
    """One kind of input: its files, how to read, name, count and show it, and its
    default backbone.
    """

    family: ClassVar[str] = "imprint.modalities"
    noun: ClassVar[str]  # one input, such as `image`
    backbone: ClassVar[str | None] = None  # the default backbone
    needs_backbone: ClassVar[bool] = True  # False: the inputs are embeddings already
    # whether users type inputs: on the command line, in a text field on the page
    typed: ClassVar[bool] = False
    # In a folder that has files of several modalities, those of the highest rank count:
    # many folders of images contain notes and tables.
    rank: ClassVar[int] = 2
    has_windows: ClassVar[bool] = False  # long inputs may be cut into windows
    # the array of a `.npz` file that holds inputs, such as `series`; see `stacked`
    array_name: ClassVar[str | None] = None
    # suffixes of files with several inputs; see `collection`
    collection_suffixes: ClassVar[frozenset[str]] = frozenset()

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

    def recognises_all(self, values: Any, requested: bool) -> bool:
        """Whether one Python value holds several inputs of this modality. `requested`:
        the user asked for it, such as by a backbone.
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

    def stacked(self, array: Array, lengths: Array | None = None) -> Any:
        """The inputs in an array of a `.npz` file; `lengths` states those of inputs of
        unequal lengths. Raises `ParameterError` if it holds none.
        """
        raise ParameterError(f"{self.plural} are not read from arrays.")

    def collection(self, raw: bytes) -> Collection:
        """The inputs in a file with one of `collection_suffixes`; raises
        `UnreadableInput` if it holds none.
        """
        raise refused(f"it does not hold several {self.plural}")

    def reads_columns(self, names: Sequence[str], requested: bool) -> bool:
        """Whether the columns of a table, without those of labels, hold inputs of this
        modality. `requested`: the user asked for it, such as by a backbone.
        """
        return False

    def from_columns(self, columns: Mapping[str, Any], requested: bool) -> TableInputs:
        """The inputs in the columns of a table, if `reads_columns`."""
        raise ParameterError(f"{self.plural} are not read from columns.")

    def backbone_for(self, name: str, read: Callable[[], Any]) -> str:
        """The backbone of this name for inputs such as that which `read` returns; most
        backbones read all inputs of their modality.
        """
        return name

    def show(self, item: Any) -> "str | Array | None":
        """An input as a text or a uint8 image, for terminals and pages; None if it
        cannot be shown.
        """
        return None

    def parts(self, item: Any) -> InputParts | None:
        """The input taken apart; None if it has no parts to leave out."""
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
        """Several inputs, such as `images`."""
        return f"{self.noun}s"

    def count(self, n: int) -> str:
        """A number of inputs in words, such as `2,000 images`."""
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
