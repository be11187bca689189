"""The labelled items of a project, and the changes that led to them, which can be undone and redone."""

from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from imprint.core.errors import ParameterError
from imprint.core.family import unknown
from imprint.core.tree import LabelTree
from imprint.serve.labels import check_leaf, clean_label

Entry = dict[str, Any]
"""A change as JSON: `do` is its kind (see `LabelEditor.apply`), `undo` or `redo`; the other keys are its arguments."""
UNDO, REDO = "undo", "redo"


class LabelledItem(NamedTuple):
    """A picture, a sound or a text in a class."""

    id: int
    label: str
    name: str
    digest: str  # SHA-256 of the file's bytes or of the text
    text: str | None = None
    held_out: bool = False
    """Held-out items are not fitted; the model is evaluated on them."""

    @classmethod
    def of_entry(cls, id: int, entry: Entry) -> "LabelledItem":
        """The item that an `add` creates."""
        held_out = entry.get("held_out") is True
        return cls(id, clean_label(entry["label"]), entry["name"], entry["digest"], entry.get("text"), held_out)

    @property
    def file(self) -> str:
        """Its file name in the folder of its class. Names are unique, and a class is fitted in their order."""
        name = PurePosixPath(self.name)
        return f"{name.stem}-{self.digest[:12]}{name.suffix}"


class LabelledSet(NamedTuple):
    """Classes and the items in them; never modified."""

    classes: dict[str, str | None] = {}  # noqa: RUF012
    """Every class and, if it came with an imported model, its label there."""
    items: dict[int, LabelledItem] = {}  # noqa: RUF012
    model: str | None = None
    """The digest of the imported model file; None if all classes were labelled here."""

    def by_class(self) -> dict[str, list[LabelledItem]]:
        """The items of all classes, in the order in which they were added."""
        items_of: dict[str, list[LabelledItem]] = {label: [] for label in self.classes}
        for item in self.items.values():
            items_of[item.label].append(item)
        return items_of


def changed_labels(before: LabelledSet, after: LabelledSet) -> set[str]:
    """The classes that differ between two states: those that must be fitted again."""
    ids = before.items.keys() | after.items.keys()
    pairs = ((before.items.get(i), after.items.get(i)) for i in ids)
    labels = {item.label for pair in pairs if pair[0] != pair[1] for item in pair if item}
    both = before.classes.keys() | after.classes.keys()
    return labels | {k for k in both if before.classes.get(k, "") != after.classes.get(k, "")}


