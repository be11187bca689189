"""Sections as one self-contained HTML page, and as Markdown that links to its pictures."""

import re
from collections.abc import Mapping, Sequence
from html import escape

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
)
from imprint.report.text_table import TextTable, markdown_cell

SMALL = 400  # points; a narrower picture may shrink to the width of a telephone


def title(runs: Sequence[Run]) -> str:
    """The title of the page, which names the artefact if there is only one."""
    return (
        f"{artefacts(runs)} of the paper, side by side"
        if len(sections_by_artefact(runs)) == 1
        else "The paper, side by side"
    )


def artefacts(runs: Sequence[Run]) -> str:
    """The artefacts on the page, in words."""
    if all(run.complete for run in runs):
        return "Every table and figure"
    *others, last = dict.fromkeys(shown[0][1].where for shown in sections_by_artefact(runs))
    return f"{', '.join(others)} and {last}" if others else last


def introduction(runs: Sequence[Run]) -> list[str]:
    """The introduction, paragraph by paragraph."""
    compared = (
        "The backbones are the paper's: values are compared one by one."
        if runs[0].published_backbones
        else "The backbones are not the paper's, so claims are compared, not values: which method wins, by how "
        "much, how significantly, where peaks lie. Published values are shown for comparison."
    )
    return [
        f"{artefacts(runs)} of J. Westerhoff, G. Atefi, M. Koddenbrock, A. Figueroa, A. Löser, E. Rodner, F. "
        "A. Gers: Robust Weight Imprinting: Insights from Neural Collapse and Proxy-Based Aggregation (TMLR 2025), "
        "reproduced next to the published results.",
        *(f"{run.name.capitalize() if len(runs) == 1 else run.name}: {run.scope}{_cost(run)}" for run in runs),
        compared,
    ]


def _cost(run: Run) -> str:
    elapsed = f" in {_minutes(run.elapsed)}" if run.elapsed else ""
    return "" if run.beside else f" {run.experiments:,} experiments{elapsed} ({_minutes(run.cpu_seconds)} of CPU time)."


def _minutes(seconds: float) -> str:
    return count(max(round(seconds), 1), "second") if seconds < 90 else f"{seconds / 60:.1f} minutes"


def commands(runs: Sequence[Run]) -> str:
    """The commands that produce the page."""
    folders = [run for run in runs if not run.beside]
    names = [f"-{as_file(run.name)}" if len(folders) > 1 else "" for run in folders]
    lines = [
        f"imprint study run paper/{study} --embeddings PACKS{name} --out RESULTS{name}{run.options}"
        for name, run in zip(names, folders)
        for study in (["all"] if run.complete else [section.name for section in run.sections])
    ]
    return "\n".join([*lines, f"imprint study report {' '.join(f'RESULTS{name}' for name in names)} --to docs"])


def _versions(runs: Sequence[Run]) -> str:
    return "; ".join(dict.fromkeys(run.versions for run in runs))


def _text(section: Section, first: Section) -> str:
    """The text of a section; a later run does not repeat that of the first."""
    if section is first:
        return f"{section.text} {section.note}".strip()
    return "" if section.text == first.text else section.text


def as_html(runs: Sequence[Run]) -> str:
    """The page as HTML."""
    shown, names = sections_by_artefact(runs), [run.name for run in runs]
    claims, briefs, several = claim_rows(shown), {run.name: run.brief for run in runs}, len(shown) > 1
    overview = f"<p>{escape(tally(claims, names))}</p>{claims_html(claims, names)}"
    links = [f'<a href="#{s.name}">{escape(s.where)}: {escape(s.title)}</a>' for (_, s), *_ in shown]
    return html.document(
        title(runs),
        "".join(f"<p>{escape(s)}</p>" for s in introduction(runs)),
        f"<pre>{escape(commands(runs))}</pre>",
        f"<nav>{'<a href=#claims>Claims</a>' if claims else ''}{''.join(links)}</nav>" if several else "",
        html.section("Claims", overview, name="claims") if claims and several else "",
        *(_html_section(sections, briefs) for sections in shown),
        f"<footer><small>{escape(_versions(runs))}</small></footer>",
    )


