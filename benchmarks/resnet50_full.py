"""The paper's ResNet-50 curve on all of MNIST, with Keras's weights instead of torchvision's.

    python benchmarks/resnet50_full.py --weights resnet50.npz --mnist mnist.npz --out resnet50_full.json
    python benchmarks/resnet50_full.py --weights resnet50.npz --mnist mnist.npz --out few.json --rows 600   # for a CPU

    python benchmarks/resnet50_full.py --show reproduction/docs/results/resnet50_full.json   # the table of a run

`resnet50.npz` is written by `benchmarks/resnet50.py`; `mnist.npz` holds `train_images`, `train_labels`, `test_images`
and `test_labels`, all uint8. Images are enlarged exactly as Pillow's bilinear filter does it, to the last bit.
Rows stay on the device. The file is rewritten after every method, so an interrupted run keeps its finished results.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
import torch
from resnet50 import WIDTH, ResNet50

from imprint import ImprintClassifier
from imprint.collapse import nc1
from imprint.normalisers.l2 import L2

SIZE = 224
BITS = 22  # the fixed point of Pillow's filters of 8-bit images
COUNTS = (*range(1, 16), 20, 50)
SOME = (1, 5, 15, 20, 50)
CURVES = {
    "max": ("l2 l2 l2", COUNTS),
    "kernel": ("l2 none l2", COUNTS),
    "nearest(m=5)": ("l2 l2 l2", SOME),
}
OTHERS = (  # norm_pre norm_post norm_inf, generator, aggregator
    ("l2 none l2", "mean", "kernel"),
    ("none none none", "least_squares(reg=1e-4)", "max"),
    ("l2 l2 l2", "all", "nearest(m=5)"),
)
PUBLISHED = {  # ResNet-50 with torchvision's weights: l2 / kmeans / l2 / l2 / max, and NC1 by the published computation
    "kmeans, max": {
        1: 77.64,
        2: 79.07,
        3: 81.78,
        4: 83.93,
        5: 84.45,
        6: 85.31,
        7: 85.44,
        8: 86.04,
        9: 86.4,
        10: 86.66,
        11: 86.84,
        12: 87.05,
        13: 87.25,
        14: 87.74,
        15: 87.84,
    },
    "nc1": 5.42,
}


def enlargement(side: int) -> torch.Tensor:
    """Pillow's bilinear weights from `side` pixels to SIZE, as whole numbers of 2^-BITS.  # (SIZE, side) float64"""
    centres = (np.arange(SIZE) + 0.5) * side / SIZE
    weights = np.maximum(0, 1 - np.abs(np.arange(side) + 0.5 - centres[:, None]))
    weights /= weights.sum(axis=1, keepdims=True)
    return torch.from_numpy(np.floor(weights * 2**BITS + 0.5))


