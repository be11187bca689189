"""Tags (multi-label classification) on GoEmotions: imprint next to one-vs-rest logistic regression.

    OMP_NUM_THREADS=1 python benchmarks/tags.py FOLDER [ROWS] [EMBEDDINGS.npz]

FOLDER holds `train.tsv`, `test.tsv` and `labels.txt` of GoEmotions (28 labels, Apache-2.0). The first ROWS (4,000) rows
of the training data are used, and all rows of the test data, embedded by `minilm`; the embeddings are written to, or
read from, the third argument. Every method finds one threshold per label by held-out predictions. Times are CPU seconds
on one core for fitting, thresholds and the predictions of the test data, without embedding.
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
from sklearn.model_selection import cross_val_predict
from sklearn.multiclass import OneVsRestClassifier

from imprint import ImprintClassifier, Imprinter
from imprint.core.label_sets import from_lists
from imprint.imprinter import Embedded

TAGS = {"generator": "all", "aggregator": "kernel(noise=1)"}


def read(folder: Path, part: str, rows: int | None = None) -> tuple[list[str], list[list[int]]]:
    with open(folder / f"{part}.tsv", newline="", encoding="utf-8") as f:
        lines = list(csv.DictReader(f, delimiter="\t", quoting=csv.QUOTE_NONE))[:rows]
    return [line["text"] for line in lines], [list(map(int, line["label"].split(","))) for line in lines]


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


def logistic_regression(X: np.ndarray, Y: np.ndarray, Q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Scores and predictions; the threshold with the largest F1 of five-fold cross-validation."""
    model = OneVsRestClassifier(LogisticRegression(max_iter=1000))
    held_out = cross_val_predict(model, X, Y, cv=5, method="predict_proba")
    thresholds = np.empty(Y.shape[1])
    for c in range(Y.shape[1]):
        order = np.argsort(-held_out[:, c])
        f1 = 2 * np.cumsum(Y[order, c]) / (np.arange(1, len(Y) + 1) + Y[:, c].sum())
        thresholds[c] = held_out[order[f1.argmax()], c]
    P = model.fit(X, Y).predict_proba(Q)
    return P, thresholds <= P


def classifier(**parts: str) -> Callable[..., tuple[np.ndarray, np.ndarray]]:
    def run(X: np.ndarray, Y: np.ndarray, Q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        model = ImprintClassifier(**parts).fit(X, Y)
        return model.predict_proba(Q), model.predict(Q)

    return run


def with_names(names: list[str]) -> Callable[..., tuple[np.ndarray, np.ndarray]]:
    """The default of a model of texts: the name of each label is one more row."""

    def run(X: np.ndarray, Y: np.ndarray, Q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        tagged = from_lists([[names[c] for c in np.flatnonzero(row)] for row in Y])
        rows = Embedded(X, [str(i) for i in range(len(X))], (), tagged.sets, tags=tagged.labels)
        model = Imprinter("minilm", cache=False, threads=1).fit(rows)
        queries = Embedded(Q, [str(i) for i in range(len(Q))], ())
        columns = [tagged.labels.index(name) for name in names]
        return model.predict_proba(queries)[:, columns], model.predict(queries)[:, columns]

    return run


def main(folder: Path, rows: int = 4000, file: Path | None = None) -> None:
    names = (folder / "labels.txt").read_text().split()
    (texts, labels), (questions, truth) = read(folder, "train", rows), read(folder, "test")
    X, Q = embedded(texts, file, f"train{rows}"), embedded(questions, file, "test")
    Y, T = indicator(labels, len(names)), indicator(truth, len(names))
    methods = {
        "imprint, every row and the label names": with_names(names),
        "imprint, every row": classifier(**TAGS),
        "imprint, kmeans(k=50) per label set": classifier(aggregator="kernel(noise=1)"),
        "one-vs-rest logistic regression": logistic_regression,
    }
    print(f"{len(X):,} rows, {len(names)} labels, {len(Q):,} test rows, {os.environ.get('OMP_NUM_THREADS')} thread")
    for name, run in methods.items():
        started = time.process_time()
        P, predicted = run(X, Y, Q)
        seconds = time.process_time() - started
        precision = 100 * average_precision_score(T, P, average="macro")
        macro, micro = (100 * f1_score(T, predicted, average=mean, zero_division=0) for mean in ("macro", "micro"))
        per_row = predicted.sum(axis=1).mean()
        print(f"{name}: mAP {precision:.1f}, macro F1 {macro:.1f}, micro F1 {micro:.1f}, {per_row:.2f} labels per row,"
              f" {seconds:.1f} s", flush=True)  # fmt: skip


if __name__ == "__main__":
    given = sys.argv[1:]
    main(Path(given[0]), int(given[1]) if len(given) > 1 else 4000, Path(given[2]) if len(given) > 2 else None)
