"""The measurements of the demonstration."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

import numpy as np

from imprint import datasets, recipes
from imprint.classifier import ImprintClassifier
from imprint.collapse import GainFit, gain_fit, nc1
from imprint.core.types import Array
from imprint.datasets import Split
from imprint.embeddings import EmbeddingProgress
from imprint.imprinter import Embedded, Imprinter
from imprint.kernels.cpu import one_blas_thread
from imprint.stats import Comparison, compare
from imprint.tasks import Task, resolve

DATA, BACKBONE = "digits", "tinynet"
TASKS = ("all", "even", "odd", "short")
SHOTS = 50
KS = (1, 2, 5, 10, 20, 50)
CURVES = {"10 classes, one digit each": "all", "2 classes, five digits each": "d_in_1(d=5, i=0, labels=2, pool=10)"}
RULES = ("imprint2025", "kernel")
UNKNOWN, ALLOWED = 9, 0.05
MERGED, DRAWS = (1, 2, 3, 4, 5), 4
Report = Callable[[str, int, int], object]


class GainOfMap(NamedTuple):
    """A task of two classes with `d` digits each: its NC1, and the gain of 20 proxies over one, in points."""

    d: int
    nc1: float
    gain: float


class Knowledge(NamedTuple):
    """The self-assessment of a calibrated model of nine digits, compared with measurements."""

    expected: float
    interval: tuple[float, float]
    accuracy: float
    refused_known: float
    """The share of test pictures of the nine digits that it flags as none of these; 5 % are allowed."""
    refused_unknown: float
    """The same share for the tenth digit, which is not in its training data."""
    forgetting: float
    """Seconds to forget one of ten digits."""
    forgets_exactly: bool
    """Whether it then equals the model that never saw this digit."""


class Example(NamedTuple):
    """A test picture, its prediction, and the training picture closest to the decisive proxy."""

    picture: Array
    label: int
    predicted: int
    probability: float
    exemplar: Array


@dataclass(frozen=True, eq=False)
class Findings:
    """The contents of the table and of the page."""

    scores: dict[str, dict[tuple[str, int], float]]
    """Accuracy of every recipe for every (task, seed)."""
    comparison: Comparison
    curves: dict[tuple[str, str], dict[int, list[float]]]
    """Accuracy over k: for every task and recipe, and every k, one value per seed."""
    gains: list[GainOfMap]
    fit: GainFit
    knowledge: Knowledge
    nc1: dict[str, float]
    """NC1 of the training embeddings of every task."""
    examples: list[Example]
    rows: tuple[int, int]
    seeds: int
    seconds: float

    def accuracy(self, recipe: str, task: str | None = None) -> float:
        """The mean accuracy of a recipe, on one task or on all."""
        return fmean(v for (t, _), v in self.scores[recipe].items() if task in (None, t))


@dataclass(frozen=True, eq=False)
class DigitEmbeddings:
    """Embeddings of both splits."""

    train: Embedded
    test: Embedded

    def score(self, classifier: ImprintClassifier, task: Task, seed: int) -> float:
        """The accuracy of a classifier on a task."""
        (X, y), (Q, truth) = self.part(self.train, task, seed), self.part(self.test, task.queries(), seed)
        return classifier.fit(X, y).score(Q, truth)

    def part(self, rows: Embedded, task: Task, seed: int = 0) -> tuple[Array, Array]:
        """The rows and labels of a task."""
        chosen = task.select(rows.y, seed)
        return rows.X[chosen.rows], chosen.labels


def explore(
    seeds: int = 5,
    cache: bool = True,
    progress: Callable[[EmbeddingProgress], object] | None = None,
    report: Report = lambda *_: None,
) -> Findings:
    """Embed the digits, compare the recipes over tasks and seeds, vary k, relate gains to neural collapse."""
    start = time.perf_counter()
    splits = {name: datasets.load(DATA, name) for name in ("train", "test")}
    model = Imprinter(BACKBONE, cache=cache)
    data = DigitEmbeddings(model.embed(splits["train"], progress), model.embed(splits["test"], progress))
    with one_blas_thread():  # the matrices are small: more threads only wait for one another
        scores = _compare(data, seeds, report)
        curves = {
            (title, name): {
                k: [data.score(_kmeans(k, seed, name), resolve(task), seed) for seed in range(seeds)] for k in KS
            }
            for title, task in CURVES.items()
            for name in RULES
        }
        gains = [_gain(data, d, i) for d in MERGED for i in range(DRAWS)]
        return Findings(
            scores=scores,
            comparison=compare(scores),
            curves=curves,
            gains=gains,
            fit=gain_fit([g.nc1 for g in gains], [g.gain for g in gains]),
            knowledge=_knowledge(data),
            nc1={task: nc1(*data.part(data.train, resolve(task))) for task in TASKS},
            examples=_examples(model.fit(data.train), data, splits),
            rows=(len(data.train.X), len(data.test.X)),
            seeds=seeds,
            seconds=time.perf_counter() - start,
        )


def _compare(data: DigitEmbeddings, seeds: int, report: Report) -> dict[str, dict[tuple[str, int], float]]:
    instances = [(task, seed) for task in TASKS for seed in range(seeds)]
    scores: dict[str, dict[tuple[str, int], float]] = {name: {} for name in recipes.names()}
    for done, (task, seed) in enumerate(instances):
        report("Comparing recipes", done, len(instances))
        for name in scores:
            classifier = recipes.recipe(name, random_state=seed)
            scores[name][task, seed] = data.score(classifier, resolve(f"{task} | shots(n={SHOTS})"), seed)
    report("Comparing recipes", len(instances), len(instances))
    return scores


def _kmeans(k: int, seed: int, name: str = "imprint2025") -> ImprintClassifier:
    return recipes.recipe(name, generator=f"kmeans(k={k})", random_state=seed)


def _knowledge(data: DigitEmbeddings) -> Knowledge:
    """Fit nine digits and test on all ten; then fit all ten and forget one."""
    y, truth = np.asarray(data.train.y), np.asarray(data.test.y)
    train, test = y != UNKNOWN, truth != UNKNOWN
    nine = recipes.recipe("kernel", calibrate=True, random_state=0).fit(data.train.X[train], y[train])
    refused = nine.known(data.test.X) < ALLOWED
    ten = recipes.recipe("kernel", calibrate=True, random_state=0).fit(data.train.X, y)
    start = time.perf_counter()
    ten.forget(UNKNOWN)
    seconds = time.perf_counter() - start
    return Knowledge(
        expected=nine.expected_accuracy_,
        interval=nine.expected_interval_,
        accuracy=nine.score(data.test.X[test], truth[test]),
        refused_known=float(refused[test].mean()),
        refused_unknown=float(refused[~test].mean()),
        forgetting=seconds,
        forgets_exactly=bool(np.array_equal(ten.predict_proba(data.test.X), nine.predict_proba(data.test.X))),
    )


def _gain(data: DigitEmbeddings, d: int, i: int) -> GainOfMap:
    task = resolve(f"d_in_1(d={d}, i={i}, labels=2, pool=10)")
    one, many = (data.score(_kmeans(k, 0), task, 0) for k in (1, 20))
    return GainOfMap(d, nc1(*data.part(data.train, task)), 100 * (many - one))


def _examples(model: Imprinter, data: DigitEmbeddings, splits: dict[str, Split]) -> list[Example]:
    """The first test picture of every digit, right or wrong."""
    index = {name: i for i, name in enumerate(splits["train"].names)}
    examples = []
    for label in model.classes_.tolist():
        i = int(np.flatnonzero(splits["test"].labels == label)[0])
        one = data.test._replace(X=data.test.X[i : i + 1])
        (best,), (nearest,) = model.top(one, 1)[0], model.why(one, 1)
        exemplar = splits["train"].inputs[index[str(nearest.picture)]]
        examples.append(Example(splits["test"].inputs[i], label, best.label, best.probability, exemplar))
    return examples
