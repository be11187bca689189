"""A split is a frozen value: inputs, labels, names, and a digest of them."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any, Protocol, TypeAlias

import numpy as np

from imprint.core.arrays import Array, digest
from imprint.core.errors import ParameterError, UnreadableInput, count, printable
from imprint.core.labels import as_labels, kind_of
from imprint.modalities import Modality, modality

Label: TypeAlias = int | str
SPLITS = ("train", "test")
MAX_CAPTION_LENGTH = 100  # characters of a text
# characters; in an array of texts, every row takes the memory of the longest
MAX_LABEL_LENGTH = 1000
NO_LABELS: Array = np.empty(0, dtype=np.int64)  # of inputs without labels


class Inputs(Protocol):
    """A sequence of inputs: images as uint8 arrays, texts, sounds, or rows of
    embeddings.
    """

    def __len__(self) -> int: ...

    def __getitem__(self, i: int, /) -> Any: ...


class Joined(list[Any]):
    """Several sequences as one, in order; images in it are views of the arrays they
    come from.
    """

    def __init__(self, parts: Sequence[Any]):
        super().__init__(chain.from_iterable(parts))
        self.parts = parts

    def fingerprint(self) -> str:
        """The digest of the parts' digests."""
        return digest(map(inputs_digest, self.parts))


@dataclass(frozen=True, eq=False, repr=False)
class Split:
    """Inputs with their labels: `inputs[i]` belongs to the class `labels[i]` and is
    called `names[i]`.

    An input is an image (uint8, height x width, or height x width x 3), a text, a
    sound (`samples`, `rate`), or a row of one float32 matrix of embeddings. Files in
    folders are decoded on access, and raise `UnreadableInput` if that fails. Inputs
    without labels have `labels` of length 0 and no `classes`.
    """

    inputs: Inputs
    # (n,) integers or str, see `core.labels`; (0,) if there are none
    labels: Array
    names: Sequence[str]
    classes: tuple[Label, ...]
    modality: str  # `image`, `text`, `sound`, `embedding`, or that of a plug-in
    # (n,) str: which data set a row of a merged set came from
    source: Array | None = None
    origin: str = ""  # the name of the data, or the last part of their path
    parts: tuple[str, ...] = ("train",)  # the splits that the data have
    # files of another kind, by suffix
    ignored: Mapping[str, int] = field(default_factory=dict)
    # labels are label sets, see `core.label_sets`, and `classes` are the labels in them
    tags: bool = False
    folders: bool = False  # whether the labels are names of folders
    # sentences about inputs that were left out or truncated
    omissions: tuple[str, ...] = ()
    blocks: tuple[int, ...] = ()  # the widths of the blocks of embeddings, if several

    def __post_init__(self) -> None:
        sizes = {len(self.inputs), len(self.names)} | (
            {len(self.labels)} if len(self.labels) else set()
        )
        sizes |= {len(self.source)} if self.source is not None else set()
        if len(sizes) != 1:
            raise ParameterError(
                "Split(): inputs, labels and names must be of one length, not"
                f" {sorted(sizes)}."
            )

    def __len__(self) -> int:
        return len(self.inputs)

    def __repr__(self) -> str:
        inputs, classes = len(self), len(self.classes)
        plural = inputs != 1 and not self.modality.endswith("s")
        return (
            f"Split({inputs} {self.modality}{'s' * plural}, {classes}"
            f" class{'es' * (classes != 1)})"
        )

    @property
    def kind(self) -> Modality:
        """The modality of the inputs."""
        return modality(self.modality)

    @property
    def found(self) -> str:
        """A description of the data in one line."""
        size = self.kind.count(len(self))
        if self.classes:
            size += f" of {count(len(self.classes), 'label' if self.tags else 'class')}"
        if not self.kind.needs_backbone:
            size += f", {len(self.inputs[0]):,} wide"
        ignored = self.ignored_files
        return (
            size
            + (f" ({self.origin})" if self.origin else "")
            + (f"; ignored: {ignored}" if ignored else "")
        )

    @property
    def ignored_files(self) -> str:
        """The files of another kind, such as `1 .jp2, 2 .nef`; empty without any."""
        return ", ".join(
            f"{n:,} {suffix or 'without suffix'}"
            for suffix, n in sorted(self.ignored.items())
        )

    @property
    def captions(self) -> Sequence[str]:
        """The names of the inputs, each followed by its text if the inputs are
        texts.
        """
        if not self.kind.typed:
            return self.names
        captions = list(self.names)
        for i, name in enumerate(captions):
            with suppress(UnreadableInput):
                text = str(self.inputs[i])
                words = printable(" ".join(text.split()), MAX_CAPTION_LENGTH)
                captions[i] = words if text == name else f"{name}: {words}"
        return captions

    @cached_property
    def fingerprint(self) -> str:
        """A digest of every input and label, the same on every machine; names and paths
        do not count.
        """
        labels = (
            [np.asarray(self.labels, dtype="<i8")]
            if np.can_cast(self.labels.dtype, np.int64)
            else map(str, self.labels)
        )
        return digest([self.modality, inputs_digest(self.inputs), *labels])


def inputs_digest(inputs: Inputs) -> str:
    """The digest of inputs: of the array, of the texts, or their own
    `fingerprint()`.
    """
    if isinstance(inputs, np.ndarray):
        return digest([inputs])
    if hasattr(inputs, "fingerprint"):
        return str(inputs.fingerprint())
    return digest(inputs[i] for i in range(len(inputs)))


def plain_labels(values: Any) -> Array:
    """Labels as integers or as strings; anything else is refused."""
    is_array = isinstance(values, np.ndarray)
    # in other types than that of objects, NumPy converts some integers to floats
    labels = values if is_array else np.array(values, dtype=object)
    if labels.ndim == 1 and labels.dtype == object:
        labels = as_labels(labels)
    if labels.ndim == 1 and np.can_cast(labels.dtype, np.int64):
        return np.asarray(labels, dtype=np.int64)
    if labels.ndim == 1 and kind_of(labels) == "integer":
        return labels
    if labels.ndim == 1 and labels.dtype.kind == "U":
        longest = int(np.strings.str_len(labels).max(initial=0))
        if longest > MAX_LABEL_LENGTH:
            raise ParameterError(
                f"Labels must have at most {MAX_LABEL_LENGTH:,} characters, and one has"
                f" {longest:,}."
            )
        return labels
    raise ParameterError(
        f"Labels must be a list of integers or strings, not {labels.dtype} of shape"
        f" {labels.shape}."
    )


def classes_of(labels: Array) -> tuple[Label, ...]:
    """The distinct labels in ascending order, as plain Python values."""
    return tuple(np.unique(labels).tolist())
