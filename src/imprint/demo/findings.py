"""The measurements of the demonstration."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import product
from statistics import fmean
from typing import NamedTuple

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
UNKNOWN, ALLOWED = 9, 0.05


class Knowledge(NamedTuple):
    """The self-assessment of a calibrated model of nine digits, compared with
    measurements.
    """

    expected: float
    interval: tuple[float, float]
    accuracy: float
    # the share of test pictures of the nine digits flagged as none of these; 5 % are
    # allowed
    refused_known: float
    # the same share for the tenth digit, which is not in its training data
    refused_unknown: float
    forgetting: float  # seconds to forget one of ten digits
    forgets_exactly: bool  # whether it then equals the model that never saw this digit


class Example(NamedTuple):
    """A test picture, its prediction, and the training picture closest to the decisive
    proxy.
    """

    picture: Array
    label: int
    predicted: int
    probability: float
    exemplar: Array


@dataclass(frozen=True, eq=False)
class Findings:
    """The contents of the table and of the page."""

    # accuracy of every recipe for every (task, seed)
    scores: dict[str, dict[tuple[str, int], float]]
    comparison: Comparison
    # for every task, recipe and k, the accuracy of every seed
    curves: dict[tuple[str, str], dict[int, list[float]]]
    # digits per class, NC1, and the gain of 20 proxies over one, in points
    gains: list[tuple[int, float, float]]
    fit: GainFit
    knowledge: Knowledge
    nc1: dict[str, float]  # NC1 of the training embeddings of every task
    examples: list[Example]
    rows: tuple[int, int]
    seeds: int
    seconds: float

    def accuracy(self, recipe: str, task: str) -> float:
        """The mean accuracy of a recipe on a task."""
        return fmean(v for (t, _), v in self.scores[recipe].items() if t == task)


def explore(
    seeds: int = 5,
    cache: bool = True,
    progress: Callable[[EmbeddingProgress], object] | None = None,
    report: Callable[[str, int, int], object] = lambda *_: None,
) -> Findings:
    """Embed the digits, compare the recipes over tasks and seeds, vary k, relate gains
    to neural collapse.
    """
    start = time.perf_counter()
    splits = {name: datasets.load("digits", name) for name in ("train", "test")}
    model = Imprinter("tinynet", cache=cache)
    train, test = (model.embed(split, progress=progress) for split in splits.values())
    score = partial(_score, train, test)
    # the matrices are small: more threads only wait for one another
    with one_blas_thread():
        instances = list(product(TASKS, range(seeds)))
        scores: dict[str, dict[tuple[str, int], float]] = {
            name: {} for name in recipes.names()
        }
        for done, (task, seed) in enumerate(instances, start=1):
            for name in scores:
                scores[name][task, seed] = score(
                    name, f"{task} | shots(n={SHOTS})", seed
                )
            report("Comparing recipes", done, len(instances))
        curves = {
            (title, name): {
                k: [score(name, task, seed, k) for seed in range(seeds)] for k in KS
            }
            for (title, task), name in product(CURVES.items(), RULES)
        }
        gains = []
        # four draws each of one to five digits per class
        for d, i in product(range(1, 6), range(4)):
            task = f"d_in_1(d={d}, i={i}, labels=2, pool=10)"
            one, many = (score("imprint2025", task, 0, k) for k in (1, 20))
            gains.append((d, nc1(*_part(train, resolve(task))), 100 * (many - one)))
        return Findings(
            scores=scores,
            comparison=compare(scores),
            curves=curves,
            gains=gains,
            fit=gain_fit([x for _, x, _ in gains], [gain for *_, gain in gains]),
            knowledge=_knowledge(train, test),
            nc1={task: nc1(*_part(train, resolve(task))) for task in TASKS},
            examples=_examples(model.fit(train), test, splits),
            rows=(len(train.X), len(test.X)),
            seeds=seeds,
            seconds=time.perf_counter() - start,
        )


def _score(
    train: Embedded,
    test: Embedded,
    recipe: str,
    task: str,
    seed: int,
    k: int | None = None,
) -> float:
    """The accuracy of a recipe on a task; with `k`, of the recipe with k k-means
    proxies.
    """
    parts = {} if k is None else {"generator": f"kmeans(k={k})"}
    classifier = recipes.recipe(recipe, random_state=seed, **parts).fit(
        *_part(train, resolve(task), seed)
    )
    return classifier.score(*_part(test, resolve(task).queries(), seed))


def _part(rows: Embedded, task: Task, seed: int = 0) -> tuple[Array, Array]:
    """The rows and labels of a task."""
    chosen = task.select(rows.y, seed)
    return rows.X[chosen.rows], chosen.labels


def _knowledge(train: Embedded, test: Embedded) -> Knowledge:
    """Fit nine digits and test on all ten; then fit all ten and forget one."""
    y, truth, Q = np.asarray(train.y), np.asarray(test.y), test.X
    trained, known = y != UNKNOWN, truth != UNKNOWN
    nine = recipes.recipe("kernel", calibrate=True, random_state=0).fit(
        train.X[trained], y[trained]
    )
    refused = nine.known(Q) < ALLOWED
    ten = recipes.recipe("kernel", calibrate=True, random_state=0).fit(train.X, y)
    start = time.perf_counter()
    ten.forget(UNKNOWN)
    forgetting = time.perf_counter() - start
    exactly = bool(np.array_equal(ten.predict_proba(Q), nine.predict_proba(Q)))
    measured = (
        nine.score(Q[known], truth[known]),
        float(refused[known].mean()),
        float(refused[~known].mean()),
    )
    return Knowledge(
        nine.expected_accuracy_, nine.expected_interval_, *measured, forgetting, exactly
    )


def _examples(
    model: Imprinter, test: Embedded, splits: dict[str, Split]
) -> list[Example]:
    """The first test picture of every digit, right or wrong."""
    index = {name: i for i, name in enumerate(splits["train"].names)}
    examples = []
    for label in model.classes_.tolist():
        i = int(np.flatnonzero(splits["test"].labels == label)[0])
        one = test._replace(X=test.X[i : i + 1])
        (best,), (nearest,) = model.top(one, 1)[0], model.why(one, 1)
        exemplar = splits["train"].inputs[index[str(nearest.picture)]]
        examples.append(
            Example(
                splits["test"].inputs[i], label, best.label, best.probability, exemplar
            )
        )
    return examples
