"""Embeddings for the benchmarks in this folder.

    python benchmarks/field/data.py        embed the texts (once; about five minutes on two cores)

Texts are read in their published formats from `$IMPRINT_SHARED/data/text` and embedded by the bundled `minilm` network;
the result is cached in `out/field`. Image embeddings are the packs in `$IMPRINT_SHARED/embeddings/subset`.
"""

import csv
import json
import os
from pathlib import Path
from typing import NamedTuple

import numpy as np

from imprint import Imprinter

ROOT = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("IMPRINT_SHARED", ROOT.parent / "shared"))
CACHE = ROOT / "out" / "field"
TEXTS = ("banking77", "clinc150", "trec", "goemotions")
DATASETS = ("mnist", "fashionmnist", "cifar10")
ROWS = ("X", "Q", "names", "outside")
BACKBONES = ("tinynet", "deit_tiny", "mobilenet_v1_0.25_128", "mobilenet_v1_0.5_160")
IMAGES = tuple(f"{backbone}-{name}" for name in DATASETS for backbone in BACKBONES)
COARSE = {
    "ABBR": "abbreviation",
    "DESC": "description",
    "ENTY": "entity",
    "HUM": "human",
    "LOC": "location",
    "NUM": "number",
}


LAST = 384  # numbers of the last layer of minilm, the first block


class Pack(NamedTuple):
    """Embeddings of one data set by one network."""

    name: str
    X: np.ndarray  # (n, d) float32 training rows
    y: np.ndarray  # (n,) class numbers
    Q: np.ndarray  # (q, d) test rows
    t: np.ndarray  # (q,)
    names: np.ndarray  # (C, d) embedded class names; (0, d) if there are none
    outside: np.ndarray  # (o, d) out-of-scope rows; (0, d) if there are none

    def last_layer(self) -> "Pack":
        """The same with the last layer only."""
        rows = {key: getattr(self, key)[:, :LAST] for key in ROWS}
        return self._replace(**rows)


def load(name: str) -> Pack:
    """A pack by name: a text set, or `BACKBONE-DATASET`."""
    return texts(name) if name in TEXTS else images(name)


def images(name: str) -> Pack:
    """Embedded images, dequantised."""
    with np.load(SHARED / "embeddings" / "subset" / f"{name}.npz") as file:
        offset = file["offset"] if "offset" in file.files else 0
        X, Q = (
            (file[p].astype(np.float32) * file["scale"] + offset).astype(np.float32)
            for p in ("train", "test")
        )
        nothing = np.empty((0, X.shape[1]), np.float32)
        return Pack(
            name,
            X,
            file["train_labels"].astype(int),
            Q,
            file["test_labels"].astype(int),
            nothing,
            nothing,
        )


def texts(name: str) -> Pack:
    """The last layer of embedded texts, from the cache if it has them."""
    return texts_with_blocks(name).last_layer()


def texts_with_blocks(name: str) -> Pack:
    """Embedded texts: six blocks of `LAST` numbers each, side by side."""
    path = CACHE / f"texts-{name}.npz"
    if not path.exists():
        _embed(name, path)
    with np.load(path) as file:
        return Pack(
            name, *(file[key] for key in ("X", "y", "Q", "t", "names", "outside"))
        )


def per_class(y: np.ndarray, rows: int, rng: np.random.Generator) -> np.ndarray:
    """Indices of `rows` random rows of every class, or of all rows of a smaller class."""
    return np.concatenate(
        [rng.permutation(np.flatnonzero(y == c))[:rows] for c in np.unique(y)]
    )


def _embed(name: str, path: Path) -> None:
    train, test, outside = READERS[name]()
    labels = sorted({label for _, label in train})
    numbers = {label: i for i, label in enumerate(labels)}
    words = [COARSE.get(label, label).replace("_", " ") for label in labels]
    model = Imprinter("minilm", cache=False)

    def embed(items: list[str]) -> np.ndarray:
        if not items:
            return np.empty((0, model.backbone.width), np.float32)
        return np.asarray(model.embed((items, ["text"] * len(items))).X)

    arrays = {
        "X": embed([text for text, _ in train]),
        "y": np.array([numbers[label] for _, label in train]),
        "Q": embed([text for text, _ in test]),
        "t": np.array([numbers[label] for _, label in test]),
        "names": embed(words),
        "outside": embed(outside),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, **arrays)


LabelledTexts = list[tuple[str, str]]


def _banking77() -> tuple[LabelledTexts, LabelledTexts, list[str]]:
    def part(name: str) -> LabelledTexts:
        with open(
            SHARED / "data" / "text" / "banking77" / f"{name}.csv",
            encoding="utf-8",
            newline="",
        ) as file:
            return [(row["text"], row["category"]) for row in csv.DictReader(file)]

    return part("train"), part("test"), []


def _clinc150() -> tuple[LabelledTexts, LabelledTexts, list[str]]:
    parts = json.loads(
        (SHARED / "data" / "text" / "clinc150" / "data_full.json").read_text("utf-8")
    )
    train, test = (
        [(text, label) for text, label in parts[name]] for name in ("train", "test")
    )
    return train, test, [text for text, _ in parts["oos_test"]]


def _trec() -> tuple[LabelledTexts, LabelledTexts, list[str]]:
    def part(name: str) -> LabelledTexts:
        lines = (
            (SHARED / "data" / "text" / "trec" / name).read_text("latin-1").splitlines()
        )
        return [
            (text, label.split(":")[0])
            for label, text in (line.split(" ", 1) for line in lines)
        ]

    return part("train_5500.label"), part("TREC_10.label"), []


def _goemotions() -> tuple[LabelledTexts, LabelledTexts, list[str]]:
    """GoEmotions: rows with exactly one label, classes with at least 70 such training rows."""
    folder = SHARED / "data" / "text" / "goemotions"
    labels = (folder / "labels.txt").read_text("utf-8").split()

    def part(name: str) -> LabelledTexts:
        lines = (folder / f"{name}.tsv").read_text("utf-8").splitlines()[1:]
        cells = [line.split("\t") for line in lines]
        return [
            (text, labels[int(numbers)])
            for text, numbers, _ in cells
            if "," not in numbers
        ]

    train, test = part("train"), part("test")
    rng = np.random.default_rng(0)
    order = rng.permutation(len(train))
    counts: dict[str, int] = {}
    few: LabelledTexts = []
    for (
        i
    ) in order.tolist():  # at most 400 rows per class: the protocols draw at most 64
        if counts.get(train[i][1], 0) < 400:
            counts[train[i][1]] = counts.get(train[i][1], 0) + 1
            few.append(train[i])
    classes = {label for label, n in counts.items() if n >= 70}
    return [r for r in few if r[1] in classes], [r for r in test if r[1] in classes], []


READERS = {
    "banking77": _banking77,
    "clinc150": _clinc150,
    "trec": _trec,
    "goemotions": _goemotions,
}


if __name__ == "__main__":
    for each in TEXTS:
        pack = texts(each)
        print(
            f"{each}: {len(pack.X):,} + {len(pack.Q):,} rows, {len(pack.outside):,} out of scope",
            flush=True,
        )
