"""Replace class names in packs by numbers, in alphabetical order; the tasks `even`, `odd` and `short` need numbers.

python benchmarks/number_labels.py PACKS
"""

import sys
from pathlib import Path

import numpy as np

from imprint.core.files.atomic import atomic_write


def main(packs: Path) -> None:
    for path in sorted(packs.glob("*-*.npz")):
        with np.load(path, allow_pickle=False) as pack:
            arrays = {name: pack[name] for name in pack.files}
        names = np.unique(arrays["train_labels"])
        for split in ("train", "test"):
            labels = arrays[f"{split}_labels"]
            if not np.isin(labels, names).all():
                sys.exit(
                    f"{path}: the {split} rows have a class without training rows."
                )
            arrays[f"{split}_labels"] = np.searchsorted(names, labels)
        with atomic_write(path) as f:
            np.savez(f, **arrays)
        print(f"{path}: {len(names)} classes")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
