"""The budget of proxies: accuracy, time and size of `max` and `kernel` over k, on packs of ten classes.

    python benchmarks/kernel_budget.py PACKS [FIGURE.svg] [--full]

PACKS holds `subset/*.npz` (600 training rows per class, 15 packs) and, for `--full`, `full/*.npz` (5,000 to 6,000).
Times are processor seconds with BLAS on one thread: to fit, and to predict 1,000 rows. Size: proxies and coefficients
in float32.
"""

import sys
import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from kernel_data import Instance, accuracy, clusters, read, system, ten_class_packs
from threadpoolctl import threadpool_limits

from imprint.kernels.rows import unit_rows
from imprint.kernels.scores import class_maxima

BUDGETS: tuple[int | None, ...] = (1, 5, 20, 50, 100, None)
FULL: tuple[int | None, ...] = (1, 5, 20, 50, 100, 200, 500)


def measured(instance: Instance, k: int | None) -> list[tuple[float, ...]]:
    """Accuracy, seconds to fit, seconds per 1,000 queries and megabytes for `max`, then for `kernel`."""
    start = time.process_time()
    proxies = clusters(instance, k)
    W, starts = (
        unit_rows(proxies.weights),
        np.unique(proxies.labels, return_index=True)[1],
    )
    clustered = time.process_time()
    best = class_maxima(instance.Q, W, starts)
    predicted = time.process_time()
    solved = system(proxies)
    ready = time.process_time()
    scores = solved.scores(instance.Q)
    end = time.process_time()
    thousand = 1000 / len(instance.Q)
    size, more = W.size * 4e-6, len(W) * solved.n_classes * 4e-6
    return [
        (
            accuracy(best, instance.t),
            clustered - start,
            (predicted - clustered) * thousand,
            size,
        ),
        (
            accuracy(scores, instance.t),
            clustered - start + ready - predicted,
            (end - ready) * thousand,
            size + more,
        ),
    ]


def curves(paths: Iterable[Path], budgets: tuple[int | None, ...]) -> np.ndarray:
    """Means over packs.  # (budgets, 2, 4)"""
    every = []
    for path in paths:
        instance = read(path)
        every.append([measured(instance, k) for k in budgets])
        print(
            path.stem,
            *(f"{a[0]:.1f}/{b[0]:.1f}" for a, b in every[-1]),
            file=sys.stderr,
            flush=True,
        )
    return np.mean(every, axis=0)


def table(budgets: tuple[int | None, ...], means: np.ndarray) -> str:
    head = "| k | `max`, % | fit, s | 1,000 rows, s | MB | `kernel`, % | fit, s | 1,000 rows, s | MB |"
    lines = [head, "|" + "---|" * 9]
    for k, both in zip(budgets, means):
        cells = [
            f"{a:.2f} | {fit:.2f} | {ask:.3f} | {size:.2f}"
            for a, fit, ask, size in both
        ]
        lines.append(f"| {'all' if k is None else k} | {cells[0]} | {cells[1]} |")
    return "\n".join(lines)


def draw(budgets: tuple[int | None, ...], means: np.ndarray, path: Path) -> None:
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "imprint", "font.size": 9})
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 3, figsize=(9, 2.9), layout="constrained")
    places = np.arange(len(budgets))
    for axis, column, title in zip(
        axes, (0, 2, 3), ("accuracy, %", "1,000 rows, s", "size, MB")
    ):
        for i, (name, colour) in enumerate((("max", "#888888"), ("kernel", "#0b6e99"))):
            axis.plot(
                places,
                means[:, i, column],
                "o-",
                color=colour,
                label=name,
                markersize=4,
            )
        axis.set_xticks(places, ["all" if k is None else str(k) for k in budgets])
        axis.set_title(title)
        axis.set_xlabel("proxies per class")
        if column:
            axis.set_yscale("log")
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].legend(frameon=False)
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if word != "--full"]
    packs = Path(words[0])
    with threadpool_limits(1):
        if "--full" in sys.argv:
            for pack in sorted((packs / "full").glob("*.npz")):
                print(f"\n{pack.stem}\n\n{table(FULL, curves([pack], FULL))}")
        else:
            means = curves(ten_class_packs(packs), BUDGETS)
            print(table(BUDGETS, means))
            if len(words) > 1:
                draw(BUDGETS, means, Path(words[1]))
