"""The critical-difference diagram for narrow pages: a method a row, so that names need no room beside the scale."""

import textwrap
from collections.abc import Callable, Iterator, Sequence
from html import escape

from imprint.report.diagram_layout import caption
from imprint.stats import Comparison

WIDTH, EDGE = 320.0, 8.0  # of the picture, in pixels; around everything
LETTERS, SMALL = 13, 11  # heights of letters
LINE, TRACK, GAP = 17.0, 12.0, 10.0  # heights: a line of a name, the track with its mark, what lies between methods
COLUMN = 10.0  # the width that a bar takes
PER_LINE, PER_SMALL_LINE = 36, 50  # characters
INK, PALE, FAINT, BLUE = "#222222", "#666666", "#d5dade", "#0072B2"


def ranks_by_row(comparison: Comparison) -> bytes:
    """Average ranks on a scale, a row for each method, the best first; bars beside the rows join what is alike.

    It says the same as `critical_difference` in a picture of 320 pixels' width.

    >>> from imprint.stats import compare
    >>> picture = ranks_by_row(compare([[90, 80], [70, 65], [95, 91]], ["ours", "theirs"]))
    >>> picture[:4], picture.index(b">ours<") < picture.index(b">theirs<")
    (b'<svg', True)
    """
    order, m = comparison.order, len(comparison.names)
    columns = bar_columns(comparison)
    first, last = EDGE + 4, WIDTH - EDGE - 4 - COLUMN * (max(columns, default=-1) + 1)
    texts = [textwrap.wrap(name, PER_LINE) or [name] for name in order]
    heights = [LINE * len(text) + TRACK + GAP for text in texts]
    top = 40.0
    tracks = [top + sum(heights[: i + 1]) - GAP - TRACK / 2 for i in range(m)]
    bottom = top + sum(heights)

    def x(rank: float) -> float:
        return first + (rank - 1) / (m - 1) * (last - first)

    parts = [_text((first + last) / 2, 14, "average rank (1 is best)", size=SMALL, fill=PALE, anchor="middle")]
    parts += [_text(x(rank), 32, str(rank), size=SMALL, anchor="middle") for rank in _named(m)]
    for name, text, y in zip(order, texts, tracks):
        parts += _method(text, comparison.rank(name), x, y, m)
    for group, column in zip(comparison.groups, columns):
        ends = tracks[order.index(group[0])], tracks[order.index(group[-1])]
        at = last + 12 + COLUMN * column
        parts.append(_line(at, ends[0] - 4, at, ends[1] + 4, BLUE, 4))
    small = [line for said in caption(comparison) for line in textwrap.wrap(said, PER_SMALL_LINE)]
    parts += [_text(EDGE, bottom + 16 + 14 * i, line, size=SMALL, fill=PALE) for i, line in enumerate(small)]
    return _svg(bottom + 22 + 14 * len(small), parts)


def bar_columns(comparison: Comparison) -> list[int]:
    """Of every group the first column in which its bar meets no other."""
    ends: list[int] = []
    columns = []
    for group in comparison.groups:
        start, end = comparison.order.index(group[0]), comparison.order.index(group[-1])
        column = next((c for c, reached in enumerate(ends) if reached < start), len(ends))
        ends[column : column + 1] = [end]
        columns.append(column)
    return columns


def _named(m: int) -> list[int]:
    """The ranks that get a number."""
    step = next(step for step in (1, 2, 5, 10, 20, 50, 100, m) if m / step <= 10)
    return [rank for rank in range(1, m + 1) if rank == 1 or rank % step == 0]


def _method(text: Sequence[str], rank: float, x: Callable[[float], float], y: float, m: int) -> Iterator[str]:
    above = y - TRACK / 2 - LINE * len(text)
    for i, line in enumerate(text):
        yield _text(EDGE, above + LINE * i + 13, line)
    yield _text(x(m), above + 13, f"{rank:.2f}", fill=PALE, anchor="end")
    yield _line(x(1), y, x(m), y, FAINT, 1.5)
    for tick in _named(m):
        yield _line(x(tick), y - 3, x(tick), y + 3, FAINT, 1.5)
    yield f'<circle cx="{x(rank):.1f}" cy="{y:.1f}" r="4.5" fill="{INK}"/>'


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, width: float) -> str:
    return f'<path d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}" stroke="{colour}" stroke-width="{width:g}"/>'


def _text(x: float, y: float, text: str, size: int = LETTERS, fill: str = INK, anchor: str = "start") -> str:
    style = f'font-size="{size}" fill="{fill}" text-anchor="{anchor}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{escape(text)}</text>'


def _svg(height: float, parts: Sequence[str]) -> bytes:
    size = f'width="{WIDTH:g}" height="{height:g}" viewBox="0 0 {WIDTH:g} {height:g}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="system-ui, sans-serif">'
    return "\n".join([head, *parts, "</svg>", ""]).encode()
