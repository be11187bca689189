"""Sections as one HTML page that needs nothing else, and as Markdown with pictures beside it."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from string import Template

from imprint.core.atomic import atomic_write
from imprint.core.errors import FileError
from imprint.report.sections import Cells, Claim, Picture, Section, Verdict

MARKS = {Verdict.HOLDS: "✓", Verdict.FAILS: "✗", Verdict.UNTESTABLE: "–"}
SMALL = 400  # points; a picture that may shrink to the width of a telephone
TITLE = "The paper, side by side"

PAGE = Template("""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>$title</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
:root { --ink: #1f2933; --pale: #5b6670; --line: #e4e8ec; --blue: #0072b2; --back: #f6f7f9 }
* { box-sizing: border-box }
body { margin: 0; background: var(--back); color: var(--ink); font: 16px/1.55 system-ui, sans-serif }
main { max-width: 1120px; margin: 0 auto; padding: 2rem 1rem 3rem }
h1 { font-size: clamp(1.6rem, 4vw, 2.2rem); line-height: 1.2; margin: 0 0 .5rem }
h2 { font-size: 1.15rem; margin: 0 0 .35rem }
h2 small { font-weight: normal; color: var(--pale); margin-left: .5rem }
p { margin: 0 0 .75rem; max-width: 50rem }
nav { columns: 16rem; font-size: .9rem; margin: 1rem 0 }
nav a, a { color: var(--blue) } nav a { display: block; text-decoration: none }
section { background: #fff; border: 1px solid var(--line); border-radius: 10px; padding: 1.25rem; margin-top: 1.25rem }
.wide { overflow-x: auto; margin: .5rem 0 }
table { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums }
th, td { padding: .3rem .6rem; text-align: left; border-bottom: 1px solid var(--line); white-space: nowrap }
th { color: var(--pale); font-weight: 600 } .n { text-align: right }
.claims td { white-space: normal; vertical-align: top; min-width: 8rem }
.claims td:first-child { min-width: 16rem }
.holds { color: #00664a; font-weight: 600 } .fails { color: #a63d00; font-weight: 600 } .none { color: var(--pale) }
figure { margin: .75rem 0; overflow-x: auto } figure svg { max-width: 100%; height: auto; display: block }
figcaption, small { color: var(--pale); font-size: .85rem }
pre { background: var(--back); border-radius: 6px; padding: .8rem 1rem; overflow-x: auto; font-size: .875rem }
@media (max-width: 640px) {
  .claims, .claims tbody, .claims tr, .claims td { display: block; border: 0; padding: .1rem 0; width: 100% }
  .claims thead { display: none } .claims tr { border-bottom: 1px solid var(--line); padding: .6rem 0 }
  .claims td[data-of]::before { content: attr(data-of) ": "; color: var(--pale) }
  section { padding: .9rem } figure svg { max-width: none } figure.small svg { max-width: 100% } }
</style></head><body><main>
<h1>$title</h1>
$front
<section id="claims"><h2>Claims</h2>$claims</section>
<nav>$links</nav>
$sections
<footer><small>$versions</small></footer>
</main></body></html>
""")


@dataclass(frozen=True)
class Front:
    """What stands before the sections."""

    scope: str
    same: bool
    experiments: int
    seconds: float
    """Of processor time."""
    versions: str
    options: str = ""
    """Of the command that ran the studies."""

    @property
    def commands(self) -> str:
        """What makes the page."""
        run = f"imprint study run paper/all --embeddings PACKS --out RESULTS{self.options}"
        return f"{run}\nimprint study report RESULTS --to docs"

    def sentences(self) -> list[str]:
        """The introduction."""
        took = f" They took {self.seconds / 60:.1f} minutes of processor time."
        other = (
            "The backbones are the paper's: values are compared one by one."
            if self.same
            else "The backbones are not the paper's, so claims are compared, not values: which method wins, by how "
            "much, how significantly, where peaks lie. Published values stand beside ours for orientation."
        )
        return [
            "Every table and figure of J. Westerhoff, G. Atefi, M. Koddenbrock, A. Figueroa, A. Löser, E. Rodner, F. "
            "A. Gers: Robust Weight Imprinting: Insights from Neural Collapse and Proxy-Based Aggregation (TMLR 2025), "
            "computed anew and set beside what was published.",
            f"Here: {self.scope}",
            f"{self.experiments:,} experiments.{took} {other}",
        ]


def as_html(front: Front, sections: Sequence[Section]) -> str:
    """The page."""
    intro = "".join(f"<p>{escape(s)}</p>" for s in front.sentences()) + f"<pre>{front.commands}</pre>"
    return PAGE.substitute(
        title=TITLE,
        front=intro,
        claims=f"<p>{escape(_tally(sections))}</p>{_html_claims([c for s in sections for c in s.claims])}",
        links="".join(f'<a href="#{s.name}">{escape(s.where)}: {escape(s.title)}</a>' for s in sections),
        sections="\n".join(map(_html_section, sections)),
        versions=escape(front.versions),
    )


def _html_section(section: Section) -> str:
    parts = "".join(_html_cells(p) if isinstance(p, Cells) else _html_picture(p) for p in section.parts)
    head = f"<h2>{escape(section.title)}<small>{escape(section.where)} · paper/{section.name}</small></h2>"
    claims = _html_claims(section.claims) if section.claims else ""
    return f'<section id="{section.name}">{head}<p>{escape(section.text)}</p>{parts}{claims}</section>'


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
    return f"<figure{css}>{own}<figcaption>{escape(picture.caption)}</figcaption></figure>"


def _with_own_ids(svg: str, name: str) -> str:
    """Identifiers that no other picture of the page has."""
    for mark in ('id="', 'href="#', "url(#"):
        svg = svg.replace(mark, f"{mark}{name}-")
    return svg


def _html_claims(claims: Sequence[Claim]) -> str:
    css = {Verdict.HOLDS: "holds", Verdict.FAILS: "fails", Verdict.UNTESTABLE: "none"}

    def cell(of: str, verdict: Verdict | None, figures: str) -> str:
        if verdict is None:
            return "<td></td>"
        shown = f'<span class="{css[verdict]}">{MARKS[verdict]} {verdict}</span><br>{escape(figures)}'
        return f'<td data-of="{of}">{shown}</td>'

    rows = (
        f"<tr><td>{escape(c.text)}</td>{cell('here', c.verdict, c.figures)}"
        f"{cell('published', c.published, c.published_figures)}</tr>"
        for c in claims
    )
    head = "<tr><th>claim</th><th>here</th><th>published results</th></tr>"
    return f'<div class="wide"><table class="claims"><thead>{head}</thead><tbody>{"".join(rows)}</tbody></table></div>'


def _tally(sections: Sequence[Section]) -> str:
    counts = Counter(c.verdict for s in sections for c in s.claims)
    here = f"{counts[Verdict.HOLDS]} hold here, {counts[Verdict.FAILS]} do not"
    theirs = Counter(c.published for s in sections for c in s.claims)
    rest = f"{counts[Verdict.UNTESTABLE]} cannot be tested here"
    unsupported = f"{theirs[Verdict.FAILS]} are not borne out by the published results themselves"
    return f"Of {counts.total()} claims {here}, {rest}; {unsupported}."


def as_markdown(front: Front, sections: Sequence[Section]) -> str:
    """The same as Markdown; pictures lie in `results/`."""
    lines = [f"# {TITLE}", "", *(line for s in front.sentences() for line in (s, ""))]
    lines += [
        "This page is written by a command, never by hand:",
        "",
        "```",
        front.commands,
        "```",
        "",
        "## Claims",
        "",
    ]
    lines += [_tally(sections), "", *_markdown_claims([c for s in sections for c in s.claims]), ""]
    for section in sections:
        lines += [f"## {section.title}", "", f"{section.where} · `paper/{section.name}`. {section.text}", ""]
        for part in section.parts:
            lines += _markdown_cells(part) if isinstance(part, Cells) else _markdown_picture(part)
    return "\n".join([*lines, f"Made with {front.versions}.", ""])


def _markdown_cells(cells: Cells) -> list[str]:
    rule = ["---:" if cells.right(j) else "---" for j in range(len(cells.head))]
    lines = ["| " + " | ".join(map(_plain, row)) + " |" for row in (cells.head, rule, *cells.rows)]
    return [*lines, "", *([cells.caption, ""] if cells.caption else [])]


def _markdown_picture(picture: Picture) -> list[str]:
    return [f"![{_plain(picture.caption)}](results/{picture.name}.svg)", "", picture.caption, ""]


def _markdown_claims(claims: Sequence[Claim]) -> list[str]:
    def cell(verdict: Verdict | None, figures: str) -> str:
        return "" if verdict is None else f"{MARKS[verdict]} {verdict}: {figures}"

    rows = tuple((c.text, cell(c.verdict, c.figures), cell(c.published, c.published_figures)) for c in claims)
    return _markdown_cells(Cells(("claim", "here", "published results"), rows, 3))


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
