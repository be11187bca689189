"""Our default against peers on image sets: all on the last layer, and all on the same blocks.

    python benchmarks/field/images.py [--rows 5 20] [--draws 3]
    python benchmarks/field/images.py --backbone mobilenet_v2 --no-peers

Reads `$IMPRINT_SHARED/data/pictures/*.npz` (eleven sets), embeds each image once and keeps the
embeddings in `out/field`. Every method gets the same rows of each class and the same embeddings: the last layer at unit
length, or all blocks, each at unit length. A peer with blocks is the fair peer.
"""

import io
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from data import CACHE, SHARED
from peers import ncm, ranpac, slda
from PIL import Image
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from tables import measured_once, parser_of, print_comparison

from imprint import ImprintClassifier
from imprint.backbones import load
from imprint.kernels.rows import unit_rows

BATCH = 32
Predict = Callable[..., np.ndarray]
LDA_SHRINKAGES = (0.001, 0.01, 0.1, 0.3, 0.6)


class Task(NamedTuple):
    """Raw blocks of the images of one set, side by side."""

    X: np.ndarray  # (n, d)
    y: np.ndarray  # (n,)
    Q: np.ndarray  # (q, d)
    t: np.ndarray  # (q,)
    widths: tuple[int, ...]


def embedded(path: Path, network: str) -> Task:
    """The embeddings of a set, computed once."""
    stored = CACHE / f"images-{network}-{path.stem}.npz"
    if not stored.exists():
        backbone = load(network)
        pack = np.load(path)
        parts = {}
        for split in ("train", "test"):
            ends = pack[f"{split}_offsets"]
            content = pack[f"{split}_files"]
            images = [content[a:b].tobytes() for a, b in pairwise(ends)]
            rows = []
            for start in range(0, len(images), BATCH):
                batch = [read(raw) for raw in images[start : start + BATCH]]
                rows.append(backbone.embed([backbone.prepare(x) for x in batch]))
            parts[split] = np.concatenate(rows)
            parts[f"{split}_labels"] = pack[f"{split}_labels"]
        widths = [block.width for block in backbone.blocks]
        stored.parent.mkdir(parents=True, exist_ok=True)
        np.savez(stored, widths=widths, **parts)
    with np.load(stored) as file:
        widths = tuple(file["widths"].tolist())
        y = file["train_labels"].astype(int)
        t = file["test_labels"].astype(int)
        return Task(file["train"], y, file["test"], t, widths)


def read(raw: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(raw)).convert("RGB"))


def unit_blocks(X: np.ndarray, widths: tuple[int, ...]) -> np.ndarray:
    """Blocks at unit length; together at unit length."""
    ends = np.cumsum(widths)
    parts = [unit_rows(X[:, end - w : end]) for w, end in zip(widths, ends)]
    return np.hstack(parts) / len(widths) ** 0.5


def lda(X: np.ndarray, y: np.ndarray, Q: np.ndarray) -> np.ndarray:
    """Linear discriminant analysis; the shrinkage is chosen by folds of the training rows."""
    folds = list(
        StratifiedKFold(
            min(5, np.bincount(y).min()), shuffle=True, random_state=0
        ).split(X, y)
    )

    def accuracy(shrinkage: float) -> float:
        hits = []
        for rest, held_out in folds:
            score, _ = slda(X[rest], y[rest], shrinkage)
            hits.extend(score(X[held_out]).argmax(axis=1) == y[held_out])
        return float(np.mean(hits))

    best = max(LDA_SHRINKAGES, key=accuracy)
    return slda(X, y, best)[0](Q).argmax(axis=1)


def logistic(C: float) -> Predict:
    def predict(X: np.ndarray, y: np.ndarray, Q: np.ndarray) -> np.ndarray:
        return LogisticRegression(C=C, max_iter=2000).fit(X, y).predict(Q)

    return predict


def nearest_row(X: np.ndarray, y: np.ndarray, Q: np.ndarray) -> np.ndarray:
    return y[(Q @ X.T).argmax(axis=1)]


PEERS: dict[str, Predict] = {
    "class means": lambda X, y, Q: ncm(X, y)[0](Q).argmax(axis=1),
    "1-NN": nearest_row,
    "logistic regression, C = 1": logistic(1),
    "logistic regression, C = 10": logistic(10),
    "logistic regression, C = 100": logistic(100),
    "LDA, shrinkage by folds": lda,
    "RanPAC's head": lambda X, y, Q: ranpac(X, y)[0](Q).argmax(axis=1),
}


def accuracies(
    task: Task, rows: int, draws: int, peers: dict[str, Predict]
) -> dict[str, float]:
    """The mean accuracy of every method in %, over draws of the training rows."""
    hits: dict[str, list[float]] = {}
    last = task.widths[0]
    versions = {
        "last layer": (unit_rows(task.X[:, :last]), unit_rows(task.Q[:, :last])),
        "blocks": (unit_blocks(task.X, task.widths), unit_blocks(task.Q, task.widths)),
    }
    for draw in range(draws):
        rng = np.random.default_rng(draw)
        chosen = [
            rng.permutation(np.flatnonzero(task.y == c))[:rows]
            for c in np.unique(task.y)
        ]
        index = np.concatenate(chosen)
        y = task.y[index]
        for version, (X, Q) in versions.items():
            for name, predict in peers.items():
                right = np.mean(predict(X[index], y, Q) == task.t)
                hits.setdefault(f"{name}, {version}", []).append(right)
        plain = ImprintClassifier().fit(task.X[index][:, :last], y)
        hits.setdefault("imprint, last layer", []).append(
            plain.score(task.Q[:, :last], task.t)
        )
        ours = ImprintClassifier(blocks=task.widths).fit(task.X[index], y)
        hits.setdefault("imprint, blocks", []).append(ours.score(task.Q, task.t))
    return {name: 100 * float(np.mean(values)) for name, values in hits.items()}


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[5, 20])
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--backbone", default="efficientnet_lite0")
    parser.add_argument(
        "--no-peers", action="store_true", help="imprint alone, with and without blocks"
    )
    args = parser.parse_args()
    peers = {} if args.no_peers else PEERS
    table = f"images-{args.backbone}" + ("-alone" if args.no_peers else "")
    instances = {}
    for path in sorted((SHARED / "data" / "pictures").glob("*.npz")):
        for rows in args.rows:
            key = f"{path.stem} @ {rows}"
            instances[key] = measured_once(
                table,
                key,
                lambda p=path, r=rows: accuracies(
                    embedded(p, args.backbone), r, args.draws, peers
                ),
            )
    methods = list(next(iter(instances.values())))
    for rows in args.rows:
        chosen = [v for k, v in instances.items() if k.endswith(f"@ {rows}")]
        print(f"\nMean accuracy with {rows} rows per class, {len(chosen)} sets, %\n")
        for name in methods:
            print(f"| {name} | {np.mean([values[name] for values in chosen]):.1f} |")
    by_method = {m: {k: v[m] for k, v in instances.items()} for m in methods}
    print_comparison(by_method, "imprint, blocks", "%", args.diagram, "Image sets")


if __name__ == "__main__":
    main()
