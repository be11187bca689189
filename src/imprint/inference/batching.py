"""Inputs of several requests, and of several models with one backbone, in one pass of
the network.
"""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple

import numpy as np

from imprint.backbones import Backbone
from imprint.core.arrays import Array
from imprint.core.workers import SupervisedThread
from imprint.embeddings.pipeline import BATCH_SIZE, embed_checked
from imprint.head import Decider
from imprint.imprinter import Embedded
from imprint.imprinter.predictor import predictions

CLOSED = "This model was replaced while the request waited; send it again."


class PredictOptions(NamedTuple):
    """How a client wants its answers.

    Parameters
    ----------
    top : int
        Number of classes in an answer.
    unknown : float, optional
        p-value below which an input is none of the classes.
    level : int, optional
        Level of a tree of classes.
    every_class : bool
        Whether the answer has the probabilities of all classes.
    """

    top: int = 3
    unknown: float | None = None
    level: int | None = None
    every_class: bool = False


class Query(NamedTuple):
    """One prepared input, the model that answers, and how."""

    head: Decider
    prepared: Any
    name: str
    options: PredictOptions
    asked_at: float  # on the clock of `time.perf_counter`


class Answer(NamedTuple):
    """The prediction for one input, and what it took."""

    prediction: dict[str, Any]  # see `predictions`
    probabilities: Array | None  # (C,), if `every_class` was asked for
    waited: float  # seconds before the batch began
    computed: float  # seconds that the batch took
    batch: int  # inputs in the batch


class BatchingNetwork:
    """A backbone and the thread that runs it for all requests. Without a backbone, the
    inputs are embeddings.

    Whatever waits when the network becomes free is one batch.
    """

    def __init__(
        self, backbone: Backbone | None, observe_batch: Callable[[int], object]
    ):
        self.backbone = backbone
        self._observe_batch = observe_batch
        self.thread = SupervisedThread("embed", self._answer_all, BATCH_SIZE, CLOSED)

    def submit(
        self, head: Decider, prepared: Any, name: str, options: PredictOptions
    ) -> "Future[Answer]":
        """Queue one prepared input."""
        return self.thread.submit(
            Query(head, prepared, name, options, time.perf_counter())
        )

    def close(self) -> None:
        """Answer what waits, then stop."""
        self.thread.close()

    def _answer_all(self, queries: Sequence[Query]) -> list[Answer]:
        started = time.perf_counter()
        rows = self._embeddings(queries)
        # queries with the same model and options share one matrix product
        groups: dict[tuple[int, PredictOptions], list[int]] = {}
        for i, query in enumerate(queries):
            groups.setdefault((id(query.head), query.options), []).append(i)
        predicted: list[Any] = [None] * len(queries)
        for indices in groups.values():
            query = queries[indices[0]]
            names = [queries[i].name for i in indices]
            chosen = Embedded(rows[indices], names, ())
            outcomes = _predict(query.head, chosen, query.options)
            for i, outcome in zip(indices, outcomes, strict=True):
                predicted[i] = outcome
        self._observe_batch(len(queries))
        computed = time.perf_counter() - started
        return [
            Answer(
                prediction,
                probabilities,
                started - query.asked_at,
                computed,
                len(queries),
            )
            for query, (prediction, probabilities) in zip(
                queries, predicted, strict=True
            )
        ]

    def _embeddings(self, queries: Sequence[Query]) -> Array:
        prepared = [query.prepared for query in queries]
        if self.backbone is None:
            return np.stack(prepared)
        return embed_checked(self.backbone, prepared, [query.name for query in queries])


def _predict(
    head: Decider, rows: Embedded, options: PredictOptions
) -> list[tuple[dict[str, Any], Array | None]]:
    """The prediction for each row and, if asked for, the probabilities of all
    classes.
    """
    answers = predictions(
        head, rows, top=options.top, unknown=options.unknown, level=options.level
    )
    if not options.every_class:
        return [(answer, None) for answer in answers]
    X = rows.X.astype(head.imprinted.dtype, copy=False)
    probabilities = head.class_probabilities(X, options.level)[1]
    return list(zip(answers, probabilities, strict=True))
