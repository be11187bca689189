"""Planted label errors: `imprint check` and cleanlab on the same out-of-fold probabilities.

    python benchmarks/field/label_errors.py [--seeds 1] [--share 0.05]      (needs cleanlab)

Errors are random labels, labels of the most confused class, or copies of rows with another label. `P@n` is the share of
planted errors among the n highest scores, n being the number planted. The other figures describe the lists.
"""

import argparse
import time
from typing import NamedTuple

import numpy as np
from data import load, per_class
from tables import ranked

from imprint import recipe, recipes
from imprint.calibration import OutOfFold, calibrate, out_of_fold
from imprint.evaluation.label_errors import label_error_scores, label_errors
from imprint.method import Method

METHOD = Method.of(**recipes.describe("kernel").parts())
SETS = {
    "22 photograph classes": ("deit_tiny-tinyimagenet100", 60),
    "cifar10": ("deit_tiny-cifar10", 100),
    "mnist": ("deit_tiny-mnist", 100),
    "fashionmnist": ("tinynet-fashionmnist", 100),
    "banking77": ("banking77", 20),
    "trec": ("trec", 80),
}
KINDS = ("random", "confused class", "duplicate")


class Planted(NamedTuple):
    X: np.ndarray
    y: np.ndarray
    wrong: np.ndarray  # (n,) whether the label is a planted error


def rows_of(name: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and class numbers; of the photographs the 22 classes with the highest recall."""
    pack = load(SETS[name][0])
    classes = np.unique(pack.y)
    if name.startswith("22"):
        answers = recipe("kernel", random_state=0).fit(pack.X, pack.y).predict(pack.Q)
        recall = [np.mean(answers[pack.t == c] == c) for c in classes]
        classes = np.sort(classes[np.argsort(recall)[-22:]])
    inside = np.flatnonzero(np.isin(pack.y, classes))
    rows = inside[per_class(pack.y[inside], SETS[name][1], np.random.default_rng(seed))]
    return pack.X[rows], np.searchsorted(classes, pack.y[rows])


def plant(X: np.ndarray, y: np.ndarray, kind: str, share: float, rng: np.random.Generator) -> Planted:
    """Replace labels of a share of the rows, or add copies of them with another label."""
    classes, chosen = int(y.max()) + 1, rng.choice(len(y), round(share * len(y)), replace=False)
    other = (y[chosen] + rng.integers(1, classes, len(chosen))) % classes
    if kind == "duplicate":
        wrong = np.arange(len(y) + len(chosen)) >= len(y)
        return Planted(np.concatenate([X, X[chosen]]), np.concatenate([y, other]), wrong)
    if kind == "confused class":
        confusion = np.eye(classes)[y].T @ out_of_fold(METHOD, 0, X, y).shares
        np.fill_diagonal(confusion, 0)
        other = confusion.argmax(axis=1)[y[chosen]]
    labels = y.copy()
    labels[chosen] = other
    return Planted(X, labels, labels != y)


def ours(answers: OutOfFold, P: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The score of every row, and which rows are listed."""
    listed = np.zeros(len(P), dtype=bool)
    listed[[e.row for e in label_errors(answers.scores, answers.shares, P, answers.own)]] = True
    return label_error_scores(answers.scores, answers.shares, answers.own), listed


def theirs(answers: OutOfFold, P: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """cleanlab's self-confidence score and its list, with default settings."""
    from cleanlab.filter import find_label_issues
    from cleanlab.rank import get_label_quality_scores

    return -get_label_quality_scores(answers.own, P), find_label_issues(answers.own, P)


def figures(scores: np.ndarray, listed: np.ndarray, wrong: np.ndarray) -> list[float]:
    """P@n, rows listed, and precision and recall of the list."""
    count, hits = int(wrong.sum()), int((listed & wrong).sum())
    first = np.argsort(-scores, kind="stable")[:count]
    at_n = 100 * wrong[first].mean() if count else np.nan
    return [at_n, listed.sum(), 100 * hits / max(listed.sum(), 1), 100 * hits / max(count, 1)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--share", type=float, default=0.05)
    given = parser.parse_args()
    figures_of = "P@n | listed | precision | recall |"
    print(f"| errors | data | rows | planted | imprint: {figures_of} cleanlab: {figures_of}")
    print("|---|---|" + "---:|" * 10)
    at_n: dict[str, dict[str, float]] = {"imprint": {}, "cleanlab": {}}
    seconds = dict.fromkeys(at_n, 0.0)
    for kind in ("none", *KINDS):
        for name in SETS:
            cells = []
            for seed in range(given.seeds):
                X, y = rows_of(name, seed)
                share = 0.0 if kind == "none" else given.share
                planted = plant(X, y, "random" if kind == "none" else kind, share, np.random.default_rng(seed))
                answers = out_of_fold(METHOD, 0, planted.X, planted.y)
                P, row = calibrate(answers).probabilities(answers.shares), [len(planted.y), int(planted.wrong.sum())]
                plain = answers.shares / answers.shares.sum(axis=1, keepdims=True)
                for who, method, given_P in (("imprint", ours, P), ("cleanlab", theirs, plain)):
                    start = time.process_time()
                    row += figures(*method(answers, given_P), planted.wrong)
                    seconds[who] += time.process_time() - start
                cells.append(row)
            means = np.mean(cells, axis=0)
            if kind != "none":
                at_n["imprint"][f"{name}, {kind}"], at_n["cleanlab"][f"{name}, {kind}"] = means[2], means[6]
            print(
                f"| {kind} | {name} | " + " | ".join("" if np.isnan(v) else f"{v:.0f}" for v in means) + " |",
                flush=True,
            )
    for line in ("", *ranked(at_n, "imprint", "P@n, %"), ""):
        print(line)
    print(
        "Processor seconds for all scores and lists, without the cross-validation:",
        {k: round(v, 2) for k, v in seconds.items()},
    )


if __name__ == "__main__":
    main()
