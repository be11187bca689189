"""`known` next to published out-of-distribution scores, for rows of unknown classes.

    python benchmarks/known.py packs shared/embeddings/subset [--rows 20 100] [--draws 2] [--alone]
    python benchmarks/known.py texts clinc.npz [--rows 5 20 100]
    python benchmarks/known.py images shared/embeddings/subset [--rows 40]
    python benchmarks/known.py splits clinc.npz [--rows 20 80 100] [--draws 3]

`packs`: seven of ten classes are known (twelve packs). `texts`: CLINC150 and its out-of-scope questions, as a file with
`train`, `train_y`, `test` and `oos_test`, embedded by minilm. `images`: 22 classes of Tiny-ImageNet, and digits and
clothes as unrelated images. Prints Markdown: AUROC, and the shares of known and of unknown rows rejected, by
p-values below 0.05, and for other scores by their 5 % quantile on the known test rows (which a user does not have).
`splits`: p-values below 0.05 among up to 20 held-out training rows per class of CLINC150, and among its test rows.
"""

import argparse
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from calibration import FOUR, PACKS, Task, auroc, mahalanobis, task
from scipy.special import logsumexp

from imprint import ImprintClassifier
from imprint.kernels.rows import unit_rows
from imprint.kernels.scores import softmax

FIRST_DRAW = 10
TEMPERATURE = 0.12  # of the scores of `kernel`
SHRINKAGE = 0.1  # of both covariances of relative Mahalanobis
Score = Callable[
    [np.ndarray, np.ndarray], np.ndarray
]  # (queries, their class scores) -> one score per query


