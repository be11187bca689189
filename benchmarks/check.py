"""What `imprint check` finds of what was planted, beside cleanlab: `python benchmarks/check.py`.

Of every pack of real embeddings, so many rows per class are drawn; 5 % of the labels are replaced, by any other class
or by the one their class is most often confused with. Both sides rank and list the same out-of-fold probabilities.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from data import SHARED

from imprint import recipes
from imprint.calibration import out_of_fold
from imprint.evaluation.anomalies import duplicates, outliers
from imprint.evaluation.label_errors import doubt_of_labels, mislabelled
from imprint.method import Method

BACKBONES = ("tinynet", "deit_tiny", "mobilenet_v1_0.25_128", "mobilenet_v1_0.5_160", "resnet50_keras")
SETS = ("mnist", "fashionmnist", "cifar10")
SHARE = 0.05
METHOD = Method.of(**recipes.describe("kernel").parts())


class Planted(NamedTuple):
    X: np.ndarray
    y: np.ndarray
    wrong: np.ndarray


class Figures(NamedTuple):
    """Per cent: of the planted labels among as many most suspect rows, and of what is listed without being asked."""

    ours: float
    self_confidence: float
    margin: float
    listed: float
    precision: float
    recall: float
    their_listed: float
    their_precision: float
    their_recall: float


def pack(backbone: str, name: str) -> tuple[np.ndarray, np.ndarray]:
    file = np.load(Path(SHARED) / "embeddings" / "subset" / f"{backbone}-{name}.npz")
    offset = file["offset"] if "offset" in file.files else 0
    return (file["train"].astype(np.float32) * file["scale"] + offset).astype(np.float32), file["train_labels"].astype(
        int
    )


def drawn(X: np.ndarray, y: np.ndarray, per_class: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    rows = np.concatenate([rng.permutation(np.flatnonzero(y == c))[:per_class] for c in np.unique(y)])
    rows = rng.permutation(rows)
    return X[rows], y[rows]


def plant(X: np.ndarray, y: np.ndarray, kind: str, rng: np.random.Generator) -> Planted:
    classes = len(np.unique(y))
    chosen = rng.choice(len(y), round(SHARE * len(y)), replace=False)
    z = y.copy()
    if kind == "any class":
        z[chosen] = (y[chosen] + rng.integers(1, classes, len(chosen))) % classes
    else:
        confused = np.eye(classes)[y].T @ out_of_fold(METHOD, 0, X, y).shares
        np.fill_diagonal(confused, 0)
        z[chosen] = confused.argmax(axis=1)[y[chosen]]
    return Planted(X, z, z != y)


def measure(planted: Planted) -> Figures:
    from cleanlab.filter import find_label_issues
    from cleanlab.rank import get_label_quality_scores

    answers = out_of_fold(METHOD, 0, planted.X, planted.y)
    P = answers.shares / answers.shares.sum(axis=1, keepdims=True)

    def at(suspicion: np.ndarray) -> float:
        count = int(planted.wrong.sum())
        return 100 * float(planted.wrong[np.argsort(-suspicion, kind="stable")[:count]].mean())

    theirs = [-get_label_quality_scores(planted.y, P, method=m) for m in ("self_confidence", "normalized_margin")]
    listed = np.zeros(len(P), dtype=bool)
    listed[[i for i, _ in mislabelled(answers.scores, P, answers.own)]] = True
    issues = find_label_issues(planted.y, P)
    return Figures(
        at(doubt_of_labels(answers.scores, P, answers.own)),
        *map(at, theirs),
        *_listing(listed, planted.wrong),
        *_listing(issues, planted.wrong),
    )


def _listing(listed: np.ndarray, wrong: np.ndarray) -> tuple[float, float, float]:
    found = float((listed & wrong).sum())
    return 100 * float(listed.mean()), 100 * found / max(int(listed.sum()), 1), 100 * found / max(int(wrong.sum()), 1)


def labels(sizes: list[int], seeds: int) -> Iterator[str]:
    yield (
        "| labels replaced by | rows per class | data | ours | cleanlab, self-confidence | cleanlab, margin "
        "| ours lists, % of rows | precision | recall | cleanlab lists | precision | recall |"
    )
    yield "|---|---:|---|" + "---:|" * 9
    for kind in ("any class", "most confused class"):
        for size in sizes:
            for name in SETS:
                figures = []
                for backbone in BACKBONES:
                    for seed in range(seeds):
                        rng = np.random.default_rng(seed)
                        figures.append(measure(plant(*drawn(*pack(backbone, name), size, rng), kind, rng)))
                means = np.mean(figures, axis=0)
                yield f"| {kind} | {size} | {name} | " + " | ".join(f"{v:.1f}" for v in means) + " |"


def strangers(count: int = 1000, foreign: int = 4) -> Iterator[str]:
    """Rows of other data sets among rows of one, and rows listed that belong there; copies, and rows that are none."""
    yield "| data | foreign rows found, % | own rows listed, % | rows in groups of duplicates, % | copies found, % |"
    yield "|---|---:|---:|---:|---:|"
    for name in SETS:
        figures = []
        for backbone in BACKBONES:
            rng = np.random.default_rng(0)
            own = rng.permutation(pack(backbone, name)[0])[:count]
            others = [rng.permutation(pack(backbone, other)[0])[:foreign] for other in SETS if other != name]
            found = np.array(outliers(np.concatenate([own, *others])), dtype=int)
            alone = duplicates(own)
            noise = rng.normal(size=(50, own.shape[1])).astype(np.float32)
            noise *= (
                0.1 * np.linalg.norm(own[:50], axis=1, keepdims=True) / np.linalg.norm(noise, axis=1, keepdims=True)
            )
            copied = {i for group in duplicates(np.concatenate([own, own[:50] + noise])) for i in group}
            figures.append(
                (
                    100 * np.sum(found >= count) / (2 * foreign),
                    100 * np.sum(found < count) / count,
                    100 * sum(map(len, alone)) / count,
                    100 * np.mean([i in copied and count + i in copied for i in range(50)]),
                )
            )
        yield f"| {name} | " + " | ".join(f"{v:.1f}" for v in np.mean(figures, axis=0)) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 600], help="rows per class")
    parser.add_argument("--seeds", type=int, default=1)
    given = parser.parse_args()
    for lines in (strangers(), labels(given.sizes, given.seeds)):
        for line in lines:
            print(line, flush=True)
        print()


if __name__ == "__main__":
    main()
