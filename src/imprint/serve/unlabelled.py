"""Inputs without a label, in memory only: the pool of the tab *Label next*, and the
drift of classified inputs.
"""

import logging
import time
from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from imprint.active.drift import DriftMonitor, spoken_time
from imprint.active.suggestions import PreparedPool
from imprint.core.arrays import Array
from imprint.core.errors import ParameterError
from imprint.head import Head
from imprint.imprinter import Embedded
from imprint.imprinter.predictor import predictions
from imprint.serve.news import News
from imprint.serve.store import digest_of

if TYPE_CHECKING:
    from imprint.serve.project import Project

GROWTH = 1.2  # distances are computed again when the pool has grown by this factor
# p-value below which an input has a preview, to be shown if there is an alarm
SUSPICIOUS_P_VALUE = 0.05
MAX_SHOWN = 24
MAX_OFFERED = 5  # classes of one input, on the keys 1 to 5 of the page
MAX_OBSERVED = 100_000  # inputs that are remembered, to recognise them
LOG = logging.getLogger("imprint.serve")


class LabellingPool:
    """Unlabelled inputs, the order in which to label them, and their most probable
    classes; any thread may use it.

    The browser holds the files, and the server their embeddings. A label is sent like
    any other item.
    """

    def __init__(self, project: "Project"):
        self.project = project
        self.rows: dict[str, Array] = {}  # embeddings by digest
        self._skipped: set[str] = set()
        # the digests that each page added, of which alone it has the files
        self._of_session: dict[str, set[str]] = {}
        # the inputs whose distances are prepared, in order
        self._digests: list[str] = []
        self._prepared: PreparedPool | None = None
        self._lock = Lock()

    def add(self, raw: bytes, row: Array, session: str | None = None) -> str:
        """Add an input of a session, which is one page of a browser; returns its
        digest.
        """
        digest = digest_of(raw)
        self.project.rows.keep(digest, row)
        with self._lock:
            self.rows.setdefault(digest, row)
            if session is not None:
                self._of_session.setdefault(session, set()).add(digest)
        return digest

    def skip(self, entry: dict[str, Any]) -> dict[str, int]:
        """Leave the input with this `digest` out of the suggestions, or put it back
        where `skip` is false.
        """
        digest = str(entry.get("digest"))
        if digest not in self.rows:
            raise ParameterError(
                "skip: there is no such input in the pool; drop its folder again."
            )
        if entry.get("skip") is False:
            self._skipped.discard(digest)
        else:
            self._skipped.add(digest)
        return {"left": len(self.left())}

    def left(self) -> list[str]:
        """The digests of inputs that are neither labelled nor skipped."""
        done = {
            item.digest for item in self.project.history.labelled.items.values()
        } | self._skipped
        return [digest for digest in list(self.rows) if digest not in done]

    def suggest(self, n: int, session: str | None = None) -> list[dict[str, Any]]:
        """The inputs to label next, each with the reason and its most probable
        classes; with `session`, only inputs that it added.
        """
        left = set(self.left())
        if session is not None:
            with self._lock:
                left &= self._of_session.get(session, set())
        if not left:
            return []
        with self._lock:
            grown = len(self.rows) > GROWTH * len(self._digests)
            if self._prepared is None or grown or left.isdisjoint(self._digests):
                self._digests, self._prepared = (
                    list(self.rows),
                    PreparedPool(
                        np.stack(list(self.rows.values())),
                        blocks=self.project.backbone.record.block_widths,
                    ),
                )
            digests, excluded = (
                self._digests,
                np.array([digest not in left for digest in self._digests]),
            )
            chosen = self._prepared.suggest(n, self.project.model().head, excluded)
        best = self.most_probable([digests[i] for i in chosen], MAX_OFFERED)
        return [
            {"digest": k, "reason": reason, "top": top}
            for (k, top), reason in zip(best.items(), chosen.reasons)
        ]

    def confident(self, probability: float) -> list[dict[str, Any]]:
        """The inputs whose most probable class has at least this probability, the least
        probable first.
        """
        best = [
            {"digest": k, **top[0]}
            for k, top in self.most_probable(self.left(), 1).items()
            if top
        ]
        return sorted(
            (one for one in best if one["probability"] >= probability),
            key=lambda one: one["probability"],
        )

    def most_probable(
        self, digests: list[str], n: int
    ) -> dict[str, list[dict[str, Any]]]:
        """The `n` most probable classes of each input; none if there is no model."""
        head = self.project.calibrated_model().head
        if head is None or not digests:
            return {digest: [] for digest in digests}
        rows = Embedded(
            np.stack([self.rows[digest] for digest in digests]), digests, ()
        )
        return {one["path"]: one["top"] for one in predictions(head, rows, top=n)}


class ServedDrift:
    """Evidence that the inputs of a server look unlike its training data; any thread
    may use it.

    The evidence refers to one calibration: it starts again when the model changes. An
    input that is asked about again is no further evidence.
    """

    def __init__(self, news: News) -> None:
        self._news = news  # of alarms
        self._lock, self.monitor = Lock(), DriftMonitor(0)
        self._calibration: object = None
        # digests of the inputs that were observed, the earliest first
        self._observed: dict[str, None] = {}

    def observe(
        self,
        head: Head,
        known: float,
        name: str,
        digest: str,
        preview: Callable[[], str],
    ) -> None:
        """Add the p-value of one input to the evidence, unless the input was observed
        before; `preview` is called only if the input may be shown.
        """
        monitor = DriftMonitor.of(head)
        if monitor is None:
            return
        shown = preview() if known < SUSPICIOUS_P_VALUE else ""
        with self._lock:
            if head.calibration is not self._calibration:
                self._calibration, self.monitor = head.calibration, monitor
                self._observed.clear()
            if digest in self._observed:
                return
            self._observed[digest] = None
            if len(self._observed) > MAX_OBSERVED:
                del self._observed[next(iter(self._observed))]
            alarm = self.monitor.observe(known, name, spoken_time(time.time()), shown)
        if alarm:
            self._news.tell()
            LOG.warning("Drift: %s.", alarm)

    def restart(self) -> dict[str, Any]:
        """Discard the evidence; returns the state after that, as JSON."""
        with self._lock:
            self.monitor = DriftMonitor(self.monitor.reference)
            self._observed.clear()
        self._news.tell()
        return self.as_json()

    def as_json(self) -> dict[str, Any]:
        """The alarm (or null), the evidence, and the inputs behind an alarm, the
        smallest p-value first.
        """
        with self._lock:
            monitor, unfamiliar = self.monitor, []
            if monitor.alarm:
                unfamiliar = [one for one in monitor.unfamiliar if one.preview][
                    :MAX_SHOWN
                ]
            figures = {
                "alarm": monitor.alarm,
                "evidence": monitor.evidence,
                "inputs": monitor.inputs,
            }
        return {**figures, "unfamiliar": [one._asdict() for one in unfamiliar]}
