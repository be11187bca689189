"""The page of the demonstration: one HTML file without scripts that loads nothing, and its figures."""

import io
from base64 import b64encode
from html import escape
from importlib.resources import files
from pathlib import Path
from statistics import fmean, stdev
from string import Template
from typing import Any

import numpy as np

from imprint import recipes
from imprint.core import __version__
from imprint.core.files.notes import write_outputs
from imprint.core.types import Array
from imprint.demo.findings import KS, SHOTS, TASKS, Example, Findings, Knowledge
from imprint.report import critical_difference, html, ranks_by_row
from imprint.report.figures import DASHED, PALE, canvas

WORDS = {5: "Five", 6: "Six", 7: "Seven"}
NAMES = {"all": "all ten digits", "even": "even digits", "odd": "odd digits", "short": "0 to 2"}
COLOURS = ("#0072b2", "#d55e00")
SHADES = ("#b3d4ea", "#7db5dc", "#4394c9", "#0072b2", "#00476e")  # one to five digits per class
LINES = {"kernel": ("-", "o"), "imprint2025": ((0, (4, 2)), "s")}
MEANING = {"kernel": "proxies decide together (kernel)", "imprint2025": "the best proxy decides (imprint2025)"}
WIDTH, HEIGHT = 5.6, 3.5  # of a figure, in inches
FIGURE_STYLE: dict[str, Any] = {"font.size": 10, "axes.titlesize": "large"}


def write_page(findings: Findings, folder: str | Path) -> Path:
    """Write `demo.html` into a folder, which is created if necessary."""
    (target,) = write_outputs(Path(folder), {"demo.html": page(findings).encode()})
    return target


def page(findings: Findings) -> str:
    """The whole page."""
    fit, template = findings.fit, Template((files("imprint.demo") / "page.html").read_text("utf-8"))
    return template.substitute(
        style=html.STYLE,
        icon=html.ICON,
        version=__version__,
        seconds=f"{findings.seconds:.0f}",
        train=f"{findings.rows[0]:,}",
        test=f"{findings.rows[1]:,}",
        shots=SHOTS,
        seeds=findings.seeds,
        instances=findings.comparison.instances,
        head="".join(f'<th class="n">{NAMES[t]}</th>' for t in TASKS),
        rows="".join(_row(findings, name) for name in findings.comparison.order),
        verdict=escape(" ".join(verdict(findings))),
        ranks=_image(critical_difference(findings.comparison), "svg+xml", "Average ranks of the recipes"),
        narrow_ranks=_image(ranks_by_row(findings.comparison), "svg+xml", "Average ranks of the recipes"),
        curve=_image(accuracy_over_k(findings), "svg+xml", "Accuracy against the number of proxies"),
        gains=_image(gain_over_nc1(findings), "svg+xml", "Gain of twenty proxies over one against NC1"),
        count=WORDS.get(len(findings.scores), str(len(findings.scores))),
        **_knowledge(findings.knowledge),
        spearman=f"{fit.spearman:.2f}",
        p=_p(fit.p_value),
        slope=f"{fit.slope:.0f}",
        collapse="".join(html.number(f"{findings.nc1[t]:.2f}") for t in TASKS),
        examples="".join(map(_example, findings.examples)),
    )


def _knowledge(k: Knowledge) -> dict[str, str]:
    percents = {
        "expected": k.expected,
        "low": k.interval[0],
        "high": k.interval[1],
        "measured": k.accuracy,
        "refused_known": k.refused_known,
        "refused_unknown": k.refused_unknown,
    }
    exactly = "bit for bit" if k.forgets_exactly else "but for rounding"
    return {name: f"{100 * v:.1f}" for name, v in percents.items()} | {
        "forgetting": f"{1000 * k.forgetting:.1f}",
        "exactly": exactly,
    }


def verdict(findings: Findings) -> list[str]:
    """The comparison in sentences."""
    c = findings.comparison
    best = next(name for name in c.order if name != "oracle")
    pairs = {name: c.pair(best, name) for name in c.order if name not in (best, "oracle")}
    lines = [f"The recipes differ: Friedman's test over {c.instances} instances gives {_p(c.friedman.p)}."]
    if c.friedman.p > c.alpha:
        lines = [f"Nothing is certain: Friedman's test over {c.instances} instances gives {_p(c.friedman.p)}."]
    if c.order[0] == "oracle":
        lines.append("The oracle, which solves for all classes at once, ranks first.")
    below = [name for name, pair in pairs.items() if pair.significant]
    if below:
        largest = max(pairs[name].adjusted for name in below)
        lines.append(f"{best} ranks significantly above {_and(below)} (Wilcoxon-Holm, {_p(largest)}).")
    level = [name for name in pairs if name not in below]
    if level:
        lines.append(f"{best} cannot be told apart from {_and(level)}.")
    return lines


