"""What a page shows, as values: sections of tables, pictures and claims."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum


class Verdict(StrEnum):
    """Whether a claim agrees with the results."""

    HOLDS = "holds"
    FAILS = "does not hold"
    UNTESTABLE = "not testable here"


@dataclass(frozen=True)
class Claim:
    """A claim, whether it holds on these results, and the figures; then the same for the published results."""

    text: str
    verdict: Verdict
    figures: str
    published: Verdict | None = None
    published_figures: str = ""


@dataclass(frozen=True)
class Cells:
    """A table of texts; columns from `numbers` on are numbers, but for the last `remarks`."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: int = 1
    caption: str = ""
    remarks: int = 0

    def right(self, column: int) -> bool:
        """Whether a column holds numbers."""
        return self.numbers <= column < len(self.head) - self.remarks


@dataclass(frozen=True)
class Picture:
    """A drawing."""

    name: str
    svg: bytes
    caption: str
    narrow: bytes = b""
    """The same for narrow screens, where it is too wide for them."""


@dataclass(frozen=True)
class Section:
    """One artefact: what it is, what came out, what is claimed of it. `note` is said once, `text` by every run."""

    name: str
    title: str
    where: str
    text: str
    parts: tuple[Cells | Picture, ...] = ()
    claims: tuple[Claim, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Run:
    """What came out on one folder of packs, and what it cost."""

    name: str
    scope: str
    sections: tuple[Section, ...]
    brief: str = ""
    """The scope in a few words."""
    experiments: int = 0
    processor: float = 0.0
    """Seconds of all cores together."""
    wall: float = 0.0
    """Seconds that passed; 0 where nobody noted them."""
    same: bool = False
    """Whether the backbones are the published ones."""
    options: str = ""
    """Of the command that ran the studies."""
    versions: str = ""
    whole: bool = True
    """Whether everything was run that the packs allow."""
    beside: str = ""
    """The aggregator that is looked at in the place of `max`; the run before it has the same packs and `max`."""


Shown = list[tuple[str, Section]]
"""One artefact in all runs that have something to show of it, by the name of the run."""


def together(runs: Sequence[Run]) -> list[Shown]:
    """Each artefact as the first run that has it shows it, and what later runs show beyond that, pictures renamed."""
    found: dict[str, Shown] = {}
    for run in runs:
        for section in run.sections:
            own = found.setdefault(section.name, [])
            if not own:
                own.append((run.name, section))
            elif section != own[0][1] and (section.parts or section.claims):
                own.append((run.name, _renamed(section, run.name)))
    return list(found.values())


def as_file(name: str) -> str:
    """A name that can be part of a file's.

    >>> as_file("full size")
    'full-size'
    """
    return re.sub(r"[^\w.]+", "-", name)


def _renamed(section: Section, run: str) -> Section:
    parts = (replace(p, name=f"{p.name}-{as_file(run)}") if isinstance(p, Picture) else p for p in section.parts)
    return replace(section, parts=tuple(parts))


def checked_claim(
    text: str, holds: "bool | Verdict", figures: str, published_figures: str, published: bool = True
) -> Claim:
    """A claim with the figures of these results and of the published ones, and whether either bears it out."""
    here = holds if isinstance(holds, Verdict) else verdict(holds)
    return Claim(text, here, figures, verdict(published), published_figures)


def verdict(holds: bool) -> Verdict:
    """A statement about figures as a verdict."""
    return Verdict.HOLDS if holds else Verdict.FAILS
