"""Sections as one HTML page that needs nothing else, and as Markdown with pictures beside it."""

import re
from collections.abc import Mapping, Sequence
from html import escape
from string import Template

from imprint.report.claims import ClaimRow, rows, tally, tied
from imprint.report.claims import as_html as claims_html
from imprint.report.forms import count
from imprint.report.sections import Cells, Picture, Run, Section, Shown, as_file, together
from imprint.report.style import ICON, STYLE, scrolling

SMALL = 400  # points; a picture that may shrink to the width of a telephone

PAGE = Template("""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>$title</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
$icon
<style>$style</style></head><body><main>
<h1>$title</h1>
$front
$links
$claims
$sections
<footer><small>$versions</small></footer>
</main></body></html>
""")


def title(runs: Sequence[Run]) -> str:
    """What the page is called: after the one artefact it shows, if there is only one."""
    return f"{artefacts(runs)} of the paper, side by side" if len(together(runs)) == 1 else "The paper, side by side"


def artefacts(runs: Sequence[Run]) -> str:
    """What the page shows of the paper, in words."""
    if all(run.whole for run in runs):
        return "Every table and figure"
    *others, last = dict.fromkeys(own[0][1].where for own in together(runs))
    return f"{', '.join(others)} and {last}" if others else last


def front(runs: Sequence[Run]) -> list[str]:
    """The introduction, paragraph by paragraph."""
    other = (
        "The backbones are the paper's: values are compared one by one."
        if runs[0].same
        else "The backbones are not the paper's, so claims are compared, not values: which method wins, by how "
        "much, how significantly, where peaks lie. Published values stand beside ours for orientation."
    )
    return [
        f"{artefacts(runs)} of J. Westerhoff, G. Atefi, M. Koddenbrock, A. Figueroa, A. Löser, E. Rodner, F. "
        "A. Gers: Robust Weight Imprinting: Insights from Neural Collapse and Proxy-Based Aggregation (TMLR 2025), "
        "reproduced next to the published results.",
        *(f"{run.name.capitalize() if len(runs) == 1 else run.name}: {run.scope}{_cost(run)}" for run in runs),
        other,
    ]


def _cost(run: Run) -> str:
    wall = f" in {_minutes(run.wall)}" if run.wall else ""
    return (
        "" if run.beside else f" {run.experiments:,} experiments{wall} ({_minutes(run.processor)} of processor time)."
    )


def _minutes(seconds: float) -> str:
    return count(max(round(seconds), 1), "second") if seconds < 90 else f"{seconds / 60:.1f} minutes"


def commands(runs: Sequence[Run]) -> str:
    """What makes the page."""
    own = [run for run in runs if not run.beside]
    names = [f"-{as_file(run.name)}" if len(own) > 1 else "" for run in own]
    lines = [
        f"imprint study run paper/{study} --embeddings PACKS{name} --out RESULTS{name}{run.options}"
        for name, run in zip(names, own)
        for study in (["all"] if run.whole else [section.name for section in run.sections])
    ]
    return "\n".join([*lines, f"imprint study report {' '.join(f'RESULTS{name}' for name in names)} --to docs"])


def _versions(runs: Sequence[Run]) -> str:
    return "; ".join(dict.fromkeys(run.versions for run in runs))


def as_html(runs: Sequence[Run]) -> str:
    """The page."""
    shown, names = together(runs), [run.name for run in runs]
    found, briefs = rows(shown), {run.name: run.brief for run in runs}
    intro = "".join(f"<p>{escape(s)}</p>" for s in front(runs)) + f"<pre>{escape(commands(runs))}</pre>"
    return PAGE.substitute(
        title=escape(title(runs)),
        style=STYLE,
        icon=ICON,
        front=intro,
        claims=_html_claims(found, names) if len(shown) > 1 else "",
        links=_links(shown, bool(found)),
        sections="\n".join(_html_section(own, briefs) for own in shown),
        versions=escape(_versions(runs)),
    )


def _html_claims(found: Sequence[ClaimRow], names: Sequence[str]) -> str:
    if not found:
        return ""
    table = f"<p>{escape(tally(found, names))}</p>{claims_html(found, names)}"
    return f'<section id="claims"><h2>Claims</h2>{table}</section>'


def _links(shown: Sequence[Shown], claims: bool) -> str:
    """To every section; none where there is one alone."""
    if len(shown) == 1:
        return ""
    links = (f'<a href="#{s.name}">{escape(s.where)}: {escape(s.title)}</a>' for (_, s), *_ in shown)
    return f"<nav>{'<a href=#claims>Claims</a>' if claims else ''}{''.join(links)}</nav>"


