"""The critical-difference diagram of a `Comparison`, as SVG or PNG."""

import os
import textwrap
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from imprint.core.errors import ParameterError
from imprint.core.files.atomic import atomic_write
from imprint.report.figures import style
from imprint.stats import Comparison

FORMATS = ("svg", "png")
# colour is never the only distinction
INK, PALE, BLUE = "#222222", "#666666", "#0072B2"
# In points:
SIZE, SMALL = 9.0, 7.5  # font sizes
# around the page; between the end of a line, the rank and the name
MARGIN, GAP = 12.0, 5.0
# height of the first line of a name and of every further one
LINE, LEADING = 16.0, 11.5
APART = 7.0  # minimum distance between the lines of two methods
REACH = 2.5  # how far a bar extends beyond its outer members; less than half of APART
BAR = 8.0  # height of one row of bars
SPREAD = 8.0  # height below the scale in which lines spread out
WIDEST = 44  # characters in one line of a name


class DiagramLayout(NamedTuple):
    """Positions in the diagram, in points from the start of the scale; methods are in
    the order of their ranks.
    """

    length: float  # of the scale
    names: list[list[str]]  # lines of text
    marks: list[float]  # x on the scale
    feet: list[float]  # x of the line down from the mark, moved where lines would touch
    heights: list[float]  # y of the first line of the name
    bars: list[tuple[float, float, float]]  # for each group: first x, last x, y


def lay_out(comparison: Comparison) -> DiagramLayout:
    """Lay out the diagram.

    The better half of the methods is on the left, and the outermost methods are
    highest, so that no lines cross. Each bar is in the highest row in which it overlaps
    no other. The names are below all bars.
    """
    from sklearn.isotonic import isotonic_regression

    order, m = comparison.order, len(comparison.order)
    names = [textwrap.wrap(name, WIDEST) or [name] for name in order]
    length = max(260.0, 2.4 * APART * (m - 1))
    marks = [(comparison.rank(name) - 1) / (m - 1) * length for name in order]
    steps = APART * np.arange(m)
    feet = (isotonic_regression(np.array(marks) - steps) + steps).tolist()
    foot = dict(zip(order, feet))
    ends = [
        (foot[group[0]] - REACH, foot[group[-1]] + REACH) for group in comparison.groups
    ]
    rows = lanes(ends, APART)
    bars = [(*both, SPREAD + BAR * (row + 1)) for both, row in zip(ends, rows)]
    top, half = SPREAD + BAR * (max(rows, default=-1) + 2) + LINE / 2, (m + 1) // 2
    tall = [LINE + LEADING * (len(lines) - 1) for lines in names]
    left = [top + sum(tall[:i]) for i in range(half)]
    right = [top + sum(tall[i + 1 :]) for i in range(half, m)]
    return DiagramLayout(length, names, marks, feet, left + right, bars)


def lanes(intervals: Sequence[tuple[float, float]], gap: float = 0.0) -> list[int]:
    """For each interval, the first lane in which it starts more than `gap` after the
    end of the last one there.
    """
    ends: list[float] = []
    chosen = []
    for start, end in intervals:
        lane = next(
            (i for i, reached in enumerate(ends) if reached + gap < start), len(ends)
        )
        ends[lane : lane + 1] = [end]
        chosen.append(lane)
    return chosen


def critical_difference(
    comparison: Comparison, format: str = "svg", title: str | None = None
) -> bytes:
    """Draw average ranks on a scale, best on the left; bars join methods that do not
    differ significantly.

    Equal comparisons give equal bytes. `format` is "svg" or "png".
    """
    if format not in FORMATS:
        raise ParameterError(
            f"critical_difference(format={format!r}): format must be 'svg' or 'png'."
        )
    with style(**{"font.size": SIZE}):
        from matplotlib.figure import Figure

        layout = lay_out(comparison)
        # the scale; what is drawn around it extends the page
        figure = Figure((layout.length / 72, 1 / 72))
        # in points
        page = figure.add_axes((0, 0, 1, 1), xlim=(0, layout.length), ylim=(1, 0))
        page.set_axis_off()
        _draw_scale(page, layout.length, len(comparison.names))
        _draw_methods(
            page, layout, [comparison.rank(name) for name in comparison.order]
        )
        for start, end, y in layout.bars:
            _line(
                page,
                [start, end],
                [y, y],
                color=BLUE,
                lw=4,
                solid_capstyle="butt",
                zorder=3,
            )
        _text(page, layout.length / 2, -45, title or "", ha="center", weight="bold")
        bottom = max(
            y + LEADING * (len(lines) - 1)
            for y, lines in zip(layout.heights, layout.names)
        )
        for i, line in enumerate(caption(comparison)):
            _text(
                page,
                layout.length / 2,
                bottom + 21 + 10 * i,
                line,
                ha="center",
                color=PALE,
                size=SMALL,
            )
        out = BytesIO()
        metadata = (
            {"Date": None, "Creator": None} if format == "svg" else {"Software": None}
        )
        figure.savefig(
            out,
            format=format,
            dpi=200,
            metadata=metadata,
            bbox_inches="tight",
            pad_inches=MARGIN / 72,
        )
    return out.getvalue()


