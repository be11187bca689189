"""The page of the paper: a section for every artefact, as one self-contained HTML file
and as Markdown.
"""

import os
import shlex
from collections.abc import Sequence
from html import escape
from pathlib import Path

from imprint import __version__
from imprint.extend import count, write_outputs
from imprint.report import TextTable, html
from imprint.study import Store
from imprint_reproduction import ARTEFACTS
from imprint_reproduction.artefact import Results, elapsed
from imprint_reproduction.sections import (
    Claims,
    Image,
    Run,
    Section,
    Shown,
    as_file,
    line_breaks,
    sections_by_artefact,
)
from imprint_reproduction.setting import MAPS, MAX, ROLES, Setting

CITATION = (
    "J. Westerhoff, G. Atefi, M. Koddenbrock, A. Figueroa, A. Löser, E. Rodner, F. A."
    " Gers: Robust Weight Imprinting: Insights from Neural Collapse and Proxy-Based"
    " Aggregation (TMLR 2025)"
)
SAME_BACKBONES = "The backbones are the paper's: values are compared one by one."
OTHER_BACKBONES = (
    "The backbones are not the paper's, so claims are compared, not values: which"
    " method wins, by how much, how significantly, where peaks lie. Published values"
    " are shown for comparison."
)


def sections(
    folder: str | os.PathLike[str], names: Sequence[str] = (), aggregator: str = MAX
) -> list[Section]:
    """The sections of some artefacts, or of all, in the order of the paper;
    `aggregator` replaces `max`.
    """
    results = Results(Path(folder), aggregator)
    return [
        artefact.section(results)
        for name, artefact in ARTEFACTS.items()
        if name in (names or [name]) and (artefact.repeatable or aggregator == MAX)
    ]


