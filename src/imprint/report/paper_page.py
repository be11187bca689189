"""Sections as one HTML page that needs nothing else, and as Markdown with pictures beside it."""

import re
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from string import Template

from imprint.core.atomic import atomic_write
from imprint.core.errors import FileError
from imprint.report.claims import as_cells, rows, tally, tied
from imprint.report.claims import as_html as claims_html
from imprint.report.sections import Cells, Picture, Run, Section, Shown, as_file, together

SMALL = 400  # points; a picture that may shrink to the width of a telephone
TITLE = "The paper, side by side"

PAGE = Template("""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>$title</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
:root { --ink: #1f2933; --pale: #5b6670; --line: #e4e8ec; --blue: #0072b2; --back: #f6f7f9 }
* { box-sizing: border-box }
body { margin: 0; background: var(--back); color: var(--ink); font: 16px/1.55 system-ui, sans-serif }
main { max-width: 1200px; margin: 0 auto; padding: 2rem 1rem 3rem }
h1 { font-size: clamp(1.6rem, 4vw, 2.2rem); line-height: 1.2; margin: 0 0 .5rem }
h2 { font-size: 1.15rem; margin: 0 0 .35rem }
h3 { font-size: 1rem; margin: 1.5rem 0 .35rem; padding-top: 1rem; border-top: 1px solid var(--line) }
h2 + h3 { border: 0; padding: 0; margin-top: .5rem }
h2 small, h3 small { font-weight: normal; color: var(--pale); margin-left: .5rem }
p { margin: 0 0 .75rem; max-width: 50rem }
nav { columns: 16rem; font-size: .9rem; margin: 1rem 0 }
nav a, a { color: var(--blue) } nav a { display: block; text-decoration: none }
section { background: #fff; border: 1px solid var(--line); border-radius: 10px; padding: 1.25rem; margin-top: 1.25rem }
.wide { overflow-x: auto; margin: .5rem 0; background: linear-gradient(to right, #fff 40%, #fff0) 0 0 / 48px 100% local,
  linear-gradient(to left, #fff 40%, #fff0) 100% 0 / 48px 100% local,
  radial-gradient(farthest-side at 0 50%, #0003, #0000) 0 0 / 12px 100% scroll,
  radial-gradient(farthest-side at 100% 50%, #0003, #0000) 100% 0 / 12px 100% scroll; background-repeat: no-repeat }
table { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums }
th, td { padding: .3rem .6rem; text-align: left; border-bottom: 1px solid var(--line); white-space: nowrap }
th { color: var(--pale); font-weight: 600 } .n { text-align: right }
.claims { table-layout: fixed; width: 100%; min-width: 44rem }
.claims td { white-space: normal; vertical-align: top; overflow-wrap: anywhere }
.holds { color: #00664a; font-weight: 600 } .fails { color: #a63d00; font-weight: 600 } .none { color: var(--pale) }
figure { margin: .75rem 0 } figure svg { max-width: 100%; height: auto; display: block; mix-blend-mode: multiply }
figcaption, small { color: var(--pale); font-size: .85rem }
pre { background: var(--back); border-radius: 6px; padding: .8rem 1rem; overflow-x: auto; font-size: .875rem }
@media (max-width: 640px) {
  .claims { min-width: 0 }
  .claims, .claims tbody, .claims tr, .claims td { display: block; border: 0; padding: .1rem 0; width: 100% }
  .claims thead { display: none } .claims tr { border-bottom: 1px solid var(--line); padding: .6rem 0 }
  .claims td[data-of]::before { content: attr(data-of) ": "; color: var(--pale) }
  section { padding: .9rem } figure svg { max-width: none } figure.small svg { max-width: 100% } }
</style></head><body><main>
<h1>$title</h1>
$front
<nav><a href="#claims">Claims</a>$links</nav>
<section id="claims"><h2>Claims</h2>$claims</section>
$sections
<footer><small>$versions</small></footer>
</main></body></html>
""")


