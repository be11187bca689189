"""What the paper claims of accuracy over k, checked on the means over label maps."""

from collections.abc import Mapping

import numpy as np

from imprint.core.types import Array
from imprint.paper.published import D, K, kmeans_over_k
from imprint.report.sections import Claim, Verdict, verdict

Means = Mapping[str, Array]
"""Accuracy by backbone.  # (d, k)"""


def peaks(values: Array) -> list[int]:
    """The d at which k = d is better than its neighbours k = d - 1 and k = d + 1."""
    found = []
    for d, row in zip(D, values):
        at = d - 1
        if row[at] > row[at + 1] and (at == 0 or row[at] > row[at - 1]):
            found.append(d)
    return found


def published() -> dict[str, Array]:
    """The published curves, L2 throughout."""
    table = kmeans_over_k()
    backbones = dict.fromkeys(b for b, _ in table)
    return {b: np.array([table[b, f"{d}_in_1"] for d in D]) for b in backbones}


def _shown(means: Means) -> str:
    return "; ".join(f"{b}: {_numbers(peaks(v))}" for b, v in means.items())


def _numbers(found: list[int]) -> str:
    return f"d = {', '.join(map(str, found))}" if found else "no d"


def _everywhere(means: Means) -> Verdict:
    return verdict(all(len(peaks(v)) == len(D) for v in means.values()))


def _best_at_d(means: Means) -> tuple[int, int]:
    hits = [K[int(np.argmax(row))] == d for v in means.values() for d, row in zip(D, v)]
    return sum(hits), len(hits)


def l2(means: Means) -> list[Claim]:
    """k-means, L2 throughout."""
    theirs = published()
    here, there = _best_at_d(means), _best_at_d(theirs)
    return [
        Claim(
            "There is a peak at k = d for every backbone and every d.",
            _everywhere(means),
            f"peaks at {_shown(means)}",
            _everywhere(theirs),
            f"peaks at {_shown(theirs)}",
        ),
        Claim(
            "d proxies are best for classes of d modes (k = d is the best of 1 to 15).",
            verdict(here[0] == here[1]),
            f"{here[0]} of {here[1]}",
            verdict(there[0] == there[1]),
            f"{there[0]} of {there[1]}",
        ),
        Claim(
            "For d ≥ 2 several proxies beat one: k = d against k = 1.",
            verdict(all(row[d - 1] > row[0] for v in means.values() for d, row in zip(D[1:], v[1:]))),
            _gains(means),
            verdict(all(row[d - 1] > row[0] for v in theirs.values() for d, row in zip(D[1:], v[1:]))),
            _gains(theirs),
        ),
    ]


def _gains(means: Means) -> str:
    return "at d = 10: " + ", ".join(f"{b} {v[9][9] - v[9][0]:+.2f}" for b, v in means.items())


def pre_none(means: Means) -> list[Claim]:
    """k-means without normalisation before it."""
    dips = {b: _dips(v) for b, v in means.items()}
    return [
        Claim(
            "Without norm_pre the peaks at k = d remain.",
            _everywhere(means),
            f"peaks at {_shown(means)}",
            Verdict.HOLDS,
            "as the paper reads Figure A.6a",
        ),
        Claim(
            "Transformers dip between k = 1 and k = d, convolutional networks do not.",
            verdict(all((dips[b] > 0.5) == _transformer(b) for b in means)),
            "largest dip below k = 1, points: " + ", ".join(f"{b} {v:.2f}" for b, v in dips.items()),
            Verdict.HOLDS,
            "as the paper reads Figure A.6a",
        ),
    ]


def k_least_squares(means: Means) -> list[Claim]:
    """k-least-squares."""
    falls = {b: float(np.mean([row[d - 1] - row[-1] for d, row in zip(D, v)])) for b, v in means.items()}
    one = {b: sum(int(np.argmax(row)) == 0 for row in v) for b, v in means.items()}
    return [
        Claim(
            "k-least-squares declines beyond k = d.",
            verdict(all(v > 0 for v in falls.values())),
            "from k = d to k = 15 on average, points lost: " + ", ".join(f"{b} {v:.2f}" for b, v in falls.items()),
            Verdict.HOLDS,
            "as the paper reads Figure A.6b",
        ),
        Claim(
            "With k-least-squares convolutional networks peak at k = d; transformers are mostly best at k = 1.",
            verdict(all(one[b] > 5 if _transformer(b) else len(peaks(v)) >= 8 for b, v in means.items())),
            f"peaks at {_shown(means)}; k = 1 is best for " + ", ".join(f"{b} {n} of 10 d" for b, n in one.items()),
            Verdict.HOLDS,
            "as the paper reads Figure A.6b",
        ),
    ]


def _dips(values: Array) -> float:
    """How far accuracy falls below k = 1 before k = d, at most."""
    return float(max(row[0] - row[: d - 1].min() for d, row in zip(D[2:], values[2:])))


def _transformer(backbone: str) -> bool:
    return any(word in backbone for word in ("vit", "swin", "deit", "minilm"))


CLAIMS = {"l2": l2, "pre_none": pre_none, "k_least_squares": k_least_squares}
