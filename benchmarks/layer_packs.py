"""Packs whose blocks are layers, places and spreads of a network, for `beyond/layers`.

    python benchmarks/field/images.py --no-peers --backbone mobilenet_v2   # embeds the images
    python benchmarks/layer_packs.py OUT efficientnet_lite0 mobilenet_v2 tinynet deit_tiny minilm

Writes `OUT/NETWORK-SET.npz` for each of the eleven image sets of `$IMPRINT_SHARED/data/pictures`, or for three text sets of
`$IMPRINT_SHARED/data/text`. A pack that exists is kept.

The blocks are those of the network's record: `last`, the quarters of inner maps (`b10 quadrants`) and the deviations over
maps (`top std`). In addition there is the mean of each inner map (`b10 mean`): the mean of its quarters, which is the mean
over the map if its sides are even. With odd sides (7 x 7), quarters share the middle row and column, which count twice.
Where a record projects quarters to fewer numbers, the network is read without that projection. Networks of tokens have no
places; the means over tokens of their inner layers are called `layer 6 mean`.
"""

import argparse
import io
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib.resources import files
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from imprint.backbones import Backbone, Block, load, record
from imprint.embeddings import write_pack
from imprint.extend import home

sys.path.insert(0, str(Path(__file__).parent / "field"))
from data import CACHE, READERS, SHARED

BATCH = 32
QUARTERS = 4
TOKEN_POOLINGS = ("tokens", "patches")
TOP_MAPS = {
    "mobilenet_v1_0.25": "13",
    "mobilenet_v1_0.5": "13",
    "mobilenet_v1_1.0": "13",
}
"""Maps whose mean is the last layer already."""
TEXT_SETS = ("trec", "banking77", "clinc150")
TEXT_ROWS = {"train": 40, "test": 20}  # of each class at most, drawn with seed 0

Splits = dict[str, tuple[list[Any], np.ndarray]]


def blocks_read(network: str) -> tuple[Block, ...]:
    """The blocks of the record, whose quarters are not projected."""
    blocks = []
    for block in record(network).blocks:
        if block.pooling == "quadrants" and block.projected_from is not None:
            whole = replace(block, width=block.projected_from, projected_from=None)
            blocks.append(whole)
        else:
            blocks.append(block)
    return tuple(blocks)


def opened(network: str, folder: Path) -> Backbone:
    """The network with these blocks: itself, or a copy of its file with another record."""
    stated = record(network)
    blocks = blocks_read(network)
    if blocks == stated.blocks:
        return load(network)
    file = Path(str(stated.file))
    package = Path(str(files("imprint.backbones")))
    is_bundled = file.parts[0] == "weights"
    source = package / file if is_bundled else home() / "backbones" / file
    copy = folder / file.name
    shutil.copyfile(source, copy)
    description = {
        "preprocess": stated.as_json()["preprocess"],
        "blocks": [block.as_json() for block in blocks],
    }
    copy.with_name(f"{copy.name}.json").write_text(json.dumps(description))
    return load(f"{stated.adapter}:{copy}")


def with_means(network: str, X: np.ndarray) -> tuple[np.ndarray, dict[str, int]]:
    """The rows with the means of inner maps as further blocks, and the widths of all blocks."""
    blocks = blocks_read(network)
    ends = list(accumulate(block.width for block in blocks))
    means = {}
    others = {}
    for block, end in zip(blocks, ends):
        rows = X[:, end - block.width : end]
        layer = block.name.removesuffix(f" {block.pooling}")
        if block is blocks[0]:
            means["last"] = rows
        elif block.pooling in TOKEN_POOLINGS:
            means[f"{layer} mean"] = rows
        else:
            others[block.name] = rows
        if block.pooling == "quadrants" and layer != TOP_MAPS.get(network):
            # the quarters of each channel stand together
            by_channel = rows.reshape(len(rows), -1, QUARTERS)
            means[f"{layer} mean"] = by_channel.mean(axis=2)
    every = means | others
    widths = {name: rows.shape[1] for name, rows in every.items()}
    return np.hstack(list(every.values())), widths


def image_sets() -> Iterator[tuple[str, Splits]]:
    """Each set of images with its two splits."""
    for path in sorted((SHARED / "data" / "pictures").glob("*.npz")):
        pack = np.load(path)
        splits: Splits = {}
        for split in ("train", "test"):
            content = pack[f"{split}_files"]
            ends = pack[f"{split}_offsets"]
            inputs = [content[a:b].tobytes() for a, b in pairwise(ends)]
            splits[split] = (inputs, pack[f"{split}_labels"].astype(int))
        yield path.stem, splits


def text_sets() -> Iterator[tuple[str, Splits]]:
    """Each set of texts with its two splits, some rows of each class."""
    for name in TEXT_SETS:
        train, test, _ = READERS[name]()
        names = sorted({label for _, label in train})
        splits: Splits = {}
        for split, rows in (("train", train), ("test", test)):
            labels = np.array([names.index(label) for _, label in rows])
            rng = np.random.default_rng(0)
            drawn = []
            for c in np.unique(labels):
                order = rng.permutation(np.flatnonzero(labels == c))
                drawn.append(order[: TEXT_ROWS[split]])
            kept = np.concatenate(drawn)
            splits[split] = ([rows[i][0] for i in kept], labels[kept])
        yield name, splits


def embedded(
    network: str, name: str, backbone: Backbone, splits: Splits
) -> list[np.ndarray]:
    """The training and the test rows; those that `images.py` embedded are read."""
    stored = CACHE / f"images-{network}-{name}.npz"
    if stored.exists():
        with np.load(stored) as file:
            widths = file["widths"].tolist()
            if widths == [block.width for block in blocks_read(network)]:
                return [file["train"], file["test"]]
    return [_embed(backbone, splits[split][0]) for split in ("train", "test")]


def _embed(backbone: Backbone, inputs: Sequence[Any]) -> np.ndarray:
    parts = []
    for start in range(0, len(inputs), BATCH):
        batch = inputs[start : start + BATCH]
        parts.append(backbone.embed([backbone.prepare(_read(one)) for one in batch]))
    return np.concatenate(parts)


def _read(raw: Any) -> Any:
    """The pixels of an image file; a text is what it is."""
    if isinstance(raw, str):
        return raw
    return np.asarray(Image.open(io.BytesIO(raw)).convert("RGB"))


def write_packs(network: str, out: Path) -> None:
    is_text = record(network).modality == "text"
    with tempfile.TemporaryDirectory() as folder:
        backbone = opened(network, Path(folder))
        for name, splits in text_sets() if is_text else image_sets():
            path = out / f"{network}-{name}.npz"
            if path.exists():
                continue
            rows, test_rows = embedded(network, name, backbone, splits)
            X, widths = with_means(network, rows)
            X_test, _ = with_means(network, test_rows)
            labels = [splits[split][1] for split in ("train", "test")]
            write_pack(path, X, labels[0], X_test, labels[1], blocks=widths)
            print(path, X.shape, widths, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("networks", nargs="+")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    for network in args.networks:
        write_packs(network, args.out)


if __name__ == "__main__":
    main()
