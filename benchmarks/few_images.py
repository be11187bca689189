"""Write the first images of every class as a pack [default: 600 training and 300 test images per class].

python benchmarks/few_images.py DATA few/mnist.npz [TRAIN TEST]

DATA is an argument of `imprint.datasets.load`: a pack, a folder or a name, with images of one size and two splits.
Classes are numbered in the sorted order of their labels.
"""

import sys
from pathlib import Path

import numpy as np

from imprint.core.files.atomic import atomic_write
from imprint.datasets import load


def first(data: str, split: str, count: int) -> dict[str, np.ndarray]:
    rows = load(data, split)
    rows_by_class = [
        np.flatnonzero(rows.labels == label)[:count] for label in rows.classes
    ]
    if any(len(class_rows) < count for class_rows in rows_by_class):
        smallest = min(map(len, rows_by_class))
        sys.exit(
            f"{data}: the smallest class has {smallest} images for {split}, {count} are requested."
        )
    images = np.stack([rows.inputs[i] for i in np.concatenate(rows_by_class).tolist()])
    labels = np.repeat(np.arange(len(rows_by_class), dtype=np.uint8), count)
    return {f"{split}_images": images, f"{split}_labels": labels}


def main(data: str, to: Path, train: int = 600, test: int = 300) -> None:
    arrays = first(data, "train", train) | first(data, "test", test)
    to.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(to) as f:
        np.savez_compressed(f, **arrays)
    print(
        f"{to}: {len(arrays['train_labels']):,} + {len(arrays['test_labels']):,} images"
    )


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), *map(int, sys.argv[3:5]))