class LabelEditor:
    """A copy of a labelled set, which changes modify in place."""

    def __init__(self, labelled: LabelledSet):
        self.classes, self.items, self.model = dict(labelled.classes), dict(labelled.items), labelled.model

    def apply(self, entry: Entry, id: int) -> bool:
        """Apply a change, whose new item gets the number `id`. Returns whether anything changed.

        An entry that cannot be applied is refused in one sentence, after which this copy must not be used.
        """
        match entry:
            case {"do": "add"}:
                item = LabelledItem.of_entry(id, entry)
                self._require_class(item.label)
                self.items[id] = item
            case {"do": "create", "label": label}:
                if clean_label(label) in self.classes:
                    raise ParameterError(f"There is a class {clean_label(label)!r} already.")
                self._require_class(clean_label(label))
            case {"do": "move", "ids": ids, "label": label}:
                self._require_class(clean_label(label))
                return self._move(self._named(ids), clean_label(label))
            case {"do": "hold", "ids": ids}:
                held_out = entry.get("held_out") is not False
                items = [item for item in self._named(ids) if item.held_out != held_out]
                self.items.update({item.id: item._replace(held_out=held_out) for item in items})
                return bool(items)
            case {"do": "delete", "ids": ids}:
                for item in self._named(ids):
                    del self.items[item.id]
            case {"do": "rename", "label": label, "to": to}:
                return self._rename(self._existing(label), clean_label(to))
            case {"do": "merge", "label": label, "into": into}:
                self._merge(self._existing(label), self._existing(into))
            case {"do": "drop", "label": label}:
                for leaf in LabelTree.of(self.classes).leaves(label) or [self._existing(label)]:
                    self.items = {i: item for i, item in self.items.items() if item.label != leaf}
                    del self.classes[leaf]
            case {"do": "clear"}:
                changed = bool(self.classes)
                self.classes, self.items, self.model = {}, {}, None
                return changed
            case {"do": "open", "labels": labels, "model": model}:  # the classes of a model file replace all others
                self.classes, self.items = {clean_label(label): str(label) for label in labels}, {}
                self.model = str(model)
            case _:
                raise ParameterError(f"The change {entry.get('do')!r} is unknown or lacks an argument.")
        return True

    def _rename(self, label: str, to: str) -> bool:
        if label == to:
            return False
        if to in self.classes:
            raise ParameterError(f"There is a class {to!r} already; merge {label!r} into it instead.")
        check_leaf(to, self.classes.keys() - {label})
        self._move(self._of(label), to)
        self.classes = {to if k == label else k: origin for k, origin in self.classes.items()}
        return True

    def _merge(self, label: str, into: str) -> None:
        if label == into:
            raise ParameterError(f"{label!r} cannot be merged into itself.")
        if self.classes[label] is not None:
            raise ParameterError(f"{label!r} came with a model, without its examples, so it cannot be merged.")
        self._move(self._of(label), into)
        del self.classes[label]

    def _move(self, items: Iterable[LabelledItem], label: str) -> bool:
        """Move items to a class; those whose content it already has are deleted."""
        digests, elsewhere = {item.digest for item in self._of(label)}, [item for item in items if item.label != label]
        for item in elsewhere:
            if item.digest in digests:
                del self.items[item.id]
            else:
                self.items[item.id] = item._replace(label=label)
            digests.add(item.digest)
        return bool(elsewhere)

    def _require_class(self, label: str) -> None:
        """Create a class that does not exist yet."""
        if label not in self.classes:
            check_leaf(label, self.classes)
            self.classes[label] = None

    def _existing(self, label: Any) -> str:
        if not isinstance(label, str) or label not in self.classes:
            raise unknown("class", label, self.classes)
        return label

    def _of(self, label: str) -> list[LabelledItem]:
        return [item for item in self.items.values() if item.label == label]

    def _named(self, ids: Any) -> list[LabelledItem]:
        if not isinstance(ids, list) or not ids:
            raise ParameterError("ids must be a list of numbers, at least one.")
        for i in ids:
            if not isinstance(i, int) or i not in self.items:
                raise ParameterError(f"There is no item {i!r}; it may have been deleted.")
        return [self.items[i] for i in dict.fromkeys(ids)]


class RecordedChange(NamedTuple):
    """An applied entry, and the number of the item that it created if it is an `add`."""

    entry: Entry
    id: int


class History(NamedTuple):
    """The labelled set and the changes behind it, as an immutable value: each entry gives another one.

    >>> history = History().after({"do": "create", "label": "cat"}).after({"do": "undo"})
    >>> history.labelled.classes, len(history.undone), history.revision
    ({}, 1, 2)
    """

    labelled: LabelledSet = LabelledSet()
    done: tuple[RecordedChange, ...] = ()
    undone: tuple[RecordedChange, ...] = ()  # the last one is redone first
    revision: int = 0  # the number of entries that have been applied
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
        done, next_id = [*self.done, RecordedChange(entry, self.next_id)], self.next_id + (entry["do"] == "add")
        labelled = LabelledSet(editor.classes, editor.items, editor.model)
        return History(labelled, tuple(done), (), self.revision + 1, next_id)


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
    group = source[-1].entry.get("group")
    target.append(source.pop())
    while group and source and source[-1].entry.get("group") == group:
        target.append(source.pop())


def _result(changes: Iterable[RecordedChange]) -> LabelledSet:
    editor = LabelEditor(LabelledSet())
    for entry, id in changes:
        editor.apply(entry, id)
    return LabelledSet(editor.classes, editor.items, editor.model)
