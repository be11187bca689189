"""The parts of all HTML pages: one style, one frame, and tables and figures that scroll
sideways on narrow screens.
"""

import re
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from string import Template

WEB = files("imprint.report") / "web"
STYLE = (WEB / "style.css").read_text("utf-8")
ICON = (
    '<link rel="icon" href="data:image/svg+xml,%3Csvg'
    " xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32'%3E%3Crect width='32'"
    " height='32' rx='8' fill='%233b4cca'/%3E%3Cpath fill='none' stroke='%23fff'"
    " stroke-linecap='round' stroke-width='2.4' d='M8 21c0-9 3-13 8-13s8 4 8 10M12.2"
    " 24c-.4-7-.2-11.5 3.8-11.5s4.3 4 3.9 9M16 17.5c0 3 0 5-.4 7.5'/%3E%3C/svg%3E\">"
)
"""The icon of every page, in the page itself."""
SCROLLS = 'class="wide" tabindex="0" role="group"'
"""What scrolls sideways can be reached with the keyboard."""
SMALL = 400  # points; a narrower figure may shrink to the width of a telephone


def document(title: str, *body: str) -> str:
    """A page that loads nothing from anywhere; empty parts of the body are left out."""
    frame = Template((WEB / "page.html").read_text("utf-8"))
    return frame.substitute(
        title=escape(title), icon=ICON, style=STYLE, body="\n".join(filter(None, body))
    )


def section(title: str, *content: str, name: str = "") -> str:
    """A box with a heading; `title` is HTML, `name` can be linked to."""
    anchor = f' id="{name}"' if name else ""
    return f"<section{anchor}><h2>{title}</h2>{''.join(content)}</section>"


def table(head: str, rows: Iterable[str], css: str = "") -> str:
    """A table of rows that `row` returns."""
    kind = f' class="{css}"' if css else ""
    body = "\n".join(rows)
    return (
        f'<div {SCROLLS} aria-label="Table">'
        f"<table{kind}><thead>{head}</thead><tbody>\n{body}\n</tbody></table></div>"
    )


def figure(svg: str, caption: str = "") -> str:
    """A drawing, and a caption in HTML."""
    svg = svg[svg.index("<svg") :]
    width = re.search(r'width="([\d.]+)pt"', svg)
    css = ' class="small"' if width and float(width[1]) < SMALL else ""
    return (
        f'<figure{css}><div {SCROLLS} aria-label="Figure">{svg}</div>{caption}</figure>'
    )


def row(*cells: str) -> str:
    """A row of a table."""
    return f"<tr>{''.join(cells)}</tr>"


def heads(texts: Sequence[str], numbers: Sequence[str] = ()) -> str:
    """The first row of a table: the names of columns of text, then of columns of
    numbers.
    """
    cells = [
        *((text, "") for text in texts),
        *((number, ' class="n"') for number in numbers),
    ]
    return row(*(f"<th{css}>{breakable(text)}</th>" for text, css in cells))


def number(value: str, best: bool = False) -> str:
    """A cell of numbers, aligned to the right; the best of a column is highlighted."""
    return f'<td class="n{" best" if best else ""}">{value}</td>'


def row_head(name: str, note: str = "") -> str:
    """The first cell of a row."""
    return f'<th scope="row">{breakable(name)}{note}</th>'


def breakable(name: str) -> str:
    """A name with line breaks allowed after underscores."""
    return escape(name).replace("_", "_<wbr>")