def published(data: Task, model: ImprintClassifier) -> dict[str, Score]:
    """Scores by name, large for known rows. Logits are the class scores of `kernel` over its temperature."""
    rows = unit_rows(data.X).astype(np.float64)
    near, relative = mahalanobis(data), relative_mahalanobis(data)
    centre = rows.mean(axis=0)
    axes = np.linalg.svd(
        (rows - centre)[:: max(1, len(rows) // 3000)], full_matrices=False
    )[2][: rows.shape[1] // 2]

    def residual(Q: np.ndarray) -> np.ndarray:
        z = unit_rows(Q).astype(np.float64) - centre
        return np.linalg.norm(z - (z @ axes.T) @ axes, axis=1)

    bank = np.random.default_rng(0).permutation(len(rows))[:2000]
    of_bank = _scores(model, data.X[bank])
    alpha = of_bank.max(axis=1).mean() / max(residual(data.X).mean(), 1e-9)
    guides = rows[bank] * _energy(of_bank)[:, None]

    def nnguide(Q: np.ndarray, S: np.ndarray) -> np.ndarray:
        products = unit_rows(Q).astype(np.float64) @ guides.T
        return _energy(S) * np.partition(products, -10, axis=1)[:, -10:].mean(axis=1)

    return {
        "MSP": lambda Q, S: softmax(S / TEMPERATURE).max(axis=1),
        "energy": lambda Q, S: _energy(S),
        "kNN (fifth nearest row)": lambda Q, S: np.partition(
            unit_rows(Q).astype(float) @ rows.T, -5, axis=1
        )[:, -5],
        "Mahalanobis on unit rows": lambda Q, S: near(Q),
        "relative Mahalanobis": lambda Q, S: relative(Q),
        "ViM": lambda Q, S: TEMPERATURE * _energy(S) - alpha * residual(Q),
        "NNGuide": nnguide,
    }


def relative_mahalanobis(data: Task) -> Callable[[np.ndarray], np.ndarray]:
    """Nearness to the nearest class mean minus nearness to the mean of all rows (Ren et al., 2021).

    Both covariances are shrunk by the same share towards the same multiple of the identity. With shrinkages estimated
    for each, the difference of the two distances mostly measures the difference of the shrinkages.
    """
    from scipy.spatial.distance import cdist

    classes, codes = np.unique(data.y, return_inverse=True)
    X = unit_rows(data.X).astype(np.float64)
    means = np.stack([X[codes == c].mean(axis=0) for c in range(len(classes))])
    centre = X.mean(axis=0, keepdims=True)
    target = np.eye(X.shape[1]) * X.var(axis=0).mean()

    def nearness(
        residuals: np.ndarray, centres: np.ndarray
    ) -> Callable[[np.ndarray], np.ndarray]:
        covariance = (1 - SHRINKAGE) * residuals.T @ residuals / len(
            X
        ) + SHRINKAGE * target
        whiten = np.linalg.cholesky(np.linalg.inv(covariance))
        return lambda Q: -cdist(Q @ whiten, centres @ whiten, "sqeuclidean").min(axis=1)

    by_class, all_rows = nearness(X - means[codes], means), nearness(X - centre, centre)
    return lambda Q: (
        by_class(unit_rows(Q).astype(np.float64))
        - all_rows(unit_rows(Q).astype(np.float64))
    )


def _energy(S: np.ndarray) -> np.ndarray:
    return np.asarray(logsumexp(S / TEMPERATURE, axis=1))


def _scores(model: ImprintClassifier, Q: np.ndarray) -> np.ndarray:
    return np.asarray(model.head_.scores(Q), dtype=np.float64)


def compare(data: Task, with_others: bool) -> dict[str, tuple[float, float, float]]:
    """For every score: AUROC, known rows rejected and unknown rows rejected, in per cent."""
    model = ImprintClassifier(calibrate=True, random_state=0).fit(data.X, data.y)
    p, p_unknown = model.known(data.Q), model.known(data.unknown)
    results = {
        "`known` < 0.05": (
            auroc(p, p_unknown),
            float((p < 0.05).mean()),
            float((p_unknown < 0.05).mean()),
        )
    }
    S, U = _scores(model, data.Q), _scores(model, data.unknown)
    others = published(data, model) if with_others else {}
    values = {
        name: (score(data.Q, S), score(data.unknown, U))
        for name, score in others.items()
    }
    for name, (known, unknown) in {"`known`": (p, p_unknown), **values}.items():
        threshold = np.quantile(known, 0.05)
        results[name] = (
            auroc(known, unknown),
            float((known < threshold).mean()),
            float((unknown < threshold).mean()),
        )
    return {name: tuple(100 * value for value in row) for name, row in results.items()}


def packs(folder: Path, rows: int, draws: int) -> Iterator[Task]:
    """Seven of ten classes of the twelve packs."""
    for pack in (pack for pack in PACKS if pack.startswith(FOUR)):
        for draw in range(FIRST_DRAW, FIRST_DRAW + draws):
            yield task(folder, pack, rows, draw)


def texts(file: Path, rows: int, draws: int) -> Iterator[Task]:
    """CLINC150."""
    data = np.load(file)
    y = data["train_y"]
    for draw in range(draws):
        rng = np.random.default_rng(draw)
        taken = np.concatenate(
            [
                rng.permutation(np.flatnonzero(y == label))[:rows]
                for label in np.unique(y)
            ]
        )
        yield Task(
            data["train"][taken],
            y[taken],
            data["test"],
            data["test_y"],
            data["oos_test"],
        )


def images(folder: Path, rows: int, draws: int) -> Iterator[Task]:
    """Photographs of 22 classes, and images of digits and clothes."""

    def read(pack: str, part: str) -> tuple[np.ndarray, np.ndarray]:
        stored = np.load(folder / f"{pack}.npz")
        offset = stored["offset"] if "offset" in stored.files else 0
        X = (stored[part].astype(np.float32) * stored["scale"] + offset).astype(
            np.float32
        )
        return X, stored[f"{part}_labels"].astype(int)

    for backbone in ("deit_tiny", "mobilenet_v1_0.25_128", "tinynet"):
        (X, y), (Q, truth) = (
            read(f"{backbone}-tinyimagenet100", part) for part in ("train", "test")
        )
        others = np.concatenate(
            [
                read(f"{backbone}-{name}", "test")[0][::6]
                for name in ("mnist", "fashionmnist")
            ]
        )
        for draw in range(draws):
            rng = np.random.default_rng(draw)
            known = rng.permutation(100)[:22]
            taken = np.concatenate(
                [rng.permutation(np.flatnonzero(y == c))[:rows] for c in known]
            )
            inside = np.isin(truth, known)
            yield Task(X[taken], y[taken], Q[inside], truth[inside], others)


def splits(file: Path, rows: int, draws: int) -> Iterator[tuple[float, float]]:
    """Per cent of p-values below 0.05 among held-out training rows (NaN if there are none) and among test rows."""
    data = np.load(file)
    y = data["train_y"]
    for draw in range(draws):
        rng = np.random.default_rng(draw)
        orders = [rng.permutation(np.flatnonzero(y == label)) for label in np.unique(y)]
        fitted, held_out = (
            np.concatenate([o[part] for o in orders])
            for part in np.s_[:rows, rows : rows + 20]
        )
        model = ImprintClassifier(calibrate=True, random_state=draw).fit(
            data["train"][fitted], y[fitted]
        )
        samples = data["train"][held_out], data["test"]
        yield tuple(
            100 * float((model.known(Q) < 0.05).mean()) if len(Q) else np.nan
            for Q in samples
        )


def print_splits(file: Path, sizes: list[int], draws: int) -> None:
    """One line for each number of rows: the mean and the range over draws."""
    print(
        "| rows per class | held-out training rows refused | test rows refused |\n|---|---:|---:|"
    )
    for rows in sizes:
        shares = np.array(list(splits(file, rows, draws))).T
        cells = [
            f"{s.mean():.1f} ({s.min():.1f} to {s.max():.1f})"
            if np.isfinite(s).all()
            else ""
            for s in shares
        ]
        print(f"| {rows} | " + " | ".join(cells) + " |", flush=True)


def main() -> None:
    """Print one table for each number of rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["packs", "texts", "images", "splits"])
    parser.add_argument("source", type=Path)
    parser.add_argument("--rows", type=int, nargs="+", default=[100])
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument(
        "--alone",
        action="store_true",
        help="measure `known` without the published scores",
    )
    given = parser.parse_args()
    if given.what == "splits":
        return print_splits(given.source, given.rows, given.draws)
    tasks = {"packs": packs, "texts": texts, "images": images}[given.what]
    for rows in given.rows:
        results = defaultdict(list)
        for data in tasks(given.source, rows, given.draws):
            for name, values in compare(data, not given.alone).items():
                results[name].append(values)
        print(
            f"| {given.what}, {rows} rows per class | AUROC | known refused | unknown refused |\n|---|---:|---:|---:|"
        )
        for name, values in results.items():
            print(
                f"| {name} | "
                + " | ".join(f"{value:.1f}" for value in np.mean(values, axis=0))
                + " |",
                flush=True,
            )


if __name__ == "__main__":
    main()
