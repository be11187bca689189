"""The page of the demonstration: one HTML file without scripts that loads nothing, and
its figures.
"""

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
from imprint.core.arrays import Array
from imprint.core.files.atomic import write_outputs
from imprint.demo.findings import CURVES, KS, RULES, SHOTS, TASKS, Example, Findings
from imprint.report import critical_difference, html
from imprint.report.figures import Cloud, Panel, Point, Series, draw, scatter


def write_page(findings: Findings, folder: str | Path) -> Path:
    """Write `demo.html` into a folder, which is created if necessary."""
    (target,) = write_outputs(Path(folder), {"demo.html": page(findings).encode()})
    return target


def page(findings: Findings) -> str:
    """The whole page."""
    comparison, k, (low, high) = (
        findings.comparison,
        findings.knowledge,
        findings.knowledge.interval,
    )
    shares = {"expected": k.expected, "low": low, "high": high, "measured": k.accuracy}
    shares |= {"refused_known": k.refused_known, "refused_unknown": k.refused_unknown}
    return Template(
        (files("imprint.demo") / "page.html").read_text("utf-8")
    ).substitute(
        style=html.STYLE,
        icon=html.ICON,
        version=__version__,
        seconds=f"{findings.seconds:.0f}",
        train=f"{findings.rows[0]:,}",
        test=f"{findings.rows[1]:,}",
        shots=SHOTS,
        seeds=findings.seeds,
        instances=comparison.instances,
        head="".join(f'<th class="n">{name}</th>' for name in TASKS.values()),
        rows="".join(_row(findings, name) for name in comparison.order),
        verdict=escape(" ".join(verdict(findings))),
        ranks=_image(critical_difference(comparison), "Average ranks of the recipes"),
        curve=_image(
            accuracy_over_k(findings), "Accuracy against the number of proxies"
        ),
        gains=_image(
            gain_over_nc1(findings), "Gain of twenty proxies over one against NC1"
        ),
        count=len(findings.scores),
        **{name: f"{100 * share:.1f}" for name, share in shares.items()},
        forgetting=f"{1000 * k.forgetting:.1f}",
        exactly="bit for bit" if k.forgets_exactly else "except for rounding",
        spearman=f"{findings.fit.spearman:.2f}",
        p=_p(findings.fit.p_value),
        slope=f"{findings.fit.slope:.0f}",
        collapse="".join(html.number(f"{findings.nc1[task]:.2f}") for task in TASKS),
        examples="".join(map(_example, findings.examples)),
    )


def verdict(findings: Findings) -> list[str]:
    """The comparison in sentences."""
    c = findings.comparison
    best = next(name for name in c.order if name != "oracle")
    pairs = {
        name: c.pair(best, name) for name in c.order if name not in (best, "oracle")
    }
    differ = (
        "The recipes differ"
        if c.friedman.p <= c.alpha
        else "No difference is significant"
    )
    lines = [
        f"{differ}: Friedman's test over {c.instances} instances gives"
        f" {_p(c.friedman.p)}."
    ]
    if c.order[0] == "oracle":
        lines.append("The oracle, which solves for all classes at once, ranks first.")
    below = [name for name, pair in pairs.items() if pair.significant]
    if below:
        largest = max(pairs[name].adjusted for name in below)
        lines.append(
            f"{best} ranks significantly above {_and(below)} (Wilcoxon-Holm,"
            f" {_p(largest)})."
        )
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
        best = max(
            findings.accuracy(other, task) for other in findings.scores
        ) == findings.accuracy(name, task)
        cells.append(
            html.number(
                f"{fmean(values):.1f}<small> ± {stdev(values):.1f}</small>", best
            )
        )
    parts = escape(" / ".join(recipes.describe(name).parts().values()))
    rank = html.number(f"{findings.comparison.rank(name):.2f}")
    return html.row(html.row_head(name, f"<small>{parts}</small>"), rank, *cells)


def _example(example: Example) -> str:
    right = example.predicted == example.label
    answer = f"{example.predicted}" + (
        "" if right else f"<small> (is {example.label})</small>"
    )
    kind = "" if right else " class=wrong"
    picture = _image(example.picture, f"a {example.label}")
    exemplar = _image(example.exemplar, "the training picture next to it")
    return (
        f"<figure{kind}><div>{picture}{exemplar}</div><figcaption><b>{answer}</b>"
        f" {100 * example.probability:.0f} %</figcaption></figure>"
    )


def _image(content: bytes | Array, alternative: str) -> str:
    """A drawing as SVG, or a picture as an array, inside the page."""
    kind = "svg+xml"
    if not isinstance(content, bytes):
        from PIL import Image

        out, kind = io.BytesIO(), "png"
        Image.fromarray(content).save(out, kind)
        content = out.getvalue()
    return (
        f'<img alt="{escape(alternative)}"'
        f' src="data:image/{kind};base64,{b64encode(content).decode()}">'
    )


def accuracy_over_k(findings: Findings) -> bytes:
    """Accuracy against the number of k-means proxies, with `kernel` and with `max`;
    bands show the range over seeds.
    """
    panels = []
    for title in CURVES:
        lines = []
        for name, label in RULES.items():
            # (k, seeds)
            values = 100 * np.array(list(findings.curves[title, name].values()))
            lines.append(
                Series(
                    label,
                    KS,
                    values.mean(axis=1),
                    values.min(axis=1),
                    values.max(axis=1),
                )
            )
        panels.append(Panel(title, lines))
    return draw(panels, "proxies per class, k", "accuracy, %", log_x=True, height=3.2)


def gain_over_nc1(findings: Findings) -> bytes:
    """The gain of 20 proxies over one, against the NC1 of the task."""
    points = [
        Point(f"{d} per class", True, nc1, gain) for d, nc1, gain in findings.gains
    ]
    cloud = Cloud("one to five digits per class", points, findings.fit)
    return scatter(
        [cloud],
        "NC1 of the training embeddings (log scale)",
        "gain of k = 20 over k = 1, points",
    )
