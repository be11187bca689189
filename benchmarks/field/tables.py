"""Markdown tables with the statistics of the paper: average ranks, Friedman, Wilcoxon with Holm's correction."""

from collections.abc import Iterator, Mapping

import numpy as np

from imprint.stats import compare

Scores = Mapping[str, Mapping[str, float]]


def ranked(scores: Scores, ours: str, unit: str = "accuracy, %") -> Iterator[str]:
    """Methods by average rank; next to each, the instances that it won and lost against `ours`."""
    result = compare(scores)
    instances = list(scores[ours])
    yield f"| method | mean {unit} | mean rank | better than {ours} on | worse on | p (Wilcoxon-Holm) |"
    yield "|---|---:|---:|---|---|---:|"
    for name in result.order:
        won = [i for i in instances if scores[name][i] > scores[ours][i]]
        lost = [i for i in instances if scores[name][i] < scores[ours][i]]
        p = "" if name == ours else f"{result.pair(name, ours).adjusted:.3f}"
        mean = np.mean(list(scores[name].values()))
        cells = [name, f"{mean:.1f}", f"{result.rank(name):.2f}", _names(won, instances), _names(lost, instances), p]
        yield "| " + " | ".join(cells) + " |"
    yield ""
    yield f"Friedman test over {result.instances} instances: p = {result.friedman.p:.2g}."


def grid(scores: Scores, rows: str = "method") -> Iterator[str]:
    """Every score: one line per method, one column per instance."""
    instances = list(next(iter(scores.values())))
    yield f"| {rows} | " + " | ".join(instances) + " |"
    yield "|---|" + "---:|" * len(instances)
    for name, values in scores.items():
        yield f"| {name} | " + " | ".join(f"{values[i]:.1f}" for i in instances) + " |"


def _names(some: list[str], instances: list[str]) -> str:
    if len(some) == len(instances):
        return f"all {len(instances)}"
    return ", ".join(some) if len(some) <= 4 else f"{len(some)} of {len(instances)}"
