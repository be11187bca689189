"""`kernel` compared with alternative classifiers on 5 backbones x 12 tasks: accuracy, time to fit and to predict.

    python benchmarks/kernel_peers.py PACKS RESULTS.jsonl [ROWS]

PACKS holds `subset/BACKBONE-DATASET.npz`. Every peer is tuned by three folds of the training rows (RidgeClassifierCV by
its own leave-one-out, random-projection ridge on a fifth of the rows). Times are processor seconds with BLAS
on one thread: to tune and fit, and to predict 1,000 rows. Results that RESULTS already holds are not measured again.
ROWS: training rows per class [default: 600].
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from kernel_data import BACKBONES as SMALL_BACKBONES
from kernel_data import DATASETS, TASKS, Instance, clusters, read, system
from scipy.linalg import cho_factor, cho_solve
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression, RidgeClassifierCV
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from imprint.kernels.rows import unit_rows
from imprint.kernels.scores import class_maxima
from imprint.stats import compare

BACKBONES = (*SMALL_BACKBONES, "resnet50_keras")
Predict = Callable[[np.ndarray], np.ndarray]


def proxies(aggregator: str, k: int | None) -> Callable[[Instance], Predict]:
    def fit(instance: Instance) -> Predict:
        found = clusters(instance, k)
        if aggregator == "kernel":
            solved = system(found)
            return lambda Q: solved.scores(Q).argmax(axis=1)
        starts, W = (
            np.unique(found.labels, return_index=True)[1],
            unit_rows(found.weights),
        )
        return lambda Q: class_maxima(Q, W, starts).argmax(axis=1)

    return fit


def tuned(estimator: object, **grid: list[object]) -> Callable[[Instance], Predict]:
    def fit(instance: Instance) -> Predict:
        search = GridSearchCV(estimator, grid, cv=3) if grid else estimator
        return search.fit(instance.X, instance.y).predict

    return fit


def random_projection_ridge(instance: Instance, width: int = 10_000) -> Predict:
    """RanPAC's head: ridge regression on rectified random projections, regularisation chosen on a fifth of the rows."""
    rng = np.random.default_rng(0)
    R = rng.normal(size=(instance.X.shape[1], width)).astype(np.float32)
    H, Y = np.maximum(instance.X @ R, 0), np.eye(instance.y.max() + 1)[instance.y]
    G = (H @ H.T).astype(np.float64)
    fifth = rng.permutation(len(H)) < len(H) // 5

    def solved(rows: np.ndarray, strength: float) -> np.ndarray:
        M = G[np.ix_(rows, rows)]
        M.flat[:: len(M) + 1] += strength
        return cho_solve(cho_factor(M, lower=True, overwrite_a=True), Y[rows])

    def right(strength: float) -> float:
        scores = G[np.ix_(fifth, ~fifth)] @ solved(~fifth, strength)
        return float((scores.argmax(axis=1) == instance.y[fifth]).mean())

    best = max((10.0**power for power in range(0, 6)), key=right)
    weights = H.T @ solved(np.ones(len(H), dtype=bool), best).astype(np.float32)
    return lambda Q: (np.maximum(Q @ R, 0) @ weights).argmax(axis=1)


METHODS: dict[str, Callable[[Instance], Predict]] = {
    "max, k = 20": proxies("max", 20),
    "kernel, k = 20": proxies("kernel", 20),
    "kernel, k = 100": proxies("kernel", 100),
    "kernel, all": proxies("kernel", None),
    "KNeighborsClassifier": tuned(
        KNeighborsClassifier(weights="distance"), n_neighbors=[1, 3, 5, 10, 20]
    ),
    "RidgeClassifierCV": tuned(RidgeClassifierCV(np.logspace(-4, 2, 13))),
    "LinearDiscriminantAnalysis": tuned(
        LinearDiscriminantAnalysis(solver="lsqr"), shrinkage=["auto", 0.001, 0.01, 0.1]
    ),
    "random-projection ridge": random_projection_ridge,
    "SVC": tuned(SVC(), C=[1, 10, 100]),
    "LogisticRegression": tuned(
        make_pipeline(StandardScaler(), LogisticRegression(max_iter=200, tol=1e-3)),
        logisticregression__C=[0.001, 0.01, 0.1],
    ),
}


def measure(instance: Instance, name: str) -> dict[str, object]:
    start = time.process_time()
    predict = METHODS[name](instance)
    fitted = time.process_time()
    right = float((predict(instance.Q) == instance.t).mean())
    asked = (time.process_time() - fitted) / len(instance.Q) * 1000
    return {
        "instance": instance.name,
        "method": name,
        "accuracy": 100 * right,
        "fit": fitted - start,
        "ask": asked,
    }


def table(records: list[dict[str, object]]) -> str:
    whole = [
        name
        for name in METHODS
        if sum(r["method"] == name for r in records) == len(BACKBONES) * 12
    ]
    by_method = {
        name: {r["instance"]: r for r in records if r["method"] == name}
        for name in whole
    }
    comparison = compare(
        {name: {i: r["accuracy"] for i, r in by_method[name].items()} for name in whole}
    )
    ours = {i: r["accuracy"] for i, r in by_method["kernel, k = 100"].items()}
    lines = [
        "| method | accuracy | mean rank | ahead of k = 100 | p (Holm) | fit, s | 1,000 rows, s |",
        "|" + "---|" * 7,
    ]
    adjusted = {frozenset((p.first, p.second)): p.adjusted for p in comparison.pairs}
    for name in whole:
        rows = by_method[name]
        ahead = sum(r["accuracy"] > ours[i] for i, r in rows.items())
        p = adjusted.get(frozenset((name, "kernel, k = 100")))
        figures = [
            float(np.mean([r[key] for r in rows.values()]))
            for key in ("accuracy", "fit", "ask")
        ]
        rank = comparison.rank(name)
        lines.append(
            f"| {name} | {figures[0]:.2f} | {rank:.2f} | {ahead} of {len(rows)} | {'' if p is None else f'{p:.1e}'} "
            f"| {figures[1]:.2f} | {figures[2]:.3f} |"
        )
    return "\n".join(lines)


def main(packs: Path, results: Path, rows: int) -> None:
    records = (
        [json.loads(line) for line in results.read_text().splitlines()]
        if results.exists()
        else []
    )
    done = {(r["instance"], r["method"]) for r in records}
    with threadpool_limits(1), results.open("a") as file:
        measure(
            read(packs / "subset" / f"{BACKBONES[0]}-{DATASETS[0]}.npz").shots(rows),
            "max, k = 20",
        )  # compiles
        for name in METHODS:
            for pack in (f"{b}-{d}" for d in DATASETS for b in BACKBONES):
                for task in TASKS:
                    if (f"{pack}/{task}", name) not in done:
                        instance = (
                            read(packs / "subset" / f"{pack}.npz")
                            .shots(rows)
                            .only(task)
                        )
                        records.append(measure(instance, name))
                        file.write(json.dumps(records[-1]) + "\n")
                        file.flush()
    print(table(records))


if __name__ == "__main__":
    main(
        Path(sys.argv[1]),
        Path(sys.argv[2]),
        int(sys.argv[3]) if len(sys.argv) > 3 else 600,
    )
