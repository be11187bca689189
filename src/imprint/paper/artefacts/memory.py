"""Imprinting as a memory of keys and values."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from imprint import recipe
from imprint.paper.artefact import Artefact, Report
from imprint.paper.places import Places
from imprint.paper.results import Results, write_json
from imprint.report.sections import Cells, Claim, Section, verdict
from imprint.study import Packs

NAME = "memory"


@dataclass(frozen=True, kw_only=True)
class Memory(Artefact):
    """W ← W + v kᵀ for every class, against the imprinted head."""

    def measure(self, places: Places, folder: Path, report: Report) -> None:
        source, found = Packs(places.embeddings), {}
        for backbone in places.benchmark.backbones:
            data = source.open(backbone, places.benchmark.datasets[0])
            found[backbone] = compare_with_head(data.X, data.y, data.X_test)
        write_json(folder / f"{NAME}.json", found)

    def section(self, name: str, results: Results) -> Section:
        found = results.measured(NAME)
        if not found:
            return self.missing(name, results)
        lines = tuple((b, f"{f['rows']:,}", f"{f['agree']:,}", f"{f['difference']:.1g}") for b, f in found.items())
        text = (
            "A memory starts as W = 0 and stores each class as W ← W + v kᵀ, where k is its L2-normalised mean and v "
            "its one-hot vector. Reading it, W q for an L2-normalised query q, must give the scores of the "
            f"imprinted head (qi2018). Test rows of {results.places.benchmark.datasets[0]}:"
        )
        agree, rows = (sum(f[key] for f in found.values()) for key in ("agree", "rows"))
        claim = Claim(
            "Imprinting stores key-value pairs: the outer-product update and the head agree.",
            verdict(agree == rows and all(f["difference"] < 1e-5 for f in found.values())),
            f"same decision on {agree:,} of {rows:,} rows",
        )
        cells = Cells(("backbone", "rows", "same decision", "largest difference of scores"), lines)
        return Section(name, self.title, self.where, text, (cells,), (claim,))


def compare_with_head(X: np.ndarray, y: np.ndarray, Q: np.ndarray) -> dict[str, float]:
    """Write every class into a matrix by its outer product, and read it with every query."""
    head = recipe("qi2018").fit(X, y)
    classes = np.unique(y)
    W = np.zeros((len(classes), X.shape[1]))
    for i, label in enumerate(classes):
        rows = X[y == label].astype(np.float64)
        key = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).mean(axis=0)
        W += np.outer(np.eye(len(classes))[i], key / np.linalg.norm(key))
    queries = Q.astype(np.float64)
    scores = queries / np.linalg.norm(queries, axis=1, keepdims=True) @ W.T
    agree = int((classes[scores.argmax(axis=1)] == head.predict(Q)).sum())
    return {"rows": len(Q), "agree": agree, "difference": float(np.abs(scores - head.decision_function(Q)).max())}


artefact = Memory(title="Imprinting as memory", where="Appendix, imprinting as memory", order=236)
