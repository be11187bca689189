"""Clouds of points, with a fitted line where there is one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from imprint.collapse import GainFit
from imprint.report.figures import COLOURS, DASHED, MARKERS, PALE, canvas


@dataclass(frozen=True, eq=False)
class Cloud:
    """A panel of points by (name, filled)."""

    title: str
    points: Mapping[tuple[str, bool], tuple[Sequence[float], Sequence[float]]]
    fit: GainFit | None = None


def scatter(
    clouds: Sequence[Cloud], x_label: str, y_label: str, *, log_x: bool = True, side: float = 4.0, size: float = 30
) -> bytes:
    """Clouds side by side, `side` inches each, with points of `size`; names that occur in several look the same."""
    from matplotlib.lines import Line2D

    names = list(dict.fromkeys(name for c in clouds for name, _ in c.points))
    look = {n: (COLOURS[i % len(COLOURS)], MARKERS[i % len(MARKERS)]) for i, n in enumerate(names)}
    with canvas(0.5 + 1.05 * side * len(clouds), side) as (figure, out):
        grid = figure.subplots(1, len(clouds), squeeze=False)
        for axes, cloud in zip(grid.flat, clouds):
            for (name, filled), (x, y) in cloud.points.items():
                colour, marker = look[name]
                face = colour if filled else "none"
                axes.scatter(x, y, s=size, marker=marker, edgecolor=colour, facecolor=face, lw=size / 25)
            if cloud.fit is not None:
                values = [v for x, _ in cloud.points.values() for v in x]
                line = np.geomspace(min(values), max(values), 50)
                axes.plot(line, [cloud.fit.predict(float(v)) for v in line], color=PALE, ls=DASHED, lw=1.2)
            if log_x:
                axes.set_xscale("log")
            axes.set_title(cloud.title, loc="left")
            axes.set_xlabel(x_label)
        grid[0, 0].set_ylabel(y_label)
        keys = [Line2D([], [], ls="", color=c, marker=m, ms=5, label=n) for n, (c, m) in look.items()]
        figure.legend(handles=keys, loc="outside lower center", ncols=4, fontsize=8)
    return out.getvalue()
