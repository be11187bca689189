"""One self-contained HTML page: no scripts, nothing loaded from anywhere."""

import io
from base64 import b64encode
from html import escape
from pathlib import Path
from statistics import fmean, stdev

from imprint import recipes
from imprint.core import __version__
from imprint.core.files.notes import write_outputs
from imprint.core.types import Array
from imprint.demo.figures import accuracy_over_k, gain_over_nc1
from imprint.demo.findings import SHOTS, TASKS, Example, Findings, Knowledge
from imprint.demo.template import PAGE
from imprint.report import critical_difference, ranks_by_row

WORDS = {5: "Five", 6: "Six", 7: "Seven"}
NAMES = {"all": "all ten digits", "even": "even digits", "odd": "odd digits", "short": "0 to 2"}


def write_page(findings: Findings, folder: str | Path) -> Path:
    """Write `demo.html` into the folder, which is made if need be."""
    (target,) = write_outputs(Path(folder), {"demo.html": page(findings).encode()})
    return target


def page(findings: Findings) -> str:
    """The whole page."""
    fit = findings.fit
    return PAGE.substitute(
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
        collapse="".join(f'<td class="n">{findings.nc1[t]:.2f}</td>' for t in TASKS),
        examples="".join(map(_example, findings.examples)),
    )


def _knowledge(k: Knowledge) -> dict[str, str]:
    percents = {
        "expected": k.expected,
        "low": k.interval[0],
        "high": k.interval[1],
        "came_true": k.accuracy,
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
        cells.append(f'<td class="n{" best" if best else ""}">{shown}</td>')
    recipe = recipes.describe(name)
    parts = escape(" / ".join(recipe.parts().values()))
    return (
        f'<tr><th scope="row">{name}<small>{parts}</small></th>'
        f'<td class="n">{findings.comparison.rank(name):.2f}</td>{"".join(cells)}</tr>'
    )


def _example(example: Example) -> str:
    right = example.predicted == example.label
    said = f"{example.predicted}" + ("" if right else f"<small> (is {example.label})</small>")
    return (
        f"<figure{'' if right else ' class=wrong'}><div>{_picture(example.picture, f'a {example.label}')}"
        f"{_picture(example.beside, 'the training picture beside it')}</div>"
        f"<figcaption><b>{said}</b> {100 * example.probability:.0f} %</figcaption></figure>"
    )


def _image(content: bytes, kind: str, alternative: str) -> str:
    return f'<img alt="{escape(alternative)}" src="data:image/{kind};base64,{b64encode(content).decode()}">'


def _picture(pixels: Array, alternative: str) -> str:
    from PIL import Image

    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "png")
    return _image(out.getvalue(), "png", alternative)
