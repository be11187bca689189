"""`ImprintClassifier` on a GPU: time to fit and predict rows in GPU memory, and the same rows on the CPU.

    python benchmarks/gpu_classifier.py            # 60,000 x 512 rows of ten classes; then all rows with `kernel`
    python benchmarks/gpu_classifier.py --kernel   # only the second part

Times are medians of wall-clock time around calls that end with a synchronisation, after one call to compile. The second
part fits `all` + `kernel` on 60,000 x 256 rows, compares its predictions with a float64 solution by torch.linalg, adds
a class to 50,000 rows, removes it again, and solves the same rows through centres.
"""

import json
import sys
import time
from functools import partial

import numpy as np
import torch

from imprint import ImprintClassifier
from imprint.gaussian_process.nystroem import solve_by_centres
from imprint.gaussian_process.scale import moments, rounded_scale, scale


def rows(n, d, classes, seed, noise=1.5):
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(0).normal(size=(classes, 20, d))
    y = np.arange(n) % classes
    X = centres[y, rng.integers(20, size=n)] + noise * rng.normal(size=(n, d))
    return X.astype(np.float32), y


def timed(call):
    torch.cuda.synchronize()
    start = time.perf_counter()
    result = call()
    torch.cuda.synchronize()
    return result, 1e3 * (time.perf_counter() - start)


def milliseconds(call, repeats):
    call()
    return round(float(np.median([timed(call)[1] for _ in range(repeats)])), 2)


def methods():
    X, y = rows(60_000, 512, 10, 1)
    Q, truth = rows(10_000, 512, 10, 2)
    on_gpu = [torch.from_numpy(a).cuda() for a in (X, y, Q)]
    figures = {"device": torch.cuda.get_device_name()}
    for generator in ("kmeans(k=20)", "mean", "kmeans(k=100)"):
        for aggregator in ("max", "kernel", "nearest(m=5)"):
            model = ImprintClassifier(
                generator=generator, aggregator=aggregator, random_state=0
            )
            fit = milliseconds(partial(model.fit, on_gpu[0], on_gpu[1]), 20)
            predict = milliseconds(partial(model.predict, on_gpu[2]), 50)
            answer = model.predict(on_gpu[2])
            assert answer.is_cuda
            host = ImprintClassifier(
                generator=generator, aggregator=aggregator, random_state=0
            ).fit(X, y)
            figures[f"{generator} / {aggregator}"] = {
                "fit ms": fit,
                "predict 10,000 ms": predict,
                "answers like the CPU's": float(
                    np.mean(host.predict(Q) == answer.cpu().numpy())
                ),
                "accuracy": float(np.mean(answer.cpu().numpy() == truth)),
            }
    return figures


def exact_answers(X, y, Q):
    """Predicted classes from a float64 solution of the full system."""
    unit = [torch.nn.functional.normalize(rows.double(), dim=1) for rows in (X, Q)]
    s = rounded_scale(scale(moments(unit[0])))
    K = torch.cdist(unit[0], unit[0]).square_().div_(-s).exp_()
    K.diagonal().add_(0.1)
    targets = torch.nn.functional.one_hot(y, int(y.max()) + 1).double()
    A = torch.linalg.solve(K, targets)
    del K
    return (torch.cdist(unit[1], unit[0]).square_().div_(-s).exp_() @ A).argmax(1)


def all_rows():
    X, y = rows(60_000, 256, 10, 1, noise=3.0)
    Q, truth = rows(10_000, 256, 10, 2, noise=3.0)
    X, y, Q, truth = (torch.from_numpy(a).cuda() for a in (X, y, Q, truth))
    figures = {
        "device": torch.cuda.get_device_name(),
        "free GB": torch.cuda.mem_get_info()[0] / 2**30,
    }
    model = ImprintClassifier(generator="all", aggregator="kernel", random_state=0)
    model.fit(X[:2000], y[:2000]).predict(Q[:100])
    torch.cuda.reset_peak_memory_stats()
    _, figures["fit 60,000 x 256 ms"] = timed(lambda: model.fit(X, y))
    figures["peak GB"] = torch.cuda.max_memory_allocated() / 2**30
    answers, figures["first predict 10,000 ms"] = timed(lambda: model.predict(Q))
    figures["predict 10,000 ms"] = milliseconds(lambda: model.predict(Q), 5)
    figures["accuracy"] = float((answers == truth).double().mean())
    exact = exact_answers(X, y, Q)
    figures["accuracy of the float64 solution"] = float(
        (exact == truth).double().mean()
    )
    figures["answers like it"] = float((answers == exact).double().mean())
    for size in (500, 3000, 5000):
        model = ImprintClassifier(
            generator="all", aggregator="kernel", random_state=0
        ).fit(X[:50_000], y[:50_000])
        model.predict(Q[:10])
        more, labels = rows(size, 256, 1, 7)
        more, labels = torch.from_numpy(more).cuda() - 1, torch.full((size,), 10).cuda()
        _, figures[f"add a class of {size} rows to 50,000 ms"] = timed(
            lambda model=model, more=more, labels=labels: model.partial_fit(
                more, labels
            ).predict(Q[:10])
        )
        _, figures[f"forget it ({size}) ms"] = timed(
            lambda model=model: model.forget(10).predict(Q[:10])
        )
    unit = torch.nn.functional.normalize(X, dim=1)
    s, order = scale(moments(unit)), torch.argsort(y, stable=True)
    unit, labels, queries = (
        unit[order],
        y[order].cpu().numpy(),
        torch.nn.functional.normalize(Q, dim=1),
    )
    for centres in (4096, 12_000):
        solve = partial(
            solve_by_centres, unit, labels, np.full(len(unit), 0.1), 1 / s, centres
        )
        solve()
        system, figures[f"{centres} centres ms"] = timed(solve)
        right = (system.scores(queries).argmax(1) == truth).double().mean()
        figures[f"{centres} centres accuracy"] = float(right)
    _, figures["doubt of 1,000 ms"] = timed(lambda: system.doubt(queries[:1000]))
    return figures


if __name__ == "__main__":
    if "--kernel" not in sys.argv:
        print(json.dumps(methods(), indent=1), flush=True)
    print(json.dumps(all_rows(), indent=1))
