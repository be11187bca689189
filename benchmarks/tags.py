"""Tags (multi-label classification) on GoEmotions: imprint next to one-vs-rest logistic regression.

    OMP_NUM_THREADS=1 python benchmarks/tags.py FOLDER [ROWS] [EMBEDDINGS.npz]

FOLDER holds `train.tsv`, `test.tsv` and `labels.txt` of GoEmotions (28 labels, Apache-2.0). The first ROWS (4,000) rows
of the training data are used, and all rows of the test data, embedded by `minilm`; the embeddings are written to, or
read from, the third argument. Every method chooses one threshold per label on held-out predictions. Times are CPU
seconds on one core for fitting, thresholds and the predictions of the test data, without embedding.
"""

import csv
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, f1_score
from sklearn.model_selection import GridSearchCV, cross_val_predict

from imprint import ImprintClassifier, Imprinter
from imprint.core.label_sets import from_lists
from imprint.imprinter import Embedded

CS = np.logspace(-4, 4, 10)  # the values of LogisticRegressionCV
TAGS = {"generator": "all", "aggregator": "kernel(noise=1)"}


def read(
    folder: Path, part: str, rows: int | None = None
) -> tuple[list[str], list[list[int]]]:
    with open(folder / f"{part}.tsv", newline="", encoding="utf-8") as f:
        lines = list(csv.DictReader(f, delimiter="\t", quoting=csv.QUOTE_NONE))[:rows]
    return [line["text"] for line in lines], [
        list(map(int, line["label"].split(","))) for line in lines
    ]


def embedded(texts: list[str], file: Path | None, key: str) -> np.ndarray:
    if file is not None and file.exists():
        with np.load(file) as stored:
            if key in stored.files and len(stored[key]) == len(texts):
                return stored[key]
    X = Imprinter("minilm", cache=False).look(texts).X
    if file is not None:
        before = dict(np.load(file)) if file.exists() else {}
        np.savez(file, **{**before, key: X})
    return X


def indicator(labels: list[list[int]], count: int) -> np.ndarray:
    Y = np.zeros((len(labels), count), dtype=int)
    for row, present in zip(Y, labels):
        row[present] = 1
    return Y


def logistic_regression(choose: bool) -> Callable[..., tuple[np.ndarray, np.ndarray]]:
    """One model per label on rows of unit length, with C = 1 or the best of ten in five-fold cross-validation.

    The threshold of a label maximises F1 in five-fold cross-validation.
    """

    def run(
        X: np.ndarray, Y: np.ndarray, Q: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        X, Q = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (X, Q))
        P, predicted = (
            np.empty((len(Q), Y.shape[1])),
            np.empty((len(Q), Y.shape[1]), dtype=bool),
        )
        for c, y in enumerate(Y.T):
            C = 1.0
            if choose:
                grid = GridSearchCV(
                    LogisticRegression(max_iter=1000),
                    {"C": CS},
                    scoring="average_precision",
                    cv=5,
                )
                C = grid.fit(X, y).best_params_["C"]
            model = LogisticRegression(C=C, max_iter=1000)
            held_out = cross_val_predict(model, X, y, cv=5, method="predict_proba")[
                :, 1
            ]
            order = np.argsort(-held_out)
            f1 = 2 * np.cumsum(y[order]) / (np.arange(1, len(y) + 1) + y.sum())
            P[:, c] = model.fit(X, y).predict_proba(Q)[:, 1]
            predicted[:, c] = P[:, c] >= held_out[order[f1.argmax()]]
        return P, predicted

    return run


def classifier(**parts: str) -> Callable[..., tuple[np.ndarray, np.ndarray]]:
    def run(
        X: np.ndarray, Y: np.ndarray, Q: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        head = ImprintClassifier(**parts).fit(X, Y).head_
        S = head.scores(Q)
        return head.probabilities(S), head.calibration.thresholds <= S

    return run


def with_names(names: list[str]) -> Callable[..., tuple[np.ndarray, np.ndarray]]:
    """The default for texts: the embedded name of each label is an additional training row."""

    def run(
        X: np.ndarray, Y: np.ndarray, Q: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        tagged = from_lists([[names[c] for c in np.flatnonzero(row)] for row in Y])
        rows = Embedded(
            X, [str(i) for i in range(len(X))], (), tagged.sets, tags=tagged.labels
        )
        head = Imprinter("minilm", cache=False, threads=1).fit(rows).state.head
        S = head.scores(Q)
        columns = [tagged.labels.index(name) for name in names]
        return head.probabilities(S)[:, columns], (head.calibration.thresholds <= S)[
            :, columns
        ]

    return run


def main(folder: Path, rows: int = 4000, file: Path | None = None) -> None:
    names = (folder / "labels.txt").read_text().split()
    (texts, labels), (questions, truth) = (
        read(folder, "train", rows),
        read(folder, "test"),
    )
    X, Q = embedded(texts, file, f"train{rows}"), embedded(questions, file, "test")
    Y, T = indicator(labels, len(names)), indicator(truth, len(names))
    methods = {
        "imprint, every row and the label names": with_names(names),
        "imprint, every row": classifier(**TAGS),
        "imprint, kmeans(k=50) per label set": classifier(aggregator="kernel(noise=1)"),
        "one-vs-rest logistic regression, C = 1": logistic_regression(choose=False),
        "one-vs-rest logistic regression, best C": logistic_regression(choose=True),
    }
    print(
        f"{len(X):,} rows, {len(names)} labels, {len(Q):,} test rows, {os.environ.get('OMP_NUM_THREADS')} thread"
    )
    for name, run in methods.items():
        started = time.process_time()
        P, predicted = run(X, Y, Q)
        seconds = time.process_time() - started
        precision = 100 * average_precision_score(T, P, average="macro")
        macro, micro = (
            100 * f1_score(T, predicted, average=mean, zero_division=0)
            for mean in ("macro", "micro")
        )
        per_row = predicted.sum(axis=1).mean()
        print(f"{name}: mAP {precision:.1f}, macro F1 {macro:.1f}, micro F1 {micro:.1f}, {per_row:.2f} labels per row,"
              f" {seconds:.1f} s", flush=True)  # fmt: skip


if __name__ == "__main__":
    given = sys.argv[1:]
    main(
        Path(given[0]),
        int(given[1]) if len(given) > 1 else 4000,
        Path(given[2]) if len(given) > 2 else None,
    )
