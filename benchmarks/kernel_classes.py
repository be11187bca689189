"""`kernel` with very many classes: time to fit and to answer, memory, and accuracy next to `max`.

    python benchmarks/kernel_classes.py [CLASSES] [ROWS] [CENTRES]     # 10,000 classes x 5 rows x 384 by default

Rows lie about random centres. Wall-clock and processor seconds.
"""

import resource
import sys
import time

import numpy as np

from imprint import ImprintClassifier

WIDTH = 384


def rows(classes: int, per_class: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    centres = np.random.default_rng(0).normal(size=(classes, WIDTH)).astype(np.float32)
    y = np.repeat(np.arange(classes), per_class)
    return centres[y] + 2.5 * np.random.default_rng(seed).normal(size=(len(y), WIDTH)).astype(np.float32), y


def timed(call):
    start, busy = time.perf_counter(), time.process_time()
    result = call()
    return result, f"{time.perf_counter() - start:.3f} s ({time.process_time() - busy:.3f} s)"


def main(classes: int, per_class: int, centres: int) -> None:
    X, y = rows(classes, per_class, 1)
    Q, truth = rows(classes, 1, 2)
    chosen = np.random.default_rng(3).permutation(classes)[:1000]
    Q, truth = Q[chosen], truth[chosen]
    print("| method | fit | 1 row | 1,000 rows | accuracy | peak memory |\n|---|---|---|---|---|---|")
    for generator, aggregator in (("mean", "max"), ("all", f"kernel(centres={centres})")):
        model = ImprintClassifier(generator=generator, aggregator=aggregator, random_state=0)
        _, fit = timed(lambda model=model: model.fit(X, y))
        model.predict(Q[:1])
        _, one = timed(lambda model=model: model.predict(Q[:1]))
        answers, many = timed(lambda model=model: model.predict(Q))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        right = 100 * float(np.mean(answers == truth))
        print(f"| {generator}, {aggregator} | {fit} | {one} | {many} | {right:.1f} % | {peak:.1f} GB |", flush=True)


if __name__ == "__main__":
    given, defaults = [int(text) for text in sys.argv[1:]], [10_000, 5, 4096]
    main(*given, *defaults[len(given) :])
