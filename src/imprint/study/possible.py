"""Which experiments of a study are possible: those with enough proxies for the
aggregator.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from imprint import tasks
from imprint.core.arrays import Array, class_rng
from imprint.core.errors import ParameterError
from imprint.generators._base import Generator
from imprint.normalisers._base import Normaliser
from imprint.study import sharing
from imprint.study.failures import COMPONENT_ERRORS
from imprint.study.study import Data, Study

RULE = "enough_proxies"


def possible_experiments(study: Study, data: Data, where: str) -> Array:
    """Whether each experiment has enough proxies.  # (tasks, methods, seeds)

    Generators of this package have a known maximum. The proxies of others are counted,
    where one for each class would not suffice.

    Refuses a task that the data do not allow, and a method with too few proxies unless
    a rule leaves it out.
    """
    methods = study.methods
    needed = methods.map_part("aggregator", sharing.min_proxies)
    shape = (len(study.task_texts), len(methods), len(study.seeds))
    possible = np.ones(shape, dtype=bool)
    for t, text in enumerate(study.task_texts):
        sizes = _class_sizes(study, data, text, where)
        max_proxies = partial(sharing.max_proxies, sizes=sizes)
        maximum = methods.map_part("generator", max_proxies)
        # by method and seed
        available = np.repeat(maximum[:, None], len(study.seeds), axis=1)
        is_doubtful = np.isinf(maximum) & (needed > len(sizes))
        if is_doubtful.any():
            doubtful = np.flatnonzero(is_doubtful)
            available[doubtful] = _count(study, data, text, doubtful)
        possible[t] = needed[:, None] <= available
        if not possible[t].all() and RULE not in study.rules:
            first, seed = np.argwhere(~possible[t])[0].tolist()
            raise ParameterError(
                f"{where}, {text}: {methods[first]} needs {needed[first]} proxies and"
                f" there are {int(available[first, seed])}; change it, or leave out"
                f" such combinations with the rule {RULE}."
            )
    return possible


def _class_sizes(
    study: Study,
    data: Data,
    text: str,
    where: str,
) -> Array:
    """The number of training rows of each class of a task; refuses a task that the data
    do not allow.
    """
    task = tasks.resolve(text)
    classes = np.unique(data.y).tolist()
    seed = study.seeds[0]  # every seed draws as many rows
    try:
        labels = task.select(data.y, seed, classes).labels
        test_labels = task.queries().select(data.y_test, seed, classes).labels
    except ParameterError as e:
        raise ParameterError(f"{where}, {text}: {e}") from None
    if not len(test_labels):
        raise ParameterError(
            f"{where}, {text}: the test split has no row of this task."
        )
    _, sizes = np.unique(labels, return_counts=True)
    return sizes


def _count(
    study: Study,
    data: Data,
    text: str,
    indices: Array,
) -> Array:
    """The number of proxies of some methods for each seed.  # (indices, seeds)"""
    methods = study.methods.take(indices)
    pairs = list(zip(methods.column("norm_pre"), methods.column("generator")))
    counts = np.empty((len(pairs), len(study.seeds)))
    task = tasks.resolve(text)
    classes = np.unique(data.y).tolist()
    for s, seed in enumerate(study.seeds):
        rows, labels = task.select(data.y, seed, classes)
        parts = []
        for label in np.unique(labels).tolist():
            parts.append(_ClassPart(label, np.asarray(data.X[rows[labels == label]])))
        known: dict[tuple[Normaliser, Generator], float] = {}
        for pair in dict.fromkeys(pairs):
            known[pair] = _count_proxies(*pair, parts, seed)
        counts[:, s] = [known[pair] for pair in pairs]
    return counts


@dataclass(frozen=True, eq=False)
class _ClassPart:
    """A class and its training rows."""

    label: object
    X: Array


def _count_proxies(
    norm_pre: Normaliser,
    generator: Generator,
    parts: Sequence[_ClassPart],
    seed: int,
) -> float:
    """The number of proxies of a task; infinity if the generator fails, so that the run
    records why.
    """
    try:
        states = []
        for part in parts:
            rng = class_rng(seed, part.label)
            states.append(generator.summarise(norm_pre.apply(part.X), rng))
        return float(sum(map(len, generator.proxies(states))))
    except COMPONENT_ERRORS:
        return np.inf
