"""The studies of the paper as a collection, which `imprint study` runs by name."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from imprint.core.errors import ParameterError
from imprint.report import TextTable
from imprint.study import (
    CollectionReport,
    NamedStudy,
    RunOptions,
    Study,
    StudyCollection,
    StudySelection,
    Summary,
)
from imprint_reproduction import artefacts_named, listing
from imprint_reproduction.artefact import is_run
from imprint_reproduction.page import read_runs, sections, write_page
from imprint_reproduction.run import planned_batches, run
from imprint_reproduction.sections import Claims, Run, Section, sections_by_artefact
from imprint_reproduction.setting import Setting, discover


class PaperStudy(NamedStudy):
    """The studies behind one artefact of the paper, or behind all of them."""

    def __init__(self, name: str, setting: Setting) -> None:
        self.name = name
        self.setting = setting

    def batches(self) -> list[list[Study]]:
        return planned_batches(self.name, self.setting)

    def run(self, out: Path, options: RunOptions) -> Summary:
        return run(self.name, self.setting, out, **options._asdict())

    def results(self, out: Path) -> list[str | TextTable]:
        """The tables of a single artefact, and the claims of all."""
        names = list(artefacts_named(self.name))
        runs = [Run("here", "", tuple(sections(out, names)))]
        beside = self.setting.beside
        repeated = sections(out, names, beside) if beside else []
        if repeated:
            runs.append(Run(f"here, {beside}", "", tuple(repeated)))
        parts: list[str | TextTable] = []
        if len(names) == 1:
            for one in runs:
                for section in one.sections:
                    parts += section_parts(section)
        return parts + claim_parts(runs)


class PaperStudies(StudyCollection):
    """Every table and figure of the paper, and all of them as `paper/all`."""

    def listing(self) -> list[dict[str, str]]:
        return listing()

    def select(self, name: str, selection: StudySelection) -> PaperStudy:
        artefacts_named(name)  # refuses an unknown name
        if selection.embeddings is None:
            raise ParameterError(
                f"study run {name}: name the folder of the packs BACKBONE-DATASET.npz:"
                " --embeddings DIR."
            )
        setting = discover(
            selection.embeddings,
            selection.backbones,
            selection.datasets,
            selection.maps,
            selection.beside,
        )
        return PaperStudy(name, setting)

    def is_run(self, folder: Path) -> bool:
        return is_run(folder)

    def report(self, folders: Sequence[Path], to: Path) -> CollectionReport:
        runs = read_runs(folders)
        files = write_page(runs, to)
        return CollectionReport(files, claims_as_json(runs), claim_parts(runs))


def section_parts(section: Section) -> list[str | TextTable]:
    """What a terminal shows of one artefact: its text and its tables."""
    text = f"{section.where}: {section.title}. {section.text} {section.note}"
    return [text.strip(), *section.tables]


def claim_parts(runs: Sequence[Run]) -> list[str | TextTable]:
    """What a terminal shows of claims: their table, and how many hold."""
    claims = Claims.of(sections_by_artefact(runs), runs)
    if not claims:
        return []
    return [claims.table(), claims.tally()]


def claims_as_json(runs: Sequence[Run]) -> list[dict[str, object]]:
    """The claims with their verdicts as JSON values."""
    claims: list[dict[str, object]] = []
    for run_ in runs:
        for section in run_.sections:
            for claim in section.claims:
                source = {"run": run_.name, "study": section.name}
                claims.append(source | asdict(claim))
    return claims


PAPER = PaperStudies()
"""The object of the entry point."""
