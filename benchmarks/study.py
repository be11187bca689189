"""A study compared with the same experiments run one by one, and a study of half a million experiments.

    python benchmarks/study.py aggfixed PACKS OUT            # the grid of the paper's section 5.1
    python benchmarks/study.py half-million PACKS OUT
    python benchmarks/study.py half-million PACKS OUT --against CHECKOUT --rounds 3 --backbones tinynet
    python benchmarks/study.py kernel PACKS --backbone mobilenet_v1_0.25_128 --dataset mnist

PACKS is a folder of packs `BACKBONE-DATASET.npz` for the backbones and data sets below. `aggfixed` runs 864
configurations (9 settings of the norms x 32 generators x 3 seeds) on 12 tasks of 4 backbones, then computes a random
sample of them with a new `ImprintClassifier` each, on one core: once with the embeddings in memory, once reading the
pack for every experiment, as a separate run would. Processor time is the sum over all processes.

`--against` runs a study with the code of this checkout and of another one in turn, each in a new process. It prints the
minimum processor time of both, their ratio, and whether all results are bit-identical.

`kernel` computes the decisions by `kernel` of `paper/all --beside kernel` on one pack twice, unit by unit: shared, as
a study does, and with a separate `Head` each from the same class states. It prints the CPU time of both, and the time
of the arithmetic alone: the products and factors of distinct systems, the products of test rows with each set of
proxies, and for each decision its kernels and their sums.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.linalg.blas import dsyrk
from scipy.linalg.lapack import dposv
from threadpoolctl import threadpool_limits

from imprint import tasks
from imprint.aggregators.kernel import Kernel
from imprint.embeddings import read_pack
from imprint.kernels.cpu import available_cpus
from imprint.study import Grid, Packs, Study, plan, run
from imprint.study.evaluate import MEASUREMENTS, _decide_by_head, groups_in_memory
from imprint.study.grid import PARTS
from imprint.study.kernel_decisions import KernelDecisions
from imprint.study.proxies import UnitProxies
from imprint.study.work_graph import build
from imprint_reproduction.run import planned_batches
from imprint_reproduction.setting import discover

SEEDS = (17121997, 123987, 12412312)
WHERE = dict(
    backbones=("tinynet", "deit_tiny", "mobilenet_v1_0.25_128", "mobilenet_v1_0.5_160"),
    datasets=("mnist", "fashionmnist", "cifar10"),
    tasks=("all", "even", "odd", "short"),
    seeds=SEEDS,
)
NORMS = dict(
    norm_pre=("none", "l2"),
    norm_post=("none", "l2", "quantile"),
    norm_inf=("none", "l2"),
)
GENERATORS = ("mean", "all", "kmeans", "kmedoids", "covmax", "random", "fps")
K = (1, 2, 3, 5, 10, 20)
ARITHMETIC = ("products of proxies", "factors", "products", "kernels", "sums")
NEAREST = ("max", "nearest", "nearest(weighting='uniform')", "nearest(metric='cosine')")
STUDIES = {
    "aggfixed": Study(
        name="aggfixed",
        **WHERE,
        grid=Grid(**NORMS, generator=GENERATORS, k=K),
        rules="matching_norms",
    ),
    "half-million": Study(
        name="half-million",
        **WHERE,
        grid=Grid(
            **NORMS, generator=GENERATORS, k=K, aggregator=NEAREST, m=(1, 3, 5, 20, 50)
        ),
        rules=("matching_norms", "enough_proxies"),
    ),
}
PROGRAM = """
import json, sys
from imprint.study import Packs, Study, run
study, out, packs, workers = sys.argv[1:]
run(Study.of(json.loads(study)), out, source=Packs(packs), workers=int(workers))
"""


def processor_seconds():
    """Processor seconds of this process and of all finished child processes."""
    usages = (
        resource.getrusage(who)
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return sum(u.ru_utime + u.ru_stime for u in usages)


def show(p):
    print(
        f"{p.done:,} of {p.total:,}, {p.rate:,.0f}/s, {p.seconds:.0f} s, {p.seconds_left:.0f} s left",
        flush=True,
    )


def alone(row, X, y, X_test, y_test):
    """One experiment with a new classifier. Imports are local, so that the workers of a study do not load them."""
    from sklearn.metrics import accuracy_score, f1_score

    from imprint import ImprintClassifier

    task = tasks.resolve(row["task"])
    train, test = (
        task.select(y, row["seed"]),
        task.queries().select(y_test, row["seed"]),
    )
    clf = ImprintClassifier(
        **{part: row[part] for part in PARTS}, random_state=row["seed"]
    )
    predicted = clf.fit(X[train.rows], train.labels).predict(X_test[test.rows])
    f1 = [
        f1_score(test.labels, predicted, average=average)
        for average in ("macro", "weighted")
    ]
    return accuracy_score(test.labels, predicted), *f1, len(clf.proxies_.labels)


def differs(row, expected):
    """Whether an experiment differs by more than its near ties can explain."""
    got = row["accuracy"], row["macro_f1"], row["weighted_f1"], row["proxies"]
    if np.allclose(got, expected, rtol=0, atol=1e-12):
        return False
    return (
        abs(got[0] - expected[0]) * row["test_rows"] > row["near_ties"] + 1e-6
        or got[3] != expected[3]
    )


def sample(table, folder, size):
    """Processor seconds of sampled experiments, embeddings in memory or read each time; experiments that differ."""
    rows = table.take(
        np.sort(np.random.default_rng(0).choice(len(table), size, replace=False))
    ).to_pylist()
    wrong, seconds, reading, pack, name = [], 0.0, 0.0, None, ""
    with threadpool_limits(1):
        alone(
            rows[0],
            *read_pack(folder / f"{rows[0]['backbone']}-{rows[0]['dataset']}.npz")[:4],
        )  # compiles
        for row in rows:
            if name != f"{row['backbone']}-{row['dataset']}.npz":
                name = f"{row['backbone']}-{row['dataset']}.npz"
                pack = read_pack(folder / name)
                start = time.process_time()
                read_pack(folder / name)
                once = time.process_time() - start
            start = time.process_time()
            expected = alone(row, *pack[:4])
            seconds += time.process_time() - start
            reading += once
            if differs(row, expected):
                wrong.append((row, expected))
    return seconds, reading, wrong


def compare_checkouts(study, packs, out, other, rounds, workers):
    """Processor seconds of a study with the code of both checkouts, and whether the results are equal."""
    seconds, tables = {"this": [], "other": []}, []
    for i in range(rounds):
        for which, tree in (("other", other), ("this", Path(__file__).parents[1])):
            folder, before = out / f"{which}-{i}", processor_seconds()
            arguments = (
                json.dumps(study.to_json()),
                str(folder),
                str(packs),
                str(workers),
            )
            environment = {**os.environ, "PYTHONPATH": str(tree.resolve() / "src")}
            subprocess.run(
                [sys.executable, "-c", PROGRAM, *arguments], env=environment, check=True
            )
            seconds[which].append(processor_seconds() - before)
            tables.append(study.results(folder).drop_columns(list(MEASUREMENTS)))
            print(which, round(seconds[which][-1], 1), flush=True)
    best = {which: round(min(times), 1) for which, times in seconds.items()}
    ratio = round(best["this"] / best["other"], 3)
    return {
        "experiments": len(tables[0]),
        **best,
        "ratio": ratio,
        "equal": all(t.equals(tables[0]) for t in tables),
    }


def kernel_units(folder, backbone, dataset):
    """For each unit of a pack: its name, the `KernelDecisions` that compute it, and its decisions by `kernel`."""
    setting = discover(folder, [backbone], [dataset], beside="kernel")
    for studies in planned_batches("all", setting):
        for unit in plan(studies, Packs(str(folder))).units:
            data = unit.source.open(backbone, dataset)
            graph = build(unit, data.y, data.y_test)
            decisions = [d for d in graph.decisions if type(d.aggregator) is Kernel]
            if decisions:
                kernel = KernelDecisions(
                    UnitProxies(graph, np.asarray(data.X)), np.asarray(data.X_test)
                )
                yield str(unit), kernel, [d for d in decisions if kernel.can_decide(d)]


def timed(function, *arguments):
    """The result of a call, and its CPU time."""
    start = time.process_time()
    return function(*arguments), time.process_time() - start


def shared_decisions(kernel, decisions):
    counted = []
    for group in groups_in_memory(kernel.proxies, decisions):
        counted += kernel.decide(group)
        kernel.proxies.clear()
    return {c.decisions[0].number: c for c in counted}


def plain_decisions(kernel, decisions):
    return [
        c for d in decisions for c in _decide_by_head(kernel.proxies, kernel.queries, d)
    ]


def arithmetic(kernel, decisions):
    """CPU seconds of the arithmetic of some decisions alone: each system solved once, each product computed once."""
    width, groups, spent = (
        kernel.queries.shape[1] + 2,
        [],
        dict.fromkeys(ARITHMETIC, 0.0),
    )
    kernel._count = lambda *group: (
        groups.append(group) or ()
    )  # solve the systems without counting decisions
    list(kernel.decide(decisions))
    del kernel._count
    solved = {
        id(one.coefficients): one.coefficients for *_, group in groups for one in group
    }
    for size in (coefficients.shape[1] for coefficients in solved.values()):
        about, Y = (
            np.ones((width - 2, size), order="F"),
            np.zeros((size, 10), order="F"),
        )
        spent["products of proxies"] += timed(dsyrk, 1.0, about, 0.0, None, True)[1]
        spent["factors"] += timed(
            dposv, np.asfortranarray(2 * np.eye(size)), Y, 0, True, True
        )[1]
    for weights, _, dtype, group in groups:
        rows, proxies = (
            len(group[0].decision.split.rows),
            np.ones((len(weights), width), dtype=dtype),
        )
        for step in (min(1024, rows - start) for start in range(0, rows, 1024)):
            spent["products"] += timed(
                np.matmul, proxies, np.ones((step, width), dtype=dtype).T
            )[1]
            for one in group:
                K = np.full((len(weights), step), -0.5, dtype=dtype)
                K, seconds = timed(np.exp, K, K)
                spent["kernels"] += seconds
                spent["sums"] += timed(
                    lambda left, right: left @ right.astype(np.float64),
                    one.coefficients,
                    K,
                )[1]
    return spent


def compare_kernel(folder, backbone, dataset):
    """CPU seconds of the decisions by `kernel` of a pack, shared and plain, and decisions that differ."""
    result = dict.fromkeys(("decisions", "shared", "plain", "differ", *ARITHMETIC), 0.0)
    with threadpool_limits(1):
        for name, kernel, decisions in kernel_units(folder, backbone, dataset):
            np.ones(
                2**26
            )  # allocate memory beforehand, so that page faults cost both the same
            together, shared = timed(shared_decisions, kernel, decisions)
            one_by_one, plain = timed(plain_decisions, kernel, decisions)
            for one in one_by_one:
                other = together[one.decisions[0].number]
                apart = abs(other.counts.correct.sum() - one.counts.correct.sum())
                result["differ"] += (
                    apart > one.counts.near_ties[0] or other.proxies != one.proxies
                )
            seconds = {
                "decisions": len(decisions),
                "shared": shared,
                "plain": plain,
                **arithmetic(kernel, decisions),
            }
            print(
                name,
                {key: round(value, 2) for key, value in seconds.items()},
                flush=True,
            )
            result |= {key: result[key] + value for key, value in seconds.items()}
    least = sum(result[part] for part in ARITHMETIC)
    return {key: round(value, 2) for key, value in result.items()} | {
        "times less": round(result["plain"] / result["shared"], 2),
        "times less, if nothing but arithmetic took time": round(
            result["plain"] / least, 2
        ),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("study", choices=[*STUDIES, "kernel"])
    parser.add_argument("packs", type=Path)
    parser.add_argument("out", type=Path, nargs="?")
    parser.add_argument("--workers", type=int, default=available_cpus())
    parser.add_argument("--sample", type=int, default=300)
    parser.add_argument("--backbone", default="mobilenet_v1_0.25_128")
    parser.add_argument("--dataset", default="mnist")
    parser.add_argument("--against", type=Path, metavar="CHECKOUT")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument(
        "--backbones", default=",".join(WHERE["backbones"]), help="for --against"
    )
    parser.add_argument(
        "--datasets", default=",".join(WHERE["datasets"]), help="for --against"
    )
    options = parser.parse_args()
    if options.study == "kernel":
        print(
            json.dumps(
                compare_kernel(options.packs, options.backbone, options.dataset),
                indent=1,
            )
        )
        return
    study = STUDIES[options.study]
    if options.against:
        study = replace(
            study,
            backbones=options.backbones.split(","),
            datasets=options.datasets.split(","),
        )
        how = (
            options.packs,
            options.out,
            options.against,
            options.rounds,
            options.workers,
        )
        print(json.dumps(compare_checkouts(study, *how), indent=1))
        return
    before = processor_seconds()
    packs = Packs(str(options.packs))
    how = dict(workers=options.workers, progress=show)
    summary = run(study, options.out, source=packs, **how)
    spent = processor_seconds() - before
    start = time.perf_counter()
    table = study.results(options.out)
    opened = time.perf_counter() - start
    size = sum(p.stat().st_size for p in options.out.rglob("*") if p.is_file())
    result = {
        "experiments": summary.experiments,
        "experiments present": len(table),
        "failures": summary.failures,
        "computed now": summary.computed,
        "wall seconds": round(summary.seconds, 1),
        "processor seconds": round(spent, 1),
        "store MB": round(size / 1e6, 2),
        "opens in seconds": round(opened, 2),
        "near ties per 10,000 rows": 1e4
        * sum(table["near_ties"].to_pylist())
        / sum(table["test_rows"].to_pylist()),
        "largest peak memory MB": round(max(table["peak_memory"].to_pylist()) / 1e6),
    }
    if options.sample:
        seconds, reading, wrong = sample(table, options.packs, options.sample)
        each = seconds / options.sample
        result |= {
            "sample": options.sample,
            "sampled experiments that differ": len(wrong),
            "plain milliseconds an experiment": round(1e3 * each, 1),
            "milliseconds to read a pack": round(1e3 * reading / options.sample, 1),
            "times less processor time": round(each * len(table) / spent, 1),
            "times less, plain path reads its pack": round(
                (each + reading / options.sample) * len(table) / spent, 1
            ),
        }
        for row, expected in wrong[:5]:
            print(row, expected)
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
