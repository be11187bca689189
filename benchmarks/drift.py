"""Drift alarms: the false-alarm rate on exchangeable inputs, and the delay after inputs from another source begin.

    python benchmarks/drift.py MNIST.npz USPS.npy [--runs 100] [--train 1000] [--stream 5000]

Each run fits a calibrated model on random rows of the pack, observes a stream of other rows of it, then rows of the
second file, embedded by the same backbone.
"""

import argparse
from pathlib import Path

import numpy as np

from imprint import ImprintClassifier
from imprint.active.drift import DriftMonitor


def run(X, y, U, train: int, stream: int, seed: int) -> tuple[int | None, int | None]:
    """Number of exchangeable inputs before an alarm (None: no alarm), and the same for inputs of the other source."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(X))[: train + stream]
    clf = ImprintClassifier(calibrate=True, random_state=0).fit(
        X[order[:train]], y[order[:train]]
    )
    monitor = DriftMonitor.of(clf.head_)
    first = alarm_at(monitor, clf.known(X[order[train:]]))
    if first is not None:
        return first, None
    return None, alarm_at(monitor, clf.known(U[rng.permutation(len(U))[:1000]]))


def alarm_at(monitor: DriftMonitor, p_values) -> int | None:
    for i, p in enumerate(p_values.tolist(), start=1):
        if monitor.observe(p, str(i)):
            return i
    return None


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pack", type=Path)
    parser.add_argument("other", type=Path)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--train", type=int, default=1000)
    parser.add_argument("--stream", type=int, default=5000)
    options = parser.parse_args()
    pack, U = np.load(options.pack), np.load(options.other).astype(np.float32)
    X, y = (
        pack["train"].astype(np.float32) * np.float32(pack["scale"]),
        pack["train_labels"],
    )
    outcomes = [
        run(X, y, U, options.train, options.stream, seed)
        for seed in range(options.runs)
    ]
    silent = [delay for early, delay in outcomes if early is None]
    delays = [delay for delay in silent if delay is not None]
    print(
        f"{options.train} training rows, {options.runs} runs of {options.stream} exchangeable inputs:"
    )
    print(f"  no alarm in {100 * len(silent) / len(outcomes):.0f} % of runs")
    middle, last = np.median(delays), max(delays)
    print(
        f"  after the change: alarm in {len(delays)} of {len(silent)}, median {middle:.0f}, max {last}"
    )


if __name__ == "__main__":
    main()
