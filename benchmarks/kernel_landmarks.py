"""`kernel` with `all` rows as proxies, solved through landmarks: what is lost, and for how much time.

    python benchmarks/kernel_landmarks.py PACKS

PACKS holds `full/*.npz`. First 9,000 rows of each, where the whole system can be solved too; then all rows. Times are
processor seconds with BLAS on one thread.
"""

import sys
import time
from pathlib import Path

from kernel_data import Instance, accuracy, clusters, read, system

from imprint.gaussian_process.nystroem import solve_by_landmarks

COUNTS = (1000, 2000, 4096)


def measured(instance: Instance, count: int | None) -> str:
    proxies = clusters(instance, None)
    start = time.process_time()
    if count is None:
        found = system(proxies)
    else:
        found = solve_by_landmarks(proxies.weights, proxies.labels, 0.1 / proxies.mass, 1 / proxies.scale, count)
    ready = time.process_time()
    right = accuracy(found.scores(instance.Q), instance.t)
    asked = (time.process_time() - ready) / len(instance.Q) * 1000
    return f"{right:.2f} % | {ready - start:.1f} s | {asked:.3f} s |"


if __name__ == "__main__":
    print("| pack | proxies | landmarks | accuracy | solve | 1,000 rows |\n|---|---|---|---|---|---|")
    for path in sorted((Path(sys.argv[1]) / "full").glob("*.npz")):
        for instance, counts in ((read(path).shots(900), (None, *COUNTS)), (read(path), COUNTS)):
            for count in counts:
                name = f"| {path.stem} | {len(instance.X):,} | {'none' if count is None else f'{count:,}'} |"
                print(name, measured(instance, count), flush=True)
