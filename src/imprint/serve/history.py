"""What is taught now, what was done to get there, and what was undone: the journal, replayed."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from imprint.core.errors import ParameterError
from imprint.serve.taught import Change, Taught, applied, change_of


class Steps(NamedTuple):
    """Changes, the last one first; a chain, so that histories share what they have in common."""

    last: Change
    before: "Steps | None"


class History(NamedTuple):
    """A value: every entry gives another one.

    >>> history = History().after({"do": "create", "label": "cat"}).after({"do": "undo"})
    >>> history.taught.classes, history.can_redo, history.revision
    ({}, True, 2)
    """

    taught: Taught = Taught()
    done: Steps | None = None
    undone: Steps | None = None
    revision: int = 0
    """How many entries have been applied."""
    next_id: int = 1
    touched: frozenset[str] = frozenset()
    """The classes that the last entry changed."""

    @property
    def can_undo(self) -> bool:
        """Whether there is something to undo."""
        return self.done is not None

    @property
    def can_redo(self) -> bool:
        """Whether something was undone and can be done again."""
        return self.undone is not None

    def after(self, entry: dict[str, Any], *, in_place: bool = False) -> "History":
        """The history with one entry more; this very one where the entry changes nothing.

        `in_place` saves copying the items and spoils this history, which nobody else may hold then.
        """
        if entry.get("do") == "undo":
            return self._back()
        if entry.get("do") == "redo":
            return self._forth()
        change = change_of(self.taught, entry, self.next_id)
        if change is None:
            return self
        new = 1 if entry["do"] == "add" else 0
        return self._replace(
            taught=applied(self.taught, change, in_place=in_place),
            done=Steps(change, self.done),
            undone=None,
            revision=self.revision + 1,
            next_id=self.next_id + new,
            touched=frozenset(change.labels()),
        )

    def _back(self) -> "History":
        if self.done is None:
            raise ParameterError("There is nothing to undo.")
        steps, done = _together(self.done)
        taught, undone = self.taught, self.undone
        for change in steps:
            taught, undone = applied(taught, change.reversed()), Steps(change, undone)
        return self._moved(taught, done, undone, steps)

    def _forth(self) -> "History":
        if self.undone is None:
            raise ParameterError("There is nothing to do again.")
        steps, undone = _together(self.undone)
        taught, done = self.taught, self.done
        for change in steps:
            taught, done = applied(taught, change), Steps(change, done)
        return self._moved(taught, done, undone, steps)

    def _moved(self, taught: Taught, done: Steps | None, undone: Steps | None, steps: list[Change]) -> "History":
        touched = frozenset(label for change in steps for label in change.labels())
        return self._replace(taught=taught, done=done, undone=undone, revision=self.revision + 1, touched=touched)


def _together(steps: Steps) -> tuple[list[Change], Steps | None]:
    """The changes at the top of a chain that belong together, and what is below them."""
    found, rest = [steps.last], steps.before
    while rest is not None and rest.last.group and rest.last.group == steps.last.group:
        found.append(rest.last)
        rest = rest.before
    return found, rest


def replayed(entries: Iterable[dict[str, Any]]) -> History:
    """The history that a journal tells."""
    history = History(Taught(items={}))
    for entry in entries:
        history = history.after(entry, in_place=True)
    return history
