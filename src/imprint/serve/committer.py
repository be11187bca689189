"""Changes one after the other: each is on the disk before whoever asked for it is answered."""

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, NamedTuple

from imprint.core.errors import FileError, ImprintError
from imprint.serve.batches import Batches
from imprint.serve.history import History
from imprint.serve.journal import Journal

Entry = dict[str, Any]
MOST = 256  # entries that share one wait for the disk


class Outcome(NamedTuple):
    """What became of an entry."""

    revision: int
    id: int | None = None
    """The item that an `add` made, or that was there with this content."""
    new: bool = True


class Committer:
    """A thread that takes what waits, writes it with one wait for the disk, and then says what became of it."""

    def __init__(self, journal: Journal, history: History, publish: Callable[[History, set[str]], None]):
        self._journal, self._history, self._publish = journal, history, publish
        self._batches: Batches[tuple[Entry, Future[Outcome]]] = Batches(self._commit, MOST, name="commit")

    def ask(self, entry: Entry) -> "Future[Outcome]":
        """Have an entry applied."""
        found: Future[Outcome] = Future()
        self._batches.put((entry, found))
        return found

    def close(self) -> None:
        """Finish what waits, then stop."""
        self._batches.close()

    def _commit(self, batch: list[tuple[Entry, "Future[Outcome]"]]) -> None:
        history, lines, touched = self._history, [], set[str]()
        answers: list[tuple[Future[Outcome], Outcome]] = []
        for entry, found in batch:
            try:
                after, outcome = _applied(history, entry)
            except ImprintError as e:
                found.set_exception(e)
                continue
            if after is not history:
                lines.append(entry)
                touched |= after.touched
                history = after
            answers.append((found, outcome))
        try:
            if lines:
                self._journal.append(lines)
        except FileError as e:
            for found, _ in answers:
                found.set_exception(e)
            return
        self._history = history
        if lines:
            self._publish(history, touched)
        for found, outcome in answers:
            found.set_result(outcome)


def _applied(history: History, entry: Entry) -> tuple[History, Outcome]:
    if entry.get("do") == "add":
        there = history.taught.found(entry["label"], entry["digest"])
        if there is not None:
            return history, Outcome(history.revision, there.id, new=False)
    after = history.after(entry)
    return after, Outcome(after.revision, history.next_id if entry.get("do") == "add" else None)
