"""What a page shows, as values: sections of tables, pictures and claims."""

from dataclasses import dataclass
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


@dataclass(frozen=True)
class Section:
    """One artefact: what it is, what came out, what is claimed of it."""

    name: str
    title: str
    where: str
    text: str
    parts: tuple[Cells | Picture, ...] = ()
    claims: tuple[Claim, ...] = ()


def verdict(holds: bool) -> Verdict:
    """A statement about figures as a verdict."""
    return Verdict.HOLDS if holds else Verdict.FAILS