def _p(p: float) -> str:
    return "p < 0.0001" if p < 1e-4 else f"p = {p:.2g}"


def _and(names: list[str]) -> str:
    return " and ".join([*([", ".join(names[:-1])] if names[1:] else []), names[-1]])


def _row(findings: Findings, name: str) -> str:
    cells = []
    for task in TASKS:
        values = [100 * v for (t, _), v in findings.scores[name].items() if t == task]
        best = max(findings.accuracy(other, task) for other in findings.scores) == findings.accuracy(name, task)
        shown = f"{fmean(values):.1f}<small> ± {stdev(values):.1f}</small>"
        cells.append(html.number(shown, best))
    recipe = recipes.describe(name)
    parts = escape(" / ".join(recipe.parts().values()))
    head = f'<th scope="row">{name}<small>{parts}</small></th>'
    return html.row(head, html.number(f"{findings.comparison.rank(name):.2f}"), *cells)


def _example(example: Example) -> str:
    right = example.predicted == example.label
    answer = f"{example.predicted}" + ("" if right else f"<small> (is {example.label})</small>")
    return (
        f"<figure{'' if right else ' class=wrong'}><div>{_picture(example.picture, f'a {example.label}')}"
        f"{_picture(example.beside, 'the training picture beside it')}</div>"
        f"<figcaption><b>{answer}</b> {100 * example.probability:.0f} %</figcaption></figure>"
    )


def _image(content: bytes, kind: str, alternative: str) -> str:
    return f'<img alt="{escape(alternative)}" src="data:image/{kind};base64,{b64encode(content).decode()}">'


def _picture(pixels: Array, alternative: str) -> str:
    from PIL import Image

    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "png")
    return _image(out.getvalue(), "png", alternative)


def accuracy_over_k(findings: Findings) -> bytes:
    """Accuracy against the number of k-means proxies, with `kernel` and with `max`; bands show the range over seeds."""
    with canvas(WIDTH, HEIGHT, **FIGURE_STYLE) as (figure, out):
        axes = figure.add_subplot()
        for title, colour in zip(findings.yardsticks, COLOURS):
            for name, (line, mark) in LINES.items():
                curve = findings.curves[title, name]
                means = [100 * fmean(curve[k]) for k in KS]
                low, high = ([100 * extreme(curve[k]) for k in KS] for extreme in (min, max))
                axes.fill_between(KS, low, high, color=colour, alpha=0.1, lw=0)
                axes.plot(KS, means, mark, ls=line, color=colour, lw=2, ms=5)
            axes.plot([], [], color=colour, lw=4, label=title)
        for name, (line, mark) in LINES.items():
            axes.plot([], [], mark, ls=line, color=PALE, lw=2, ms=5, label=MEANING[name])
        axes.set_xscale("log")
        axes.set_xticks(KS, [str(k) for k in KS])
        axes.minorticks_off()
        axes.set_xlabel("proxies per class, k")
        axes.set_ylabel("accuracy, %")
        axes.legend(loc="lower right")
    return out.getvalue()


def gain_over_nc1(findings: Findings) -> bytes:
    """The gain of 20 proxies over one, against the NC1 of the task."""
    with canvas(WIDTH, HEIGHT, **FIGURE_STYLE) as (figure, out):
        axes = figure.add_subplot()
        values = [g.nc1 for g in findings.gains]
        line = np.geomspace(min(values), max(values), 50)
        axes.plot(line, [findings.fit.predict(v) for v in line], color=PALE, lw=1, ls=DASHED)
        for d, shade in enumerate(SHADES, start=1):
            points = [g for g in findings.gains if g.d == d]
            x, y = [g.nc1 for g in points], [g.gain for g in points]
            axes.scatter(x, y, s=42, color=shade, edgecolor="white", lw=0.6, label=str(d))
        axes.set_xscale("log")
        ticks = [t for t in (0.1, 0.2, 0.5, 1, 2, 5, 10) if min(values) * 0.8 <= t <= max(values) * 1.25]
        axes.set_xticks(ticks, [f"{t:g}" for t in ticks])
        axes.minorticks_off()
        axes.set_xlabel("NC1 of the training embeddings (0 is collapsed)")
        axes.set_ylabel("gain of k = 20 over k = 1, points")
        axes.legend(loc="upper left", title="digits per class", ncols=5, columnspacing=0.8, handletextpad=0)
    return out.getvalue()
