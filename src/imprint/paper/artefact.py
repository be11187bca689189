"""A table or figure of the paper: its study, its published numbers, its drawing."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from imprint.paper.places import MAX, ROLES, Places
from imprint.paper.results import Results, Scores
from imprint.paper.work import Work
from imprint.report.sections import Section

Report = Callable[[str, int, int], None]
"""Hears what is measured, how much of it is done, and how much there is."""


@dataclass(frozen=True, kw_only=True)
class Artefact(ABC):
    """What the paper shows somewhere. Its name is the name of its file."""

    title: str
    where: str
    order: int
    needs: str = "benchmark"
    """The part that packs must play for it."""
    again: bool = False
    """Whether it asks of `max` what can be asked of another aggregator too."""

    def served(self, places: Places) -> bool:
        """Whether these places have what it needs."""
        return bool(places.group(self.needs)) and (self.again or places.aggregator == MAX)

    def studies(self, places: Places) -> list[Work]:
        """The experiments it needs."""
        return []

    def measure(self, places: Places, folder: Path, report: Report) -> None:
        """Anything else it needs, kept in the folder of the run; a second call does nothing."""
        return None

    @property
    def needs_no_run(self) -> bool:
        """Whether there is something to show before anything was run."""
        own = type(self)
        return own.studies is Artefact.studies and own.measure is Artefact.measure

    @abstractmethod
    def section(self, name: str, results: Results) -> Section:
        """What came out, beside what was published."""

    def scores(self, results: Results) -> Scores | None:
        """The accuracies of its first study."""
        return results.scores(self.studies(results.places)[:1])

    def missing(self, name: str, results: Results, what: str = "") -> Section:
        """The section where there is nothing to show, with the reason."""
        if not results.places.group(self.needs):
            what = what or f"The folder of embeddings has no packs of {ROLES[self.needs]}, so there is nothing to run."
        text = what or f"Not run yet: imprint study run paper/{name}"
        return Section(name, self.title, self.where, text)
