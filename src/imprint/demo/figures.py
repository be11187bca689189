"""The figures of the page, as SVG."""

from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from statistics import fmean
from typing import Any

import numpy as np

from imprint.demo.findings import KS, Findings
from imprint.report import figures as report
from imprint.report.figures import PALE

COLOURS = ("#0072b2", "#d55e00")
SHADES = ("#b3d4ea", "#7db5dc", "#4394c9", "#0072b2", "#00476e")  # one to five digits per class
LINES = {"kernel": ("-", "o"), "imprint2025": ((0, (4, 2)), "s")}
MEANING = {"kernel": "proxies decide together (kernel)", "imprint2025": "the best proxy decides (imprint2025)"}
STYLE: dict[str, Any] = {**report.STYLE, "font.size": 10, "axes.titlesize": "large"}


@contextmanager
def _axes(out: BytesIO) -> Iterator[Any]:
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        settings: Any = matplotlib.rcParams
        settings.update(STYLE)
        figure = Figure(figsize=(5.6, 3.5), layout="constrained")
        yield figure.add_subplot()
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})


def accuracy_over_k(findings: Findings) -> bytes:
    """Accuracy of k-means proxies against their number, with the spread over seeds: together, and the best alone."""
    out = BytesIO()
    with _axes(out) as axes:
        for title, colour in zip(findings.yardsticks, COLOURS):
            for name, (line, mark) in LINES.items():
                curve = findings.curves[title, name]
                means = [100 * fmean(curve[k]) for k in KS]
                axes.fill_between(KS, *_spread(curve), color=colour, alpha=0.1, lw=0)
                axes.plot(KS, means, mark, ls=line, color=colour, lw=2, ms=5)
            axes.plot([], [], color=colour, lw=4, label=title)
        for name, (line, mark) in LINES.items():
            axes.plot([], [], mark, ls=line, color=PALE, lw=2, ms=5, label=MEANING[name])
        axes.set_xscale("log")
        axes.set_xticks(KS, [str(k) for k in KS])
        axes.minorticks_off()
        axes.set_xlabel("proxies per class, k")
        axes.set_ylabel("accuracy, %")
        axes.legend(frameon=False, loc="lower right")
    return out.getvalue()


def _spread(curve: dict[int, list[float]]) -> tuple[list[float], list[float]]:
    return [100 * min(curve[k]) for k in KS], [100 * max(curve[k]) for k in KS]


def gain_over_nc1(findings: Findings) -> bytes:
    """What 20 proxies gain over one, against the NC1 of the task."""
    out = BytesIO()
    with _axes(out) as axes:
        values = [g.nc1 for g in findings.gains]
        line = np.geomspace(min(values), max(values), 50)
        axes.plot(line, [findings.fit.predict(v) for v in line], color=PALE, lw=1, ls=(0, (4, 3)))
        for d, shade in enumerate(SHADES, start=1):
            own = [g for g in findings.gains if g.d == d]
            axes.scatter(
                [g.nc1 for g in own], [g.gain for g in own], s=42, color=shade, edgecolor="white", lw=0.6, label=str(d)
            )
        axes.set_xscale("log")
        ticks = [t for t in (0.1, 0.2, 0.5, 1, 2, 5, 10) if min(values) * 0.8 <= t <= max(values) * 1.25]
        axes.set_xticks(ticks, [f"{t:g}" for t in ticks])
        axes.minorticks_off()
        axes.set_xlabel("NC1 of the training embeddings (0 is collapsed)")
        axes.set_ylabel("gain of k = 20 over k = 1, points")
        axes.legend(
            frameon=False, loc="upper left", title="digits per class", ncols=5, columnspacing=0.8, handletextpad=0
        )
    return out.getvalue()
