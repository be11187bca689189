"""The *Label* tab: unlabelled inputs of a page, the order in which to label them, and what the model would call them.

The browser keeps the pictures; the server keeps their embeddings. An answer is sent as any other labelled picture.
"""

from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from imprint.active.suggestions import PreparedPool
from imprint.core.errors import ParameterError
from imprint.core.types import Array
from imprint.serve import evaluation
from imprint.serve.model import ServedModel, probabilities
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
        """Take in one input; its digest."""
        digest = digest_of(raw)
        self.project.rows.keep(digest, row)
        with self._lock:
            self._rows.setdefault(digest, row)
        return digest

    def skip(self, digest: str, skipped: bool) -> None:
        """Leave an input out of the suggestions, or take it in again."""
        if digest not in self._rows:
            raise ParameterError("skip: there is no such input in the pool; drop its folder again.")
        (self._skipped.add if skipped else self._skipped.discard)(digest)

    @property
    def size(self) -> int:
        """How many inputs have been taken in."""
        return len(self._rows)

    def left(self) -> list[str]:
        """The digests of inputs that are neither labelled nor skipped."""
        done = {item.digest for item in self.project.history.labelled.items.values()} | self._skipped
        return [digest for digest in list(self._rows) if digest not in done]

    def suggest(self, n: int) -> list[dict[str, Any]]:
        """The inputs to label next, each with the reason and the two classes that the model finds most probable."""
        left = set(self.left())
        if not left:
            return []
        with self._lock:
            digests, pool = self._pool(left)
            model = self.project.model()
            excluded = np.array([digest not in left for digest in digests])
            if excluded.all():
                return []
            chosen = pool.suggest(n, model.head, excluded)
        entries = [{"digest": digests[i], "reason": reason} for i, reason in zip(chosen.tolist(), chosen.reasons)]
        if model.head is None or not entries:
            return [{**entry, "top": []} for entry in entries]
        P, labels = self._probabilities(model, [entry["digest"] for entry in entries]), model.head.classes.tolist()
        top = np.argsort(-P, axis=1, kind="stable")[:, :2]
        return [
            {**entry, "top": [{"label": labels[c], "probability": float(p[c])} for c in best]}
            for entry, p, best in zip(entries, P, top.tolist())
        ]

    def confident(self, probability: float) -> list[dict[str, Any]]:
        """The inputs whose class the model gives at least this probability, the least certain first."""
        left, model = self.left(), self.project.model()
        if model.head is None or not left:
            return []
        P, labels = self._probabilities(model, left), model.head.classes.tolist()
        best = P.max(axis=1)
        order = [i for i in np.argsort(best, kind="stable").tolist() if best[i] >= probability]
        return [{"digest": left[i], "label": labels[P[i].argmax()], "probability": float(best[i])} for i in order]

    def _pool(self, left: set[str]) -> tuple[list[str], PreparedPool]:
        known = self._prepared[0] if self._prepared else []
        if self._prepared is None or len(self._rows) > GROWTH * len(known) or left.isdisjoint(known):
            digests = list(self._rows)
            self._prepared = digests, PreparedPool(np.stack([self._rows[digest] for digest in digests]))
        return self._prepared

    def _probabilities(self, model: ServedModel, digests: list[str]) -> Array:
        assert model.head is not None
        S = model.head.scores(np.stack([self._rows[digest] for digest in digests]).astype(model.head.dtype))
        return probabilities(model.head, evaluation.calibration_for(model, self.project.evaluation()), S)
