"""What is known of a named data set without having it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

DownloadProgress: TypeAlias = Callable[[str, int, int | None], None]
"""Called as `progress(file, bytes_so_far, bytes_in_all)`; the last is None where the server does not say."""


@dataclass(frozen=True, kw_only=True)
class PublishedFile:
    """One published file: where it is, and how to know that it arrived whole."""

    urls: tuple[str, ...]
    sha256: str = ""
    md5: str = ""
    size: int | None = None  # bytes, where published

    @property
    def file(self) -> str:
        """The name of the file, the last part of its address."""
        return self.urls[0].rsplit("/", 1)[1]


@dataclass(frozen=True, kw_only=True)
class DatasetRecord:
    """Title, sizes, source, licence and citation of a data set.

    `train` and `test` count the rows of the published set; a pack may hold fewer.
    """

    title: str
    modality: str
    classes: int
    train: int
    test: int
    homepage: str
    licence: str
    citation: str
    shape: tuple[int, ...] = ()  # of one picture; empty where pictures differ or inputs are texts
    class_names: tuple[str, ...] = ()  # what the integer labels mean, where they mean more than a digit
    sources: tuple[PublishedFile, ...] = ()
    note: str = ""
