"""The page about the paper: one self-contained HTML file, and Markdown that links to its pictures."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import NamedTuple

from imprint.report import html
from imprint.report.forms import count
from imprint.report.sections import (
    PUBLISHED,
    Picture,
    Run,
    Section,
    Shown,
    Verdict,
    as_file,
    claim_rows,
    claims_html,
    count_verdicts,
    line_breaks,
    sections_by_artefact,
    tally,
)  # fmt: skip
from imprint.report.text_table import TextTable

CITATION = (
    "J. Westerhoff, G. Atefi, M. Koddenbrock, A. Figueroa, A. Löser, E. Rodner, F. A. Gers: Robust Weight Imprinting: "
    "Insights from Neural Collapse and Proxy-Based Aggregation (TMLR 2025)"
)
SAME_BACKBONES = "The backbones are the paper's: values are compared one by one."
OTHER_BACKBONES = (
    "The backbones are not the paper's, so claims are compared, not values: which method wins, by how much, how "
    "significantly, where peaks lie. Published values are shown for comparison."
)


class Opening(NamedTuple):
    """What stands above and below the results."""

    title: str
    paragraphs: list[str]
    commands: str  # that produce the page
    versions: str


def opening(runs: Sequence[Run], shown: Sequence[Shown]) -> Opening:
    """The opening of the page about some runs, which names the artefacts unless all of them were run."""
    *others, last = dict.fromkeys(sections[0][1].where for sections in shown)
    named = f"{', '.join(others)} and {last}" if others else last
    artefacts = "Every table and figure" if all(run.complete for run in runs) else named
    title = f"{artefacts} of the paper, side by side" if len(shown) == 1 else "The paper, side by side"
    paragraphs = [f"{artefacts} of {CITATION}, reproduced next to the published results."]
    for run in runs:
        elapsed = f" in {_minutes(run.elapsed)}" if run.elapsed else ""
        cost = f" {run.experiments:,} experiments{elapsed} ({_minutes(run.cpu_seconds)} of CPU time)."
        name = run.name.capitalize() if len(runs) == 1 else run.name
        paragraphs.append(f"{name}: {run.scope}{'' if run.beside else cost}")
    paragraphs.append(SAME_BACKBONES if runs[0].published_backbones else OTHER_BACKBONES)
    folders = [run for run in runs if not run.beside]
    names = [f"-{as_file(run.name)}" if len(folders) > 1 else "" for run in folders]
    commands = [
        f"imprint study run paper/{study} --embeddings PACKS{name} --out RESULTS{name}{run.options}"
        for name, run in zip(names, folders)
        for study in (["all"] if run.complete else [section.name for section in run.sections])
    ]
    commands.append(f"imprint study report {' '.join(f'RESULTS{name}' for name in names)} --to docs")
    return Opening(title, paragraphs, "\n".join(commands), "; ".join(dict.fromkeys(run.versions for run in runs)))


def _minutes(seconds: float) -> str:
    return count(max(round(seconds), 1), "second") if seconds < 90 else f"{seconds / 60:.1f} minutes"


def _text(section: Section, first: Section) -> str:
    """The text of a section; a later run does not repeat that of the first."""
    if section is first:
        return f"{section.text} {section.note}".strip()
    return "" if section.text == first.text else section.text


def as_html(runs: Sequence[Run]) -> str:
    """The page as HTML."""
    shown, names = sections_by_artefact(runs), [run.name for run in runs]
    page, claims, briefs = opening(runs, shown), claim_rows(shown), {run.name: run.brief for run in runs}
    links = [f'<a href="#{s.name}">{escape(s.where)}: {escape(s.title)}</a>' for (_, s), *_ in shown]
    overview = f"<p>{escape(tally(claims, names))}</p>{claims_html(claims, names)}"
    several = [
        f"<nav>{'<a href=#claims>Claims</a>' if claims else ''}{''.join(links)}</nav>",
        html.section("Claims", overview, name="claims") if claims else "",
    ]
    return html.document(
        page.title,
        "".join(f"<p>{escape(paragraph)}</p>" for paragraph in page.paragraphs),
        f"<pre>{escape(page.commands)}</pre>",
        *(several if len(shown) > 1 else ()),
        *(_html_section(sections, briefs) for sections in shown),
        f"<footer><small>{escape(page.versions)}</small></footer>",
    )


def _html_section(shown: Shown, briefs: Mapping[str, str]) -> str:
    first, claims = shown[0][1], claim_rows([shown])
    head = f"{escape(first.title)}<small>{escape(first.where)} · paper/{first.name}</small>"
    content = []
    for name, section in shown:
        if len(shown) > 1:
            content.append(f"<h3>{escape(name)}<small>{escape(briefs[name])}</small></h3>")
        text = _text(section, first)
        content += [f"<p>{line_breaks(text)}</p>" if text else "", *(part.html() for part in section.parts)]
    content.append(claims_html(claims, [name for name, _ in shown]) if claims else "")
    return html.section(head, *content, name=first.name)


def markdown_pages(runs: Sequence[Run]) -> dict[str, str]:
    """The Markdown files by name: an overview and one page per topic, or one page if not everything was run."""
    shown, names, pages = sections_by_artefact(runs), [run.name for run in runs], {}
    page, topics = opening(runs, shown), dict[str, list[Shown]]()
    for sections in shown:
        topics.setdefault(sections[0][1].topic, []).append(sections)
    counted = [tally(claim_rows(shown), names), ""]
    if len(topics) == 1 or not all(run.complete for run in runs):
        body = _markdown_group(shown, names, "results/", counted)
    else:
        overview = []
        for topic, group in topics.items():
            file = f"results/{as_file(topic.lower())}.md"
            head = [f"# {topic}", "", f"Part of [{page.title.lower()}](../results.md).", ""]
            pages[file] = "\n".join([*head, *_markdown_group(group, names, "", [])])
            counts = [count_verdicts(claim_rows(group), source) for source in (*names, PUBLISHED)]
            holding = (f"{c[Verdict.HOLDS]} of {c.total()}" if c else "" for c in counts)
            overview.append((f"[{topic}]({file})", ", ".join(s[0][1].where for s in group), *holding))
        columns = ("topic", "tables and figures", *(f"claims that hold, {name}" for name in (*names, "published")))
        body = [*counted, *TextTable(columns, tuple(overview), 2).markdown()]
    lines = [f"# {page.title}", "", *(line for paragraph in page.paragraphs for line in (paragraph, ""))]
    lines += ["A command writes this page:", "", "```", page.commands, "```", ""]
    return {"results.md": "\n".join([*lines, *body, f"Computed with {page.versions}.", ""]), **pages}


def _markdown_group(shown: Sequence[Shown], names: Sequence[str], folder: str, counted: Sequence[str]) -> list[str]:
    """The claims about some artefacts, then each with its tables and pictures, which are in `folder`."""
    lines: list[str] = []
    if claims := claim_rows(shown):
        lines += ["## Claims", "", *counted, claims_html(claims, names), ""]
    for sections in shown:
        first = sections[0][1]
        lines += [f"## {first.title}", "", f"{first.where} · `paper/{first.name}`.", ""]
        for name, section in sections:
            text = _text(section, first)
            lines += [f"### {first.title}: {name}", ""] if len(sections) > 1 else []
            lines += [text, ""] if text else []
            for part in section.parts:
                lines += part.markdown(folder) if isinstance(part, Picture) else part.markdown()
    return lines
