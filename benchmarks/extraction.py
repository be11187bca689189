"""Extraction against a bare ONNX Runtime loop, and its memory at 2,000 and 60,000 images.

    python benchmarks/extraction.py                  # both
    python benchmarks/extraction.py memory           # or only speed
    python benchmarks/extraction.py memory --backbone raw

Speed: TinyNet on the same images in one process. Rounds of the bare loop, whose batches are prepared before the
clock starts, alternate with rounds of `extract`, which decodes, resizes, checks, writes and verifies as usual.
Memory: one new process per size; the growth of the resident set during `extract`.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnxruntime
from sklearn.datasets import load_digits

from imprint import backbones
from imprint.backbones.record import read_weights
from imprint.core.arrays import digest
from imprint.embeddings import extract

BATCH, ROUNDS, IMAGES = 64, 7, 320
SIZES = (2_000, 60_000)


class Repeated:
    """The 1,797 digits repeated: any number of images in little memory."""

    def __init__(self, size):
        self.size, self.images = size, (load_digits().images * 15).astype(np.uint8)

    def __len__(self):
        return self.size

    def __getitem__(self, i):
        return self.images[i % len(self.images)]


class Split:
    def __init__(self, size):
        self.inputs, self.labels = Repeated(size), np.arange(size) % 10
        self.names, self.fingerprint = (
            [str(i) for i in range(size)],
            digest([str(size)]),
        )


def bare_loop(batches):
    content, _ = read_weights(backbones.record("tinynet"))
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    (given,) = session.get_inputs()

    def run():
        for batch in batches:
            session.run(["embedding"], {given.name: batch})

    return run


def whole_extraction(backbone, split):
    def run():
        with tempfile.TemporaryDirectory() as folder:
            extract(backbone, split, batch_size=BATCH, folder=folder)

    return run


def speed():
    backbone, split = backbones.load("tinynet"), Split(IMAGES)
    prepared = [backbone.prepare(split.inputs[i]) for i in range(IMAGES)]
    batches = [np.stack(prepared[i : i + BATCH]) for i in range(0, IMAGES, BATCH)]
    runs = {
        "bare loop": bare_loop(batches),
        "extract": whole_extraction(backbone, split),
    }
    rates = {name: [] for name in runs}
    for _ in range(ROUNDS):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            rates[name].append(IMAGES / (time.perf_counter() - start))
    for name, rate in rates.items():
        print(
            f"{name:10} {statistics.median(rate):7.1f} images/s  {[round(r, 1) for r in rate]}"
        )
    ratio = statistics.median(
        e / b for b, e in zip(rates["bare loop"], rates["extract"])
    )
    print(
        f"extract runs at {ratio:.0%} of the bare loop (median of {ROUNDS} rounds, {IMAGES:,} images each)"
    )


def memory(backbone):
    for size in SIZES:
        command = [sys.executable, __file__, "peak", str(size), "--backbone", backbone]
        usage = json.loads(
            subprocess.run(command, capture_output=True, text=True, check=True).stdout
        )
        print(f"{size:7,} images: {usage['before']:6.1f} MiB before, peak {usage['peak']:6.1f} MiB, "
              f"growth {usage['peak'] - usage['before']:5.1f} MiB, {usage['seconds']:.0f} s")  # fmt: skip


def peak(name, size):
    """Measure the peak memory. Run this in a new process; a first batch warms up."""
    backbone = backbones.load(name)
    with tempfile.TemporaryDirectory() as folder:
        extract(backbone, Split(BATCH), batch_size=BATCH, folder=folder)
        split, start = Split(size), time.perf_counter()
        before = _resident()
        e = extract(backbone, split, batch_size=BATCH, folder=folder)
        assert len(e.X) == size
        seconds = time.perf_counter() - start
    print(json.dumps({"before": before, "peak": _resident(), "seconds": seconds}))


def _resident():
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used / (2**20 if sys.platform == "darwin" else 2**10)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "what", nargs="*", default=["speed", "memory"], help="speed, memory"
    )
    parser.add_argument(
        "--backbone", default="tinynet", help="backbone whose memory is measured"
    )
    given = parser.parse_args()
    if given.what[0] == "peak":
        peak(given.backbone, int(given.what[1]))
    if "speed" in given.what:
        speed()
    if "memory" in given.what:
        memory(given.backbone)
