"""The labelled items of a project, the changes that led to them, and those that were undone."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from imprint.core.errors import ParameterError
from imprint.serve.labelled import LabelChange, LabelledSet, applied, change_of


class ChangeChain(NamedTuple):
    """Changes, the last one first; a linked list, so that histories share what they have in common."""

    last: LabelChange
    before: "ChangeChain | None"


class History(NamedTuple):
    """A value: every entry gives another one.

    >>> history = History().after({"do": "create", "label": "cat"}).after({"do": "undo"})
    >>> history.labelled.classes, history.can_redo, history.revision
    ({}, True, 2)
    """

    labelled: LabelledSet = LabelledSet()
    done: ChangeChain | None = None
    undone: ChangeChain | None = None
    revision: int = 0
    """How many entries have been applied."""
    next_id: int = 1

    @property
    def can_undo(self) -> bool:
        """Whether there is a change to undo."""
        return self.done is not None

    @property
    def can_redo(self) -> bool:
        """Whether a change was undone and can be done again."""
        return self.undone is not None

    def after(self, entry: dict[str, Any], *, in_place: bool = False) -> "History":
        """The history with one more entry; this one itself if the entry changes nothing.

        `in_place` does not copy the items, which invalidates this history: use it only for one that nobody else holds.
        """
        if entry.get("do") == "undo":
            return self._back()
        if entry.get("do") == "redo":
            return self._forth()
        change = change_of(self.labelled, entry, self.next_id)
        if change is None:
            return self
        return self._replace(
            labelled=applied(self.labelled, change, in_place=in_place),
            done=ChangeChain(change, self.done),
            undone=None,
            revision=self.revision + 1,
            next_id=self.next_id + (entry["do"] == "add"),
        )

    def _back(self) -> "History":
        if self.done is None:
            raise ParameterError("There is nothing to undo.")
        steps, done = _group(self.done)
        labelled, undone = self.labelled, self.undone
        for change in steps:
            labelled, undone = applied(labelled, change.reversed()), ChangeChain(change, undone)
        return self._replace(labelled=labelled, done=done, undone=undone, revision=self.revision + 1)

    def _forth(self) -> "History":
        if self.undone is None:
            raise ParameterError("There is nothing to do again.")
        steps, undone = _group(self.undone)
        labelled, done = self.labelled, self.done
        for change in steps:
            labelled, done = applied(labelled, change), ChangeChain(change, done)
        return self._replace(labelled=labelled, done=done, undone=undone, revision=self.revision + 1)


def _group(chain: ChangeChain) -> tuple[list[LabelChange], ChangeChain | None]:
    """The changes at the top of a chain that are undone together, and what is below them."""
    together, rest = [chain.last], chain.before
    while rest is not None and rest.last.group and rest.last.group == chain.last.group:
        together.append(rest.last)
        rest = rest.before
    return together, rest


def replayed(entries: Iterable[dict[str, Any]]) -> History:
    """The history that follows from all entries of a project."""
    history = History(LabelledSet(items={}))
    for entry in entries:
        history = history.after(entry, in_place=True)
    return history
