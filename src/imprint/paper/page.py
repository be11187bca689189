"""The page of the paper: a section for every artefact, from the results in the folders of runs."""

import os
import shlex
from collections.abc import Sequence
from pathlib import Path

from imprint.core import __version__
from imprint.core.files.atomic import write_outputs
from imprint.paper import ARTEFACTS
from imprint.paper.artefact import Results, elapsed
from imprint.paper.setting import MAPS, MAX, ROLES, Setting
from imprint.report.paper_page import as_html, markdown_pages
from imprint.report.sections import Picture, Run, Section, sections_by_artefact
from imprint.study.store import MANIFEST, Store


def sections(folder: str | os.PathLike[str], names: Sequence[str] = (), aggregator: str = MAX) -> list[Section]:
    """The sections of some artefacts, or of all, in the order of the paper; `aggregator` replaces `max`."""
    results = Results(Path(folder), aggregator)
    return [
        artefact.section(results)
        for name, artefact in ARTEFACTS.items()
        if name in (names or [name]) and (artefact.repeatable or aggregator == MAX)
    ]


def read_runs(folders: Sequence[str | os.PathLike[str]]) -> list[Run]:
    """The runs in some folders, each followed by the same run with another aggregator, if there is one.

    The run of a single folder is called "here"; those of several folders are named after their packs.
    """
    names: list[str] = []
    runs: list[Run] = []
    for folder in map(Path, folders):
        setting = Results(folder).setting
        name = Path(setting.embeddings).name if len(folders) > 1 else "here"
        names.append(name if name not in names else f"{name} {len(names) + 1}")
        runs += [_read(folder, names[-1], one) for one in setting.by_aggregator]
    return [run for run in runs if run.sections or not run.beside]


def write_page(runs: Sequence[Run], to: str | os.PathLike[str]) -> list[Path]:
    """Write `results.html`, `results.md`, and pictures and pages by topic in `results/`."""
    pages = {"results.html": as_html(runs), **markdown_pages(runs)}
    if (Path(to) / "beyond.md").is_file():
        pages["results.md"] += "\nFurther questions, on the same results: [beyond the paper](beyond.md).\n"
    parts = (part for shown in sections_by_artefact(runs) for _, section in shown for part in section.parts)
    drawings = [part for part in parts if isinstance(part, Picture)]
    pictures = {f"results/{p.name}.svg": p.svg for p in drawings}
    pictures |= {f"results/{p.name}-narrow.svg": p.narrow for p in drawings if p.narrow}
    return write_outputs(Path(to), {name: text.encode() for name, text in pages.items()} | pictures)


def _read(folder: Path, name: str, setting: Setting) -> Run:
    tables = [Store(folder / role).table() for role in ROLES]
    columns = [table[f"seconds_{part}"].to_numpy() for table in tables for part in ("generation", "evaluation")]
    every = {section.name: section for section in sections(folder, aggregator=setting.aggregator)}
    filled = [name for name, section in every.items() if section.parts or section.claims]
    complete = all(name in filled for name, artefact in ARTEFACTS.items() if artefact.can_run(setting))
    ran = [name for name in filled if not ARTEFACTS[name].needs_no_run]
    shown = filled if complete or not ran else ran  # if only some were run, without those that need no run
    beside = "" if setting.aggregator == MAX else setting.aggregator
    options = "" if setting.maps == MAPS or not setting.many else f" --maps {setting.maps}"
    options += f" --beside {shlex.quote(setting.beside)}" if setting.beside else ""
    stores = sorted(manifest.parent for manifest in folder.glob(f"*/{MANIFEST}"))
    libraries = Store(stores[0]).manifest()["libraries"] if stores else {}
    return Run(
        f"{name}, {beside}" if beside else name,
        f"the same studies with {beside} instead of max." if beside else _scope(setting, complete),
        tuple(every[name] for name in shown),
        brief=f"{_backbones(setting)}, {setting.smallest:,} rows per class or more",
        experiments=sum(map(len, tables)),
        cpu_seconds=sum(float(column.sum()) for column in columns),
        elapsed=elapsed(folder),
        published_backbones=setting.published,
        options=options,
        versions=", ".join([f"imprint {__version__}", *(f"{name} {v}" for name, v in libraries.items())]),
        complete=complete,
        beside=beside,
    )


def _scope(setting: Setting, complete: bool) -> str:
    """The packs on which the studies ran."""
    names, sets = ", ".join(setting.benchmark.backbones), ", ".join(setting.benchmark.datasets)
    count = f"{_backbones(setting)} ({names})" if len(setting.benchmark.backbones) > 1 else names
    where = [count, f"{sets} with four tasks each, {setting.smallest:,} rows per class or more"]
    for group, what in ((setting.combined, "as one more ten-class set"), (setting.many, 'for "d in 1"')):
        if group:
            where.append(f"{', '.join(group.datasets)} {what} ({', '.join(group.backbones)})")
    lacking = ", ".join(a.where for a in ARTEFACTS.values() if complete and not setting.group(a.needs))
    return "; ".join(where) + (f". There are no packs for {lacking}." if lacking else ".")


def _backbones(setting: Setting) -> str:
    first, *others = setting.benchmark.backbones
    return f"{len(others) + 1} backbones" if others else first
