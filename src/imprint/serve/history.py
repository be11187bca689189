"""Undo and redo: the labelled items of a project, the changes that led to them, and those that were undone."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from imprint.core.errors import ParameterError
from imprint.serve.labelled import Entry, LabelEditor, LabelledSet

LONGEST_GROUP = 64
UNDO, REDO = "undo", "redo"


class RecordedChange(NamedTuple):
    """An applied entry, and the number of the item that it created if it is an `add`."""

    entry: Entry
    id: int

    @property
    def group(self) -> str:
        """Consecutive changes of one group, such as the files of one drop, are undone together."""
        return str(self.entry.get("group", ""))[:LONGEST_GROUP]


class History(NamedTuple):
    """An immutable value: each entry gives another one.

    >>> history = History().after({"do": "create", "label": "cat"}).after({"do": "undo"})
    >>> history.labelled.classes, len(history.undone), history.revision
    ({}, 1, 2)
    """

    labelled: LabelledSet = LabelledSet()
    done: tuple[RecordedChange, ...] = ()
    undone: tuple[RecordedChange, ...] = ()
    """The last one is redone first."""
    revision: int = 0
    """The number of entries that have been applied."""
    next_id: int = 1

    def after(self, entry: Entry) -> "History":
        """The history with one more entry; this one itself if the entry changes nothing."""
        if entry.get("do") in (UNDO, REDO):
            done, undone = list(self.done), list(self.undone)
            _undo_or_redo(entry, done, undone)
            return History(_result(done), tuple(done), tuple(undone), self.revision + 1, self.next_id)
        editor = LabelEditor(self.labelled)
        if not editor.apply(entry, self.next_id):
            return self
        change, next_id = RecordedChange(entry, self.next_id), self.next_id + (entry["do"] == "add")
        return History(editor.result(), (*self.done, change), (), self.revision + 1, next_id)


def replayed(entries: Sequence[Entry]) -> History:
    """The history after all entries of a project. Changes that were undone are not applied."""
    done, undone, next_id = list[RecordedChange](), list[RecordedChange](), 1
    for entry in entries:
        if entry.get("do") in (UNDO, REDO):
            _undo_or_redo(entry, done, undone)
        else:
            done.append(RecordedChange(entry, next_id))
            undone.clear()
            next_id += entry.get("do") == "add"
    return History(_result(done), tuple(done), tuple(undone), len(entries), next_id)


def _undo_or_redo(entry: Entry, done: list[RecordedChange], undone: list[RecordedChange]) -> None:
    """Move the last change, and those before it with the same group, from one list to the other."""
    source, target = (done, undone) if entry["do"] == UNDO else (undone, done)
    if not source:
        raise ParameterError(f"There is nothing to {entry['do']}.")
    group = source[-1].group
    target.append(source.pop())
    while group and source and source[-1].group == group:
        target.append(source.pop())


def _result(changes: Iterable[RecordedChange]) -> LabelledSet:
    editor = LabelEditor(LabelledSet())
    for entry, id in changes:
        editor.apply(entry, id)
    return editor.result()
