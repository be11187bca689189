"""The tab *Label next*: unlabelled inputs, the order in which to label them, and their most probable classes.

The browser holds the files, and the server their embeddings, both in memory. A label is sent like any other item.
"""

from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from imprint.active.suggestions import PreparedPool
from imprint.core.errors import ParameterError
from imprint.core.types import Array
from imprint.imprinter import Embedded
from imprint.imprinter.predictions import predictions
from imprint.serve.store import digest_of

if TYPE_CHECKING:
    from imprint.serve.project import Project

GROWTH = 1.2
"""Distances are computed again when the pool has grown by this factor."""


class LabellingPool:
    """Unlabelled inputs by their digest. Any thread may use it."""

    def __init__(self, project: "Project"):
        self.project = project
        self._rows: dict[str, Array] = {}
        self._skipped: set[str] = set()
        self._digests: list[str] = []  # the inputs whose distances are prepared, in order
        self._prepared: PreparedPool | None = None
        self._lock = Lock()

    def add(self, raw: bytes, row: Array) -> str:
        """Add an input; returns its digest."""
        digest = digest_of(raw)
        self.project.rows.keep(digest, row)
        with self._lock:
            self._rows.setdefault(digest, row)
        return digest

    def skip(self, digest: str, skipped: bool) -> None:
        """Leave an input out of the suggestions, or put it back."""
        if digest not in self._rows:
            raise ParameterError("skip: there is no such input in the pool; drop its folder again.")
        (self._skipped.add if skipped else self._skipped.discard)(digest)

    def __len__(self) -> int:
        return len(self._rows)

    def left(self) -> list[str]:
        """The digests of inputs that are neither labelled nor skipped."""
        done = {item.digest for item in self.project.history.labelled.items.values()} | self._skipped
        return [digest for digest in list(self._rows) if digest not in done]

    def suggest(self, n: int) -> list[dict[str, Any]]:
        """The inputs to label next, each with the reason and its two most probable classes."""
        left = set(self.left())
        if not left:
            return []
        with self._lock:
            grown = len(self._rows) > GROWTH * len(self._digests)
            if self._prepared is None or grown or left.isdisjoint(self._digests):
                self._digests, self._prepared = list(self._rows), PreparedPool(np.stack(list(self._rows.values())))
            digests, excluded = self._digests, np.array([digest not in left for digest in self._digests])
            chosen = self._prepared.suggest(n, self.project.model().head, excluded)
        best = self._best([digests[i] for i in chosen], 2)
        return [{"digest": digest, "reason": reason, "top": top} for (digest, top), reason in zip(best, chosen.reasons)]

    def confident(self, probability: float) -> list[dict[str, Any]]:
        """The inputs whose most probable class has at least this probability, the least probable first."""
        best = [{"digest": digest, **top[0]} for digest, top in self._best(self.left(), 1) if top]
        return sorted((one for one in best if one["probability"] >= probability), key=lambda one: one["probability"])

    def _best(self, digests: list[str], n: int) -> list[tuple[str, list[dict[str, Any]]]]:
        """Each input with its `n` most probable classes; none if there is no model."""
        head = self.project.calibrated_model().head
        if head is None or not digests:
            return [(digest, []) for digest in digests]
        rows = Embedded(np.stack([self._rows[digest] for digest in digests]), digests, ())
        return [(one["path"], one["top"]) for one in predictions(head, head.tree(), rows, top=n)]