def _html_section(shown: Shown, briefs: Mapping[str, str]) -> str:
    first, claims = shown[0][1], claim_rows([shown])
    head = f"{escape(first.title)}<small>{escape(first.where)} · paper/{first.name}</small>"
    content = []
    for name, section in shown:
        if len(shown) > 1:
            content.append(f"<h3>{escape(name)}<small>{escape(briefs[name])}</small></h3>")
        text = _text(section, first)
        content.append(f"<p>{line_breaks(text)}</p>" if text else "")
        content += [p.html() if isinstance(p, TextTable) else _html_picture(p) for p in section.parts]
    content.append(claims_html(claims, [name for name, _ in shown]) if claims else "")
    return html.section(head, *content, name=first.name)


def _html_picture(picture: Picture) -> str:
    caption, svg = f"<figcaption>{escape(picture.caption)}</figcaption>", picture.svg.decode()
    svg = svg[svg.index("<svg") :]
    for mark in ('id="', 'href="#', "url(#"):  # identifiers must be unique on the page
        svg = svg.replace(mark, f"{mark}{picture.name}-")
    if picture.narrow:
        return html.wide_and_narrow(svg, picture.narrow.decode(), caption)
    width = re.search(r'width="([\d.]+)pt"', svg)
    css = ' class="small"' if width and float(width[1]) < SMALL else ""
    return f'<figure{css}><div {html.SCROLLS} aria-label="Figure">{svg}</div>{caption}</figure>'


def markdown_pages(runs: Sequence[Run]) -> dict[str, str]:
    """The Markdown files by name: an overview and one page per topic, or one page if not everything was run."""
    topics: dict[str, list[Shown]] = {}
    for shown in sections_by_artefact(runs):
        topics.setdefault(shown[0][1].topic, []).append(shown)
    names, pages = [run.name for run in runs], {}
    if len(topics) == 1 or not all(run.complete for run in runs):
        body = _markdown_group(sections_by_artefact(runs), names, "results/", with_tally=True)
    else:
        overview = []
        for topic, group in topics.items():
            file = f"results/{as_file(topic.lower())}.md"
            head = [f"# {topic}", "", f"Part of [{title(runs).lower()}](../results.md).", ""]
            pages[file] = "\n".join([*head, *_markdown_group(group, names, "")])
            counts = [count_verdicts(claim_rows(group), source) for source in (*names, PUBLISHED)]
            holding = (f"{c[Verdict.HOLDS]} of {c.total()}" if c else "" for c in counts)
            overview.append((f"[{topic}]({file})", ", ".join(s[0][1].where for s in group), *holding))
        columns = ("topic", "tables and figures", *(f"claims that hold, {name}" for name in (*names, "published")))
        table = TextTable(columns, tuple(overview), 2).markdown()
        body = [tally(claim_rows(sections_by_artefact(runs)), names), "", *table]
    opening = [f"# {title(runs)}", "", *(line for s in introduction(runs) for line in (s, ""))]
    opening += ["A command writes this page:", "", "```", commands(runs), "```", ""]
    return {"results.md": "\n".join([*opening, *body, f"Computed with {_versions(runs)}.", ""]), **pages}


def _markdown_group(shown: Sequence[Shown], names: Sequence[str], folder: str, with_tally: bool = False) -> list[str]:
    """The claims about some artefacts, then each with its tables and pictures, which are in `folder`."""
    lines: list[str] = []
    if claims := claim_rows(shown):
        lines += ["## Claims", "", *([tally(claims, names), ""] if with_tally else []), claims_html(claims, names), ""]
    for sections in shown:
        first = sections[0][1]
        lines += [f"## {first.title}", "", f"{first.where} · `paper/{first.name}`.", ""]
        for name, section in sections:
            text = _text(section, first)
            lines += [f"### {first.title}: {name}", ""] if len(sections) > 1 else []
            lines += [text, ""] if text else []
            for part in section.parts:
                lines += part.markdown() if isinstance(part, TextTable) else _markdown_picture(part, folder)
    return lines


def _markdown_picture(picture: Picture, folder: str) -> list[str]:
    file, caption = f"{folder}{picture.name}", markdown_cell(picture.caption)
    image = f"![{caption}]({file}.svg)"
    if picture.narrow:
        narrow = f'<source media="(max-width: 640px)" srcset="{file}-narrow.svg">'
        image = f'<picture>{narrow}<img alt="{escape(caption)}" src="{file}.svg"></picture>'
    return [image, "", picture.caption, ""]
