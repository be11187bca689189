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
from imprint.demo.findings import (
    CURVES,
    KS,
    RULES,
    SHOTS,
    TASKS,
    Example,
    Findings,
)
from imprint.report import critical_difference, html
from imprint.report.figures import (
    Cloud,
    Panel,
    Point,
    Series,
    draw,
    scatter,
)


def write_page(findings: Findings, folder: str | Path) -> Path:
    """Write `demo.html` into a folder, which is created if necessary."""
    content = page(findings).encode()
    (target,) = write_outputs(Path(folder), {"demo.html": content})
    return target


def page(findings: Findings) -> str:
    """The whole page."""
    comparison = findings.comparison
    template = (files("imprint.demo") / "page.html").read_text("utf-8")
    curve = _image(accuracy_over_k(findings), "Accuracy against the number of proxies")
    gains = _image(
        gain_over_nc1(findings), "Gain of twenty proxies over one against NC1"
    )
    heads = [f'<th class="n">{name}</th>' for name in TASKS.values()]
    rows = [_row(findings, name) for name in comparison.order]
    collapse = [html.number(f"{findings.nc1[task]:.2f}") for task in TASKS]
    examples = [_example(example) for example in findings.examples]
    return Template(template).substitute(
        style=html.STYLE,
        icon=html.ICON,
        version=__version__,
        seconds=f"{findings.seconds:.0f}",
        train=f"{findings.rows[0]:,}",
        test=f"{findings.rows[1]:,}",
        shots=SHOTS,
        seeds=findings.seeds,
        instances=comparison.instances,
        head="".join(heads),
        rows="".join(rows),
        verdict=escape(" ".join(verdict(findings))),
        ranks=_image(critical_difference(comparison), "Average ranks of the recipes"),
        curve=curve,
        gains=gains,
        count=len(findings.scores),
        spearman=f"{findings.fit.spearman:.2f}",
        p=_p(findings.fit.p_value),
        slope=f"{findings.fit.slope:.0f}",
        collapse="".join(collapse),
        examples="".join(examples),
        **_knowledge(findings),
    )


def _knowledge(findings: Findings) -> dict[str, str]:
    """What the page says of the model of nine digits, as texts for the template."""
    knowledge = findings.knowledge
    low, high = knowledge.interval
    shares = {
        "expected": knowledge.expected,
        "low": low,
        "high": high,
        "measured": knowledge.accuracy,
        "refused_known": knowledge.refused_known,
        "refused_unknown": knowledge.refused_unknown,
    }
    texts = {name: f"{100 * share:.1f}" for name, share in shares.items()}
    texts["forgetting"] = f"{1000 * knowledge.forgetting:.1f}"
    texts["exactly"] = "except for rounding"
    if knowledge.forgets_exactly:
        texts["exactly"] = "bit for bit"
    return texts


def verdict(findings: Findings) -> list[str]:
    """The comparison in sentences."""
    comparison = findings.comparison
    # The oracle is a reference: it is not an imprinting method.
    imprinting = [name for name in comparison.order if name != "oracle"]
    best, *others = imprinting
    pairs = {name: comparison.pair(best, name) for name in others}
    differ = "No difference is significant"
    if comparison.friedman.p <= comparison.alpha:
        differ = "The recipes differ"
    lines = [
        f"{differ}: Friedman's test over {comparison.instances} instances gives"
        f" {_p(comparison.friedman.p)}."
    ]
    if comparison.order[0] == "oracle":
        lines.append("The oracle, which solves for all classes at once, ranks first.")
    below = [name for name, pair in pairs.items() if pair.significant]
    level = [name for name, pair in pairs.items() if not pair.significant]
    if below:
        largest = max(pairs[name].adjusted for name in below)
        lines.append(
            f"{best} ranks significantly above {_and(below)} (Wilcoxon-Holm,"
            f" {_p(largest)})."
        )
    if level:
        lines.append(f"{best} does not differ significantly from {_and(level)}.")
    return lines


def _p(p: float) -> str:
    """A p-value as an equation; tiny ones have no meaningful digits."""
    return "p < 0.0001" if p < 1e-4 else f"p = {p:.2g}"


def _and(names: list[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def _row(findings: Findings, name: str) -> str:
    """The row of a recipe in the table of accuracies."""
    cells = []
    for task in TASKS:
        values = [100 * value for value in findings.accuracies(name, task)]
        means = [findings.accuracy(other, task) for other in findings.scores]
        is_best = findings.accuracy(name, task) == max(means)
        text = f"{fmean(values):.1f}<small> ± {stdev(values):.1f}</small>"
        cells.append(html.number(text, is_best))
    parts = " / ".join(recipes.describe(name).parts().values())
    head = html.row_head(name, f"<small>{escape(parts)}</small>")
    rank = html.number(f"{findings.comparison.rank(name):.2f}")
    return html.row(head, rank, *cells)


def _example(example: Example) -> str:
    """A test image next to the training image of the proxy that decided."""
    is_right = example.predicted == example.label
    kind = "" if is_right else " class=wrong"
    truth = "" if is_right else f"<small> (is {example.label})</small>"
    image = _image(example.image, f"a {example.label}")
    exemplar = _image(example.exemplar, "the training image next to it")
    return (
        f"<figure{kind}><div>{image}{exemplar}</div><figcaption>"
        f"<b>{example.predicted}{truth}</b>"
        f" {100 * example.probability:.0f} %</figcaption></figure>"
    )


def _image(content: bytes | Array, alternative: str) -> str:
    """A drawing as SVG, or an image as an array, inside the page."""
    kind = "svg+xml"
    if not isinstance(content, bytes):
        from PIL import Image

        kind = "png"
        out = io.BytesIO()
        Image.fromarray(content).save(out, kind)
        content = out.getvalue()
    source = f"data:image/{kind};base64,{b64encode(content).decode()}"
    return f'<img alt="{escape(alternative)}" src="{source}">'


def accuracy_over_k(findings: Findings) -> bytes:
    """Accuracy against the number of k-means proxies, with `kernel` and with `max`.

    Bands show the range over seeds.
    """
    panels = []
    for title in CURVES:
        lines = []
        for name, label in RULES.items():
            curve = findings.curves[title, name]
            values = 100 * np.array(list(curve.values()))  # (k, seeds)
            line = Series(
                label=label,
                x=KS,
                y=values.mean(axis=1),
                low=values.min(axis=1),
                high=values.max(axis=1),
                dotted=name != "kernel",
            )
            lines.append(line)
        panels.append(Panel(title, lines))
    return draw(
        panels,
        x_label="proxies per class, k",
        y_label="accuracy, %",
        log_x=True,
        height=3.2,
    )


def gain_over_nc1(findings: Findings) -> bytes:
    """The gain of 20 proxies over one, against the NC1 of the task."""
    points = []
    for digits, collapse, gain in findings.gains:
        points.append(Point(f"{digits} per class", True, collapse, gain))
    cloud = Cloud("one to five digits per class", points, findings.fit)
    return scatter(
        [cloud],
        x_label="NC1 of the training embeddings (log scale)",
        y_label="gain of k = 20 over k = 1, points",
    )
