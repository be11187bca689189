"""Planted label errors: `imprint check` and cleanlab on the same out-of-fold probabilities.

    python benchmarks/field/label_errors.py [--share 0.05]      (needs cleanlab)

Errors are random labels, labels of the most confused class, or copies of rows with another label. `P@n` is the share of
planted errors among the n highest scores, where n is their number. The other figures describe the listed rows. The
thresholds of the rule are chosen on the first six sets (last table); the other six sets are held out.
"""

import itertools
import sys
import time
from typing import NamedTuple

import numpy as np
from data import load, per_class
from tables import parser_of, print_comparison

from imprint import recipe, recipes
from imprint.calibration import OutOfFold, out_of_fold
from imprint.evaluation import inspection as rule
from imprint.method import Method

METHOD = Method.of(**recipes.describe("kernel").parts())
CHOSEN_ON = {
    "22 photograph classes, DeiT": ("deit_tiny-tinyimagenet100", 60),
    "cifar10, DeiT": ("deit_tiny-cifar10", 100),
    "mnist, DeiT": ("deit_tiny-mnist", 100),
    "fashionmnist, TinyNet": ("tinynet-fashionmnist", 100),
    "banking77": ("banking77", 20),
    "trec": ("trec", 80),
}
HELD_OUT = {
    "22 photograph classes, MobileNet": ("mobilenet_v1_0.25_128-tinyimagenet100", 60),
    "cifar10, ResNet-50": ("resnet50_keras-cifar10", 100),
    "mnist, MobileNet": ("mobilenet_v1_0.5_160-mnist", 100),
    "fashionmnist, ResNet-50": ("resnet50_keras-fashionmnist", 100),
    "clinc150": ("clinc150", 20),
    "goemotions": ("goemotions", 60),
}
KINDS = ("none", "random", "confused class", "duplicate")
LIMITS = {
    "MAX_LABEL_PROBABILITY": (0.002, 0.005, 0.02),
    "MIN_CONFIDENCE": (0.9, 0.95, 0.98),
    "TYPICAL_SHARE": (0.1, 0.2, 0.3),
}
MAX_FALSE_ALARMS = 1.0  # % of correctly labelled rows, mean over the sets


class Planted(NamedTuple):
    X: np.ndarray
    y: np.ndarray
    wrong: np.ndarray  # (n,) whether the label is a planted error


class Draw(NamedTuple):
    """Out-of-fold predictions of rows with planted errors."""

    name: str
    kind: str
    wrong: np.ndarray
    answers: OutOfFold
    P: np.ndarray


