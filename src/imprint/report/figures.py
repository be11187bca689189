"""Line and scatter plots in small panels, as SVG; colour is never the only
distinction.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BytesIO
from itertools import cycle
from math import ceil
from typing import Any, NamedTuple

import numpy as np

from imprint.collapse import GainFit
from imprint.core.arrays import Array
from imprint.core.extras import import_extra

INK, PALE, GRID = "#1f2933", "#5b6670", "#e4e8ec"
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
MARKERS = "osD^vPX*<>hp"
LONG = re.compile(rb"-?\d+\.\d{3,}")  # numbers with invisibly many digits
DASHED, DOTTED = (0, (4, 3)), (0, (1, 2))
STYLE: dict[str, Any] = {
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


class Series(NamedTuple):
    """A line with a band. Series with one label share a style."""

    label: str
    x: Any
    y: Any
    low: Any = None
    high: Any = None
    shade: float | None = None  # from 0 to 1: a colour of a continuous scale
    dotted: bool = False
    # indices of the points that have a marker [default: all]
    marked: Sequence[int] | None = None


class Panel(NamedTuple):
    """One pair of axes, with an optional horizontal line at `level`."""

    title: str
    lines: Sequence[Series]
    level: float | None = None
    level_name: str = ""


def interval(values: Array) -> tuple[Array, Array, Array]:
    """The mean over the last axis, of two values or more, and its 95 % confidence
    interval (Student's t).
    """
    from scipy import stats

    n, mean = values.shape[-1], values.mean(axis=-1)
    half = stats.t.ppf(0.975, n - 1) * values.std(axis=-1, ddof=1) / np.sqrt(n)
    return mean, mean - half, mean + half


@contextmanager
def style(**settings: Any) -> Iterator[None]:
    """Use matplotlib's defaults with these settings, and restore the user's settings
    afterwards.
    """
    matplotlib = import_extra("matplotlib", None, "Drawing")
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(
            {"svg.fonttype": "none", "svg.hashsalt": "imprint", **settings}
        )
        yield


@contextmanager
def canvas(width: float, height: float) -> Iterator[tuple[Any, BytesIO]]:
    """A figure in the style of all pages, and the buffer to which it is written as SVG
    when the block ends.
    """
    out, svg = BytesIO(), BytesIO()
    with style(**STYLE):
        from matplotlib.figure import Figure

        figure = Figure(figsize=(width, height), layout="constrained")
        yield figure, out
        figure.savefig(svg, format="svg", metadata={"Date": None, "Creator": None})
        out.write(LONG.sub(lambda m: f"{float(m[0]):.2f}".encode(), svg.getvalue()))


def draw(
    panels: Sequence[Panel],
    x_label: str,
    y_label: str,
    *,
    log_x: bool = False,
    height: float = 2.5,
) -> bytes:
    """Panels of lines with one legend below; `height` is the height of a panel, in
    inches.
    """
    columns = min(3, len(panels))
    rows = ceil(len(panels) / columns)
    levels = [p.level_name for p in panels if p.level is not None][:1]
    entries = len({s.label for p in panels for s in p.lines}) + len(levels)
    legend_rows = ceil(entries / (2 * columns))
    with canvas(0.6 + 3.0 * columns, 0.35 + height * rows + 0.2 * legend_rows) as (
        figure,
        out,
    ):
        from matplotlib.lines import Line2D

        grid, looks = figure.subplots(rows, columns, squeeze=False), _looks(panels)
        for axes in grid.flat[len(panels) :]:
            axes.set_axis_off()
        for i, (axes, panel) in enumerate(zip(grid.flat, panels)):
            _panel(axes, panel, looks, log_x)
            if i >= len(panels) - columns:
                axes.set_xlabel(x_label)
        for axes in grid[:, 0]:
            axes.set_ylabel(y_label)
        keys = [
            Line2D([], [], lw=1.4, ms=4, label=label, **look)
            for label, look in looks.items()
        ]
        keys += [
            Line2D([], [], color=PALE, ls=DASHED, lw=1, label=name) for name in levels
        ]
        figure.legend(
            handles=keys,
            loc="outside lower center",
            ncols=ceil(entries / legend_rows),
            fontsize=8,
        )
    return out.getvalue()


def _looks(panels: Sequence[Panel]) -> dict[str, dict[str, Any]]:
    """Colour, marker and line style of every series, by label."""
    from matplotlib import colormaps

    series = {s.label: s for panel in panels for s in panel.lines}
    colours, markers = cycle(COLOURS), cycle(MARKERS)
    return {
        label: {
            "color": (
                next(colours)
                if s.shade is None
                else colormaps["viridis"](0.92 * s.shade)
            ),
            "marker": next(markers),
            "ls": DOTTED if s.dotted else "-",
        }
        for label, s in series.items()
    }


def _panel(
    axes: Any, panel: Panel, looks: Mapping[str, Mapping[str, Any]], log_x: bool
) -> None:
    for s in panel.lines:
        look = looks[s.label]
        if s.low is not None:
            axes.fill_between(s.x, s.low, s.high, color=look["color"], alpha=0.15, lw=0)
        axes.plot(
            s.x,
            s.y,
            **look,
            lw=1.4,
            ms=3.2 if s.marked is None else 5,
            markevery=s.marked,
        )
    if panel.level is not None:
        axes.axhline(panel.level, color=PALE, ls=DASHED, lw=1)
    axes.set_title(panel.title, loc="left")
    if log_x:
        _log_ticks(
            axes,
            _apart(sorted({int(v) for s in panel.lines for v in s.x})),
            fontsize=7.5,
        )
    else:
        axes.xaxis.get_major_locator().set_params(integer=True)


def _log_ticks(axes: Any, ticks: Sequence[float], **look: Any) -> None:
    """Make the x axis logarithmic, and label these values only."""
    axes.set_xscale("log")
    axes.set_xticks(ticks, [f"{t:g}" for t in ticks], **look)
    axes.minorticks_off()


def _apart(values: Sequence[int]) -> list[int]:
    """The values whose labels do not overlap on a logarithmic axis."""
    room = (values[-1] / values[0]) ** 0.07
    labelled = [values[0]]
    for value in values[1:]:
        if value >= room * labelled[-1]:
            labelled.append(value)
    return labelled


class Point(NamedTuple):
    """A point of a cloud. Points with one name share a style, except that some are
    filled and others not.
    """

    name: str
    filled: bool
    x: float
    y: float


class Cloud(NamedTuple):
    """A panel of points, with an optional line through them."""

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
    """Clouds next to each other, `side` inches each, with points of `size`; a name has
    one style in all of them.
    """
    looks = dict(
        zip(
            dict.fromkeys(p.name for c in clouds for p in c.points),
            zip(cycle(COLOURS), cycle(MARKERS)),
        )
    )
    with canvas(0.5 + 1.05 * side * len(clouds), side) as (figure, out):
        from matplotlib.lines import Line2D

        grid = figure.subplots(1, len(clouds), squeeze=False)
        for axes, cloud in zip(grid.flat, clouds):
            for name, filled in dict.fromkeys(p[:2] for p in cloud.points):
                x, y = zip(*(p[2:] for p in cloud.points if p[:2] == (name, filled)))
                colour, marker = looks[name]
                face = colour if filled else "none"
                axes.scatter(
                    x,
                    y,
                    s=size,
                    marker=marker,
                    edgecolor=colour,
                    facecolor=face,
                    lw=size / 25,
                )
            if cloud.fit is not None:
                values = [p.x for p in cloud.points]
                line = np.geomspace(min(values), max(values), 50)
                axes.plot(
                    line,
                    [cloud.fit.predict(float(v)) for v in line],
                    color=PALE,
                    ls=DASHED,
                    lw=1.2,
                )
            if log_x:
                axes.set_xscale("log")
                low, high = axes.get_xlim()
                ticks = [
                    m * 10.0**e
                    for e in range(-6, 7)
                    for m in (1, 2, 5)
                    if low <= m * 10.0**e <= high
                ]
                if len(ticks) < 5:  # a range of few powers of ten
                    _log_ticks(axes, ticks)
            axes.set_title(cloud.title, loc="left")
            axes.set_xlabel(x_label)
        grid[0, 0].set_ylabel(y_label)
        keys = [
            Line2D([], [], ls="", color=c, marker=m, ms=5, label=n)
            for n, (c, m) in looks.items()
        ]
        figure.legend(handles=keys, loc="outside lower center", ncols=4, fontsize=8)
    return out.getvalue()
