"""Calibration on real embeddings: calibration error, expected accuracy and its interval, and unknown classes.

    python benchmarks/calibration.py shared/embeddings/subset [--draws 3] [--rows 20 100] [--methods kernel]
    python benchmarks/calibration.py shared/embeddings/subset --costs

Seven of ten classes are known. Each draw chooses them and their rows at random; draws are numbered from `--first-draw`.
Prints Markdown tables. `--costs` prints the time, memory and file size that calibration costs instead.
"""

import argparse
import tempfile
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from imprint import ImprintClassifier, recipe
from imprint.calibration import calibration_error
from imprint.core.errors import SmallSampleWarning
from imprint.kernels.rows import unit_rows

DATASETS = ("mnist", "fashionmnist", "cifar10")
FOUR = ("tinynet", "deit_tiny", "mobilenet_v1_0.25_128", "mobilenet_v1_0.5_160")
PACKS = [
    f"{backbone}-{name}" for name in DATASETS for backbone in (*FOUR, "resnet50_keras")
]
KNOWN = 7
FIRST_DRAW = (
    30  # most rules were chosen on earlier draws; docs/trust.md names the exception
)
METHODS: dict[str, dict[str, Any]] = {
    "kernel": {},
    "max": {"aggregator": "max", "norm_post": "l2"},
    "nearest": {"aggregator": "nearest(m=5)", "generator": "all"},
}


class Task(NamedTuple):
    """Training rows of the known classes, held-out rows of these classes, and rows of unknown classes."""

    X: np.ndarray
    y: np.ndarray
    Q: np.ndarray
    truth: np.ndarray
    unknown: np.ndarray


def task(folder: Path, pack: str, rows: int, draw: int) -> Task:
    """Draw seven known classes and `rows` training rows of each."""
    stored = np.load(folder / f"{pack}.npz")
    offset = stored["offset"] if "offset" in stored.files else 0
    X, Q = (
        (stored[part].astype(np.float32) * stored["scale"] + offset).astype(np.float32)
        for part in ("train", "test")
    )
    y, truth = (stored[f"{part}_labels"].astype(int) for part in ("train", "test"))
    rng = np.random.default_rng(draw)
    known = rng.permutation(10)[:KNOWN]
    taken = np.concatenate(
        [rng.permutation(np.flatnonzero(y == c))[:rows] for c in known]
    )
    inside = np.isin(truth, known)
    return Task(X[taken], y[taken], Q[inside], truth[inside], Q[~inside])


def claims(data: Task, **parts: Any) -> dict[str, float]:
    """Estimates of a calibrated model and the measured values, in per cent."""
    model = recipe("kernel", **parts, calibrate=True, random_state=0).fit(
        data.X, data.y
    )
    plain = recipe("kernel", **parts, random_state=0).fit(data.X, data.y)
    true_codes = np.searchsorted(model.classes_, data.truth)
    known, unknown = model.known(data.Q), model.known(data.unknown)
    true = model.score(data.Q, data.truth)
    low, high = model.expected_interval_
    values = {
        "error": calibration_error(model.predict_proba(data.Q), true_codes),
        "error before": calibration_error(plain.predict_proba(data.Q), true_codes),
        "expected": model.expected_accuracy_,
        "true": true,
        "apart": abs(model.expected_accuracy_ - true),
        "covered": float(low <= true <= high),
        "known refused": float((known < 0.05).mean()),
        "unknown refused": float((unknown < 0.05).mean()),
        "auroc": auroc(known, unknown),
    }
    return {name: 100 * value for name, value in values.items()}


def auroc(known: np.ndarray, unknown: np.ndarray) -> float:
    """The share of pairs in which the known row scores higher than the unknown row; ties count half."""
    from scipy.stats import rankdata

    ranks, n = rankdata(np.concatenate([known, unknown])), len(known)
    return float((ranks[:n].sum() - n * (n + 1) / 2) / (n * len(unknown)))


# Other out-of-distribution scores


def mahalanobis(data: Task) -> Callable[[np.ndarray], np.ndarray]:
    """Nearness to the nearest class mean of unit rows, by their joint covariance (Ledoit-Wolf shrinkage)."""
    from scipy.spatial.distance import cdist
    from sklearn.covariance import LedoitWolf

    classes, codes = np.unique(data.y, return_inverse=True)
    X = unit_rows(data.X).astype(np.float64)
    means = np.stack([X[codes == c].mean(axis=0) for c in range(len(classes))])
    whiten = np.linalg.cholesky(
        LedoitWolf(assume_centered=True).fit(X - means[codes]).precision_
    )
    return lambda Q: (
        -cdist(
            unit_rows(Q).astype(np.float64) @ whiten, means @ whiten, "sqeuclidean"
        ).min(axis=1)
    )


def nearest_rows(data: Task) -> Callable[[np.ndarray], np.ndarray]:
    """Nearness to the fifth nearest unit row."""
    from imprint.kernels.neighbours import nearest

    X = unit_rows(data.X)
    return lambda Q: -nearest(unit_rows(Q), X, 5)[0][:, -1]


def cosine(data: Task) -> Callable[[np.ndarray], np.ndarray]:
    """The largest cosine with one of twenty proxies per class."""
    model = recipe("imprint2025", random_state=0).fit(data.X, data.y)
    return lambda Q: model.decision_function(Q).max(axis=1)