def rows_of(name: str, pack_name: str, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and class numbers; for photographs, only the 22 classes with the highest recall."""
    pack = load(pack_name)
    classes = np.unique(pack.y)
    if name.startswith("22"):
        predicted = recipe("kernel", random_state=0).fit(pack.X, pack.y).predict(pack.Q)
        recall = [np.mean(predicted[pack.t == c] == c) for c in classes]
        classes = np.sort(classes[np.argsort(recall)[-22:]])
    inside = np.flatnonzero(np.isin(pack.y, classes))
    chosen = inside[per_class(pack.y[inside], rows, np.random.default_rng(0))]
    return pack.X[chosen], np.searchsorted(classes, pack.y[chosen])


def plant(
    X: np.ndarray, y: np.ndarray, kind: str, share: float, shares: np.ndarray
) -> Planted:
    """Replace the labels of a share of the rows, or add copies of these rows with another label."""
    rng, classes = np.random.default_rng(0), int(y.max()) + 1
    chosen = rng.choice(
        len(y), 0 if kind == "none" else round(share * len(y)), replace=False
    )
    other = (y[chosen] + rng.integers(1, classes, len(chosen))) % classes
    if kind == "duplicate":
        wrong = np.arange(len(y) + len(chosen)) >= len(y)
        return Planted(
            np.concatenate([X, X[chosen]]), np.concatenate([y, other]), wrong
        )
    if kind == "confused class":
        confusion = np.eye(classes)[y].T @ shares
        np.fill_diagonal(confusion, 0)
        other = confusion.argmax(axis=1)[y[chosen]]
    labels = y.copy()
    labels[chosen] = other
    return Planted(X, labels, labels != y)


def draws(sets: dict[str, tuple[str, int]], share: float) -> list[Draw]:
    """One draw for every kind of error and every set."""
    predicted = []
    for name, (pack_name, rows) in sets.items():
        X, y = rows_of(name, pack_name, rows)
        clean = out_of_fold(METHOD, 0, X, y)
        for kind in KINDS:
            planted = plant(X, y, kind, share, clean.shares)
            answers = (
                clean
                if kind == "none"
                else out_of_fold(METHOD, 0, planted.X, planted.y)
            )
            predicted.append(
                Draw(name, kind, planted.wrong, answers, answers.probabilities())
            )
        print(name, file=sys.stderr, flush=True)
    return predicted


def ours(draw: Draw) -> tuple[np.ndarray, np.ndarray]:
    """The label-error score of every row, and which rows `imprint check` lists."""
    answers, listed = draw.answers, np.zeros(len(draw.P), dtype=bool)
    errors = rule.label_errors(
        answers.scores, answers.shares, draw.P, answers.true, answers.assessed
    )
    listed[[row for row, _, _ in errors]] = True
    return rule.label_error_scores(answers.scores, answers.shares, answers.true), listed


def theirs(draw: Draw) -> tuple[np.ndarray, np.ndarray]:
    """cleanlab's self-confidence score and its list, with default settings."""
    from cleanlab.filter import find_label_issues
    from cleanlab.rank import get_label_quality_scores

    P = draw.answers.shares / draw.answers.shares.sum(axis=1, keepdims=True)
    return -get_label_quality_scores(draw.answers.true, P), find_label_issues(
        draw.answers.true, P
    )


def figures(scores: np.ndarray, listed: np.ndarray, wrong: np.ndarray) -> list[float]:
    """P@n, rows listed, and precision and recall of the list."""
    count, hits = int(wrong.sum()), int((listed & wrong).sum())
    first = np.argsort(-scores, kind="stable")[:count]
    if not count:
        return [np.nan, float(listed.sum()), np.nan, np.nan]
    return [
        100 * wrong[first].mean(),
        float(listed.sum()),
        100 * hits / max(listed.sum(), 1),
        100 * hits / count,
    ]


def quality(predicted: list[Draw]) -> tuple[float, float]:
    """Mean F1 of the lists with planted errors, and the % of rows listed when no errors are planted."""
    harmonic, alarms = [], []
    for draw in predicted:
        _, listed, precision, recall = figures(*ours(draw), draw.wrong)
        if draw.kind == "none":
            alarms.append(100 * listed / len(draw.wrong))
        else:
            harmonic.append(2 * precision * recall / max(precision + recall, 1e-9))
    return float(np.mean(harmonic)), float(np.mean(alarms))


def choose(first: list[Draw], others: list[Draw]) -> None:
    """Print F1 and false alarms on both groups of sets, for the thresholds that are best on the first group."""
    present, lines = tuple(getattr(rule, name) for name in LIMITS), []
    for values in itertools.product(*LIMITS.values()):
        for name, value in zip(LIMITS, values):
            setattr(rule, name, value)
        lines.append((values, *quality(first), *quality(others)))
    allowed = [line for line in lines if line[2] <= MAX_FALSE_ALARMS]
    print(
        f"| {' | '.join(LIMITS)} | F1, chosen on | false alarms, % | F1, held out | false alarms, % |"
    )
    print("|" + "---:|" * (len(LIMITS) + 4))
    shown = sorted(allowed, key=lambda line: -line[1])[:4]
    for line in dict.fromkeys(
        [*shown, next(line for line in lines if line[0] == present)]
    ):
        mark = "**" if line[0] == present else ""  # the thresholds of this version
        cells = [f"{mark}{value}{mark}" for value in line[0]] + [
            f"{value:.1f}" for value in line[1:]
        ]
        print(f"| {' | '.join(cells)} |")


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--share", type=float, default=0.05)
    options = parser.parse_args()
    groups = [draws(sets, options.share) for sets in (CHOSEN_ON, HELD_OUT)]
    columns = "P@n | listed | precision | recall |"
    print(
        f"| data | errors | rows | planted | imprint: {columns} cleanlab: {columns}\n|---|---|"
        + "---:|" * 10
    )
    at_n: dict[str, dict[str, float]] = {"imprint": {}, "cleanlab": {}}
    seconds = dict.fromkeys(at_n, 0.0)
    for group, title in zip(groups, ("**chosen on**", "**held out**")):
        print(f"| {title} |" + " |" * 11)
        for draw in group:
            cells = [len(draw.wrong), int(draw.wrong.sum())]
            for who, method in (("imprint", ours), ("cleanlab", theirs)):
                start = time.process_time()
                row = figures(*method(draw), draw.wrong)
                seconds[who] += time.process_time() - start
                cells += row
                if draw.kind != "none" and group is groups[1]:
                    at_n[who][f"{draw.name} @ {draw.kind}"] = row[0]
            shown = " | ".join("" if np.isnan(v) else f"{v:.0f}" for v in cells)
            print(f"| {draw.name} | {draw.kind} | {shown} |", flush=True)
    print("\nHeld-out sets:")
    print_comparison(
        at_n, "imprint", "P@n, %", options.diagram, "Label errors, held-out sets, P@n"
    )
    spent = ", ".join(f"{who} {value:.1f}" for who, value in seconds.items())
    print(
        f"\nProcessor seconds for all scores and lists, without the cross-validation: {spent}\n"
    )
    choose(*groups)


if __name__ == "__main__":
    main()
