"""The measured rates behind the capacity table in docs/cluster.md.

    python benchmarks/capacity.py rates                  # decode, prepare, embed, write, fit and predict, per core
    python benchmarks/capacity.py rates --device cuda    # decode and embed, with ResNet-50 and ViT-B/16 on a GPU
    python benchmarks/capacity.py driver                 # CPU time of the writing process per batch under Ray

`rates`: JPEGs of 500 x 375 random pixels, 60 kB each. The torch networks have random weights, which does not change
their speed. CPU rates are per second of CPU time on one thread, so other load on the machine changes them little; GPU
rates are per second of wall-clock time. `driver`: the nodes do almost nothing, so that the process which distributes,
collects and writes batches is the bottleneck; its CPU time is measured. Ray is started on this machine.
"""

import argparse
import io
import os
import platform
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import date
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from PIL import Image
from threadpoolctl import threadpool_limits

from imprint import ImprintClassifier, backbones
from imprint.embeddings.extract import ExtractionJournal
from imprint.embeddings.pipeline import EmbeddedBatch, EmbeddingJob
from imprint.embeddings.ray_engine import scheduled_batches
from imprint.modalities.image import read_image

WIDTH, BATCH, BATCHES, SECONDS = 1280, 64, 300, 3.0


def open_journal(folder):
    return closing(ExtractionJournal(Path(folder) / "x", {"width": WIDTH}))


class Idle:
    """A backbone that returns zeros without computing anything."""

    record, width, fingerprint = SimpleNamespace(name="idle"), WIDTH, "idle"

    def prepare(self, item):
        return item

    def embed(self, batch):
        return np.zeros((len(batch), WIDTH), np.float32)


class Numbers:
    """Inputs that are numbers; a slice of them can be sent to a node."""

    def __init__(self, numbers):
        self.numbers = numbers

    def __len__(self):
        return len(self.numbers)

    def __getitem__(self, i):
        return (
            Numbers(self.numbers[i])
            if isinstance(i, slice)
            else np.float32([self.numbers[i]])
        )


def jpegs(count):
    rng = np.random.default_rng(0)
    for _ in range(count):
        buffer = io.BytesIO()
        noise = Image.fromarray(rng.integers(0, 256, (48, 64, 3), dtype=np.uint8))
        noise.resize((500, 375)).save(buffer, "JPEG", quality=90)
        yield buffer.getvalue()


def networks(device):
    if device == "cpu":
        yield "efficientnet_lite0", backbones.load("efficientnet_lite0", threads=1)
        return
    import torchvision

    from imprint.backbones.adapters.torchvision import without_classifier
    from imprint.backbones.backbone import TorchBackbone

    for name in ("resnet50", "vit_b_16"):
        module = without_classifier(getattr(torchvision.models, name)(weights=None))
        yield (
            name,
            TorchBackbone(
                backbones.record(name), module, "random weights", 2, device, None
            ),
        )


def rates(device):
    raw, clock = (
        list(jpegs(256)),
        time.process_time if device == "cpu" else time.perf_counter,
    )
    for name, network in networks(device):
        for threads in (1,) if device == "cpu" else sorted({1, 4, os.cpu_count() or 1}):
            with ThreadPoolExecutor(threads) as pool:
                start = clock()
                prepared = list(
                    pool.map(lambda r, n=network: n.prepare(read_image(r)), raw)
                )
            print(
                f"decode and prepare, {threads} threads: {len(raw) / (clock() - start):,.0f} a second"
            )
        batch, count, start = np.stack(prepared[:BATCH]), 0, None
        while start is None or clock() - start < SECONDS:
            network.embed(batch)
            count, start = (
                (count + BATCH, start) if start else (0, clock())
            )  # the first call warms up
        print(
            f"{name} on {device}: {count / (clock() - start):,.0f} a second", flush=True
        )
    with tempfile.TemporaryDirectory() as folder, open_journal(folder) as journal:
        batch = EmbeddedBatch(
            list(range(BATCH)), np.zeros((BATCH, WIDTH), np.float32), []
        )
        start = clock()
        for _ in range(500):
            journal.commit(batch)
        print(
            f"write: {500 * BATCH / (clock() - start):,.0f} rows of {WIDTH} a second",
            flush=True,
        )
    if device == "cpu":
        learning()


def learning():
    """The default method on clustered rows: ten classes for each thousand rows."""
    rng = np.random.default_rng(0)
    for n in (10_000, 100_000):
        y = np.arange(n) % (n // 100)
        X = (rng.normal(size=(n // 100, WIDTH)).astype(np.float32))[y] + rng.normal(
            size=(n, WIDTH)
        ).astype(np.float32)
        with threadpool_limits(1):
            ImprintClassifier().fit(X[:1000], y[:1000]).predict(X[:10])  # compiles
            start = time.process_time()
            model = ImprintClassifier().fit(X, y)
            model.predict(X[:1])
            fitted = time.process_time()
            model.predict(X[:2000])
            seconds = fitted - start, time.process_time() - fitted
        print(
            f"{n:,} x {WIDTH} rows of {n // 100:,} classes: fit {n / seconds[0]:,.0f} rows a second,",
            end=" ",
        )
        print(f"predict {2000 / seconds[1]:,.0f} a second", flush=True)


def driver(_):
    import ray
    from ray.cluster_utils import Cluster

    for nodes in (1, 4):
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
        for _ in range(nodes - 1):
            cluster.add_node(num_cpus=1)
        ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
        start = time.process_time()
        for _ in range(200):
            ray.nodes()
        print(
            f"listing {nodes} nodes: {5 * (time.process_time() - start):.2f} ms of CPU time",
            flush=True,
        )
        if nodes == 1:
            for size in (BATCH, 4 * BATCH):
                hand_out(ray, size)
        ray.shutdown()
        cluster.shutdown()


def hand_out(ray, size):
    total = BATCHES * size
    names = [f"/data/pictures/class 17/{i:08}.jpg" for i in range(total)]
    job = EmbeddingJob(
        Idle(),
        SimpleNamespace(inputs=Numbers(range(total)), names=names),
        range(total),
        size,
    )
    handing = writing = 0.0
    with tempfile.TemporaryDirectory() as folder, open_journal(folder) as journal:
        batches = scheduled_batches(ray, job)
        next(batches)  # the nodes have started
        last = time.process_time()
        for batch in batches:
            now = time.process_time()
            journal.commit(batch)
            handing, writing, last = (
                handing + now - last,
                writing + time.process_time() - now,
                time.process_time(),
            )
    for what, seconds in (("hand out and collect", handing), ("write", writing)):
        print(
            f"batches of {size}: {what} {1000 * seconds / (BATCHES - 1):.2f} ms of CPU time",
            flush=True,
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["rates", "driver"])
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args()
    print(f"{date.today()}, {platform.machine()}, {os.cpu_count()} cores")
    {"rates": rates, "driver": driver}[args.what](args.device)
