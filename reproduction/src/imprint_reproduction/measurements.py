"""Artefacts with no study or a short one: memory, weight decay, runtime, statements,
and drawings of the data.
"""

import io
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

import numpy as np

from imprint import recipe, tasks
from imprint.core.errors import FileError
from imprint.datasets import record
from imprint.extend import (
    Array,
    atomic_write,
    home,
    load_pack,
    one_thread,
    open_pack,
    unit_rows,
)
from imprint.report import (
    COLOURS,
    GRID,
    INK,
    PALE,
    Cloud,
    Point,
    TextTable,
    canvas,
    scatter,
)
from imprint.study import Packs, Study
from imprint_reproduction.artefact import (
    Artefact,
    Finding,
    OnProgress,
    Results,
    read_json,
    write_json,
)
from imprint_reproduction.sections import Image, Section, Verdict
from imprint_reproduction.setting import (
    COMBINED,
    SEEDS,
    TASKS,
    Setting,
    regularisation,
    role_study,
    unnormalised,
)

LEAST_SQUARES = {
    v: unnormalised(f"least_squares(reg={v!r})")
    for v in (1e-6, 1e-4, 1e-2, 0.05, 0.1, 1.0)
}
"""Methods by weight decay."""


class Memory(Artefact):
    """W ← W + v kᵀ for every class, compared with the imprinted head."""

    def measure(self, setting: Setting, folder: Path, report: OnProgress) -> None:
        source, values = Packs(setting.embeddings), {}
        for backbone in setting.benchmark.backbones:
            data = source.open(backbone, setting.benchmark.datasets[0])
            values[backbone] = compare_with_head(data.X, data.y, data.X_test)
        write_json(folder / f"{self.name}.json", values)

    def show(self, results: Results) -> Section:
        values = results.measured(self.name)
        lines = tuple(
            (b, f"{v['rows']:,}", f"{v['agree']:,}", f"{v['difference']:.1g}")
            for b, v in values.items()
        )
        agree, rows = (
            sum(v[key] for v in values.values()) for key in ("agree", "rows")
        )
        equal = agree == rows and all(v["difference"] < 1e-5 for v in values.values())
        cells = TextTable(
            ("backbone", "rows", "same decision", "largest difference of scores"), lines
        )
        findings = {
            "equal": Finding(equal, f"same decision on {agree:,} of {rows:,} rows")
        }
        return self.make_section(
            results, [cells], findings, dataset=results.setting.benchmark.datasets[0]
        )


def compare_with_head(X: np.ndarray, y: np.ndarray, Q: np.ndarray) -> dict[str, float]:
    """Store every class in a matrix as an outer product, and compare its scores with
    those of the head.
    """
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
    return {
        "rows": len(Q),
        "agree": agree,
        "difference": float(np.abs(scores - head.decision_function(Q)).max()),
    }


class Regularisation(Artefact):
    """The weight decay of each backbone, and the accuracy with other values."""

    def studies(self, setting: Setting) -> list[Study]:
        return role_study(setting, "benchmark", LEAST_SQUARES.values())

    def show(self, results: Results) -> Section:
        scores, backbones, lines = (
            self.scores(results),
            results.setting.benchmark.backbones,
            [],
        )
        for backbone in backbones:
            means = (
                scores.where(backbone=backbone)
                .medians(list(LEAST_SQUARES.values()))
                .mean(axis=0)
            )
            lines.append(
                (
                    backbone,
                    f"{regularisation(backbone):g}",
                    *(f"{mean:.2f}" for mean in means),
                )
            )
        cells = TextTable(
            ("backbone", "used", *(f"λ = {v:g}" for v in LEAST_SQUARES)), tuple(lines)
        )
        return self.make_section(
            results, [cells], {}, tasks=len(scores.instances) // len(backbones)
        )


