"""Every kernel on one GPU: time, the floor the machine sets, their ratio, and the quality beside them.

    python benchmarks/gpu.py [embeddings.npz]

The file holds `train`, `train_labels`, `test`, `test_labels` (and `scale`). Without one, clustered random rows stand
in and the first line says so. Times are medians of CUDA events after a warm-up. The floor is the larger of bytes over
the copy rate and operations over the matrix rate, both measured here first.
"""

import statistics
import sys
import time
from collections.abc import Callable

import numpy as np
import torch

from imprint.kernels.kmeans import Problem
from imprint.kernels.kmeans import kmeans_many as on_cpu
from imprint.kernels.tensor.farthest import farthest_points
from imprint.kernels.tensor.kmeans import kmeans_many
from imprint.kernels.tensor.maxima import class_maxima
from imprint.kernels.tensor.medoids import swap_medoids
from imprint.kernels.tensor.neighbours import nearest
from imprint.kernels.tensor.ridge import gram, solve_ridge

PUBLISHED = {"mean": 0.0029, "5-means": 1.2249, "20-means": 1.7321, "ls": 0.1593, "5-ls": 1.3724, "20-ls": 2.3717}


def timed(run: Callable[[], object], repeats: int = 11) -> float:
    """Median milliseconds between two events around one call."""
    run(), run()
    spent = []
    for _ in range(repeats):
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        run()
        stop.record()
        torch.cuda.synchronize()
        spent.append(start.elapsed_time(stop))
    return statistics.median(spent)


def ceilings() -> tuple[float, float, float]:
    """Bytes, float32 and float64 operations per millisecond that this card reaches."""
    a = torch.empty(2**28, device="cuda")
    b = torch.empty_like(a)
    copy = 2 * a.numel() * 4 / timed(lambda: b.copy_(a))
    rates = []
    for dtype in (torch.float32, torch.float64):
        m = torch.randn(8192, 8192, device="cuda", dtype=dtype)
        rates.append(2 * 8192**3 / timed(lambda m=m: m @ m, 5))
    return copy, rates[0], rates[1]


def load() -> tuple[list[np.ndarray], np.ndarray, np.ndarray, str]:
    if len(sys.argv) > 1:
        pack = np.load(sys.argv[1])
        scale = np.float32(pack["scale"]) if "scale" in pack.files else np.float32(1)
        X, y = pack["train"].astype(np.float32) * scale, pack["train_labels"]
        return (
            [X[y == c] for c in np.unique(y)],
            pack["test"].astype(np.float32) * scale,
            pack["test_labels"],
            sys.argv[1],
        )
    rng = np.random.default_rng(0)
    base = rng.normal(size=(10, 30, 512))

    def rows(c: int, n: int) -> np.ndarray:
        return np.maximum(base[c][rng.integers(30, size=n)] + rng.normal(size=(n, 512)), 0).astype(np.float32)

    return (
        [rows(c, 6000) for c in range(10)],
        np.concatenate([rows(c, 1000) for c in range(10)]),
        np.repeat(np.arange(10), 1000),
        "synthetic clusters",
    )


def least_squares(groups: list[torch.Tensor], rows: torch.Tensor) -> torch.Tensor | None:
    means = torch.stack([g.mean(0, dtype=torch.float64) for g in groups])
    return solve_ridge(gram(rows) / len(rows), means / len(groups), 1e-4)


def k_least_squares(classes: list[torch.Tensor], rows: torch.Tensor, k: int) -> torch.Tensor | None:
    found = kmeans_many(classes, [Problem(c, k, 0) for c in range(len(classes))])
    sums = [torch.zeros(len(f.mass), c.shape[1], dtype=torch.float64, device="cuda").index_add_(0, f.labels, c.double())
            for f, c in zip(found, classes)]  # fmt: skip
    means = torch.cat([s / f.mass[:, None] for s, f in zip(sums, found)])
    return solve_ridge(gram(rows) / len(rows), means / len(means), 1e-4)


