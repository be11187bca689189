"""Artefacts that need no study or one short one: memory, weight decay, runtime, and statements of the text."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

import numpy as np

from imprint import recipe, tasks
from imprint.datasets import record
from imprint.kernels.cpu import one_thread
from imprint.paper.artefact import Artefact, Finding, OnProgress, Results, read_json, write_json
from imprint.paper.setting import Setting, regularisation
from imprint.paper.studies import SEEDS, TASKS, role_study, unnormalised
from imprint.report.sections import Section, Verdict
from imprint.report.text_table import TextTable
from imprint.study import Packs, Study

MEMORY, RUNTIME = "memory", "runtime"
LEAST_SQUARES = {v: unnormalised(f"least_squares(reg={v!r})") for v in (1e-6, 1e-4, 1e-2, 0.05, 0.1, 1.0)}
"""Methods by weight decay."""
STATED_USPS = 7219


class Memory(Artefact):
    """W ← W + v kᵀ for every class, compared with the imprinted head."""

    def measure(self, setting: Setting, folder: Path, report: OnProgress) -> None:
        source, values = Packs(setting.embeddings), {}
        for backbone in setting.benchmark.backbones:
            data = source.open(backbone, setting.benchmark.datasets[0])
            values[backbone] = compare_with_head(data.X, data.y, data.X_test)
        write_json(folder / f"{MEMORY}.json", values)

    def show(self, results: Results) -> Section:
        values = results.measured(MEMORY)
        lines = tuple((b, f"{v['rows']:,}", f"{v['agree']:,}", f"{v['difference']:.1g}") for b, v in values.items())
        agree, rows = (sum(v[key] for v in values.values()) for key in ("agree", "rows"))
        equal = agree == rows and all(v["difference"] < 1e-5 for v in values.values())
        cells = TextTable(("backbone", "rows", "same decision", "largest difference of scores"), lines)
        findings = {"equal": Finding(equal, f"same decision on {agree:,} of {rows:,} rows")}
        return self.make_section(results, [cells], findings, dataset=results.setting.benchmark.datasets[0])


def compare_with_head(X: np.ndarray, y: np.ndarray, Q: np.ndarray) -> dict[str, float]:
    """Store every class in a matrix as an outer product, and compare its scores with those of the head."""
    head = recipe("qi2018").fit(X, y)
    classes = np.unique(y)
    W = np.zeros((len(classes), X.shape[1]))
    for i, label in enumerate(classes):
        rows = X[y == label].astype(np.float64)
        key = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).mean(axis=0)
        W += np.outer(np.eye(len(classes))[i], key / np.linalg.norm(key))
    queries = Q.astype(np.float64)
    scores = queries / np.linalg.norm(queries, axis=1, keepdims=True) @ W.T
    agree = int((classes[scores.argmax(axis=1)] == head.predict(Q)).sum())
    return {"rows": len(Q), "agree": agree, "difference": float(np.abs(scores - head.decision_function(Q)).max())}


class Regularisation(Artefact):
    """The weight decay of each backbone, and the accuracy with other values."""

    def studies(self, setting: Setting) -> list[Study]:
        return role_study(setting, "benchmark", LEAST_SQUARES.values())

    def show(self, results: Results) -> Section:
        scores, backbones, lines = self.scores(results), results.setting.benchmark.backbones, []
        for backbone in backbones:
            means = scores.where(backbone=backbone).medians(list(LEAST_SQUARES.values())).mean(axis=0)
            lines.append((backbone, f"{regularisation(backbone):g}", *(f"{mean:.2f}" for mean in means)))
        cells = TextTable(("backbone", "used", *(f"λ = {v:g}" for v in LEAST_SQUARES)), tuple(lines), 1)
        return self.make_section(results, [cells], {}, tasks=len(scores.instances) // len(backbones))


@dataclass(frozen=True, kw_only=True)
class Runtime(Artefact):
    """Processor seconds of generation."""

    generators: Mapping[str, tuple[str, float]] = field(repr=False)
    """By label: the generator, and its published mean in seconds."""

    def measure(self, setting: Setting, folder: Path, report: OnProgress) -> None:
        """Fit every generator on every task with every seed: on one thread, nothing shared, nothing normalised."""
        path, group = folder / f"{RUNTIME}.json", setting.benchmark
        values, points = read_json(path), list(product(group.backbones, group.datasets, TASKS))
        with one_thread():
            for i, point in enumerate(points):
                key = " / ".join(point)
                if key not in values:
                    values[key] = self._times(setting, *point)
                    write_json(path, values)
                report("Runtime", i + 1, len(points))

    def show(self, results: Results) -> Section:
        tasks, lines, means = results.measured(RUNTIME), [], {}
        for label, (_, published) in self.generators.items():
            medians = np.array([np.median(times[label]) for times in tasks.values()])
            means[label] = float(medians.mean())
            numbers = (published, means[label], np.median(medians), medians.min(), medians.max())
            lines.append((label, *(f"{v:.4f}" for v in numbers)))
        head = ("generator", "published mean, s", "mean here, s", "median", "least", "most")
        ratio = means["k-means, k = 20"] / means["least squares"]
        findings = {"faster": Finding(ratio > 1, f"{ratio:.1f} times as fast")}
        return self.make_section(results, [TextTable(head, tuple(lines), 1)], findings, tasks=len(tasks))

    def _times(self, setting: Setting, backbone: str, dataset: str, task: str) -> dict[str, list[float]]:
        data = Packs(setting.embeddings).open(backbone, dataset)
        selection = tasks.resolve(task).select(data.y)
        X, y = np.asarray(data.X[selection.rows]), selection.labels

        def seconds(generator: str, seed: int) -> float:
            classifier = recipe("oracle", generator=generator, random_state=seed)
            start = time.process_time()
            classifier.fit(X, y)
            return time.process_time() - start

        return {
            label: [seconds(generator.format(reg=regularisation(backbone)), seed) for seed in SEEDS]
            for label, (generator, _) in self.generators.items()
        }


class Statements(Artefact):
    """Statements that need no experiment."""

    def show(self, results: Results) -> Section:
        usps = record("usps").train
        findings = {"usps": Finding(usps == STATED_USPS, f"the published files hold {usps:,}")}
        for name, claim in self.claims.items():
            if "untestable" in claim:
                findings[name] = Finding(Verdict.UNTESTABLE, claim["untestable"])
        return self.make_section(results, [], findings)
