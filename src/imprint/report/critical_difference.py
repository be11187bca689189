"""The critical-difference diagram of a `Comparison`, as SVG or PNG."""

import os
import textwrap
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from imprint.core.arrays import Array
from imprint.core.errors import ParameterError
from imprint.core.files.atomic import atomic_write
from imprint.report.figures import style
from imprint.stats import Comparison

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FORMATS = ("svg", "png")

# Colour is never the only distinction: bars are also thicker than lines.
INK = "#222222"
PALE = "#666666"
BLUE = "#0072B2"

# Sizes are in points, and a matter of taste where nothing else is said.
SIZE = 9.0  # of the font
SMALL = 7.5  # of the font of remarks
MARGIN = 12.0  # around the page
GAP = 5.0  # between the end of a line, the rank and the name
LINE = 16.0  # height of the first line of a name
LEADING = 11.5  # height of every further line
APART = 7.0  # minimum distance between the lines of two methods
REACH = 2.5  # how far a bar extends beyond its outer members; less than half of APART
BAR = 8.0  # height of one row of bars
SPREAD = 8.0  # height below the scale in which lines spread out
SHORTEST = 260.0  # length of the scale; longer for many methods
WIDEST = 44  # characters in one line of a name
DIGIT = 0.64  # width of a digit, in units of the font size

Interval: TypeAlias = tuple[float, float]


