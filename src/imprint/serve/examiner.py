"""Judges the model in the background, once it has been quiet for a moment."""

import time
from collections.abc import Callable
from threading import Condition, Thread
from typing import TYPE_CHECKING

from imprint.calibration import CrossValidation
from imprint.serve.judge import Judgement, judged, refolded
from imprint.serve.learnt import Rows

if TYPE_CHECKING:
    from imprint.serve.classroom import Model

QUIET = 0.25  # seconds without a change before it starts
LATEST = 2.0  # seconds after which it starts in any case
PATIENCE = 120.0  # seconds that someone who needs the newest judgement waits


class Examiner:
    """A thread that keeps the newest judgement; it never holds up teaching."""

    def __init__(self, rows: Rows, model: "Callable[[], Model]", tell: Callable[[], object]):
        self.judgement = Judgement()
        self._rows, self._model, self._tell = rows, model, tell
        self._folds: CrossValidation | None = None
        self._changed, self._since, self._last, self._rested = set[str](), 0.0, 0.0, 0.0
        self._due, self._closed, self._hurry = False, False, False
        self._news = Condition()
        self._thread = Thread(target=self._work, name="judge", daemon=True)
        self._thread.start()

    def look(self, labels: set[str]) -> None:
        """These classes have changed."""
        with self._news:
            self._changed |= labels
            self._last = time.monotonic()
            self._since = self._since if self._due else self._last
            self._due = True
            self._news.notify_all()

    def wait(self, revision: int) -> Judgement:
        """The judgement of a revision or a later one."""
        with self._news:
            self._hurry = True
            self._news.notify_all()
            self._news.wait_for(lambda: self.judgement.revision >= revision or self._closed, PATIENCE)
            return self.judgement

    def close(self) -> None:
        """Stop, finishing what is under way."""
        with self._news:
            self._closed = True
            self._news.notify_all()
        self._thread.join()

    def _work(self) -> None:
        while self._awaited():
            with self._news:
                labels, self._changed, self._due, self._hurry = self._changed, set(), False, False
            began = time.monotonic()
            found = self._examine(labels)
            found.calibration  # noqa: B018 - computed here, not when the first answer needs it
            self._rested = time.monotonic() + (time.monotonic() - began)  # it takes half of the time at most
            with self._news:
                self.judgement = found
                self._news.notify_all()
            self._tell()

    def _awaited(self) -> bool:
        """Whether there is something to do, which this waits for."""
        with self._news:
            while not self._closed:
                now = time.monotonic()
                start = max(min(self._last + QUIET, self._since + LATEST), self._rested)
                if self._due and (self._hurry or now >= start):
                    return True
                self._news.wait(start - now if self._due else None)
        return False

    def _examine(self, labels: set[str]) -> Judgement:
        history, basis, _ = self._model()
        if history.taught.model is not None:  # of its classes there are no rows that could be held back
            self._folds = None
            return Judgement(history.revision)
        labels = labels if self._folds is not None else set(history.taught.classes)
        self._folds = refolded(self._folds, basis, history.taught, self._rows, labels)
        return judged(self._folds, history.taught, self._rows, history.revision)
