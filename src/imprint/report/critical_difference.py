"""The critical-difference diagram of a `Comparison`: for wide pages as SVG or PNG, for narrow ones as SVG by rows."""

import os
import textwrap
from collections.abc import Callable, Iterator, Sequence
from html import escape
from io import BytesIO
from pathlib import Path
from typing import Any

from imprint.core.errors import ParameterError
from imprint.core.files.atomic import atomic_write
from imprint.report.diagram_layout import (
    LEADING,
    MARGIN,
    SPREAD,
    DiagramLayout,
    caption,
    labelled_ranks,
    lanes,
    lay_out,
)
from imprint.report.figures import style
from imprint.stats import Comparison

FORMATS = ("svg", "png")
SIZE, SMALL = 9.0, 7.5  # font sizes, in points
INK, PALE, FAINT, BLUE = "#222222", "#666666", "#d5dade", "#0072B2"  # colour is never the only distinction
# The diagram by rows, in pixels:
ROW_WIDTH, EDGE = 320.0, 8.0  # its width and its margin
ROW_SIZE, ROW_SMALL = 13, 11  # font sizes
LINE, TRACK, GAP = 17.0, 12.0, 10.0  # heights: a line of a name, the track of the mark, the gap between methods
COLUMN = 10.0  # the width of a column of bars
PER_LINE, PER_SMALL_LINE = 36, 50  # characters in a line


def critical_difference(comparison: Comparison, format: str = "svg", title: str | None = None) -> bytes:
    """Draw average ranks on a scale, best on the left; bars join methods that do not differ significantly.

    Equal comparisons give equal bytes. `format` is "svg" or "png".

    >>> from imprint.stats import compare
    >>> picture = critical_difference(compare([[90, 80], [70, 65], [95, 91]], ["ours", "theirs"]))
    >>> picture[:5], b"theirs" in picture
    (b'<?xml', True)
    """
    if format not in FORMATS:
        raise ParameterError(f"critical_difference(format={format!r}): format must be 'svg' or 'png'.")
    with style(**{"font.size": SIZE}):
        return _draw(comparison, format, title)


def save_critical_difference(comparison: Comparison, path: str | os.PathLike[str], title: str | None = None) -> Path:
    """Draw into a .svg or .png file, which is written atomically."""
    target = Path(path)
    format = target.suffix.lower().removeprefix(".")
    if format not in FORMATS:
        raise ParameterError(f"save_critical_difference({str(path)!r}): the name must end in .svg or .png.")
    picture = critical_difference(comparison, format, title)
    with atomic_write(target) as file:
        file.write(picture)
    return target


def _draw(comparison: Comparison, format: str, title: str | None) -> bytes:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.font_manager import FontProperties

    figure = Figure(dpi=72)
    canvas: Any = FigureCanvasAgg(figure)
    renderer, letters = canvas.get_renderer(), FontProperties(size=SIZE)

    def measure(text: str) -> float:
        return float(renderer.get_text_width_height_descent(text, letters, False)[0])

    lines = caption(comparison)
    least = max(measure(title or ""), *(measure(line) * SMALL / SIZE for line in lines))
    layout = lay_out(comparison, measure, top=50 if title else 32, bottom=10.0 + 10 * len(lines), least=least)
    figure.set_size_inches(layout.width / 72, layout.height / 72)
    page = figure.add_axes((0, 0, 1, 1), xlim=(0, layout.width), ylim=(layout.height, 0))
    page.set_axis_off()
    _scale(page, layout, len(comparison.names))
    _methods(page, layout)
    for bar in layout.bars:
        page.plot([bar.start, bar.end], [bar.y, bar.y], color=BLUE, lw=4, solid_capstyle="butt", zorder=3)
    if title:
        _text(page, layout.width / 2, MARGIN + SIZE / 2, title, ha="center", weight="bold")
    for i, line in enumerate(lines):
        y = layout.height - 5 - 10 * (len(lines) - i)
        _text(page, layout.width / 2, y, line, ha="center", color=PALE, size=SMALL)
    out = BytesIO()
    metadata = {"Date": None, "Creator": None} if format == "svg" else {"Software": None}
    figure.savefig(out, format=format, dpi=200, metadata=metadata)
    return out.getvalue()


def _text(page: Any, x: float, y: float, text: str, **style: Any) -> None:
    page.text(x, y, text, parse_math=False, **({"va": "center", "color": INK} | style))


def _scale(page: Any, layout: DiagramLayout, m: int) -> None:
    first, last, y = layout.first, layout.last, layout.scale_y
    page.plot([first, last], [y, y], color=INK, lw=1)
    for rank in range(1, m + 1):
        x, labelled = first + (rank - 1) / (m - 1) * (last - first), rank in labelled_ranks(m)
        page.plot([x, x], [y - (5 if labelled else 3), y], color=INK, lw=1 if labelled else 0.6)
        if labelled:
            _text(page, x, y - 7, str(rank), ha="center", va="bottom")
    _text(page, (first + last) / 2, y - 26, "average rank (1 is best)", ha="center", color=PALE, size=SMALL)


