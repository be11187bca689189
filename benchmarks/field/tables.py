"""Markdown tables and diagrams with the statistics of the paper: average ranks, Friedman, Wilcoxon-Holm.

Every script of this folder that compares methods ends with `print_comparison`. With `--diagram FILE.svg` the script
also draws the critical-difference diagram.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from data import CACHE

from imprint.report import save_critical_difference
from imprint.stats import Comparison, compare

Scores = Mapping[str, Mapping[str, float]]


def parser_of(description: str | None) -> argparse.ArgumentParser:
    """An argument parser with the options that all scripts share."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--diagram",
        type=Path,
        help="also draw the critical-difference diagram into this .svg or .png",
    )
    return parser


def measured_once(table: str, instance: str, measure: Callable[[], Any]) -> Any:
    """The JSON value that `measure` returns; `out/field/TABLE.json` keeps it, so an interrupted script continues there.

    Delete the file to measure again.
    """
    path = CACHE / f"{table}.json"
    values = json.loads(path.read_text()) if path.exists() else {}
    if instance not in values:
        values[instance] = measure()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(values))
        print(f"{table}: {instance}", file=sys.stderr, flush=True)
    return values[instance]


def print_comparison(
    scores: Scores, reference: str, unit: str, diagram: Path | None, title: str
) -> None:
    """Print ranks and tests; draw the diagram."""
    result = compare(scores)
    print("\n".join(["", *_ranked(scores, result, reference, unit)]), flush=True)
    if diagram:
        save_critical_difference(result, diagram, title)


def grid(scores: Scores, highest: bool = True) -> Iterator[str]:
    """All scores: one line per instance, one column per method, the best in bold."""
    yield "| data | " + " | ".join(scores) + " |"
    yield "|---|" + "---:|" * len(scores)
    for instance in next(iter(scores.values())):
        cells = [f"{values[instance]:.1f}" for values in scores.values()]
        best = (max if highest else min)(cells, key=float)
        yield (
            f"| {instance} | "
            + " | ".join(f"**{cell}**" if cell == best else cell for cell in cells)
            + " |"
        )


def _ranked(
    scores: Scores, result: Comparison, reference: str, unit: str
) -> Iterator[str]:
    """Methods by average rank, each with the instances on which it is better and worse than the reference."""
    instances = list(scores[reference])
    yield f"| method | mean {unit} | mean rank | better than {reference} on | worse on | p (Wilcoxon-Holm) |"
    yield "|---|---:|---:|---|---|---:|"
    for name in result.order:
        won = [i for i in instances if scores[name][i] > scores[reference][i]]
        lost = [i for i in instances if scores[name][i] < scores[reference][i]]
        p = "" if name == reference else f"{result.pair(name, reference).adjusted:.2g}"
        mean = np.mean(list(scores[name].values()))
        cells = [
            name,
            f"{mean:.1f}",
            f"{result.rank(name):.2f}",
            *_won_and_lost(won, lost, instances),
            p,
        ]
        yield "| " + " | ".join(cells) + " |"
    yield ""
    yield f"Friedman test over {result.instances} instances: p = {result.friedman.p:.2g}."


def _won_and_lost(
    won: list[str], lost: list[str], instances: list[str]
) -> tuple[str, str]:
    """Instances won and lost. The longer list is "all others", followed by instances with equal scores."""
    equal = [i for i in instances if i not in won and i not in lost]
    ties = f"; equal on {_grouped(equal)}" if equal else ""

    def rest(names: list[str]) -> str:
        return (
            f"all {len(names)}" if len(names) == len(instances) else f"all others{ties}"
        )

    if len(lost) > max(len(won), 3):
        return _grouped(won), rest(lost)
    return (rest(won) if len(won) > max(len(lost), 3) else _grouped(won)), _grouped(
        lost
    )


def _grouped(names: list[str]) -> str:
    """`trec @ 10`, `trec @ 20` as `trec (10, 20)`; other names as they are."""
    groups: dict[str, list[str]] = {}
    for name in names:
        first, _, second = name.partition(" @ ")
        groups.setdefault(first, []).extend([second] if second else [])
    return "; ".join(
        f"{first} ({', '.join(rest)})" if rest else first
        for first, rest in groups.items()
    )