def _html_section(shown: Shown, briefs: Mapping[str, str]) -> str:
    first = shown[0][1]
    head = f"<h2>{escape(first.title)}<small>{escape(first.where)} · paper/{first.name}</small></h2>"
    body = ""
    for name, section in shown:
        if len(shown) > 1:
            body += f"<h3>{escape(name)}<small>{escape(briefs[name])}</small></h3>"
        body += _html_parts(section, _said(section, first))
    found = rows([shown])
    claims = claims_html(found, [name for name, _ in shown]) if found else ""
    return f'<section id="{first.name}">{head}{body}{claims}</section>'


def _said(section: Section, first: Section) -> str:
    """The text of a section; a later run repeats nothing that the first has said."""
    if section is first:
        return f"{section.text} {section.note}".strip()
    return "" if section.text == first.text else section.text


def _html_parts(section: Section, text: str) -> str:
    said = f"<p>{tied(text)}</p>" if text else ""
    return said + "".join(_html_cells(p) if isinstance(p, Cells) else _html_picture(p) for p in section.parts)


def _html_cells(cells: Cells) -> str:
    def line(values: Sequence[str], tag: str) -> str:
        css = (' class="n"' if cells.right(j) else "" for j in range(len(values)))
        texts = (escape(v).replace(" %", "&nbsp;%") for v in values)
        return "<tr>" + "".join(f"<{tag}{c}>{v}</{tag}>" for v, c in zip(texts, css)) + "</tr>"

    body = "".join(line(row, "td") for row in cells.rows)
    note = f"<small>{escape(cells.caption)}</small>" if cells.caption else ""
    table = f"<table><thead>{line(cells.head, 'th')}</thead><tbody>{body}</tbody></table>"
    return scrolling(table, "Table") + note


def _html_picture(picture: Picture) -> str:
    svg = picture.svg.decode()
    own = _with_own_ids(svg[svg.index("<svg") :], picture.name)
    if picture.narrow:
        narrow = f'<div class="on-narrow">{picture.narrow.decode()}</div>'
        drawn = f'<div class="on-wide">{own}</div>{narrow}'
        return f'<figure class="ranks">{drawn}<figcaption>{escape(picture.caption)}</figcaption></figure>'
    width = re.search(r'width="([\d.]+)pt"', own)
    css = ' class="small"' if width and float(width[1]) < SMALL else ""
    return f"<figure{css}>{scrolling(own, 'Figure')}<figcaption>{escape(picture.caption)}</figcaption></figure>"


def _with_own_ids(svg: str, name: str) -> str:
    """Identifiers that no other picture of the page has."""
    for mark in ('id="', 'href="#', "url(#"):
        svg = svg.replace(mark, f"{mark}{name}-")
    return svg


def as_markdown(runs: Sequence[Run]) -> str:
    """The same as Markdown; pictures lie in `results/`."""
    shown, names = together(runs), [run.name for run in runs]
    found = rows(shown)
    lines = [f"# {title(runs)}", "", *(line for s in front(runs) for line in (s, ""))]
    lines += ["This page is written by a command, never by hand:", "", "```", commands(runs), "```", ""]
    if found:
        lines += ["## Claims", "", tally(found, names), "", claims_html(found, names), ""]
    for own in shown:
        first = own[0][1]
        lines += [f"## {first.title}", "", f"{first.where} · `paper/{first.name}`.", ""]
        for name, section in own:
            said = _said(section, first)
            lines += [f"### {first.title}: {name}", ""] if len(own) > 1 else []
            lines += [*([said, ""] if said else []), *_markdown_parts(section)]
    return "\n".join([*lines, f"Made with {_versions(runs)}.", ""])


def _markdown_parts(section: Section) -> list[str]:
    return [
        line
        for part in section.parts
        for line in (markdown_cells(part) if isinstance(part, Cells) else _markdown_picture(part))
    ]


def markdown_cells(cells: Cells) -> list[str]:
    """A table in Markdown, line by line."""
    rule = ["---:" if cells.right(j) else "---" for j in range(len(cells.head))]
    lines = ["| " + " | ".join(map(_plain, row)) + " |" for row in (cells.head, rule, *cells.rows)]
    return [*lines, "", *([cells.caption, ""] if cells.caption else [])]


def _markdown_picture(picture: Picture) -> list[str]:
    file, said = f"results/{picture.name}", _plain(picture.caption)
    if not picture.narrow:
        return [f"![{said}]({file}.svg)", "", picture.caption, ""]
    narrow = f'<source media="(max-width: 640px)" srcset="{file}-narrow.svg">'
    return [f'<picture>{narrow}<img alt="{escape(said)}" src="{file}.svg"></picture>', "", picture.caption, ""]


def _plain(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