def main() -> None:
    if not torch.cuda.is_available():
        sys.exit("This benchmark needs a CUDA GPU and torch sees none.")
    host, test, test_labels, what = load()
    classes = [torch.from_numpy(x / np.linalg.norm(x, axis=1, keepdims=True).clip(1e-9)).cuda() for x in host]
    rows = torch.cat(classes)
    queries = torch.nn.functional.normalize(torch.from_numpy(test).cuda())
    d, sizes = rows.shape[1], [len(c) for c in classes]
    copy, f32, f64 = ceilings()
    print(f"{torch.cuda.get_device_name()}; torch {torch.__version__}; data: {what}, {len(rows):,} x {d}")
    print(f"copy {copy / 1e9:.2f} TB/s, float32 {f32 / 1e9:.0f} TFLOP/s, float64 {f64 / 1e9:.0f} TFLOP/s")
    print(f"{'kernel':<46}{'ms':>10}{'floor':>10}{'ratio':>8}  quality")

    def row(name: str, run: Callable[[], object], bytes_: float, ops32: float, ops64: float, quality: str) -> float:
        ms, floor = timed(run), max(bytes_ / copy, ops32 / f32 + ops64 / f64)
        print(f"{name:<46}{ms:>10.3f}{floor:>10.3f}{ms / floor:>8.1f}  {quality}", flush=True)
        return ms

    table = {}
    for k in (5, 20, 100):
        problems = [Problem(c, k, 0) for c in range(len(classes))]
        found = kmeans_many(classes, problems)
        steps = max(f.iterations for f in found)
        start = time.perf_counter()
        reference = on_cpu([c.cpu().numpy() for c in classes], problems)
        seconds = time.perf_counter() - start
        work = 2 * len(rows) * d * k * steps
        ms = row(
            f"kmeans k={k}, {len(classes)} classes of {max(sizes):,}",
            lambda problems=problems: kmeans_many(classes, problems),
            len(rows) * d * (12 * steps + 8 * k),
            work,
            work,
            f"inertia {sum(f.inertia for f in found):.3f}, on CPU {sum(f.inertia for f in reference):.3f} "
            f"({seconds:.2f} s there); {steps} iterations",
        )
        table[f"{k}-means"] = ms
    many = [Problem(c, k, s) for c in range(len(classes)) for k in (*range(1, 16), 20) for s in (0, 1, 2)]
    found = kmeans_many(classes, many)
    work = sum(2.0 * sizes[p.rows] * d * p.k * f.iterations for p, f in zip(many, found))
    moved = len(rows) * d * 12.0 * max(f.iterations for f in found)
    row(f"kmeans, {len(many)} problems, k 1..15 and 20, 3 seeds", lambda: kmeans_many(classes, many),
        moved, work, work, f"inertia {sum(f.inertia for f in found):.2f}")  # fmt: skip
    table["mean"] = row("mean", lambda: [c.mean(0, dtype=torch.float64) for c in classes], rows.numel() * 4, 0, 0, "")
    table["ls"] = row(
        "least squares", lambda: least_squares(classes, rows), rows.numel() * 4, 0, 2 * len(rows) * d * d, ""
    )
    for k in (5, 20):
        table[f"{k}-ls"] = row(f"k least squares, k={k}", lambda k=k: k_least_squares(classes, rows, k),
                               rows.numel() * 4, 0, 2 * len(rows) * d * d, "with its k-means")  # fmt: skip
    starts = torch.tensor(np.cumsum([0, *sizes[:-1]]), device="cuda")
    accuracy = (class_maxima(queries, rows, starts).argmax(1).cpu().numpy() == test_labels).mean()
    work = 2 * len(queries) * len(rows) * d
    row("max, all rows as proxies", lambda: class_maxima(queries, rows, starts), rows.numel() * 4, work, 0,
        f"accuracy {100 * accuracy:.2f} %")  # fmt: skip
    _, indices = nearest(queries[:500], rows, 5)
    full = torch.cdist(queries[:500].double(), rows.double(), compute_mode="donot_use_mm_for_euclid_dist")
    same = (full.topk(5, largest=False).indices == indices).float().mean()
    row("nearest m=5, all rows as proxies", lambda: nearest(queries, rows, 5), rows.numel() * 4, work, 0,
        f"{100 * float(same):.2f} % of 500 x 5 neighbours as in float64")  # fmt: skip
    row(
        "farthest points k=20",
        lambda: farthest_points(classes, 20, [0] * len(classes)),
        rows.numel() * 8 * 20,
        0,
        0,
        "",
    )
    one = classes[0]
    medoids = swap_medoids(one, 20, np.random.default_rng(0))
    row(f"k-medoids k=20, one class of {len(one):,}", lambda: swap_medoids(one, 20, np.random.default_rng(0)),
        len(one) ** 2 * 4, 2 * len(one) ** 2 * d, 0, f"cost {medoids[2]:.2f}")  # fmt: skip
    print("\nThe published run times (s, 8 CPU cores, mean over 48 tasks) and ours at the size of the largest task:")
    for name, seconds in PUBLISHED.items():
        print(f"{name:<10}{seconds:>10.4f}{table[name] / 1e3:>12.6f}{seconds * 1e3 / table[name]:>10.0f} x")


if __name__ == "__main__":
    main()
