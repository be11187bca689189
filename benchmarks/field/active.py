"""Active learning: the curves of `benchmarks/active.py` as tables with tests.

    python benchmarks/active.py PACK.npz... --out out/field/active.json          (about half an hour on two cores)
    python benchmarks/field/active.py out/field/active.json... [--diagram FILE.svg]

The packs are DeiT-tiny and TinyNet on MNIST, FashionMNIST and CIFAR-10, and MiniLM on TREC and BANKING77. An
instance of the rank tests is a pack with a number of labels.
"""

import json
from pathlib import Path

import numpy as np
from tables import parser_of, print_comparison

OURS = "suggest"
NAMES = {
    "suggested": OURS,
    "random": "random",
    "margin": "smallest margin",
    "kmeans": "k-means",
    "typiclust": "TypiClust",
    "probcover": "ProbCover",
    "badge": "BADGE",
}


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("curves", nargs="+", type=Path)
    options = parser.parse_args()
    files = [json.loads(path.read_text()) for path in options.curves]
    accuracy: dict[str, dict[str, list[list[float]]]] = {}
    for file in files:
        for pack, by_method in file["accuracy"].items():
            accuracy.setdefault(pack, {}).update(by_method)
    budgets, scores = files[0]["budgets"], {name: {} for name in NAMES.values()}
    for pack, by_method in accuracy.items():
        for method, name in NAMES.items():
            for budget, mean in zip(budgets, np.mean(by_method[method], axis=0)):
                scores[name][f"{pack.removeprefix('minilm-')} @ {budget}"] = float(mean)
    heads = [f"{kind}, {budget}" for kind in ("images", "texts") for budget in budgets]
    print(
        "| rows chosen by | " + " | ".join(heads) + " |\n|---|" + "---:|" * len(heads)
    )
    for method, name in NAMES.items():
        cells = []
        for texts in (False, True):
            packs = [pack for pack in accuracy if pack.startswith("minilm") == texts]
            cells += np.mean(
                [np.mean(accuracy[pack][method], axis=0) for pack in packs], axis=0
            ).tolist()
        print(f"| {name} | " + " | ".join(f"{cell:.1f}" for cell in cells) + " |")
    print_comparison(
        scores,
        OURS,
        "accuracy, %",
        options.diagram,
        "Active learning, 10 to 200 labels",
    )


if __name__ == "__main__":
    main()
