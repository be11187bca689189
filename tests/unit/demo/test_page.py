"""The page of `imprint demo`, from made-up findings."""

import re
from dataclasses import replace

import numpy as np
import pytest

from imprint import recipes
from imprint.collapse import gain_fit
from imprint.demo.findings import CURVES, KS, RULES, TASKS, Example, Findings, Knowledge
from imprint.demo.page import accuracy_over_k, gain_over_nc1, page, verdict
from imprint.stats import compare


def findings(step=0.02, forgets_exactly=True):
    """Recipes that differ by `step` on every task and seed."""
    rng = np.random.default_rng(0)
    noise = {(task, seed): rng.uniform(0, 0.05) for task in TASKS for seed in range(5)}
    names = list(recipes.names())
    scores = {
        name: {at: 0.6 + step * i + v for at, v in noise.items()}
        for i, name in enumerate(names)
    }
    if not step:
        scores = {name: {at: rng.uniform(0.6, 0.7) for at in noise} for name in names}
    curves = {
        (t, r): {k: [0.5 + k / 200, 0.6 + k / 200] for k in KS}
        for t in CURVES
        for r in RULES
    }
    gains = [
        (d, 0.1 * d + 0.01 * i, 3.0 * d + i) for d in range(1, 6) for i in range(4)
    ]
    image = np.zeros((8, 8), dtype=np.uint8)
    return Findings(
        scores=scores,
        comparison=compare(scores),
        curves=curves,
        gains=gains,
        fit=gain_fit([x for _, x, _ in gains], [gain for *_, gain in gains]),
        knowledge=Knowledge(
            0.981, (0.962, 0.991), 0.984, 0.038, 0.5, 0.0001, forgets_exactly
        ),
        nc1=dict.fromkeys(TASKS, 1.25),
        examples=[
            Example(image, 1, 1, 0.99, image),
            Example(image, 4, 9, 0.51, image),
        ],
        rows=(1442, 355),
        seeds=5,
        seconds=31.0,
    )


def test_the_conclusion_names_significant_and_other_differences():
    clear = verdict(findings())
    order = findings().comparison.order
    best, below = (
        next(name for name in order if name != "oracle"),
        [n for n in order if n != "oracle"][1:],
    )
    assert clear[0].startswith(
        "The recipes differ: Friedman's test over 20 instances gives p < 0.0001"
    )
    assert clear[-1].startswith(
        f"{best} ranks significantly above {', '.join(below[:-1])} and {below[-1]} ("
    )
    unclear = verdict(findings(step=0))
    assert unclear[0].startswith(
        "No difference is significant: Friedman's test over 20 instances gives p = "
    )
    assert "does not differ significantly from" in unclear[-1]


def test_the_page_shows_nc1_of_every_task():
    collapse = dict(zip(TASKS, (1.25, 2.5, 3.75, 5.0)))
    cells = "".join(f'<td class="n">{value:.2f}</td>' for value in collapse.values())
    assert cells in page(replace(findings(), nc1=collapse))


def test_the_page_shows_every_recipe_task_and_example():
    text = page(findings())
    for name in recipes.names():
        assert f'<th scope="row">{name}<small>' in text
    assert text.count("<figure class=wrong>") == 1
    assert "9<small> (is 4)</small>" in text
    assert re.search(r"98\.1 %</b>\s+\(95 % interval 96\.2 to 99\.1\)", text)
    assert "bit for bit" in text
    assert "except for rounding" in page(findings(forgets_exactly=False))
    assert not re.search(r"\$\w", text)


def test_curves_show_the_mean_of_the_seeds_and_their_range(monkeypatch):
    drawn = []
    monkeypatch.setattr(
        "imprint.demo.page.draw", lambda panels, *_, **__: drawn.extend(panels) or b""
    )
    accuracy_over_k(findings())
    assert [panel.title for panel in drawn] == list(CURVES)
    line = drawn[0].lines[0]
    assert list(line.x) == list(KS)
    assert line.y == pytest.approx([55 + k / 2 for k in KS])
    assert (line.low, line.high) == (
        pytest.approx([50 + k / 2 for k in KS]),
        pytest.approx([60 + k / 2 for k in KS]),
    )


def test_gains_are_drawn_by_the_number_of_digits():
    svg = gain_over_nc1(findings()).decode()
    assert all(f">{d} per class<" in svg for d in range(1, 6))