def save_critical_difference(
    comparison: Comparison, path: str | os.PathLike[str], title: str | None = None
) -> Path:
    """Draw the diagram into a .svg or .png file, which is written atomically."""
    target = Path(path)
    format = target.suffix.lower().removeprefix(".")
    if format not in FORMATS:
        raise ParameterError(
            f"save_critical_difference({str(path)!r}): the name must end in .svg or"
            " .png."
        )
    picture = critical_difference(comparison, format, title)
    with atomic_write(target) as file:
        file.write(picture)
    return target


def _draw_scale(page: Any, length: float, m: int) -> None:
    _line(page, [0, length], [0, 0], color=INK, lw=1)
    for rank in range(1, m + 1):
        x, labelled = (rank - 1) / (m - 1) * length, rank in labelled_ranks(m)
        _line(
            page,
            [x, x],
            [-5 if labelled else -3, 0],
            color=INK,
            lw=1 if labelled else 0.6,
        )
        if labelled:
            _text(page, x, -7, str(rank), ha="center", va="bottom")
    _text(
        page,
        length / 2,
        -26,
        "average rank (1 is best)",
        ha="center",
        color=PALE,
        size=SMALL,
    )


def _draw_methods(page: Any, layout: DiagramLayout, ranks: Sequence[float]) -> None:
    half = (len(ranks) + 1) // 2
    # of the ranks as text
    widest = 0.64 * SIZE * max(len(f"{rank:.2f}") for rank in ranks)
    for i, (rank, mark, foot, y) in enumerate(
        zip(ranks, layout.marks, layout.feet, layout.heights)
    ):
        out, end, align = (
            (-1, -GAP, "right") if i < half else (1, layout.length + GAP, "left")
        )
        _line(
            page,
            [mark, foot, foot, end],
            [0, SPREAD, y, y],
            color=PALE,
            lw=0.8,
            solid_joinstyle="round",
        )
        _line(page, [mark], [0], marker="o", color=INK, markersize=3, zorder=4)
        _text(page, end + out * GAP, y, f"{rank:.2f}", ha=align, color=PALE)
        for j, line in enumerate(layout.names[i]):
            _text(page, end + out * (widest + 2 * GAP), y + j * LEADING, line, ha=align)


def _line(page: Any, xs: Sequence[float], ys: Sequence[float], **look: Any) -> None:
    page.plot(xs, ys, clip_on=False, **look)


def _text(page: Any, x: float, y: float, text: str, **look: Any) -> None:
    page.text(x, y, text, parse_math=False, **({"va": "center", "color": INK} | look))


def caption(comparison: Comparison) -> list[str]:
    """The test, the meaning of the bars, and the pairs that no bar can join; a line
    each.
    """
    n, p, alpha = (
        comparison.instances,
        comparison.friedman.p,
        f"α = {comparison.alpha:g}",
    )
    tested = f"{n} instance{'s' if n > 1 else ''}; Friedman p = {p:.2g}"
    if len(comparison.names) > 2 and p > comparison.alpha:
        return [tested, f"The Friedman test finds no difference at {alpha}: one group"]
    bars = (
        "Bars join methods that do not differ"
        if comparison.groups
        else "No bars: neighbours differ"
    )
    groups = [set(group) for group in comparison.groups]
    alike = [
        {pair.first, pair.second} for pair in comparison.pairs if not pair.significant
    ]
    apart = sum(not any(two <= group for group in groups) for two in alike)
    pairs = f"{apart} pair{'s' if apart > 1 else ''} without a significant difference"
    rest = (
        [f"Not joined: {pairs}, with a method in between that differs"] if apart else []
    )
    return [
        tested,
        f"{bars} significantly (Wilcoxon signed-rank, Holm, {alpha})",
        *rest,
    ]


def labelled_ranks(m: int) -> list[int]:
    """The ranks on a scale of m methods that get a number."""
    step = next(step for step in (1, 2, 5, 10, 20, 50, 100, m) if m / step <= 10)
    return [rank for rank in range(1, m + 1) if rank == 1 or rank % step == 0]