def _methods(page: Any, layout: DiagramLayout) -> None:
    for label in layout.labels:
        xs, y = [label.mark, label.foot, label.foot, label.end], layout.scale_y
        page.plot(xs, [y, y + SPREAD, label.y, label.y], color=PALE, lw=0.8, solid_joinstyle="round")
        page.plot([label.mark], [y], "o", color=INK, markersize=3, zorder=4)
        align = "right" if label.left else "left"
        _text(page, label.rank_x, label.y, f"{label.rank:.2f}", ha=align, color=PALE)
        for i, line in enumerate(label.text):
            _text(page, label.name_x, label.y + i * LEADING, line, ha=align)


def ranks_by_row(comparison: Comparison) -> bytes:
    """Draw average ranks with one row per method, best first; bars next to the rows join methods that do not differ.

    It shows the same as `critical_difference`, 320 pixels wide.

    >>> from imprint.stats import compare
    >>> picture = ranks_by_row(compare([[90, 80], [70, 65], [95, 91]], ["ours", "theirs"]))
    >>> picture[:4], picture.index(b">ours<") < picture.index(b">theirs<")
    (b'<svg', True)
    """
    order, m = comparison.order, len(comparison.names)
    columns = bar_columns(comparison)
    first, last = EDGE + 4, ROW_WIDTH - EDGE - 4 - COLUMN * (max(columns, default=-1) + 1)
    texts = [textwrap.wrap(name, PER_LINE) or [name] for name in order]
    heights = [LINE * len(text) + TRACK + GAP for text in texts]
    top = 40.0
    tracks = [top + sum(heights[: i + 1]) - GAP - TRACK / 2 for i in range(m)]
    bottom = top + sum(heights)

    def x(rank: float) -> float:
        return first + (rank - 1) / (m - 1) * (last - first)

    parts = [_svg_text((first + last) / 2, 14, "average rank (1 is best)", size=ROW_SMALL, fill=PALE, anchor="middle")]
    parts += [_svg_text(x(rank), 32, str(rank), size=ROW_SMALL, anchor="middle") for rank in labelled_ranks(m)]
    for name, text, y in zip(order, texts, tracks):
        parts += _method_row(text, comparison.rank(name), x, y, m)
    for group, column in zip(comparison.groups, columns):
        ends = tracks[order.index(group[0])], tracks[order.index(group[-1])]
        at = last + 12 + COLUMN * column
        parts.append(_svg_line(at, ends[0] - 4, at, ends[1] + 4, BLUE, 4))
    small = [line for text in caption(comparison) for line in textwrap.wrap(text, PER_SMALL_LINE)]
    parts += [_svg_text(EDGE, bottom + 16 + 14 * i, line, size=ROW_SMALL, fill=PALE) for i, line in enumerate(small)]
    return _svg(bottom + 22 + 14 * len(small), parts)


def bar_columns(comparison: Comparison) -> list[int]:
    """For every group, the first column in which its bar overlaps no other."""
    return lanes([(comparison.order.index(group[0]), comparison.order.index(group[-1])) for group in comparison.groups])


def _method_row(text: Sequence[str], rank: float, x: Callable[[float], float], y: float, m: int) -> Iterator[str]:
    above = y - TRACK / 2 - LINE * len(text)
    for i, line in enumerate(text):
        yield _svg_text(EDGE, above + LINE * i + 13, line)
    yield _svg_text(x(m), above + 13, f"{rank:.2f}", fill=PALE, anchor="end")
    yield _svg_line(x(1), y, x(m), y, FAINT, 1.5)
    for tick in labelled_ranks(m):
        yield _svg_line(x(tick), y - 3, x(tick), y + 3, FAINT, 1.5)
    yield f'<circle cx="{x(rank):.1f}" cy="{y:.1f}" r="4.5" fill="{INK}"/>'


def _svg_line(x1: float, y1: float, x2: float, y2: float, colour: str, width: float) -> str:
    return f'<path d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}" stroke="{colour}" stroke-width="{width:g}"/>'


def _svg_text(x: float, y: float, text: str, size: int = ROW_SIZE, fill: str = INK, anchor: str = "start") -> str:
    style = f'font-size="{size}" fill="{fill}" text-anchor="{anchor}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{escape(text)}</text>'


def _svg(height: float, parts: Sequence[str]) -> bytes:
    size = f'width="{ROW_WIDTH:g}" height="{height:g}" viewBox="0 0 {ROW_WIDTH:g} {height:g}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="system-ui, sans-serif">'
    return "\n".join([head, *parts, "</svg>", ""]).encode()
