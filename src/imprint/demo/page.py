"""The page of the demonstration: one HTML file without scripts that loads nothing, and its figures."""

import io
from base64 import b64encode
from html import escape
from importlib.resources import files
from pathlib import Path
from statistics import fmean, stdev
from string import Template

import numpy as np

from imprint import recipes
from imprint.core import __version__
from imprint.core.files.notes import write_outputs
from imprint.core.types import Array
from imprint.demo.findings import CURVES, KS, SHOTS, TASKS, Example, Findings, Knowledge
from imprint.report import critical_difference, html, ranks_by_row
from imprint.report.figures import Cloud, Panel, Series, draw, scatter

NAMES = {"all": "all ten digits", "even": "even digits", "odd": "odd digits", "short": "0 to 2"}
SCORING = {"kernel": "all proxies together (kernel)", "imprint2025": "the best proxy (imprint2025)"}


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
        count=len(findings.scores),
        **_knowledge(findings.knowledge),
        spearman=f"{fit.spearman:.2f}",
        p=_p(fit.p_value),
        slope=f"{fit.slope:.0f}",
        collapse="".join(html.number(f"{findings.nc1[t]:.2f}") for t in TASKS),
        examples="".join(map(_example, findings.examples)),
    )


def _knowledge(k: Knowledge) -> dict[str, str]:
    low, high = k.interval
    shares = {"expected": k.expected, "low": low, "high": high, "measured": k.accuracy}
    shares |= {"refused_known": k.refused_known, "refused_unknown": k.refused_unknown}
    exactly = "bit for bit" if k.forgets_exactly else "except for rounding"
    percents = {name: f"{100 * share:.1f}" for name, share in shares.items()}
    return {**percents, "forgetting": f"{1000 * k.forgetting:.1f}", "exactly": exactly}


def verdict(findings: Findings) -> list[str]:
    """The comparison in sentences."""
    c = findings.comparison
    best = next(name for name in c.order if name != "oracle")
    pairs = {name: c.pair(best, name) for name in c.order if name not in (best, "oracle")}
    differ = "The recipes differ" if c.friedman.p <= c.alpha else "No difference is significant"
    lines = [f"{differ}: Friedman's test over {c.instances} instances gives {_p(c.friedman.p)}."]
    if c.order[0] == "oracle":
        lines.append("The oracle, which solves for all classes at once, ranks first.")
    below = [name for name, pair in pairs.items() if pair.significant]
    if below:
        largest = max(pairs[name].adjusted for name in below)
        lines.append(f"{best} ranks significantly above {_and(below)} (Wilcoxon-Holm, {_p(largest)}).")
    if level := [name for name in pairs if name not in below]:
        lines.append(f"{best} does not differ significantly from {_and(level)}.")
    return lines


def _p(p: float) -> str:
    return "p < 0.0001" if p < 1e-4 else f"p = {p:.2g}"


def _and(names: list[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def _row(findings: Findings, name: str) -> str:
    cells = []
    for task in TASKS:
        values = [100 * v for (t, _), v in findings.scores[name].items() if t == task]
        best = max(findings.accuracy(other, task) for other in findings.scores) == findings.accuracy(name, task)
        cells.append(html.number(f"{fmean(values):.1f}<small> ± {stdev(values):.1f}</small>", best))
    parts = escape(" / ".join(recipes.describe(name).parts().values()))
    head = html.row_head(name, f"<small>{parts}</small>")
    return html.row(head, html.number(f"{findings.comparison.rank(name):.2f}"), *cells)


def _example(example: Example) -> str:
    right = example.predicted == example.label
    answer = f"{example.predicted}" + ("" if right else f"<small> (is {example.label})</small>")
    return (
        f"<figure{'' if right else ' class=wrong'}><div>{_picture(example.picture, f'a {example.label}')}"
        f"{_picture(example.exemplar, 'the training picture next to it')}</div>"
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
    panels = []
    for title in CURVES:
        lines = []
        for name, label in SCORING.items():
            values = 100 * np.array(list(findings.curves[title, name].values()))  # (k, seeds)
            lines.append(Series(label, KS, values.mean(axis=1), values.min(axis=1), values.max(axis=1)))
        panels.append(Panel(title, lines))
    return draw(panels, "proxies per class, k", "accuracy, %", log_x=True, height=3.2)


def gain_over_nc1(findings: Findings) -> bytes:
    """The gain of 20 proxies over one, against the NC1 of the task."""
    points = ((f"{g.d} per class", True, g.nc1, g.gain) for g in findings.gains)
    cloud = Cloud.of("one to five digits per class", points, findings.fit)
    return scatter([cloud], "NC1 of the training embeddings (log scale)", "gain of k = 20 over k = 1, points")
