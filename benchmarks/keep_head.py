"""Accuracy on old and new classes when new classes join a pre-trained head, for the three ways of `keep_head`.

    python benchmarks/keep_head.py IMAGENET CIFAR10 ROWS

IMAGENET is a folder of validation images in sub-folders 000 to 999, by class in the usual order. CIFAR10 is a .npz
with `train_images`, `train_labels`, `test_images` and `test_labels`. The folder ROWS caches the embeddings.
"""

import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

from imprint import Imprinter, backbones, pretrained_classes
from imprint.calibration import CrossValidation
from imprint.head import Head
from imprint.imprinter.state import method_parts
from imprint.method import Method
from imprint.pretrained_classes import PretrainedClasses, PretrainedHead

BACKBONE = "efficientnet_lite0"
WAYS = {
    "qi": ("qi", 0.99),
    "done": ("done", 0.99),
    "margin": ("margin", 0.99),
    "margin, 95 %": ("margin", 0.95),
}
DRAWS = 5
GONE = 100


class Case(NamedTuple):
    """Training and test images of new classes, test images of old classes, and the old classes that are removed."""

    train: tuple[np.ndarray, np.ndarray]
    test: tuple[np.ndarray, np.ndarray]
    old: tuple[np.ndarray, np.ndarray]
    gone: frozenset[str] = frozenset()


def embedded(
    imagenet: Path, cifar10: Path, rows: Path
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """The embeddings of both sets, from the cache if it has them."""
    rows.mkdir(parents=True, exist_ok=True)
    if not (rows / "imagenet.npz").is_file():
        embeddings = Imprinter(BACKBONE, cache=False).look(
            sorted(imagenet.glob("*/*.JPEG"))
        )
        np.savez(
            rows / "imagenet.npz",
            X=embeddings.X,
            y=[int(Path(name).parent.name) for name in embeddings.names],
        )
    if not (rows / "cifar.npz").is_file():
        pack, network = np.load(cifar10), Imprinter(BACKBONE, cache=False)
        arrays = {
            f"X{s[:2]}": network.look(pack[f"{s}_images"]).X for s in ("train", "test")
        }
        np.savez(
            rows / "cifar.npz",
            **arrays,
            ytr=pack["train_labels"],
            yte=pack["test_labels"],
        )
    return tuple(dict(np.load(rows / name)) for name in ("imagenet.npz", "cifar.npz"))


def plain_accuracy(names: np.ndarray, old: dict[str, np.ndarray]) -> float:
    head = backbones.head(BACKBONE)
    return float(
        np.mean((old["X"] @ head.weights.T + head.bias).argmax(axis=1) == old["y"])
    )


def cifar_cases(
    names: np.ndarray,
    old: dict[str, np.ndarray],
    new: dict[str, np.ndarray],
    shots: int,
) -> list[Case]:
    labels = np.array([f"new {c}" for c in range(10)])
    cases = []
    for seed in range(DRAWS):
        rng = np.random.default_rng(seed)
        few = np.concatenate(
            [
                rng.permutation(np.flatnonzero(new["ytr"] == c))[:shots]
                for c in range(10)
            ]
        )
        train, test = (
            (new["Xtr"][few], labels[new["ytr"][few]]),
            (new["Xte"], labels[new["yte"]]),
        )
        cases.append(Case(train, test, (old["X"], names[old["y"]])))
    return cases


def removed_cases(
    names: np.ndarray, old: dict[str, np.ndarray], shots: int
) -> list[Case]:
    cases = []
    for seed in range(DRAWS):
        rng = np.random.default_rng(seed)
        gone = np.sort(rng.choice(len(names), GONE, replace=False))
        drawn = np.stack([rng.permutation(np.flatnonzero(old["y"] == c)) for c in gone])
        learnt, queries, left = (
            drawn[:, 1 : 1 + shots].ravel(),
            drawn[:, 0],
            ~np.isin(old["y"], gone),
        )
        parts = [
            (old["X"][i], np.char.add("new ", names[old["y"][i]]))
            for i in (learnt, queries)
        ]
        cases.append(
            Case(
                *parts,
                (old["X"][left], names[old["y"][left]]),
                frozenset(names[gone].tolist()),
            )
        )
    return cases


def measure(case: Case, way: str, share: float) -> list[float]:
    """In per cent: accuracy on new, accuracy on old before and after, old images predicted as new classes."""
    pretrained_classes.MARGIN_SHARE = share
    method = Method.of(**method_parts(way, BACKBONE, None, {}, True))
    empty = Head(
        method, 0, "float32", folds=CrossValidation(Head(method, 0, "float32"))
    )
    classes = PretrainedClasses.of(backbones.head(BACKBONE)).without(set(case.gone))
    head = PretrainedHead(way, classes, empty).learn(*case.train)
    new, old = (head.classes[head.winners(X)] for X in (case.test[0], case.old[0]))
    before = np.array(head.pretrained.labels)[
        (case.old[0] @ head.pretrained.weights.T + head.pretrained.bias).argmax(axis=1)
    ]
    outcomes = (
        new == case.test[1],
        before == case.old[1],
        old == case.old[1],
        np.char.startswith(old, "new "),
    )
    return [100 * float(np.mean(right)) for right in outcomes]


def main(imagenet: str, cifar10: str, rows: str) -> None:
    old, new = embedded(Path(imagenet), Path(cifar10), Path(rows))
    names = np.array(PretrainedClasses.of(backbones.head(BACKBONE)).labels)
    print(
        f"The plain head on {len(old['X']):,} images: {100 * plain_accuracy(names, old):.1f} %\n"
    )
    settings = {
        f"CIFAR-10, {n} per class": cifar_cases(names, old, new, n) for n in (1, 5, 20)
    }
    settings |= {
        f"{GONE} ImageNet classes, {n} per class": removed_cases(names, old, n)
        for n in (1, 4)
    }
    print(
        "| new classes | way | new | old before | old after | old taken for new |\n|---|---|---|---|---|---|"
    )
    for title, cases in settings.items():
        for name, (way, share) in WAYS.items():
            means = np.mean([measure(case, way, share) for case in cases], axis=0)
            print(
                f"| {title} | {name} | " + " | ".join(f"{x:.1f}" for x in means) + " |",
                flush=True,
            )


if __name__ == "__main__":
    main(*sys.argv[1:])