@dataclass(frozen=True, kw_only=True)
class Runtime(Artefact):
    """Processor seconds of generation."""

    generators: Mapping[str, tuple[str, float]] = field(repr=False)
    """By label: the generator, and its published mean in seconds."""

    def measure(self, setting: Setting, folder: Path, report: OnProgress) -> None:
        """Fit every generator on every task with every seed: on one thread, nothing
        shared, nothing normalised.
        """
        path, group = folder / f"{self.name}.json", setting.benchmark
        values, points = (
            read_json(path),
            list(product(group.backbones, group.datasets, TASKS)),
        )
        with one_thread():
            for i, point in enumerate(points):
                key = " / ".join(point)
                if key not in values:
                    values[key] = self._times(setting, *point)
                    write_json(path, values)
                report("Runtime", i + 1, len(points))

    def show(self, results: Results) -> Section:
        tasks, lines, means = results.measured(self.name), [], {}
        for label, (_, published) in self.generators.items():
            medians = np.array([np.median(times[label]) for times in tasks.values()])
            means[label] = float(medians.mean())
            numbers = (
                published,
                means[label],
                np.median(medians),
                medians.min(),
                medians.max(),
            )
            lines.append((label, *(f"{v:.4f}" for v in numbers)))
        head = (
            "generator",
            "published mean, s",
            "mean here, s",
            "median",
            "least",
            "most",
        )
        ratio = means["k-means, k = 20"] / means["least squares"]
        findings = {"faster": Finding(ratio > 1, f"{ratio:.1f} times as fast")}
        return self.make_section(
            results, [TextTable(head, tuple(lines))], findings, tasks=len(tasks)
        )

    def _times(
        self, setting: Setting, backbone: str, dataset: str, task: str
    ) -> dict[str, list[float]]:
        data, times = (
            Packs(setting.embeddings).open(backbone, dataset),
            dict[str, list[float]](),
        )
        selection = tasks.resolve(task).select(data.y)
        X, y = np.asarray(data.X[selection.rows]), selection.labels
        for (label, (text, _)), seed in product(self.generators.items(), SEEDS):
            generator = text.format(reg=regularisation(backbone))
            classifier = recipe("oracle", generator=generator, random_state=seed)
            start = time.process_time()
            classifier.fit(X, y)
            times.setdefault(label, []).append(time.process_time() - start)
        return times


class Statements(Artefact):
    """Statements that need no experiment."""

    def show(self, results: Results) -> Section:
        usps = record("usps").train
        findings = {"usps": Finding(usps == 7219, f"the published files hold {usps:,}")}
        for name, claim in self.claims.items():
            if "untestable" in claim:
                findings[name] = Finding(Verdict.UNTESTABLE, claim["untestable"])
        return self.make_section(results, [], findings)


class LabelMaps(Artefact):
    """The classes that share a label, for three values of d."""

    def show(self, results: Results) -> Section:
        pool, labels, side = 9, 3, 3
        blocks = label_map(side, labels, pool)
        with canvas(7.2, 2.2) as (figure, out):
            from matplotlib.patches import Rectangle

            for axes, d in zip(figure.subplots(1, side), range(1, side + 1)):
                taken, sizes = (
                    label_map(d, labels, pool),
                    [0] * labels,
                )
                for number, label in blocks.items():
                    y = int(label)
                    x, sizes[y] = sizes[y], sizes[y] + 1
                    face, ink = (COLOURS[5], INK) if number in taken else (GRID, PALE)
                    axes.add_patch(
                        Rectangle(
                            (x - 0.46, y - 0.46),
                            0.92,
                            0.92,
                            facecolor=face,
                            edgecolor="none",
                        )
                    )
                    axes.text(
                        x,
                        y,
                        str(number),
                        ha="center",
                        va="center",
                        fontsize=9,
                        color=ink,
                    )
                axes.set_title(f"{d} in 1", loc="left")
                axes.set(
                    xlim=(-0.5, side - 0.5),
                    ylim=(labels - 0.5, -0.5),
                    xticks=[],
                    yticks=range(labels),
                )
                axes.set_xlabel("classes of the block")
                axes.grid(False)
            figure.supylabel("new label", fontsize=9)
        return self.make_section(
            results, [self.image(out.getvalue())], {}, pool=pool, labels=labels
        )


SOURCES, DIGIT, EACH, SIZE = ("mnist", "mnistm", "svhn", "usps"), 6, 5, 32
POINTS = 60  # embeddings shown of each source


