"""Accuracy by number of labels: `suggest` against six other ways to choose what to label.

    python benchmarks/active.py PACK.npz... [--draws 5] [--methods suggested,random] [--out curves.json]

A pack holds `train`, `train_labels`, `test`, `test_labels` (and `scale`, `offset`). The pool is 4,000 random training
rows; the classifier is `kernel` on all labelled rows; methods that use labels get them ten at a time.
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans, kmeans_plusplus
from sklearn.neighbors import NearestNeighbors

from imprint import ImprintClassifier
from imprint.active import suggest

BUDGETS = (10, 20, 50, 100, 200)
STEP = 10
POOL = 4_000
METHODS: dict[str, Callable[..., list[int]]] = {}


def method(choose: Callable[..., list[int]]) -> Callable[..., list[int]]:
    METHODS[choose.__name__] = choose
    return choose


@method
def suggested(X, y, budgets, seed):
    """`suggest`, ten rows at a time."""
    chosen = suggest(X, STEP).tolist()
    while len(chosen) < max(budgets):
        rest = np.setdiff1d(np.arange(len(X)), chosen)
        chosen += rest[suggest(X[rest], STEP, head=fitted(X, y, chosen).head_)].tolist()
    return chosen


@method
def random(X, y, budgets, seed):
    return list(range(max(budgets)))  # the pool is in random order


@method
def margin(X, y, budgets, seed):
    """Smallest difference of the two largest probabilities, after ten random rows."""
    chosen = list(range(STEP))
    while len(chosen) < max(budgets):
        P = np.sort(fitted(X, y, chosen).predict_proba(X), axis=1)
        gap = P[:, -1] - P[:, -2] if P.shape[1] > 1 else np.random.default_rng(seed).random(len(X))
        gap[chosen] = np.inf
        chosen += np.argsort(gap)[:STEP].tolist()
    return chosen


@method
def kmeans(X, y, budgets, seed):
    """The rows nearest to as many k-means centres as there are labels: one choice per budget, not a sequence."""
    return {b: nearest(X, KMeans(b, n_init=1, random_state=seed).fit(X).cluster_centers_) for b in budgets}


@method
def typiclust(X, y, budgets, seed):
    """Hacohen et al. 2022: from the largest clusters without a label, the row nearest to its 20 neighbours."""
    typicality = 1 / NearestNeighbors(n_neighbors=21).fit(X).kneighbors(X)[0][:, 1:].mean(axis=1)
    chosen: list[int] = []
    for budget in budgets:
        cluster = KMeans(budget, n_init=1, random_state=seed).fit_predict(X)
        sizes = np.bincount(cluster)
        sizes[np.unique(cluster[chosen])] = 0
        for c in np.argsort(-sizes)[: budget - len(chosen)]:
            rows = np.setdiff1d(np.flatnonzero(cluster == c), chosen)
            if len(rows):
                chosen.append(int(rows[typicality[rows].argmax()]))
    return chosen


@method
def probcover(X, y, budgets, seed):
    """Yehuda et al. 2022: greedily cover most rows by balls of which 95 % lie within one k-means cluster."""
    D = np.sqrt(np.maximum(2 - 2 * X @ X.T, 0))
    cluster = KMeans(len(np.unique(y)), n_init=1, random_state=seed).fit_predict(X)
    same = cluster[:, None] == cluster
    radii = np.quantile(D[:: max(1, len(D) // 200)], np.linspace(0.001, 0.3, 60))
    pure = [float((~((radius > D) & ~same).any(axis=1)).mean()) for radius in radii]
    radius = radii[max((i for i, p in enumerate(pure) if p >= 0.95), default=0)]
    covers, open_, chosen = radius > D, np.ones(len(X), bool), []
    count = covers.sum(axis=1)
    for _ in range(max(budgets)):
        chosen.append(int(count.argmax()))
        new = covers[chosen[-1]] & open_
        count -= covers[:, new].sum(axis=1)
        count[chosen] = -1
        open_ &= ~new
    return chosen


@method
def badge(X, y, budgets, seed):
    """Ash et al. 2020: k-means++ over gradient embeddings (p - one-hot of the winner) x row, after ten random rows."""
    chosen = list(range(STEP))
    while len(chosen) < max(budgets):
        P = fitted(X, y, chosen).predict_proba(X)
        P[np.arange(len(P)), P.argmax(axis=1)] -= 1
        rest = np.setdiff1d(np.arange(len(X)), chosen)
        keep = np.argsort(-np.abs(P).mean(axis=0))[:20]  # of very many classes the 20 that matter
        gradients = (P[rest][:, keep, None] * X[rest][:, None, :]).reshape(len(rest), -1).astype(np.float32)
        chosen += rest[kmeans_plusplus(gradients, STEP, random_state=seed)[1]].tolist()
    return chosen


def fitted(X, y, rows) -> ImprintClassifier:
    return ImprintClassifier(generator="all", random_state=0).fit(X[rows], y[rows])


def nearest(X, centres) -> list[int]:
    return [int(((X - centre) ** 2).sum(axis=1).argmin()) for centre in centres]


def load(path: Path):
    pack = np.load(path)
    scale, offset = (pack[name] if name in pack.files else default for name, default in (("scale", 1), ("offset", 0)))
    rows = [pack[part].astype(np.float32) * np.float32(scale) + np.float32(offset) for part in ("train", "test")]
    X, Q = (x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12) for x in rows)
    return X, pack["train_labels"], Q, pack["test_labels"]


def curve(name: str, data, seed: int) -> list[float]:
    """Accuracy in % for every budget."""
    X, y, Q, t = data
    pool = np.random.default_rng(seed).permutation(len(X))[:POOL]
    X, y = X[pool], y[pool]
    chosen = METHODS[name](X, y, BUDGETS, seed)
    rows = chosen if isinstance(chosen, dict) else {b: chosen[:b] for b in BUDGETS}
    return [round(100 * fitted(X, y, rows[b]).score(Q, t), 2) for b in BUDGETS]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packs", nargs="+", type=Path)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    results: dict[str, dict[str, list[list[float]]]] = {}
    for path in options.packs:
        data = load(path)
        results[path.stem] = {}
        for name in options.methods.split(","):
            start = time.process_time()
            curves = [curve(name, data, seed) for seed in range(options.draws)]
            results[path.stem][name] = curves
            mean = "  ".join(f"{v:5.1f}" for v in np.mean(curves, axis=0))
            print(f"{path.stem:32} {name:10} {mean}   {time.process_time() - start:.0f} s CPU", flush=True)
        if options.out:
            options.out.write_text(json.dumps({"budgets": BUDGETS, "accuracy": results}))
    for name in options.methods.split(","):
        mean = np.mean([np.mean(by_method[name], axis=0) for by_method in results.values()], axis=0)
        print(f"{'mean of packs':32} {name:10} " + "  ".join(f"{v:5.1f}" for v in mean))


if __name__ == "__main__":
    main()
