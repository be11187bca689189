"""The measurements of the demonstration."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from statistics import fmean
from typing import NamedTuple, TypeAlias

import numpy as np

from imprint import datasets, recipes
from imprint.collapse import GainFit, gain_fit, nc1
from imprint.core.arrays import Array
from imprint.datasets import Split
from imprint.embeddings import EmbeddingProgress
from imprint.imprinter import Embedded, Imprinter
from imprint.kernels.cpu import one_blas_thread
from imprint.stats import Comparison, compare
from imprint.tasks import Task, resolve

TASKS = {
    "all": "all ten digits",
    "even": "even digits",
    "odd": "odd digits",
    "short": "0 to 2",
}

# Images per class in the comparison, of about 145. A matter of taste.
SHOTS = 50

KS = (1, 2, 5, 10, 20, 50)
CURVES = {
    "10 classes, one digit each": "all",
    "2 classes, five digits each": "d_in_1(d=5, i=0, labels=2, pool=10)",
}
RULES = {
    "kernel": "all proxies together (kernel)",
    "imprint2025": "the best proxy (imprint2025)",
}

# Digits per class, and random draws of them, in the figure of gains against NC1.
GAIN_DIGITS = range(1, 6)
GAIN_DRAWS = range(4)

# The digit that the model of nine digits has not seen, and the share of inputs of known
# classes that `known` may flag.
UNKNOWN = 9
ALLOWED = 0.05

Scores: TypeAlias = dict[tuple[str, int], float]  # accuracy by task and seed
Curve: TypeAlias = dict[int, list[float]]  # by k, the accuracy of every seed
Gain: TypeAlias = tuple[int, float, float]
Reporter: TypeAlias = Callable[[str, int, int], object]


class Knowledge(NamedTuple):
    """The self-assessment of a calibrated model of nine digits, compared with
    measurements.
    """

    expected: float
    interval: tuple[float, float]
    accuracy: float
    # the share of test images of the nine digits flagged as none of these; 5 % are
    # allowed
    refused_known: float
    # the same share for the tenth digit, which is not in its training data
    refused_unknown: float
    forgetting: float  # seconds to forget one of ten digits
    forgets_exactly: bool  # whether it then equals the model that never saw this digit


class Example(NamedTuple):
    """A test image, its prediction, and the training image closest to the decisive
    proxy.
    """

    image: Array
    label: int
    predicted: int
    probability: float
    exemplar: Array


@dataclass(frozen=True, eq=False)
class Findings:
    """The contents of the table and of the page."""

    # accuracy of every recipe for every (task, seed)
    scores: dict[str, Scores]
    comparison: Comparison
    # for every task and recipe
    curves: dict[tuple[str, str], Curve]
    # digits per class, NC1, and the gain of 20 proxies over one, in points
    gains: list[Gain]
    fit: GainFit
    knowledge: Knowledge
    nc1: dict[str, float]  # NC1 of the training embeddings of every task
    examples: list[Example]
    rows: tuple[int, int]
    seeds: int
    seconds: float

    def accuracies(self, recipe: str, task: str) -> list[float]:
        """The accuracy of a recipe on a task, for every seed."""
        return [v for (t, _), v in self.scores[recipe].items() if t == task]

    def accuracy(self, recipe: str, task: str) -> float:
        """The mean accuracy of a recipe on a task."""
        return fmean(self.accuracies(recipe, task))


def _report_nothing(
    what: str,
    done: int,
    total: int,
) -> None:
    """The default of `report`."""


def explore(
    seeds: int = 5,
    cache: bool = True,
    progress: Callable[[EmbeddingProgress], object] | None = None,
    report: Reporter = _report_nothing,
) -> Findings:
    """Embed the digits, compare the recipes over tasks and seeds, vary k, relate gains
    to neural collapse.

    Parameters
    ----------
    seeds : int
        Number of random draws of the training images. [default: 5]
    cache : bool
        Whether to cache the embeddings. [default: True]
    progress, report : callable, optional
        Called with the progress of embedding, and of comparing.

    Returns
    -------
    Findings
        What the command prints and the page shows.
    """
    start = time.perf_counter()
    splits = {name: datasets.load("digits", name) for name in ("train", "test")}
    model = Imprinter("tinynet", cache=cache)
    train, test = (model.embed(split, progress=progress) for split in splits.values())
    trials = Trials(train, test)
    # the matrices are small: more threads only wait for one another
    with one_blas_thread():
        scores = trials.compare_recipes(seeds, report)
        gains = list(trials.gains())
        return Findings(
            scores=scores,
            comparison=compare(scores),
            curves=trials.curves(seeds),
            gains=gains,
            fit=gain_fit(
                [collapse for _, collapse, _ in gains],
                [gain for _, _, gain in gains],
            ),
            knowledge=_knowledge(train, test),
            nc1={task: trials.nc1(task) for task in TASKS},
            examples=_examples(model.fit(train), test, splits),
            rows=(len(train.X), len(test.X)),
            seeds=seeds,
            seconds=time.perf_counter() - start,
        )


class Trials(NamedTuple):
    """Trains and tests recipes on parts of the digits."""

    train: Embedded
    test: Embedded

    def accuracy(
        self,
        recipe: str,
        task: str,
        seed: int,
        k: int | None = None,
    ) -> float:
        """The accuracy of a recipe on a task; with `k`, with k k-means proxies."""
        parts = {} if k is None else {"generator": f"kmeans(k={k})"}
        classifier = recipes.recipe(recipe, random_state=seed, **parts)
        X, y = _part(self.train, resolve(task), seed)
        Q, truth = _part(self.test, resolve(task).queries(), seed)
        return classifier.fit(X, y).score(Q, truth)

    def nc1(self, task: str) -> float:
        """NC1 of the training embeddings of a task."""
        X, y = _part(self.train, resolve(task))
        return nc1(X, y)

    def compare_recipes(self, seeds: int, report: Reporter) -> dict[str, Scores]:
        """The accuracy of every recipe on every task and seed."""
        scores: dict[str, Scores] = {name: {} for name in recipes.names()}
        instances = list(product(TASKS, range(seeds)))
        for done, (task, seed) in enumerate(instances, start=1):
            few_shots = f"{task} | shots(n={SHOTS})"
            for name in scores:
                scores[name][task, seed] = self.accuracy(name, few_shots, seed)
            report("Comparing recipes", done, len(instances))
        return scores

    def curves(self, seeds: int) -> dict[tuple[str, str], Curve]:
        """The accuracy over k, by the title of the task and by recipe."""
        curves = {}
        for (title, task), name in product(CURVES.items(), RULES):
            curve: Curve = {}
            for k in KS:
                curve[k] = [self.accuracy(name, task, seed, k) for seed in range(seeds)]
            curves[title, name] = curve
        return curves

    def gains(self) -> Iterator[Gain]:
        """The NC1 of two classes of several digits, and the gain of more proxies."""
        for d, i in product(GAIN_DIGITS, GAIN_DRAWS):
            task = f"d_in_1(d={d}, i={i}, labels=2, pool=10)"
            one = self.accuracy("imprint2025", task, seed=0, k=1)
            many = self.accuracy("imprint2025", task, seed=0, k=20)
            yield d, self.nc1(task), 100 * (many - one)


def _labels(rows: Embedded | Split) -> Array:
    """The labels of the digits, all of which have one."""
    labels = rows.y if isinstance(rows, Embedded) else rows.labels
    return np.asarray(labels)


def _part(
    rows: Embedded,
    task: Task,
    seed: int = 0,
) -> tuple[Array, Array]:
    """The rows and labels of a task."""
    selection = task.select(_labels(rows), seed)
    return rows.X[selection.rows], selection.labels


def _knowledge(train: Embedded, test: Embedded) -> Knowledge:
    """Fit nine digits and test on all ten; then fit all ten and forget one."""
    y = _labels(train)
    truth = _labels(test)
    Q = test.X
    trained = y != UNKNOWN
    known = truth != UNKNOWN
    nine = recipes.recipe("kernel", calibrate=True, random_state=0)
    nine.fit(train.X[trained], y[trained])
    refused = nine.known(Q) < ALLOWED

    ten = recipes.recipe("kernel", calibrate=True, random_state=0)
    ten.fit(train.X, y)
    start = time.perf_counter()
    ten.forget(UNKNOWN)
    forgetting = time.perf_counter() - start
    equal = np.array_equal(ten.predict_proba(Q), nine.predict_proba(Q))
    return Knowledge(
        expected=nine.expected_accuracy_,
        interval=nine.expected_interval_,
        accuracy=nine.score(Q[known], truth[known]),
        refused_known=float(refused[known].mean()),
        refused_unknown=float(refused[~known].mean()),
        forgetting=forgetting,
        forgets_exactly=bool(equal),
    )


def _examples(
    model: Imprinter,
    test: Embedded,
    splits: dict[str, Split],
) -> list[Example]:
    """The first test image of every digit, right or wrong."""
    training = splits["train"]
    index = {name: i for i, name in enumerate(training.names)}
    truth = _labels(splits["test"])
    examples = []
    for label in model.classes_.tolist():
        i = int(np.flatnonzero(truth == label)[0])
        one = test._replace(X=test.X[i : i + 1])
        (best,) = model.top(one, 1)[0]
        (nearest,) = model.why(one, 1)
        exemplar = index[str(nearest.image)]
        examples.append(
            Example(
                image=splits["test"].inputs[i],
                label=label,
                predicted=best.label,
                probability=best.probability,
                exemplar=training.inputs[exemplar],
            )
        )
    return examples