@dataclass(frozen=True, kw_only=True)
class CombiDigitsFigure(Artefact):
    """The digit 6 from four sources: images if there are packs of them, embeddings if
    their sources are known.
    """

    embeddings: str  # the caption of the drawing of embeddings
    lacking: str  # what to do if there is no drawing
    needs = "combined"

    def measure(self, setting: Setting, folder: Path, report: OnProgress) -> None:
        # of downloads, and of the embeddings, which is preferred
        folders = home() / "data", Path(setting.embeddings)
        packs = {
            n: f / f"{n}.npz"
            for f in folders
            for n in SOURCES
            if (f / f"{n}.npz").is_file()
        }
        if len(packs) == len(SOURCES):
            buffer = io.BytesIO()  # np.save into a file does not report a full disk
            np.save(buffer, np.stack([_samples(packs[name]) for name in SOURCES]))
            with atomic_write(folder / f"{self.name}.npy") as f:
                f.write(buffer.getbuffer())
        path = Path(setting.embeddings) / f"sources-{COMBINED}.npz"
        if path.is_file():
            sources = _sources(path)
            points = {
                b: _project(Packs(setting.embeddings), b, sources)
                for b in setting.combined.backbones
            }
            write_json(folder / f"{self.name}.json", points)

    def show(self, results: Results) -> Section:
        parts, samples = [], results.folder / f"{self.name}.npy"
        if samples.is_file():
            images = np.load(samples).reshape(-1, SIZE, SIZE, 3)
            with canvas(3.6, 3.0) as (figure, out):
                for axes, image in zip(
                    figure.subplots(len(SOURCES), EACH).flat, images
                ):
                    axes.imshow(image, interpolation="none")
                    axes.set_axis_off()
            parts.append(self.image(out.getvalue()))
        if points := read_json(results.folder / f"{self.name}.json"):
            clouds = [
                Cloud(
                    b,
                    [
                        Point(s, False, *at)
                        for s, both in sources.items()
                        for at in zip(*both)
                    ],
                )
                for b, sources in points.items()
            ]
            svg = scatter(
                clouds,
                "first component",
                "second component",
                log_x=False,
                side=2.9,
                size=14,
            )
            parts.append(Image(f"{self.name}_embeddings", svg, self.embeddings))
        sources = ", ".join(SOURCES)
        lacking = (
            ""
            if parts
            else self.lacking.format(sources=sources, file=f"sources-{COMBINED}.npz")
        )
        words = {
            "digit": DIGIT,
            "points": POINTS,
            "sources": sources,
            "lacking": lacking,
        }
        return self.make_section(results, parts, {}, **words)


def label_map(d: int, labels: int, pool: int) -> dict[int | str, int | str]:
    """The label of each of the first classes of a pool, d of them under each label."""
    task = tasks.resolve(f"d_in_1(d={d}, labels={labels}, pool={pool})")
    return task.mapping(range(pool))


def _samples(path: Path) -> Array:
    """The first images of the digit, as RGB of one size.  # (EACH, SIZE, SIZE, 3)"""
    from PIL import Image

    split = load_pack(path, "train")
    rows = np.flatnonzero(np.asarray(split.labels) == DIGIT)[:EACH]
    images = (
        Image.fromarray(np.asarray(split.inputs[i])).convert("RGB").resize((SIZE, SIZE))
        for i in rows
    )
    return np.stack([np.asarray(p) for p in images])


def _sources(path: Path) -> Array:
    """The source of each training row."""
    with open_pack(path) as pack:
        if "train" not in pack.files:
            raise FileError(
                f"{path}: it must hold `train`, the source of every training row."
            )
        return np.asarray(pack["train"])


def _project(
    source: Packs, backbone: str, sources: Array
) -> dict[str, list[list[float]]]:
    """The first two principal components of the digit's rows, by source."""
    from sklearn.decomposition import PCA

    data = source.open(backbone, COMBINED)
    if len(sources) != len(data.y):
        raise FileError(
            f"sources-{COMBINED}.npz has {len(sources):,} rows, the embeddings have"
            f" {len(data.y):,}."
        )
    chosen = np.asarray(data.y) == DIGIT
    rows, origin = (
        unit_rows(np.asarray(data.X[chosen])).astype(np.float64),
        sources[chosen],
    )
    flat = np.round(PCA(2, svd_solver="full").fit_transform(rows), 4)
    return {
        name: flat[origin == i][:POINTS].T.tolist() for i, name in enumerate(SOURCES)
    }
