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
MAX_NEXT = 200


class LabellingPool:
    """Unlabelled inputs by their digest. Any thread may use it."""

    def __init__(self, project: "Project"):
        self.project = project
        self._rows: dict[str, Array] = {}
        self._skipped: set[str] = set()
        self._prepared: tuple[list[str], PreparedPool] | None = None
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

    @property
    def size(self) -> int:
        """The number of inputs in the pool."""
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
            digests, pool = self._pool(left)
            excluded = np.array([digest not in left for digest in digests])
            if excluded.all():
                return []
            chosen = pool.suggest(n, self.project.model().head, excluded)
        entries = [{"digest": digests[i], "reason": reason} for i, reason in zip(chosen.tolist(), chosen.reasons)]
        best = self._best([entry["digest"] for entry in entries], 2)
        return [{**entry, "top": top} for entry, top in zip(entries, best)]

    def confident(self, probability: float) -> list[dict[str, Any]]:
        """The inputs whose most probable class has at least this probability, the least probable first."""
        left = self.left()
        best = [{"digest": digest, **top[0]} for digest, top in zip(left, self._best(left, 1)) if top]
        return sorted((one for one in best if one["probability"] >= probability), key=lambda one: one["probability"])

    def _best(self, digests: list[str], n: int) -> list[list[dict[str, Any]]]:
        """For each input the `n` most probable classes; none if there is no model."""
        head = self.project.calibrated_model().head
        if head is None or not digests:
            return [[] for _ in digests]
        rows = Embedded(np.stack([self._rows[digest] for digest in digests]), digests, ())
        return [one["top"] for one in predictions(head, head.tree(), rows, top=n)]

    def _pool(self, left: set[str]) -> tuple[list[str], PreparedPool]:
        known = self._prepared[0] if self._prepared else []
        if self._prepared is None or len(self._rows) > GROWTH * len(known) or left.isdisjoint(known):
            digests = list(self._rows)
            self._prepared = digests, PreparedPool(np.stack([self._rows[digest] for digest in digests]))
        return self._prepared
