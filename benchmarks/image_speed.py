"""Bottlenecks of embedding photographs (decoding, preparing, the network), and the cost of other settings.

    python benchmarks/image_speed.py stages     # CPU time of each stage for one image
    python benchmarks/image_speed.py batch      # images per forward pass
    python benchmarks/image_speed.py draft      # JPEGs decoded at reduced size: speed, and accuracy on CIFAR-10

All figures are CPU time of one thread. The variants alternate, so other load changes their ratios little.
The images are from CIFAR-10 (`../shared/data/cifar10.npz`, or IMPRINT_SHARED), enlarged and saved as JPEG.
"""

import argparse
import io
import os
import platform
import time
from datetime import date
from pathlib import Path
from statistics import median

import numpy as np
import onnxruntime
from PIL import Image

from imprint import ImprintClassifier, backbones
from imprint.backbones.record import read_weights
from imprint.modalities.image import read_image

SHARED = Path(
    os.environ.get("IMPRINT_SHARED", Path(__file__).resolve().parents[2] / "shared")
)
PHOTO, LARGE, LEAST = (
    (500, 375),
    (1024, 1024),
    256,
)  # pixels; efficientnet_lite0 crops 224 of 256


def cpu(function, *values):
    """CPU seconds of a call, and its result."""
    start = time.process_time()
    result = function(*values)
    return time.process_time() - start, result


def jpegs(images, size):
    for image in images:
        buffer = io.BytesIO()
        Image.fromarray(image).resize(size, Image.Resampling.BICUBIC).save(
            buffer, "JPEG", quality=90
        )
        yield buffer.getvalue()


def stages(data):
    network, raw = (
        backbones.load("efficientnet_lite0", threads=1),
        list(jpegs(data["train_images"][:64], PHOTO)),
    )
    times = {"decode": [], "prepare": [], "network": []}
    for _ in range(5):
        seconds, images = cpu(list, map(read_image, raw))
        times["decode"].append(seconds / 64)
        seconds, prepared = cpu(list, map(network.prepare, images))
        times["prepare"].append(seconds / 64)
        times["network"].append(cpu(network.embed, np.stack(prepared))[0] / 64)
    for name, values in times.items():
        print(f"{name:8} {1000 * median(values):6.2f} ms an image")
    print(
        f"all      {1 / sum(map(median, times.values())):6.1f} images a second of one core"
    )


def batch(data):
    content, _ = read_weights(backbones.record("efficientnet_lite0"))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        content, options, providers=["CPUExecutionProvider"]
    )
    name, x = (
        session.get_inputs()[0].name,
        np.random.default_rng(0).normal(size=(64, 3, 224, 224)).astype(np.float32),
    )
    sizes = (1, 2, 4, 6, 8, 16, 32, 64)
    times = {size: [] for size in sizes}
    for _ in range(5):
        for size in sizes:
            parts = [x[i : i + size] for i in range(0, 64, size)]
            times[size].append(
                cpu(list, (session.run(["feat"], {name: p}) for p in parts))[0] / 64
            )
    for size in sizes:
        print(f"{size:3} at once {1000 * median(times[size]):6.2f} ms an image")


def draft(data):
    network = backbones.load("efficientnet_lite0", threads=1)
    times, rows = {None: 0.0, LEAST: 0.0}, {}
    for split in ("train", "test"):
        parts = {None: [], LEAST: []}
        for raw in jpegs(data[f"{split}_images"], LARGE):
            for least in times:
                seconds, image = cpu(read_image, raw, least)
                times[least] += seconds
                parts[least].append(network.prepare(image))
        for least, images in parts.items():
            rows[split, least] = network.embed(np.stack(images))
    count = len(data["train_images"]) + len(data["test_images"])
    for least, seconds in times.items():
        print(
            f"decode {LARGE[0]} x {LARGE[1]}, least side {least}: {1000 * seconds / count:.2f} ms an image"
        )
    for fitted in times:
        model = ImprintClassifier(random_state=0).fit(
            rows["train", fitted], data["train_labels"]
        )
        for asked in times:
            accuracy = np.mean(
                model.predict(rows["test", asked]) == data["test_labels"]
            )
            print(
                f"fitted at least side {fitted}, asked at {asked}: accuracy {100 * accuracy:.2f} %"
            )
    a, b = (
        rows["test", least] / np.linalg.norm(rows["test", least], axis=1, keepdims=True)
        for least in times
    )
    print(
        f"cosine of the two embeddings of an image: median {np.median((a * b).sum(1)):.4f}"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "what",
        nargs="*",
        default=["stages", "batch", "draft"],
        choices=["stages", "batch", "draft"],
    )
    shared = np.load(SHARED / "data" / "cifar10.npz")
    print(
        f"{date.today()}, {platform.machine()}, {os.cpu_count()} cores, ONNX Runtime {onnxruntime.__version__}"
    )
    for what in parser.parse_args().what:
        {"stages": stages, "batch": batch, "draft": draft}[what](shared)
