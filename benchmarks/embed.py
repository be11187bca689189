"""Embed all of MNIST with a MobileNet for the benchmarks: `python benchmarks/embed.py 512` (or 1280)."""

import sys

import numpy as np
from ai_edge_litert.interpreter import Interpreter
from data import FILES, SHARED
from PIL import Image

MODELS = {
    512: ("mobilenet_v1_0.5_160_quant.tflite", 160),
    1280: ("tf2_mobilenet_v2_1.0_224_ptq.tflite", 224),
}


class Pool:
    """The last pooled tensor of a TFLite classifier."""

    def __init__(self, name: str, size: int, width: int) -> None:
        path = str(SHARED / "models" / name)
        self.net = Interpreter(
            path, num_threads=1, experimental_preserve_all_tensors=True
        )
        self.net.allocate_tensors()
        self.input = self.net.get_input_details()[0]
        pools = [
            t
            for t in self.net.get_tensor_details()
            if _is_pool(t["name"]) and t["shape"][-1] == width
        ]
        self.output, self.size = pools[-1], size

    def __call__(self, image: np.ndarray) -> np.ndarray:
        rgb = (
            Image.fromarray(image)
            .convert("RGB")
            .resize((self.size, self.size), Image.Resampling.BILINEAR)
        )
        pixels = np.asarray(rgb)
        if self.input["dtype"] == np.int8:
            pixels = (pixels.astype(np.int16) - 128).astype(np.int8)
        elif self.input["dtype"] == np.float32:
            pixels = pixels.astype(np.float32) / 127.5 - 1
        self.net.set_tensor(self.input["index"], pixels[None])
        self.net.invoke()
        scale, zero = self.output["quantization"]
        values = (
            self.net.get_tensor(self.output["index"]).reshape(-1).astype(np.float32)
        )
        return (values - zero) * (scale or 1)


def _is_pool(name: str) -> bool:
    return any(word in name.lower() for word in ("pool", "mean"))


def main(width: int, per_class: int) -> None:
    net = Pool(*MODELS[width], width)
    data = np.load(SHARED / "data" / "mnist.npz")
    arrays = {}
    for part in ("train", "test"):
        labels = data[f"{part}_labels"]
        rows = np.sort(
            np.concatenate(
                [np.flatnonzero(labels == c)[:per_class] for c in np.unique(labels)]
            )
        )
        arrays[part] = np.stack([net(image) for image in data[f"{part}_images"][rows]])
        arrays[f"{part}_labels"] = labels[rows]
    FILES[width].parent.mkdir(parents=True, exist_ok=True)
    np.savez(FILES[width], **arrays)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 10_000)