def enlarged(images: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Grey images (n, side, side) as float32 (n, 3, SIZE, SIZE) in 0..255, rounded after each axis.

    Sums of whole numbers below 2^53 are exact in float64, in whatever order they are added.
    """
    wide = torch.floor((images.double() @ weights.T + 2 ** (BITS - 1)) / 2**BITS)
    full = torch.floor((weights @ wide + 2 ** (BITS - 1)) / 2**BITS)
    return full.float()[:, None].expand(-1, 3, -1, -1)


def embed(
    network: ResNet50, images: np.ndarray, device: str, batch: int
) -> torch.Tensor:
    """The embeddings of grey images, on the device."""
    weights = enlargement(images.shape[1]).to(device)
    rows = torch.empty(len(images), WIDTH, device=device)
    for start in range(0, len(images), batch):
        part = torch.from_numpy(images[start : start + batch]).to(device)
        rows[start : start + batch] = network.embed(enlarged(part, weights))
    return rows


def methods() -> list[ImprintClassifier]:
    """k-means with every aggregator, and the methods to compare it with; k-means with k = 1 is the mean."""
    curve = [
        (norms, f"kmeans(k={k})", how)
        for how, (norms, counts) in CURVES.items()
        for k in counts
    ]
    return [
        ImprintClassifier(
            norm_pre=pre,
            generator=generator,
            norm_post=post,
            norm_inf=inf,
            aggregator=how,
        )
        for norms, generator, how in (*curve, *OTHERS)
        for pre, post, inf in [norms.split()]
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--weights", type=Path)
    parser.add_argument("--mnist", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument(
        "--show", type=Path, help="only print the table of this result file"
    )
    parser.add_argument(
        "--rows",
        type=int,
        help="number of training images; half as many test images",
    )
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument(
        "--device", default="cuda" if torch.cuda.is_available() else "cpu"
    )
    given = parser.parse_args()
    if given.show:
        print("\n".join(table(json.loads(given.show.read_text()))))
    elif given.weights and given.mnist and given.out:
        run(given)
    else:
        parser.error("give --weights, --mnist and --out, or --show")


def table(results: dict) -> list[str]:
    """The curves of a run next to the published curve, as a Markdown table."""
    medians = {each["method"]: each["median"] for each in results["accuracy"]}
    rows = [
        "| k | published | `max` | difference | `kernel` |",
        "|---|---:|---:|---:|---:|",
    ]
    for k in COUNTS:
        here, together = (
            medians[f"l2 / kmeans(k={k}) / l2 / l2 / max"],
            medians[f"l2 / kmeans(k={k}) / none / l2 / kernel"],
        )
        there = results["published"]["kmeans, max"].get(str(k))
        beside = (
            f"{there:.2f} | {here:.2f} | {here - there:+.2f}"
            if there
            else f"| {here:.2f} | "
        )
        rows.append(f"| {k} | {beside} | {together:.2f} |")
    return rows


def run(given: argparse.Namespace) -> None:
    cuda = given.device != "cpu"
    torch.backends.cudnn.allow_tf32 = True
    torch.backends.cudnn.benchmark = True
    with np.load(given.mnist) as file:
        data = {name: file[name] for name in file.files}
    take = {"train": given.rows, "test": given.rows and given.rows // 2}
    images = {part: data[f"{part}_images"][: take[part]] for part in take}
    labels = {
        part: data[f"{part}_labels"][: take[part]].astype(np.int64) for part in take
    }
    results = {
        "device": torch.cuda.get_device_name() if cuda else "cpu",
        "arithmetic of the network": "TF32" if cuda else "float32",
        "rows": {part: len(images[part]) for part in take},
        "published": PUBLISHED,
        "seconds": {},
    }

    def done(what: str, start: float) -> None:
        if cuda:
            torch.cuda.synchronize()
        results["seconds"][what] = round(time.perf_counter() - start, 2)
        given.out.write_text(json.dumps(results, indent=1) + "\n")
        print(what, results["seconds"][what], "s", flush=True)

    start = time.perf_counter()
    network = ResNet50(given.weights, given.device)
    train, test = (
        embed(network, images[part], given.device, given.batch) for part in take
    )
    done("embed", start)

    start = time.perf_counter()
    rows = L2().apply(train.cpu().numpy())
    results["nc1"] = {"by the formula": nc1(rows, labels["train"])}
    results["nc1"]["published computation"] = nc1(rows, labels["train"], legacy=True)
    done("nc1", start)

    y = torch.from_numpy(labels["train"]).to(given.device)
    results["accuracy"] = []
    for model in methods():
        start, values = time.perf_counter(), []
        X, Q = (
            (train, test)
            if "least" not in model.generator
            else (train.cpu().numpy(), test.cpu().numpy())
        )
        parts = (
            model.norm_pre,
            model.generator,
            model.norm_post,
            model.norm_inf,
            model.aggregator,
        )
        for seed in range(given.seeds if "kmeans" in model.generator else 1):
            model.set_params(random_state=seed).fit(
                X, y if X is train else labels["train"]
            )
            values.append(round(100 * model.score(Q, labels["test"]), 2))
        name = " / ".join(parts)
        results["accuracy"].append(
            {"method": name, "median": float(np.median(values)), "seeds": values}
        )
        done(name, start)


if __name__ == "__main__":
    main()
