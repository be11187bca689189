"""The page of the paper: a section for every artefact, from what a run left in its folder."""

import os
from collections.abc import Sequence
from pathlib import Path

from imprint.core.version import __version__
from imprint.paper import known
from imprint.paper.places import MAPS, ROLES
from imprint.paper.results import Results
from imprint.report.paper_page import Front, as_html, as_markdown, write_files
from imprint.report.sections import Picture, Section
from imprint.study.store import Store


def sections(folder: str | os.PathLike[str], names: Sequence[str] = ()) -> list[Section]:
    """The sections of some artefacts, or of all, in the order of the paper."""
    results = Results(Path(folder))
    return [artefact.section(name, results) for name, artefact in known().items() if name in (names or [name])]


def write_page(
    folder: str | os.PathLike[str], to: str | os.PathLike[str], found: Sequence[Section] | None = None
) -> list[Path]:
    """Write `results.html`, `results.md` and the pictures in `results/`; `found` are sections already made."""
    found, front = sections(folder) if found is None else found, _front(Path(folder))
    pictures = {f"results/{p.name}.svg": p.svg for s in found for p in s.parts if isinstance(p, Picture)}
    files = {"results.html": as_html(front, found).encode(), "results.md": as_markdown(front, found).encode()}
    return write_files(Path(to), {**files, **pictures})


def _front(folder: Path) -> Front:
    results = Results(folder)
    places = results.places
    where = [f"{len(places.benchmark.backbones)} backbones ({', '.join(places.benchmark.backbones)})"]
    where += [f"{', '.join(places.benchmark.datasets)} with four tasks each"]
    for role, what in (("combined", "as one more ten-class set"), ("many", 'for "d in 1"')):
        group = places.group(role)
        if group:
            where.append(f"{', '.join(group.datasets)} {what} ({', '.join(group.backbones)})")
    counts, costs = zip(*(_cost(folder / role) for role in ROLES))
    return Front(
        scope="; ".join(where) + ".",
        same=places.published,
        experiments=sum(counts),
        seconds=sum(costs),
        versions=_versions(results),
        options="" if places.maps == MAPS else f" --maps {places.maps}",
    )


def _cost(store: Path) -> tuple[int, float]:
    """How many experiments a store holds, and the processor seconds they took."""
    table = Store(store).table()
    spent = (float(table[f"seconds_{part}"].to_numpy().sum()) for part in ("generation", "evaluation"))
    return len(table), sum(spent)


def _versions(results: Results) -> str:
    manifests = results.manifests()
    libraries = manifests[0]["libraries"] if manifests else {}
    return ", ".join([f"imprint {__version__}", *(f"{name} {version}" for name, version in libraries.items())])
