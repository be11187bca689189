"""`kernel` with `all` rows as proxies, solved through centres: accuracy lost and time saved.

    python benchmarks/kernel_centres.py PACKS [--full]

PACKS holds `full/*.npz`. Uses 9,000 rows of each, for which the full system can be solved too, or all rows
with `--full`. Times are processor seconds with BLAS on one thread; memory is the peak of the process so far.
"""

import resource
import sys
import time
from pathlib import Path

from kernel_data import Instance, accuracy, clusters, read, system

from imprint.gaussian_process.nystroem import solve_by_centres

COUNTS = (1000, 2000, 4096)


def measured(instance: Instance, count: int | None) -> str:
    proxies = clusters(instance, None)
    start = time.process_time()
    if count is None:
        solved = system(proxies)
    else:
        solved = solve_by_centres(
            proxies.weights,
            proxies.labels,
            0.1 / proxies.mass,
            1 / proxies.scale,
            count,
        )
    ready = time.process_time()
    right = accuracy(solved.scores(instance.Q), instance.t)
    per_query = (time.process_time() - ready) / len(instance.Q) * 1000
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return (
        f"{right:.2f} % | {ready - start:.1f} s | {per_query:.3f} s | {peak:.1f} GB |"
    )


if __name__ == "__main__":
    print(
        "| pack | proxies | centres | accuracy | solve | 1,000 rows | memory |\n|---|---|---|---|---|---|---|"
    )
    for path in sorted((Path(sys.argv[1]) / "full").glob("*.npz")):
        full = "--full" in sys.argv
        instance = read(path) if full else read(path).shots(900)
        for count in COUNTS if full else (None, *COUNTS):
            name = f"| {path.stem} | {len(instance.X):,} | {'none' if count is None else f'{count:,}'} |"
            print(name, measured(instance, count), flush=True)
