"""Accuracy with class names as one more training row, for meaningful and meaningless names.

    python benchmarks/class_names.py FOLDER

FOLDER holds `banking77.npz`, `clinc150.npz` and `trec.npz`, embeddings by `minilm` (`imprint embed`). For each number
of rows per class it prints the accuracy and the mean rank of the names. Names are used by default where that rank is
below 1/2 by two standard deviations.
"""

import sys
from pathlib import Path

import numpy as np

from imprint import backbones
from imprint.head import Head
from imprint.imprinter.embedder import CRITICAL_DEVIATIONS, words_of
from imprint.method import Method

ROWS, DRAWS = (1, 2, 4, 8, 16), 3
WRITTEN_OUT = {
    "ABBR": "abbreviation",
    "DESC": "description or definition",
    "ENTY": "entity or thing",
    "HUM": "human being, person",
    "LOC": "location, place",
    "NUM": "number, numeric value",
}
METHOD = Method.of(
    norm_pre="l2", generator="all", norm_post="none", norm_inf="l2", aggregator="kernel"
)


def variants(classes: np.ndarray) -> dict[str, np.ndarray]:
    """Embedded class names: correct, shuffled, and meaningless."""
    network, n = backbones.load("minilm"), len(classes)
    names = network.embed_names(
        [WRITTEN_OUT.get(label, words_of(label)) for label in classes.tolist()]
    )
    return {
        "names": names,
        "shuffled": np.roll(names, 1, axis=0),
        "c0, c1": network.embed_names([f"c{i}" for i in range(n)]),
        "0, 1": network.embed_names([str(i) for i in range(n)]),
    }


def mean_rank(head: Head, names: np.ndarray) -> float:
    scores = head.scores(names)
    return float(
        (scores > np.diagonal(scores)[:, None]).sum(axis=1).mean() / (len(head) - 1)
    )


def main(folder: Path) -> None:
    for name in ("trec", "banking77", "clinc150"):
        pack = np.load(folder / f"{name}.npz")
        X, y, Q, t = (
            pack[key] for key in ("train", "train_labels", "test", "test_labels")
        )
        classes = np.unique(y)
        named, limit = (
            variants(classes),
            0.5 - CRITICAL_DEVIATIONS / np.sqrt(12 * len(classes)),
        )
        print(f"{name}: names are used by default below a mean rank of {limit:.3f}")
        for rows in ROWS:
            results: dict[str, list[tuple[float, float]]] = {}
            for draw in range(DRAWS):
                rng = np.random.default_rng(draw)
                index = np.concatenate(
                    [rng.permutation(np.flatnonzero(y == c))[:rows] for c in classes]
                )
                plain = Head(METHOD, 0, "float32").learn(X[index], y[index])
                results.setdefault("no names", []).append(
                    (float((classes[plain.winners(Q)] == t).mean()), 0.5)
                )
                for kind, E in named.items():
                    head = plain.learn(E, classes)
                    accuracy = float((classes[head.winners(Q)] == t).mean())
                    results.setdefault(kind, []).append((accuracy, mean_rank(plain, E)))
            means = {kind: np.mean(values, axis=0) for kind, values in results.items()}
            print(
                f"  {rows:>2} rows:",
                ", ".join(
                    f"{k} {100 * a:.1f} ({r:.2f})" for k, (a, r) in means.items()
                ),
            )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
