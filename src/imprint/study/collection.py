"""Named studies of other packages, such as those of a paper.

A package offers them as a `StudyCollection`, by an entry point of the group
`imprint.studies`. `imprint study run NAME/STUDY` runs a study of the collection NAME.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol, TypeAlias

from imprint.core.errors import ParameterError
from imprint.core.extras import load_plugin, registered
from imprint.study.plan import MAX_EXPERIMENTS
from imprint.study.run import Progress, Summary
from imprint.study.study import Study

GROUP = "imprint.studies"

OnMeasurement: TypeAlias = Callable[[str, int, int], object]
"""Called with the name of the measurements, the number of those that are done, and the
number of all.
"""


@dataclass(frozen=True)
class StudySelection:
    """On what named studies run, as options of `imprint study run`.

    Examples
    --------
    >>> from imprint.study import StudySelection
    >>> StudySelection(backbones=("resnet18",)).datasets
    ()
    """

    embeddings: Path | None = None  # the folder of the packs BACKBONE-DATASET.npz
    backbones: tuple[str, ...] = ()  # only these; all if empty
    datasets: tuple[str, ...] = ()  # only these; all if empty
    maps: int = 10  # number of label maps of tasks that draw classes
    beside: str = ""  # an aggregator with which the studies are repeated


class ResultTable(Protocol):
    """A table of texts, such as `imprint.report.TextTable`."""

    @property
    def head(self) -> tuple[str, ...]:
        """The names of the columns."""

    @property
    def rows(self) -> tuple[tuple[str, ...], ...]:
        """The texts."""

    @property
    def caption(self) -> str:
        """A sentence below it; empty for none."""

    def right_aligned(self, column: int) -> bool:
        """Whether a column is right-aligned."""


ResultParts: TypeAlias = Sequence[str | ResultTable]
"""What a terminal shows: paragraphs and tables."""


class RunOptions(NamedTuple):
    """How studies are run; see `imprint.study.run`.

    Examples
    --------
    >>> from imprint.study import RunOptions
    >>> RunOptions(workers=2).engine
    'local'
    """

    workers: int | None = None
    engine: str = "local"
    limit: int = MAX_EXPERIMENTS
    progress: Callable[[Progress], None] = lambda _: None
    measuring: OnMeasurement = lambda *_: None


class NamedStudy(ABC):
    """One study of a collection, or several, on the packs of a selection.

    Examples
    --------
    >>> from imprint.study import NamedStudy
    >>> sorted(NamedStudy.__abstractmethods__)
    ['batches', 'results', 'run']
    """

    @abstractmethod
    def batches(self) -> list[list[Study]]:
        """The experiments, in batches that are run one after the other.

        The results of a study go to a sub-folder of its name.
        """

    @abstractmethod
    def run(self, out: Path, options: RunOptions) -> Summary:
        """Compute what is missing in a folder."""

    @abstractmethod
    def results(self, out: Path) -> ResultParts:
        """The results in a folder."""


class CollectionReport(NamedTuple):
    """A report on studies of a collection.

    Examples
    --------
    >>> from imprint.study import CollectionReport
    >>> CollectionReport([], [], ["No claim was tested."]).parts
    ['No claim was tested.']
    """

    files: list[Path]  # that were written; the pages come first
    claims: list[dict[str, object]]  # as JSON values
    parts: ResultParts


class StudyCollection(ABC):
    """Named studies of a package.

    Examples
    --------
    >>> from imprint.study import StudyCollection
    >>> sorted(StudyCollection.__abstractmethods__)
    ['is_run', 'listing', 'report', 'select']
    """

    @abstractmethod
    def listing(self) -> list[dict[str, str]]:
        """The `name` and `title` of each study, with the name of the collection."""

    @abstractmethod
    def select(self, name: str, selection: StudySelection) -> NamedStudy:
        """The study of a name; an unknown name is refused with a suggestion."""

    @abstractmethod
    def is_run(self, folder: Path) -> bool:
        """Whether studies of this collection were run into a folder."""

    @abstractmethod
    def report(self, folders: Sequence[Path], to: Path) -> CollectionReport:
        """Write a report about runs in some folders."""


def collections() -> Mapping[str, StudyCollection]:
    """The collections of installed packages, by name.

    Examples
    --------
    >>> from imprint.study import collections
    >>> all(listing for listing in collections().values())
    True
    """
    return {name: _load(name) for name in sorted(registered(GROUP))}


def collection_of(study: str) -> StudyCollection | None:
    """The collection of a study such as `paper/table1`; None for the path of a file.

    Examples
    --------
    >>> from imprint.study import collection_of
    >>> collection_of("my_study.yaml") is None
    True
    """
    name, slash, _ = study.partition("/")
    if not slash or name not in registered(GROUP):
        return None
    return _load(name)


def _load(name: str) -> StudyCollection:
    collection = load_plugin(GROUP, name)
    if not isinstance(collection, StudyCollection):
        raise ParameterError(
            f"The entry point {name} of {GROUP} is not a StudyCollection."
        )
    return collection