def softmax(data: Task) -> Callable[[np.ndarray], np.ndarray]:
    """The largest probability that `max` gives."""
    model = recipe("imprint2025", random_state=0).fit(data.X, data.y)
    return lambda Q: model.predict_proba(Q).max(axis=1)


OTHERS = {
    "Mahalanobis on unit rows": mahalanobis,
    "the fifth nearest row": nearest_rows,
    "cosine to the proxy": cosine,
    "softmax": softmax,
}


def measured(folder: Path, rows: int, draws: range, method: str) -> dict[str, float]:
    """Means over packs and draws; the AUROC over the twelve packs of four backbones."""
    values_by_name = defaultdict(list)
    for pack in PACKS:
        for draw in draws:
            for name, value in claims(
                task(folder, pack, rows, draw), **METHODS[method]
            ).items():
                if name != "auroc" or pack.startswith(FOUR):
                    values_by_name[name].append(value)
    return {name: float(np.mean(values)) for name, values in values_by_name.items()}


def others(folder: Path, rows: int, draws: range) -> dict[str, float]:
    """The AUROC of other out-of-distribution scores, over the twelve packs."""
    aurocs = defaultdict(list)
    for pack in [pack for pack in PACKS if pack.startswith(FOUR)]:
        for draw in draws:
            data = task(folder, pack, rows, draw)
            for name, way in OTHERS.items():
                near = way(data)
                aurocs[name].append(100 * auroc(near(data.Q), near(data.unknown)))
    return {name: float(np.mean(values)) for name, values in aurocs.items()}


COLUMNS = {
    "error": "calibration error",
    "error before": "before",
    "expected": "expected accuracy",
    "true": "true",
    "apart": "apart, mean",
    "covered": "in the interval",
    "known refused": "known refused",
    "unknown refused": "unknown refused",
    "auroc": "AUROC",
}


def tables(
    folder: Path, sizes: list[int], draws: range, methods: list[str]
) -> Iterator[str]:
    """Lines of Markdown."""
    yield "| | rows | " + " | ".join(COLUMNS.values()) + " |"
    yield "|---|" + "---:|" * (len(COLUMNS) + 1)
    for method in methods:
        for rows in sizes:
            values = measured(folder, rows, draws, method)
            yield (
                f"| `{method}` | {rows} | "
                + " | ".join(f"{values[name]:.1f}" for name in COLUMNS)
                + " |"
            )
    yield ""
    yield (
        "| to tell unknown classes | "
        + " | ".join(f"{rows} rows" for rows in sizes)
        + " |"
    )
    yield "|---|" + "---:|" * len(sizes)
    found = [others(folder, rows, draws) for rows in sizes]
    for name in OTHERS:
        yield (
            f"| {name} | "
            + " | ".join(f"{values[name]:.1f}" for values in found)
            + " |"
        )


def costs() -> Iterator[str]:
    """Processor time, memory and file size with and without calibration, on rows of random numbers."""
    yield "| classes x rows x width | fit | first `known` | kept per class | file | file without | load and `known` |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    some = np.random.default_rng(0).normal(size=(2000, 384)).astype(np.float32)
    recipe("kernel", random_state=0, calibrate=True).fit(
        some, np.arange(2000) % 10
    ).known(some)  # loads and compiles
    for classes, rows, width in ((10, 100, 384), (22, 100, 1280), (150, 100, 384)):
        rng = np.random.default_rng(0)
        y = np.repeat(np.arange(classes), rows)
        X = (
            rng.normal(size=(len(y), width))
            + 0.3 * rng.normal(size=(classes, width))[y]
        ).astype(np.float32)
        plain, fitting = _timed(
            lambda X=X, y=y: recipe("kernel", random_state=0).fit(X, y)
        )
        model, learning = _timed(
            lambda X=X, y=y: recipe("kernel", random_state=0, calibrate=True).fit(X, y)
        )
        asking = _timed(lambda model=model, X=X: model.known(X[:1]))[1]
        with tempfile.TemporaryDirectory() as place:
            sizes = []
            for one in (plain, model):
                one.save(f"{place}/m")
                sizes.append(Path(place, "m").stat().st_size)
            loading = _timed(
                lambda place=place, X=X: ImprintClassifier.load(f"{place}/m").known(
                    X[:1]
                )
            )[1]
        per_class = (sizes[1] - sizes[0]) / classes
        yield (
            f"| {classes} x {rows} x {width} | {learning:.2f} s (without {fitting:.2f} s) | {asking:.2f} s | "
            f"{per_class / 2**20:.2f} MiB | {sizes[1] / 2**20:.1f} MiB | {sizes[0] / 2**20:.1f} MiB | {loading:.2f} s |"
        )


def _timed(call: Callable[[], Any]) -> tuple[Any, float]:
    start = time.process_time()
    return call(), time.process_time() - start


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--first-draw", type=int, default=FIRST_DRAW)
    parser.add_argument("--rows", type=int, nargs="+", default=[20, 100])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--costs", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore", SmallSampleWarning)
    draws = range(given.first_draw, given.first_draw + given.draws)
    for line in (
        costs()
        if given.costs
        else tables(given.folder, given.rows, draws, given.methods)
    ):
        print(line, flush=True)


if __name__ == "__main__":
    main()
