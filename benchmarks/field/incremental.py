"""Class-incremental learning: classes arrive in ten steps; every head uses the same embeddings.

    python benchmarks/field/incremental.py [--rows 100] [--wide] [--packs NAME ...] [--diagram FILE.svg]

Seed 1993 determines the order of the classes. After each step, accuracy is measured on the test rows of the classes
learned so far. The first table holds the final accuracy, the second the mean over the ten steps, memory and time.
"""

import time

import numpy as np
from data import IMAGES, load, per_class
from peers import HEADS, PUBLISHED_WIDTHS, WIDTHS
from tables import grid, measured_once, parser_of, print_comparison

from imprint.kernels.rows import unit_rows

PACKS = (*IMAGES, "banking77", "trec")
STEPS, MAX_TEST, MANY_CLASSES, MAX_ROWS_OF_MANY = 10, 1000, 50, 30
OURS = "kernel, k = 100"


def steps(
    name: str, rows: int
) -> list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
    """After every step: training and test rows of the classes so far, numbered in order of arrival."""
    pack, rng = load(name), np.random.default_rng(0)
    classes = np.unique(pack.y)
    order = np.random.RandomState(1993).permutation(len(classes))
    position = np.argsort(order)
    rows = min(rows, MAX_ROWS_OF_MANY) if len(classes) > MANY_CLASSES else rows
    train, test = per_class(pack.y, rows, rng), rng.permutation(len(pack.Q))[:MAX_TEST]
    X, Q = (
        unit_rows(part.astype(np.float64)) for part in (pack.X[train], pack.Q[test])
    )
    y, t = position[pack.y[train]], position[pack.t[test]]
    ends = [
        int(part[-1]) + 1
        for part in np.array_split(np.arange(len(classes)), STEPS)
        if len(part)
    ]
    return [(X[y < end], y[y < end], Q[t < end], t[t < end]) for end in ends]


def measure(name: str, rows: int) -> dict[str, list[float]]:
    """By head: final and average accuracy in %, kB per class (float32), processor seconds per step."""
    stages, figures = steps(name, rows), {}
    for head, fit in HEADS.items():
        correct, start, numbers = [], time.process_time(), 0
        for X, y, Q, t in (
            stages[1:] if int(stages[0][1].max()) == 0 else stages
        ):  # a single class needs no classifier
            score, numbers = fit(X, y)
            correct.append(100 * float(np.mean(score(Q).argmax(axis=1) == t)))
        seconds = (time.process_time() - start) / len(correct)
        size = 4 * numbers / (int(stages[-1][1].max()) + 1) / 1e3
        figures[head] = [correct[-1], float(np.mean(correct)), size, seconds]
    return figures


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--rows", type=int, default=100)
    parser.add_argument(
        "--wide",
        action="store_true",
        help="KLDA and RanPAC with as many features as published",
    )
    parser.add_argument("--packs", nargs="+", default=list(PACKS))
    options = parser.parse_args()
    table = f"incremental-{options.rows}{'-wide' if options.wide else ''}"
    WIDTHS.update(PUBLISHED_WIDTHS if options.wide else {})
    figures = {
        n: measured_once(table, n, lambda n=n: measure(n, options.rows))
        for n in options.packs
    }
    final = {head: {name: figures[name][head][0] for name in figures} for head in HEADS}
    print(
        f"Final accuracy, {options.rows} rows per class ({MAX_ROWS_OF_MANY} with more than {MANY_CLASSES} classes)\n"
    )
    print("\n".join(grid(final)))
    title = f"Class-incremental learning, {options.rows} rows per class"
    print_comparison(final, OURS, "accuracy, %", options.diagram, title)
    print(
        "\n| head | average accuracy over the steps, % | kB per class (float32) | processor seconds per step |"
    )
    print("|---|---:|---:|---:|")
    for head in HEADS:
        _, average, size, seconds = np.mean(
            [figures[name][head] for name in figures], axis=0
        )
        print(f"| {head} | {average:.1f} | {size:.0f} | {seconds:.2f} |")


if __name__ == "__main__":
    main()