class DiagramLayout(NamedTuple):
    """Positions in the diagram, in points from the start of the scale.

    Methods are in the order of their ranks.
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
    order = comparison.order
    names = [textwrap.wrap(name, WIDEST) or [name] for name in order]
    # Room for the feet of all lines, which are APART, with as much again between them.
    length = max(SHORTEST, 2.4 * APART * (len(order) - 1))
    ranks = np.array([comparison.rank(name) for name in order])
    marks = (ranks - 1) / (len(order) - 1) * length
    feet = _feet(marks)

    foot = dict(zip(order, feet))
    intervals = []
    for group in comparison.groups:
        start = foot[group[0]] - REACH
        end = foot[group[-1]] + REACH
        intervals.append((start, end))
    rows = lanes(intervals, APART)
    bars = []
    for (start, end), row in zip(intervals, rows):
        bars.append((start, end, SPREAD + BAR * (row + 1)))

    below_bars = SPREAD + BAR * (max(rows, default=-1) + 2)
    heights = _heights(names, below_bars + LINE / 2)
    return DiagramLayout(length, names, marks.tolist(), feet, heights, bars)


def _feet(marks: Array) -> list[float]:
    """Positions as close as possible to the marks, at least APART from one another."""
    from sklearn.isotonic import isotonic_regression

    # Minus multiples of APART, "at least APART" becomes "not decreasing".
    steps = APART * np.arange(len(marks))
    feet = isotonic_regression(marks - steps) + steps
    positions: list[float] = feet.tolist()
    return positions


def _heights(names: Sequence[Sequence[str]], top: float) -> list[float]:
    """The y of each name: downwards on the left side, upwards on the right."""
    tall = [LINE + LEADING * (len(lines) - 1) for lines in names]
    half = _left_half(len(names))
    left = [top + sum(tall[:i]) for i in range(half)]
    right = [top + sum(tall[i + 1 :]) for i in range(half, len(names))]
    return left + right


def _left_half(methods: int) -> int:
    """The number of methods on the left side, the larger half."""
    return (methods + 1) // 2


def lanes(intervals: Sequence[Interval], gap: float = 0.0) -> list[int]:
    """For each interval, the first lane in which it starts more than `gap` after the
    end of the last one there.
    """
    ends: list[float] = []  # the end of the last interval of each lane
    chosen = []
    for start, end in intervals:
        free = [i for i, reached in enumerate(ends) if reached + gap < start]
        lane = free[0] if free else len(ends)
        ends[lane : lane + 1] = [end]
        chosen.append(lane)
    return chosen


def critical_difference(
    comparison: Comparison,
    format: str = "svg",
    title: str | None = None,
) -> bytes:
    """Draw average ranks on a scale, best on the left.

    Bars join methods that do not differ significantly. Equal comparisons give equal
    bytes.

    Parameters
    ----------
    comparison : Comparison
        The result of `imprint.stats.compare`.
    format : str
        `svg` or `png`. [default: `svg`]
    title : str, optional
        A line above the scale.

    Returns
    -------
    bytes
        The contents of a file.

    Examples
    --------
    >>> from imprint.report import critical_difference
    >>> from imprint.stats import compare
    >>> comparison = compare([[90, 80], [70, 65], [95, 91]], ["ours", "theirs"])
    >>> diagram = critical_difference(comparison)
    >>> diagram[:5], b"theirs" in diagram
    (b'<?xml', True)
    """
    if format not in FORMATS:
        raise ParameterError(
            f"critical_difference(format={format!r}): format must be 'svg' or 'png'."
        )
    layout = lay_out(comparison)
    # Without dates and names of programs, so that equal comparisons give equal bytes.
    metadata = {"Software": None}
    if format == "svg":
        metadata = {"Date": None, "Creator": None}
    out = BytesIO()
    with style(**{"font.size": SIZE}):
        from matplotlib.figure import Figure

        # The page is as wide as the scale, in inches of 72 points; what is drawn around
        # it extends the page.
        figure = Figure((layout.length / 72, 1 / 72))
        page = figure.add_axes((0, 0, 1, 1), xlim=(0, layout.length), ylim=(1, 0))
        page.set_axis_off()
        _draw(page, comparison, layout, title or "")
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
    comparison: Comparison,
    path: str | os.PathLike[str],
    title: str | None = None,
) -> Path:
    """Draw the diagram into a .svg or .png file, which is written atomically.

    Parameters
    ----------
    comparison : Comparison
        The result of `imprint.stats.compare`.
    path : str or path
        The file; its ending is the format.
    title : str, optional
        A line above the scale.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> import tempfile
    >>> from imprint.report import save_critical_difference
    >>> from imprint.stats import compare
    >>> comparison = compare([[90, 80], [70, 65], [95, 91]], ["ours", "theirs"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_critical_difference(comparison, f"{folder}/ranks.svg").name
    'ranks.svg'
    """
    target = Path(path)
    format = target.suffix.lower().removeprefix(".")
    if format not in FORMATS:
        raise ParameterError(
            f"save_critical_difference({str(path)!r}): the name must end in .svg or"
            " .png."
        )
    diagram = critical_difference(comparison, format, title)
    with atomic_write(target) as file:
        file.write(diagram)
    return target


def _draw(
    page: "Axes",
    comparison: Comparison,
    layout: DiagramLayout,
    title: str,
) -> None:
    """Draw the scale, the methods, the bars, the title and the caption."""
    _draw_scale(page, layout.length, len(comparison.names))
    ranks = [comparison.rank(name) for name in comparison.order]
    _draw_methods(page, layout, ranks)
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
    centre = layout.length / 2
    _text(page, centre, -45, title, ha="center", weight="bold")
    ends = []
    for y, lines in zip(layout.heights, layout.names):
        ends.append(y + LEADING * (len(lines) - 1))
    bottom = max(ends)
    for i, line in enumerate(caption(comparison)):
        y = bottom + 21 + 10 * i
        _text(page, centre, y, line, ha="center", color=PALE, size=SMALL)


def _draw_scale(page: "Axes", length: float, methods: int) -> None:
    """Draw the line of the ranks, with numbers at some of them."""
    _line(page, [0, length], [0, 0], color=INK, lw=1)
    labelled = labelled_ranks(methods)
    for rank in range(1, methods + 1):
        x = (rank - 1) / (methods - 1) * length
        if rank in labelled:
            _line(page, [x, x], [-5, 0], color=INK, lw=1)
            _text(page, x, -7, str(rank), ha="center", va="bottom")
        else:
            _line(page, [x, x], [-3, 0], color=INK, lw=0.6)
    _text(
        page,
        length / 2,
        -26,
        "average rank (1 is best)",
        ha="center",
        color=PALE,
        size=SMALL,
    )


def _draw_methods(
    page: "Axes",
    layout: DiagramLayout,
    ranks: Sequence[float],
) -> None:
    """Draw the mark, the line, the rank and the name of each method."""
    half = _left_half(len(ranks))
    longest_rank = max(len(f"{rank:.2f}") for rank in ranks)
    rank_width = DIGIT * SIZE * longest_rank
    methods = zip(ranks, layout.marks, layout.feet, layout.heights, layout.names)
    for i, (rank, mark, foot, y, lines) in enumerate(methods):
        # The side of the diagram: where the line ends, and the direction from there.
        end = -GAP if i < half else layout.length + GAP
        out = -1 if i < half else 1
        align = "right" if i < half else "left"
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
        x = end + out * (rank_width + 2 * GAP)
        for j, line in enumerate(lines):
            _text(page, x, y + j * LEADING, line, ha=align)


def _line(
    page: "Axes",
    xs: Sequence[float],
    ys: Sequence[float],
    **look: Any,
) -> None:
    page.plot(xs, ys, clip_on=False, **look)


def _text(
    page: "Axes",
    x: float,
    y: float,
    text: str,
    **look: Any,
) -> None:
    # Names such as a_$x^2$ are shown as they are.
    look = {"va": "center", "color": INK} | look
    page.text(x, y, text, parse_math=False, **look)


def caption(comparison: Comparison) -> list[str]:
    """The test, the meaning of the bars, and the pairs that no bar can join; a line
    each.
    """
    n = comparison.instances
    p = comparison.friedman.p
    alpha = f"α = {comparison.alpha:g}"
    tested = f"{n} instance{'s' if n > 1 else ''}; Friedman p = {p:.2g}"
    if len(comparison.names) > 2 and p > comparison.alpha:
        return [tested, f"The Friedman test finds no difference at {alpha}: one group"]
    bars = "No bars: neighbours differ"
    if comparison.groups:
        bars = "Bars join methods that do not differ"
    lines = [tested, f"{bars} significantly (Wilcoxon signed-rank, Holm, {alpha})"]
    apart = _count_apart(comparison)
    if apart:
        pairs = f"{apart} pair{'s' if apart > 1 else ''}"
        lines.append(
            f"Not joined: {pairs} without a significant difference, with a method in"
            " between that differs"
        )
    return lines


def _count_apart(comparison: Comparison) -> int:
    """The number of pairs that do not differ, but are in no group together."""
    groups = [set(group) for group in comparison.groups]
    apart = 0
    for pair in comparison.pairs:
        is_joined = any(pair.methods <= group for group in groups)
        if not pair.significant and not is_joined:
            apart += 1
    return apart


def labelled_ranks(methods: int) -> list[int]:
    """The ranks that get a number on a scale of so many methods: about ten."""
    steps = (1, 2, 5, 10, 20, 50, 100, methods)
    step = next(step for step in steps if methods / step <= 10)
    multiples = range(step, methods + 1, step)
    return sorted({1, *multiples})