def front(runs: Sequence[Run]) -> list[str]:
    """The introduction, paragraph by paragraph."""
    other = (
        "The backbones are the paper's: values are compared one by one."
        if runs[0].same
        else "The backbones are not the paper's, so claims are compared, not values: which method wins, by how "
        "much, how significantly, where peaks lie. Published values stand beside ours for orientation."
    )
    return [
        "Every table and figure of J. Westerhoff, G. Atefi, M. Koddenbrock, A. Figueroa, A. Löser, E. Rodner, F. "
        "A. Gers: Robust Weight Imprinting: Insights from Neural Collapse and Proxy-Based Aggregation (TMLR 2025), "
        "computed anew and set beside what was published.",
        *(f"{run.name.capitalize() if len(runs) == 1 else run.name}: {run.scope} {_cost(run)}" for run in runs),
        other,
    ]


def _cost(run: Run) -> str:
    wall = f" in {_minutes(run.wall)}" if run.wall else ""
    return f"{run.experiments:,} experiments{wall} ({_minutes(run.processor)} of processor time)."


def _minutes(seconds: float) -> str:
    return f"{seconds:.0f} seconds" if seconds < 90 else f"{seconds / 60:.1f} minutes"


def commands(runs: Sequence[Run]) -> str:
    """What makes the page."""
    names = [f"-{as_file(run.name)}" if len(runs) > 1 else "" for run in runs]
    lines = [
        f"imprint study run paper/all --embeddings PACKS{name} --out RESULTS{name}{run.options}"
        for name, run in zip(names, runs)
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
        title=TITLE,
        front=intro,
        claims=f"<p>{escape(tally(found, names))}</p>{claims_html(found, names)}",
        links="".join(f'<a href="#{s.name}">{escape(s.where)}: {escape(s.title)}</a>' for (_, s), *_ in shown),
        sections="\n".join(_html_section(own, briefs) for own in shown),
        versions=escape(_versions(runs)),
    )


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
        return "<tr>" + "".join(f"<{tag}{c}>{escape(v)}</{tag}>" for v, c in zip(values, css)) + "</tr>"

    body = "".join(line(row, "td") for row in cells.rows)
    note = f"<small>{escape(cells.caption)}</small>" if cells.caption else ""
    return f'<div class="wide"><table><thead>{line(cells.head, "th")}</thead><tbody>{body}</tbody></table></div>{note}'


def _html_picture(picture: Picture) -> str:
    svg = picture.svg.decode()
    own = _with_own_ids(svg[svg.index("<svg") :], picture.name)
    width = re.search(r'width="([\d.]+)pt"', own)
    css = ' class="small"' if width and float(width[1]) < SMALL else ""
    return f'<figure{css}><div class="wide">{own}</div><figcaption>{escape(picture.caption)}</figcaption></figure>'


def _with_own_ids(svg: str, name: str) -> str:
    """Identifiers that no other picture of the page has."""
    for mark in ('id="', 'href="#', "url(#"):
        svg = svg.replace(mark, f"{mark}{name}-")
    return svg


def as_markdown(runs: Sequence[Run]) -> str:
    """The same as Markdown; pictures lie in `results/`."""
    shown, names = together(runs), [run.name for run in runs]
    found = rows(shown)
    lines = [f"# {TITLE}", "", *(line for s in front(runs) for line in (s, ""))]
    lines += ["This page is written by a command, never by hand:", "", "```", commands(runs), "```", ""]
    lines += ["## Claims", "", tally(found, names), "", *_markdown_cells(as_cells(found, names))]
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
        for line in (_markdown_cells(part) if isinstance(part, Cells) else _markdown_picture(part))
    ]


def _markdown_cells(cells: Cells) -> list[str]:
    rule = ["---:" if cells.right(j) else "---" for j in range(len(cells.head))]
    lines = ["| " + " | ".join(map(_plain, row)) + " |" for row in (cells.head, rule, *cells.rows)]
    return [*lines, "", *([cells.caption, ""] if cells.caption else [])]


def _markdown_picture(picture: Picture) -> list[str]:
    return [f"![{_plain(picture.caption)}](results/{picture.name}.svg)", "", picture.caption, ""]


def _plain(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def write_files(folder: Path, files: Mapping[str, bytes]) -> list[Path]:
    """Write files, each whole or not at all, by their names within a folder."""
    for name, content in files.items():
        path = folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as e:
            raise FileError(f"Cannot make the folder {path.parent}: {e.strerror}.") from None
        with atomic_write(path) as f:
            f.write(content)
    return [folder / name for name in files]
