"""Top-1 accuracy of a backbone with its own classifier on ImageNet's validation set, to verify the port.

    python benchmarks/top1.py IMAGES efficientnet_lite0
    python benchmarks/top1.py IMAGES torchvision:mobilenet_v2
    python benchmarks/top1.py IMAGES resnet50_keras --weights whole.npz      # of benchmarks/resnet50.py --classifier

IMAGES has one folder for each of the 1,000 classes, 000 to 999 in the order of their WordNet ids.
"""

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image

from imprint import backbones
from imprint.backbones import Preprocess
from imprint.backbones.record import location

Scores = Callable[[np.ndarray], np.ndarray]
KERAS = Preprocess(size=(224, 224), resize=256)


def keras(weights: Path) -> tuple[Preprocess, Scores]:
    """The ResNet-50 of `resnet50.py`."""
    import torch
    from resnet50 import ResNet50

    network = ResNet50(weights)

    def scores(batch: np.ndarray) -> np.ndarray:
        images = torch.from_numpy(batch).permute(0, 3, 1, 2).float()
        return network.scores(network.embed(images)).numpy()

    return KERAS, scores


def shipped(name: str) -> tuple[Preprocess, Scores]:
    """A backbone whose classifier ships with the package."""
    backbone, head = backbones.load(name), backbones.head(name)
    return (
        backbone.record.preprocess,
        lambda batch: backbone.embed(batch) @ head.weights.T + head.bias,
    )


def torchvision(spec: str) -> tuple[Preprocess, Scores]:
    """A network of torchvision, with its own last layer as the classifier."""
    import torch

    backbone = backbones.load(spec)
    state = torch.load(location(backbone.record), weights_only=True)
    weights, bias = (tensor.numpy() for tensor in list(state.values())[-2:])
    return (
        backbone.record.preprocess,
        lambda batch: backbone.embed(batch) @ weights.T + bias,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("images", type=Path)
    parser.add_argument("network")
    parser.add_argument("--weights", type=Path)
    parser.add_argument("--batch", type=int, default=20)
    given = parser.parse_args()
    if given.network == "resnet50_keras":
        rule, scores = keras(given.weights)
    else:
        rule, scores = (
            torchvision if given.network.startswith("torchvision:") else shipped
        )(given.network)
    files = sorted(given.images.glob("*/*"))
    right = 0
    for start in range(0, len(files), given.batch):
        part = files[start : start + given.batch]
        batch = np.stack(
            [rule.image(np.asarray(Image.open(path).convert("RGB"))) for path in part]
        )
        right += sum(
            scores(batch).argmax(axis=1) == [int(path.parent.name) for path in part]
        )
        done = start + len(part)
        if done % 500 == 0 or done == len(files):
            print(
                f"{given.network}: {100 * right / done:.2f} % of {done:,} images",
                flush=True,
            )


if __name__ == "__main__":
    main()