def read_runs(folders: Sequence[str | os.PathLike[str]]) -> list[Run]:
    """The runs in some folders, each followed by the same run with another aggregator,
    if there is one.

    The run of a single folder is called "here"; those of several folders are named
    after their packs.
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
    """Write `results.html`, `results.md`, and images and pages by topic in
    `results/`.
    """
    pages = {"results.html": as_html(runs), **markdown_pages(runs)}
    if (Path(to) / "beyond.md").is_file():
        pages["results.md"] += (
            "\nFurther questions, on the same results: [beyond the paper](beyond.md).\n"
        )
    parts = (
        part
        for shown in sections_by_artefact(runs)
        for _, section in shown
        for part in section.parts
    )
    images = {
        f"results/{part.name}.svg": part.svg
        for part in parts
        if isinstance(part, Image)
    }
    return write_outputs(
        Path(to), {name: text.encode() for name, text in pages.items()} | images
    )


def _read(folder: Path, name: str, setting: Setting) -> Run:
    stores = [Store(folder / role) for role in ROLES if Store(folder / role).exists()]
    tables = [store.table() for store in stores]
    columns = [
        table[f"seconds_{part}"].to_numpy()
        for table in tables
        for part in ("generation", "evaluation")
    ]
    every = {
        section.name: section
        for section in sections(folder, aggregator=setting.aggregator)
    }
    filled = [
        name for name, section in every.items() if section.parts or section.claims
    ]
    complete = all(
        name in filled
        for name, artefact in ARTEFACTS.items()
        if artefact.can_run(setting)
    )
    ran = [name for name in filled if not ARTEFACTS[name].needs_no_run]
    # if only some were run, without those that need no run
    shown = filled if complete or not ran else ran
    beside = "" if setting.aggregator == MAX else setting.aggregator
    options = (
        "" if setting.maps == MAPS or not setting.many else f" --maps {setting.maps}"
    )
    options += f" --beside {shlex.quote(setting.beside)}" if setting.beside else ""
    libraries = stores[0].manifest()["libraries"] if stores else {}
    return Run(
        f"{name}, {beside}" if beside else name,
        (
            f"the same studies with {beside} instead of max."
            if beside
            else _scope(setting, complete)
        ),
        tuple(every[name] for name in shown),
        brief=f"{_backbones(setting)}, {setting.smallest:,} rows per class or more",
        experiments=sum(map(len, tables)),
        cpu_seconds=sum(float(column.sum()) for column in columns),
        elapsed=elapsed(folder),
        published_backbones=setting.published,
        options=options,
        versions=", ".join(
            [
                f"imprint {__version__}",
                *(f"{name} {v}" for name, v in libraries.items()),
            ]
        ),
        complete=complete,
        beside=beside,
    )


def _scope(setting: Setting, complete: bool) -> str:
    """The packs on which the studies ran."""
    names, sets = (
        ", ".join(setting.benchmark.backbones),
        ", ".join(setting.benchmark.datasets),
    )
    count = (
        f"{_backbones(setting)} ({names})"
        if len(setting.benchmark.backbones) > 1
        else names
    )
    where = [
        count,
        f"{sets} with four tasks each, {setting.smallest:,} rows per class or more",
    ]
    for group, what in (
        (setting.combined, "as one more ten-class set"),
        (setting.many, 'for "d in 1"'),
    ):
        if group:
            where.append(
                f"{', '.join(group.datasets)} {what} ({', '.join(group.backbones)})"
            )
    lacking = ", ".join(
        a.where for a in ARTEFACTS.values() if complete and not setting.group(a.needs)
    )
    return "; ".join(where) + (
        f". There are no packs for {lacking}." if lacking else "."
    )


def _backbones(setting: Setting) -> str:
    first, *others = setting.benchmark.backbones
    return f"{len(others) + 1} backbones" if others else first


def _opening(runs: Sequence[Run], shown: Sequence[Shown]) -> tuple[str, list[str], str]:
    """The title, the first paragraphs, and the commands that produce the page.

    They name the artefacts unless all of them were run.
    """
    *others, last = dict.fromkeys(sections[0][1].where for sections in shown)
    named = f"{', '.join(others)} and {last}" if others else last
    artefacts = "Every table and figure" if all(run.complete for run in runs) else named
    title = (
        f"{artefacts} of the paper, side by side"
        if len(shown) == 1
        else "Reproduction of the paper"
    )
    paragraphs = [
        f"{artefacts} of {CITATION}, reproduced next to the published results."
    ]
    for run in runs:
        took = f" in {_duration(run.elapsed)}" if run.elapsed else ""
        cost = (
            f" {run.experiments:,} experiments{took} ({_duration(run.cpu_seconds)} of"
            " CPU time)."
        )
        name = run.name.capitalize() if len(runs) == 1 else run.name
        paragraphs.append(f"{name}: {run.scope}{'' if run.beside else cost}")
    paragraphs.append(
        SAME_BACKBONES if runs[0].published_backbones else OTHER_BACKBONES
    )
    folders = [run for run in runs if not run.beside]
    names = [f"-{as_file(run.name)}" if len(folders) > 1 else "" for run in folders]
    commands = [
        f"imprint study run paper/{study} --embeddings PACKS{name} --out"
        f" RESULTS{name}{run.options}"
        for name, run in zip(names, folders)
        for study in (
            ["all"] if run.complete else [section.name for section in run.sections]
        )
    ]
    results = " ".join(f"RESULTS{name}" for name in names)
    commands.append(f"imprint study report {results} --to reproduction/docs")
    return title, paragraphs, "\n".join(commands)


def _versions(runs: Sequence[Run]) -> str:
    return "; ".join(dict.fromkeys(run.versions for run in runs))


def _duration(seconds: float) -> str:
    return (
        count(max(round(seconds), 1), "second")
        if seconds < 90
        else f"{seconds / 60:.1f} minutes"
    )


def as_html(runs: Sequence[Run]) -> str:
    """The page as HTML."""
    shown = sections_by_artefact(runs)
    (title, paragraphs, commands), claims = (
        _opening(runs, shown),
        Claims.of(shown, runs),
    )
    links = [
        f'<a href="#{s.name}">{escape(s.where)}: {escape(s.title)}</a>'
        for (_, s), *_ in shown
    ]
    overview = f"<p>{escape(claims.tally())}</p>{claims.html()}"
    several = [
        f"<nav>{'<a href=#claims>Claims</a>' if claims else ''}{''.join(links)}</nav>",
        html.section("Claims", overview, name="claims") if claims else "",
    ]
    return html.document(
        title,
        "".join(f"<p>{escape(paragraph)}</p>" for paragraph in paragraphs),
        f"<pre>{escape(commands)}</pre>",
        *(several if len(shown) > 1 else ()),
        *map(_html_section, shown),
        f"<footer><small>{escape(_versions(runs))}</small></footer>",
    )


def _html_section(shown: Shown) -> str:
    first, claims = shown[0][1], Claims.of([shown], [run for run, _ in shown])
    head = (
        f"{escape(first.title)}<small>{escape(first.where)} ·"
        f" paper/{first.name}</small>"
    )
    content = []
    for run, section in shown:
        if len(shown) > 1:
            content.append(
                f"<h3>{escape(run.name)}<small>{escape(run.brief)}</small></h3>"
            )
        if section.text:
            content.append(f"<p>{line_breaks(section.text)}</p>")
        content += [part.html() for part in section.parts]
    if claims:
        content.append(claims.html())
    return html.section(head, *content, name=first.name)


def markdown_pages(runs: Sequence[Run]) -> dict[str, str]:
    """The Markdown files by name: an overview and one page per topic, or one page if
    not everything was run.
    """
    shown, pages = sections_by_artefact(runs), {}
    (title, paragraphs, commands), topics = (
        _opening(runs, shown),
        dict[str, list[Shown]](),
    )
    for sections in shown:
        topics.setdefault(sections[0][1].topic, []).append(sections)
    claims = Claims.of(shown, runs)
    if len(topics) == 1 or not all(run.complete for run in runs):
        body = [
            *_markdown_claims(claims, claims.tally(), ""),
            *_markdown_artefacts(shown, "results/"),
        ]
    else:
        overview = []
        for topic, group in topics.items():
            file = f"results/{as_file(topic.lower())}.md"
            topic_claims = Claims.of(group, runs)
            head = [f"# {topic}", "", f"Part of [{title.lower()}](../results.md).", ""]
            pages[file] = "\n".join(
                [
                    *head,
                    *_markdown_claims(topic_claims),
                    *_markdown_artefacts(group, ""),
                ]
            )
            holding = map(topic_claims.holding, topic_claims.sources)
            overview.append(
                (
                    f"[{topic}]({file})",
                    ", ".join(s[0][1].where for s in group),
                    *holding,
                )
            )
        sources = *claims.runs, "published"
        columns = (
            "topic",
            "tables and figures",
            *(f"claims that hold, {source}" for source in sources),
        )
        body = [claims.tally(), "", *TextTable(columns, tuple(overview), 2).markdown()]
    what, *how = [[paragraph, ""] for paragraph in paragraphs]
    made = [line for lines in how for line in lines]
    made += ["A command writes this page:", "", "```", commands, "```", ""]
    # An overview begins with what was found; a page with every artefact, with its runs.
    order = [*body, "## Runs", "", *made] if pages else [*made, *body]
    lines = [f"# {title}", "", *what, *order, f"Computed with {_versions(runs)}.", ""]
    return {"results.md": "\n".join(lines), **pages}


def _markdown_claims(claims: Claims, *introduction: str) -> list[str]:
    return ["## Claims", "", *introduction, claims.html(), ""] if claims else []


def _markdown_artefacts(shown: Sequence[Shown], folder: str) -> list[str]:
    """The text of each artefact, its tables, and its images, which are in
    `folder`.
    """
    lines: list[str] = []
    for sections in shown:
        first = sections[0][1]
        lines += [f"## {first.title}", "", f"{first.where} · `paper/{first.name}`.", ""]
        for run, section in sections:
            lines += [f"### {first.title}: {run.name}", ""] if len(sections) > 1 else []
            lines += [section.text, ""] if section.text else []
            for part in section.parts:
                lines += (
                    part.markdown(folder)
                    if isinstance(part, Image)
                    else part.markdown()
                )
    return lines
