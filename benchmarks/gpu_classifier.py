"""`ImprintClassifier` on a GPU: fit and predict of rows that are there already, and of the same rows on the CPU.

    python benchmarks/gpu_classifier.py            # 60,000 x 512 rows of ten classes

Times are medians of the host clock around calls that end with a synchronisation, after one call to compile.
"""

import json
import time
from functools import partial

import numpy as np
import torch

from imprint import ImprintClassifier


def rows(n, d, classes, seed):
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(0).normal(size=(classes, 20, d))
    y = np.arange(n) % classes
    X = centres[y, rng.integers(20, size=n)] + 1.5 * rng.normal(size=(n, d))
    return X.astype(np.float32), y


def milliseconds(call, repeats):
    call()
    found = []
    for _ in range(repeats):
        torch.cuda.synchronize()
        start = time.perf_counter()
        call()
        torch.cuda.synchronize()
        found.append(1e3 * (time.perf_counter() - start))
    return round(float(np.median(found)), 2)


def main():
    X, y = rows(60_000, 512, 10, 1)
    Q, truth = rows(10_000, 512, 10, 2)
    on_gpu = [torch.from_numpy(a).cuda() for a in (X, y, Q)]
    found = {"device": torch.cuda.get_device_name()}
    for generator in ("kmeans(k=20)", "mean", "kmeans(k=100)"):
        for aggregator in ("max", "kernel", "nearest(m=5)"):
            model = ImprintClassifier(generator=generator, aggregator=aggregator, random_state=0)
            fit = milliseconds(partial(model.fit, on_gpu[0], on_gpu[1]), 20)
            predict = milliseconds(partial(model.predict, on_gpu[2]), 50)
            answer = model.predict(on_gpu[2])
            assert answer.is_cuda
            host = ImprintClassifier(generator=generator, aggregator=aggregator, random_state=0).fit(X, y)
            start = time.perf_counter()
            host.fit(X, y)
            middle = time.perf_counter()
            same = float(np.mean(host.predict(Q) == answer.cpu().numpy()))
            found[f"{generator} / {aggregator}"] = {
                "fit ms": fit,
                "predict 10,000 ms": predict,
                "CPU fit ms": round(1e3 * (middle - start), 1),
                "CPU predict ms": round(1e3 * (time.perf_counter() - middle), 1),
                "answers like the CPU's": same,
                "accuracy": float(np.mean(answer.cpu().numpy() == truth)),
            }
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
