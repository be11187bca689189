"""The critical-difference diagram of a `Comparison`, as SVG or PNG."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

from imprint.core.errors import ParameterError
from imprint.core.extras import missing
from imprint.core.files.atomic import atomic_write
from imprint.report.diagram_layout import LEADING, MARGIN, SPREAD, DiagramLayout, caption, lay_out
from imprint.stats import Comparison

FORMATS = ("svg", "png")
SIZE, SMALL = 9.0, 7.5  # of the letters, in points
INK, PALE, BLUE = "#222222", "#666666", "#0072B2"  # nothing is told by colour alone


def critical_difference(comparison: Comparison, format: str = "svg", title: str | None = None) -> bytes:
    """Draw average ranks on a scale, best on the left; bars join methods that cannot be told apart.

    The same comparison gives the same bytes. `format` is "svg" or "png".

    >>> from imprint.stats import compare
    >>> picture = critical_difference(compare([[90, 80], [70, 65], [95, 91]], ["ours", "theirs"]))
    >>> picture[:5], b"theirs" in picture
    (b'<?xml', True)
    """
    if format not in FORMATS:
        raise ParameterError(f"critical_difference(format={format!r}): format must be 'svg' or 'png'.")
    with _own_style():
        return _draw(comparison, format, title)


def save_critical_difference(comparison: Comparison, path: str | os.PathLike[str], title: str | None = None) -> Path:
    """Draw into a file whose name ends in .svg or .png; it appears whole or not at all."""
    target = Path(path)
    format = target.suffix.lower().removeprefix(".")
    if format not in FORMATS:
        raise ParameterError(f"save_critical_difference({str(path)!r}): the name must end in .svg or .png.")
    picture = critical_difference(comparison, format, title)
    with atomic_write(target) as file:
        file.write(picture)
    return target


@contextmanager
def _own_style() -> Iterator[None]:
    """Matplotlib's defaults, whatever style the user has set; that comes back afterwards."""
    try:
        import matplotlib
    except ImportError:
        raise missing(None, "Diagrams need matplotlib") from None
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "imprint", "font.size": SIZE})
        yield


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
    step = next(step for step in (1, 2, 5, 10, 20, 50, 100, m) if m / step <= 10)
    for rank in range(1, m + 1):
        x, named = first + (rank - 1) / (m - 1) * (last - first), rank == 1 or rank % step == 0
        page.plot([x, x], [y - (5 if named else 3), y], color=INK, lw=1 if named else 0.6)
        if named:
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
