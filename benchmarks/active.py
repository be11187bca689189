"""Accuracy by number of labels: `suggest` against six other query strategies.

    python benchmarks/active.py PACK.npz... [--draws 5] [--methods suggested,random] [--out curves.json]
    python benchmarks/active.py --read curves.json... [--figure curves.svg]      print the table, draw the figure

A pack holds `train`, `train_labels`, `test`, `test_labels` (and `scale`, `offset`). The pool is 4,000 random training
rows; the classifier is `kernel` on all labelled rows; strategies that use labels receive them ten at a time.
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
    """Margin sampling: smallest difference of the two largest probabilities, after ten random rows."""
    chosen = list(range(STEP))
    while len(chosen) < max(budgets):
        P = np.sort(fitted(X, y, chosen).predict_proba(X), axis=1)
        gap = (
            P[:, -1] - P[:, -2]
            if P.shape[1] > 1
            else np.random.default_rng(seed).random(len(X))
        )
        gap[chosen] = np.inf
        chosen += np.argsort(gap)[:STEP].tolist()
    return chosen


@method
def kmeans(X, y, budgets, seed):
    """The rows nearest to the centres of k-means with k = budget: one selection per budget, not a sequence."""
    return {
        b: nearest(X, KMeans(b, n_init=1, random_state=seed).fit(X).cluster_centers_)
        for b in budgets
    }


@method
def typiclust(X, y, budgets, seed):
    """Hacohen et al. 2022: from the largest unlabelled clusters, the row nearest to its 20 neighbours."""
    typicality = 1 / NearestNeighbors(n_neighbors=21).fit(X).kneighbors(X)[0][
        :, 1:
    ].mean(axis=1)
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
        keep = np.argsort(-np.abs(P).mean(axis=0))[
            :20
        ]  # the 20 classes with the largest gradients
        gradients = (
            (P[rest][:, keep, None] * X[rest][:, None, :])
            .reshape(len(rest), -1)
            .astype(np.float32)
        )
        chosen += rest[kmeans_plusplus(gradients, STEP, random_state=seed)[1]].tolist()
    return chosen


def fitted(X, y, rows) -> ImprintClassifier:
    return ImprintClassifier(generator="all", random_state=0).fit(X[rows], y[rows])


def nearest(X, centres) -> list[int]:
    return [int(((X - centre) ** 2).sum(axis=1).argmin()) for centre in centres]


def load(path: Path):
    pack = np.load(path)
    scale, offset = (
        pack[name] if name in pack.files else default
        for name, default in (("scale", 1), ("offset", 0))
    )
    rows = [
        pack[part].astype(np.float32) * np.float32(scale) + np.float32(offset)
        for part in ("train", "test")
    ]
    X, Q = (
        x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12) for x in rows
    )
    return X, pack["train_labels"], Q, pack["test_labels"]


def curve(name: str, data, seed: int) -> list[float]:
    """Accuracy in % for every budget."""
    X, y, Q, t = data
    pool = np.random.default_rng(seed).permutation(len(X))[:POOL]
    X, y = X[pool], y[pool]
    chosen = METHODS[name](X, y, BUDGETS, seed)
    rows = chosen if isinstance(chosen, dict) else {b: chosen[:b] for b in BUDGETS}
    return [round(100 * fitted(X, y, rows[b]).score(Q, t), 2) for b in BUDGETS]


def measure(
    packs: list[Path], methods: list[str], draws: int, out: Path | None
) -> dict:
    """Accuracy by pack, method, draw and budget."""
    results: dict[str, dict[str, list[list[float]]]] = {}
    for path in packs:
        data = load(path)
        results[path.stem] = {}
        for name in methods:
            start = time.process_time()
            curves = [curve(name, data, seed) for seed in range(draws)]
            results[path.stem][name] = curves
            mean = "  ".join(f"{v:5.1f}" for v in np.mean(curves, axis=0))
            print(
                f"{path.stem:32} {name:10} {mean}   {time.process_time() - start:.0f} s CPU",
                flush=True,
            )
        if out:
            out.write_text(json.dumps({"budgets": BUDGETS, "accuracy": results}))
    return results


def means(results: dict, name: str, texts: bool) -> np.ndarray:
    """The mean accuracy of a method over the text packs, or over all other packs."""
    chosen = [
        by_method[name]
        for pack, by_method in results.items()
        if pack.startswith("minilm") == texts
    ]
    return np.mean([np.mean(curves, axis=0) for curves in chosen], axis=0)


def table(results: dict, methods: list[str]) -> str:
    """A Markdown table: one row per method, budgets of images, then budgets of texts."""
    heads = [f"{kind}{b}" for kind in ("", "texts ") for b in BUDGETS]
    lines = ["| labels | " + " | ".join(heads) + " |", "|---|" + "---:|" * len(heads)]
    for name in methods:
        cells = [
            f"{v:.1f}" for texts in (False, True) for v in means(results, name, texts)
        ]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def draw(results: dict, methods: list[str], path: Path) -> None:
    """Draw the learning curves of images and of texts next to each other."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "imprint"
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, 2, figsize=(9, 3.4), constrained_layout=True)
    for panel, texts, title in zip(panels, (False, True), ("images", "texts")):
        for name in methods:
            bold = (
                {"linewidth": 2.5, "color": "#1f4fd8"}
                if name == "suggested"
                else {"linewidth": 1.2}
            )
            panel.plot(
                BUDGETS,
                means(results, name, texts),
                marker="o",
                markersize=3,
                label=name,
                **bold,
            )
        panel.set_xscale("log")
        panel.set_xticks(BUDGETS, [str(b) for b in BUDGETS])
        panel.minorticks_off()
        panel.set_xlabel("labels")
        panel.set_title(title)
    panels[0].set_ylabel("accuracy in %")
    panels[1].legend(frameon=False, fontsize=8)
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("packs", nargs="*", type=Path)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--out", type=Path)
    parser.add_argument("--read", nargs="+", type=Path, default=[])
    parser.add_argument("--figure", type=Path)
    options = parser.parse_args()
    methods = options.methods.split(",")
    results: dict = {}
    for path in options.read:
        for pack, by_method in json.loads(path.read_text())["accuracy"].items():
            results.setdefault(pack, {}).update(by_method)
    if options.packs:
        results = measure(options.packs, methods, options.draws, options.out)
    print(table(results, methods))
    if options.figure:
        draw(results, methods, options.figure)


if __name__ == "__main__":
    main()
