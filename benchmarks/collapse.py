"""NC1 by projection against NC1 by l x l pseudo-inverse: time, value and memory, in one run.

    python benchmarks/collapse.py [--rows 20000] [--width 2048] [--classes 10]

Prints a Markdown table. Each computation runs in its own process, one after the other. Memory is the peak
resident size of the process minus its size after the data and the libraries were loaded.
"""

import argparse
import ctypes
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from imprint.collapse import Accumulator, nc1


def data(rows: int, width: int, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Balanced classes of non-negative float32 embeddings, rows in random order."""
    rng = np.random.default_rng(0)
    y = rng.permutation(np.arange(rows) % classes)
    means = 0.5 * rng.standard_normal((classes, width), dtype=np.float32)
    X = rng.standard_normal((rows, width), dtype=np.float32)
    for c in range(classes):
        X[y == c] += means[c]
    return np.maximum(X, 0, out=X), y


def pseudo_inverse(X: np.ndarray, y: np.ndarray) -> float:
    """The usual formulation with torch in float32: C class covariances of l x l, then the pseudo-inverse of Sb."""
    import torch

    T, labels = torch.from_numpy(X), torch.from_numpy(y)
    classes = torch.unique(labels)
    means = torch.stack([T[labels == c].mean(dim=0) for c in classes])
    centred = means - means.mean(dim=0)
    covariances = torch.zeros((len(classes), T.shape[1], T.shape[1]))
    for i, c in enumerate(classes):
        rows = T[labels == c] - means[i]
        covariances[i] = rows.T @ rows / len(rows)
    between = centred.T @ centred / len(classes)
    return float(
        torch.trace(covariances.mean(dim=0) @ torch.linalg.pinv(between)) / len(classes)
    )


def streamed(X: np.ndarray, y: np.ndarray, scatter: bool) -> float:
    """Batches of 512 rows, in one pass or in two."""
    seen = Accumulator(scatter=scatter)
    for a in range(0, len(X), 512):
        seen.update(X[a : a + 512], y[a : a + 512])
    if scatter:
        return seen.result().nc1
    again = seen.second_pass()
    for a in range(0, len(X), 512):
        again.update(X[a : a + 512], y[a : a + 512])
    return again.result().nc1


REPEATS = 7  # the same number for every method; the median is reported
WAYS = {
    "`nc1(X, y)`": nc1,
    "l x l pseudo-inverse (torch, float32)": pseudo_inverse,
    "`Accumulator()`, one pass": lambda X, y: streamed(X, y, scatter=True),
    "`Accumulator(scatter=False)`, two passes": lambda X, y: streamed(
        X, y, scatter=False
    ),
}


def resident_mb(field: str) -> float:
    """VmRSS, the current resident size, or VmHWM, its peak since the last reset (Linux)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1024


def reset_peak() -> None:
    """Return freed memory to the system, so that reusing it counts, and reset the peak (Linux)."""
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")


def measure(way: str, rows: int, width: int, classes: int) -> dict[str, float]:
    """The median of several runs, after a warm-up run on little data."""
    compute = WAYS[way]
    X, y = data(rows, width, classes)
    compute(X[: 50 * classes, :16].copy(), y[: 50 * classes])
    reset_peak()
    before, times = resident_mb("VmRSS"), []
    for _ in range(REPEATS):
        start = time.perf_counter()
        value = compute(X, y)
        times.append(time.perf_counter() - start)
    return {
        "seconds": statistics.median(times),
        "value": value,
        "extra_mb": resident_mb("VmHWM") - before,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--width", type=int, default=2_048)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--only", choices=WAYS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    size = [options.rows, options.width, options.classes]
    if options.only:
        print(json.dumps(measure(options.only, *size)))
        return
    flags = [
        f"--{name}={value}" for name, value in zip(("rows", "width", "classes"), size)
    ]
    results = {}
    for way in WAYS:
        command = [sys.executable, __file__, *flags, f"--only={way}"]
        results[way] = json.loads(
            subprocess.run(command, check=True, capture_output=True, text=True).stdout
        )
    reference = results["l x l pseudo-inverse (torch, float32)"]
    print(f"{size[0]:,} x {size[1]:,} float32, {size[2]} classes\n")
    print(
        "| way | seconds | times faster | NC1 | relative difference | memory above the input, MB |"
    )
    print("|---|---|---|---|---|---|")
    for way, r in results.items():
        faster, gap = (
            reference["seconds"] / r["seconds"],
            abs(r["value"] / reference["value"] - 1),
        )
        print(
            f"| {way} | {r['seconds']:.2f} | {faster:.1f} | {r['value']:.6f} | {gap:.1e} | {r['extra_mb']:.1f} |"
        )


if __name__ == "__main__":
    main()
