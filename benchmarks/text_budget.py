"""The budget of proxies for texts: accuracy of `kernel` over k: `python benchmarks/text_budget.py PACK.npz ...`.

The packs are written by `imprint embed trec -b minilm -o trec.npz`; one seed.
"""

import sys
from pathlib import Path

import numpy as np

from imprint import ImprintClassifier

GENERATORS = (*(f"kmeans(k={k})" for k in (20, 50, 100, 200)), "all")


def main() -> None:
    print("| accuracy in %, `kernel` | k = 20 | 50 | 100 | 200 | all rows |")
    print("|---|---:|---:|---:|---:|---:|")
    for path in map(Path, sys.argv[1:]):
        with np.load(path) as pack:
            accuracies = [
                ImprintClassifier(generator=generator, random_state=0)
                .fit(pack["train"], pack["train_labels"])
                .score(pack["test"], pack["test_labels"])
                for generator in GENERATORS
            ]
        print(
            f"| {path.stem} |",
            " | ".join(f"{100 * a:.1f}" for a in accuracies),
            "|",
            flush=True,
        )


if __name__ == "__main__":
    main()
