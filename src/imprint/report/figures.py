"""Line and scatter plots in small panels, as SVG; colour is never the only
distinction.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BytesIO
from itertools import cycle
from math import ceil
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from imprint.collapse import GainFit
from imprint.core.arrays import Array
from imprint.core.extras import import_extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK = "#1f2933"
PALE = "#5b6670"
GRID = "#e4e8ec"

# The palette of Okabe and Ito, which people with colour blindness can tell apart,
# without its yellow, which is hard to see on white.
COLOURS = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#e69f00",
    "#56b4e9",
    "#000000",
    "#7f7f7f",
)
# More markers than colours, and no common factor: 88 lines differ.
MARKERS = "osD^vPX*<>hp"
DASHED = (0, (4, 3))
DOTTED = (0, (1, 2))
LONG = re.compile(rb"-?\d+\.\d{3,}")  # numbers with invisibly many digits
STYLE = {
    "font.family": "sans-serif",
    "font.size": 9,
    "text.color": INK,
    "axes.edgecolor": PALE,
    "axes.labelcolor": INK,
    "axes.titlesize": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "xtick.color": PALE,
    "ytick.color": PALE,
    "legend.frameon": False,
}

# The width of a label on a logarithmic axis, as a share of the axis.
LABEL_WIDTH = 0.07

Look: TypeAlias = dict[str, Any]  # arguments of matplotlib's functions


class Series(NamedTuple):
    """A line with a band. Series with one label share a style.

    Examples
    --------
    >>> from imprint.report import Series
    >>> Series("kernel", x=[1, 2], y=[80.0, 89.1]).y
    [80.0, 89.1]
    """

    label: str
    x: ArrayLike
    y: ArrayLike
    low: ArrayLike | None = None
    high: ArrayLike | None = None
    shade: float | None = None  # from 0 to 1: a colour of a continuous scale
    dotted: bool = False
    # indices of the points that have a marker [default: all]
    marked: Sequence[int] | None = None


class Panel(NamedTuple):
    """One pair of axes, with an optional horizontal line at `level`.

    Examples
    --------
    >>> from imprint.report import Panel, Series
    >>> Panel("digits", [Series("kernel", x=[1, 2], y=[80.0, 89.1])]).title
    'digits'
    """

    title: str
    lines: Sequence[Series]
    level: float | None = None
    level_name: str = ""


def interval(values: Array) -> tuple[Array, Array, Array]:
    """The mean over the last axis and its 95 % confidence interval (Student's t).

    Parameters
    ----------
    values : array of shape (..., n)
        Two values or more along the last axis.

    Returns
    -------
    mean, low, high : arrays of shape (...)
        The mean, and the ends of the interval.

    Examples
    --------
    >>> import numpy as np
    >>> from imprint.report import interval
    >>> mean, low, high = interval(np.array([1.0, 2.0, 3.0]))
    >>> float(mean), round(float(high), 3)
    (2.0, 4.484)
    """
    from scipy import stats

    n = values.shape[-1]
    mean = values.mean(axis=-1)
    deviation = values.std(axis=-1, ddof=1)
    half = stats.t.ppf(0.975, n - 1) * deviation / np.sqrt(n)
    return mean, mean - half, mean + half


@contextmanager
def style(**settings: object) -> Iterator[None]:
    """Use matplotlib's defaults with these settings, and restore the user's settings
    afterwards.
    """
    matplotlib = import_extra("matplotlib", None, "Drawing")
    # Texts stay texts, and names inside the drawing do not depend on the time.
    reproducible = {"svg.fonttype": "none", "svg.hashsalt": "imprint"}
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(reproducible | settings)
        yield


@contextmanager
def canvas(width: float, height: float) -> Iterator[tuple["Figure", BytesIO]]:
    """A figure in the style of all pages, which is written as SVG when the block ends.

    Parameters
    ----------
    width, height : float
        In inches.

    Returns
    -------
    figure, out
        A figure of matplotlib, and the buffer to which the SVG is written.

    Examples
    --------
    >>> from imprint.report import canvas
    >>> with canvas(3, 2) as (figure, out):
    ...     figure.subplots().set_title("a title") is not None
    True
    >>> b"a title" in out.getvalue()
    True
    """
    out = BytesIO()
    drawing = BytesIO()
    with style(**STYLE):
        from matplotlib.figure import Figure

        figure = Figure(figsize=(width, height), layout="constrained")
        yield figure, out
        metadata = {"Date": None, "Creator": None}
        figure.savefig(drawing, format="svg", metadata=metadata)
        out.write(LONG.sub(_shortened, drawing.getvalue()))


def _shortened(number: re.Match[bytes]) -> bytes:
    """A number with two decimals: a hundredth of a point is invisible."""
    return f"{float(number[0]):.2f}".encode()


def draw(
    panels: Sequence[Panel],
    x_label: str,
    y_label: str,
    *,
    log_x: bool = False,
    height: float = 2.5,
) -> bytes:
    """Draw panels of lines with one legend below.

    Parameters
    ----------
    panels : sequence of Panel
        Up to three stand in a row.
    x_label, y_label : str
        The names of the axes.
    log_x : bool
        Whether the x axis is logarithmic. [default: False]
    height : float
        The height of a panel, in inches. [default: 2.5]

    Returns
    -------
    bytes
        An SVG file.

    Examples
    --------
    >>> from imprint.report import Panel, Series, draw
    >>> line = Series("kernel", x=[1, 2, 5], y=[80.0, 89.1, 95.4])
    >>> b"kernel" in draw([Panel("digits", [line])], "k", "accuracy, %")
    True
    """
    columns = min(3, len(panels))
    rows = ceil(len(panels) / columns)
    levels = [p.level_name for p in panels if p.level is not None][:1]
    entries = len(_series_by_label(panels)) + len(levels)
    # Two entries below each panel fit.
    legend_rows = ceil(entries / (2 * columns))
    width = 0.6 + 3.0 * columns
    total_height = 0.35 + height * rows + 0.2 * legend_rows
    with canvas(width, total_height) as (figure, out):
        grid = figure.subplots(rows, columns, squeeze=False)
        looks = _looks(panels)
        for axes in grid.flat[len(panels) :]:
            axes.set_axis_off()
        for i, (axes, panel) in enumerate(zip(grid.flat, panels)):
            _draw_panel(axes, panel, looks, log_x)
            # The last panel of each column.
            if i >= len(panels) - columns:
                axes.set_xlabel(x_label)
        for axes in grid[:, 0]:
            axes.set_ylabel(y_label)
        per_row = ceil(entries / legend_rows)
        _draw_legend(figure, looks, levels, per_row)
    return out.getvalue()


def _series_by_label(panels: Iterable[Panel]) -> dict[str, Series]:
    """One series of each label; they share a style."""
    series: dict[str, Series] = {}
    for panel in panels:
        for line in panel.lines:
            series[line.label] = line
    return series


def _draw_legend(
    figure: "Figure",
    looks: Mapping[str, Look],
    levels: Sequence[str],
    columns: int,
) -> None:
    """Draw the legend of lines and levels below all panels."""
    from matplotlib.lines import Line2D

    keys = []
    for label, look in looks.items():
        keys.append(Line2D([], [], lw=1.4, ms=4, label=label, **look))
    for name in levels:
        keys.append(Line2D([], [], color=PALE, ls=DASHED, lw=1, label=name))
    figure.legend(
        handles=keys,
        loc="outside lower center",
        ncols=columns,
        fontsize=8,
    )


def _looks(panels: Iterable[Panel]) -> dict[str, Look]:
    """Colour, marker and line style of every series, by label."""
    from matplotlib import colormaps

    colours = cycle(COLOURS)
    markers = cycle(MARKERS)
    looks: dict[str, Look] = {}
    for label, series in _series_by_label(panels).items():
        if series.shade is None:
            colour: object = next(colours)
        else:
            # The end of the scale is a yellow that is hard to see on white.
            colour = colormaps["viridis"](0.92 * series.shade)
        looks[label] = {
            "color": colour,
            "marker": next(markers),
            "ls": DOTTED if series.dotted else "-",
        }
    return looks


def _draw_panel(
    axes: "Axes",
    panel: Panel,
    looks: Mapping[str, Look],
    log_x: bool,
) -> None:
    for s in panel.lines:
        look = looks[s.label]
        if s.low is not None and s.high is not None:
            axes.fill_between(s.x, s.low, s.high, color=look["color"], alpha=0.15, lw=0)
        # A marker that stands for something is larger than one that only tells lines
        # apart.
        size = 3.2 if s.marked is None else 5
        axes.plot(s.x, s.y, **look, lw=1.4, ms=size, markevery=s.marked)
    if panel.level is not None:
        axes.axhline(panel.level, color=PALE, ls=DASHED, lw=1)
    axes.set_title(panel.title, loc="left")
    if log_x:
        values: set[int] = set()
        for s in panel.lines:
            values.update(np.asarray(s.x).astype(int).tolist())
        _log_ticks(axes, _apart(sorted(values)), fontsize=7.5)
    else:
        axes.locator_params("x", integer=True)


def _log_ticks(
    axes: "Axes",
    ticks: Sequence[float],
    **look: Any,
) -> None:
    """Make the x axis logarithmic, and label these values only."""
    axes.set_xscale("log")
    labels = [f"{tick:g}" for tick in ticks]
    axes.set_xticks(ticks, labels, **look)
    axes.minorticks_off()


def _apart(values: Sequence[int]) -> list[int]:
    """The values whose labels do not overlap on a logarithmic axis."""
    room = (values[-1] / values[0]) ** LABEL_WIDTH
    labelled = [values[0]]
    for value in values[1:]:
        if value >= room * labelled[-1]:
            labelled.append(value)
    return labelled


class Point(NamedTuple):
    """A point of a cloud.

    Points with one name share a style, except that some are filled and others not.

    Examples
    --------
    >>> from imprint.report import Point
    >>> Point("mnist", filled=True, x=0.5, y=3.0).y
    3.0
    """

    name: str
    filled: bool
    x: float
    y: float


class Cloud(NamedTuple):
    """A panel of points, with an optional line through them.

    Examples
    --------
    >>> from imprint.report import Cloud, Point
    >>> len(Cloud("ten digits", [Point("mnist", True, 0.5, 3.0)]).points)
    1
    """

    title: str
    points: Sequence[Point]
    fit: GainFit | None = None


def scatter(
    clouds: Sequence[Cloud],
    x_label: str,
    y_label: str,
    *,
    log_x: bool = True,
    side: float = 4.0,
    size: float = 30,
) -> bytes:
    """Draw clouds of points next to each other; a name has one style in all of them.

    Parameters
    ----------
    clouds : sequence of Cloud
        The panels.
    x_label, y_label : str
        The names of the axes.
    log_x : bool
        Whether the x axis is logarithmic. [default: True]
    side : float
        The width and height of a panel, in inches. [default: 4]
    size : float
        The area of a point, in square points. [default: 30]

    Returns
    -------
    bytes
        An SVG file.

    Examples
    --------
    >>> from imprint.report import Cloud, Point, scatter
    >>> points = [Point("mnist", True, 0.5, 3.0), Point("usps", True, 2.0, 7.5)]
    >>> b"usps" in scatter([Cloud("ten digits", points)], "NC1", "gain")
    True
    """
    names: dict[str, None] = {}
    for cloud in clouds:
        names.update(dict.fromkeys(point.name for point in cloud.points))
    looks = dict(zip(names, zip(cycle(COLOURS), cycle(MARKERS))))
    with canvas(0.5 + 1.05 * side * len(clouds), side) as (figure, out):
        from matplotlib.lines import Line2D

        grid = figure.subplots(1, len(clouds), squeeze=False)
        for axes, cloud in zip(grid.flat, clouds):
            _draw_points(axes, cloud, looks, size)
            if cloud.fit is not None:
                _draw_fit(axes, cloud.points, cloud.fit)
            if log_x:
                _scale_to_log(axes)
            axes.set_title(cloud.title, loc="left")
            axes.set_xlabel(x_label)
        grid[0, 0].set_ylabel(y_label)
        keys = []
        for name, (colour, marker) in looks.items():
            key = Line2D([], [], ls="", color=colour, marker=marker, ms=5, label=name)
            keys.append(key)
        figure.legend(handles=keys, loc="outside lower center", ncols=4, fontsize=8)
    return out.getvalue()


def _draw_points(
    axes: "Axes",
    cloud: Cloud,
    looks: Mapping[str, tuple[str, str]],
    size: float,
) -> None:
    """Draw the points, those of one style together."""
    groups: dict[tuple[str, bool], list[Point]] = {}
    for point in cloud.points:
        groups.setdefault((point.name, point.filled), []).append(point)
    for (name, filled), points in groups.items():
        colour, marker = looks[name]
        axes.scatter(
            [point.x for point in points],
            [point.y for point in points],
            s=size,
            marker=marker,
            edgecolor=colour,
            facecolor=colour if filled else "none",
            lw=size / 25,
        )


def _draw_fit(
    axes: "Axes",
    points: Sequence[Point],
    fit: GainFit,
) -> None:
    """Draw the line of a fit over the range of the points."""
    values = [point.x for point in points]
    x = np.geomspace(min(values), max(values), 50)
    y = [fit.predict(float(value)) for value in x]
    axes.plot(x, y, color=PALE, ls=DASHED, lw=1.2)


def _scale_to_log(axes: "Axes") -> None:
    """Make the x axis logarithmic, with labels at 1, 2 and 5 in a short range."""
    axes.set_xscale("log")
    low, high = axes.get_xlim()
    ticks = []
    for exponent in range(-6, 7):
        for digit in (1, 2, 5):
            tick = digit * 10.0**exponent
            if low <= tick <= high:
                ticks.append(tick)
    # In a range of many powers of ten, matplotlib labels these.
    if len(ticks) < 5:
        _log_ticks(axes, ticks)
