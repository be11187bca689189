"""The labelled items of a project, and the changes that led to them, which can be
undone and redone.

Names of classes and files, which come from users and programs, are normalised or
refused in one sentence.
"""

import unicodedata
from bisect import insort
from collections.abc import Iterable, Reversible, Sequence
from dataclasses import dataclass, field, replace
from posixpath import splitext
from typing import Any, NamedTuple

from imprint.core.errors import ParameterError, unknown
from imprint.core.tree import SEPARATOR, LabelTree
from imprint.serve.persistent import PersistentList, PersistentMap

Entry = dict[str, Any]
"""A change as JSON: `do` is its kind (see `LabelledSet`), `undo` or `redo`; the other
keys are its arguments.
"""
LONGEST_LABEL, LONGEST_NAME = 100, 120
# An older change of these kinds is not undone alone: later changes use its classes.
ONLY_AS_NEWEST = ("rename", "open", "import")


class Origin(NamedTuple):
    """A class of an imported model."""

    model: str  # the digest of the model file
    label: str  # its label there, as a text


class RecordedChange(NamedTuple):
    """A change that was applied."""

    entry: Entry
    item_id: int  # the number of the item that it created if it is an `add`
    revision: int  # the revision that it led to, by which undo and redo name it


def clean_label(value: Any) -> str:
    """A label with normalised white space. Labels that cannot name folders, one per
    level of a tree, are refused.
    """
    label = (
        " ".join(unicodedata.normalize("NFC", value).split())
        if isinstance(value, str)
        else ""
    )
    if not label or len(label) > LONGEST_LABEL:
        raise ParameterError(
            f"The name of a class must have 1 to {LONGEST_LABEL} characters."
        )
    parts = [part.strip() for part in label.split(SEPARATOR)]
    if any(
        part[:1] in ("", ".")
        or any(c in '\\:*?"<>|' or not c.isprintable() for c in part)
        for part in parts
    ):
        raise ParameterError(
            f"{label!r} cannot name a class, because it also names a folder: leave out"
            ' leading dots and \\ : * ? " < > |, and put a slash only between the'
            " levels of a tree, as in animal/cat."
        )
    return SEPARATOR.join(parts)


def clean_name(name: str, default: str) -> str:
    """The last part of a file's name, without characters that file systems refuse;
    `default` if nothing is left.
    """
    last = name.replace("\\", "/").rsplit("/", 1)[-1]
    allowed = "".join(
        c
        for c in unicodedata.normalize("NFC", last)
        if c.isprintable() and c not in ':*?"<>|'
    )
    return allowed.strip(" .")[-LONGEST_NAME:] if allowed.strip(" .") else default


class LabelledItem(NamedTuple):
    """An image, a sound or a text in a class."""

    id: int
    label: str
    name: str
    digest: str  # SHA-256 of the file's bytes or of the text
    text: str | None = None
    # held-out items are not fitted; the model is evaluated on them
    held_out: bool = False

    @classmethod
    def of_entry(cls, id: int, entry: Entry) -> "LabelledItem":
        """The item that an `add` creates."""
        held_out = entry.get("held_out") is True
        return cls(
            id,
            clean_label(entry["label"]),
            entry["name"],
            entry["digest"],
            entry.get("text"),
            held_out,
        )

    @property
    def file(self) -> str:
        """Its file name in the folder of its class. Names are unique, and a class is
        fitted in their order.
        """
        stem, suffix = splitext(self.name)
        return f"{stem}-{self.digest[:12]}{suffix}"

    @property
    def path(self) -> str:
        """Its path in an exported folder, by which exemplars refer to it."""
        return f"{self.label}/{self.file}"


@dataclass
class LabelledSet:
    """Classes and the items in them. Only `after` modifies a set, and only the copy
    that it returns.
    """

    classes: dict[str, tuple[Origin, ...]] = field(default_factory=dict)
    """Every class and the classes of imported models that are part of it."""
    items: PersistentMap[int, LabelledItem] = field(default_factory=PersistentMap)
    # the digests of the imported model files; the model has the settings of the first
    models: tuple[str, ...] = ()
    # the numbers of the items of a content, by its digest
    _numbers: PersistentMap[str, tuple[int, ...]] = field(
        default_factory=PersistentMap, repr=False, compare=False
    )

    def origins(self) -> list[Origin]:
        """The classes of imported models that are part of the classes here."""
        return [origin for origins in self.classes.values() for origin in origins]

    def by_class(self) -> dict[str, list[LabelledItem]]:
        """The items of all classes, in the order in which they were added."""
        items_of: dict[str, list[LabelledItem]] = {label: [] for label in self.classes}
        for item in self.items.values():
            items_of[item.label].append(item)
        return items_of

    def after(self, changes: Iterable[RecordedChange]) -> "LabelledSet":
        """The set after some changes. One that cannot be applied is refused in one
        sentence.
        """
        copy = replace(self, classes=dict(self.classes))
        for change in changes:
            copy._apply(change.entry, change.item_id)
        return copy

    def having(self, digest: str) -> list[LabelledItem]:
        """The items of a content."""
        return [self.items[number] for number in self._numbers.get(digest, ())]

    def is_same(self, other: "LabelledSet") -> bool:
        """Whether one set came from the other without a change."""
        same_items = self.items is other.items or not (self.items or other.items)
        same_classes = self.classes == other.classes
        return same_items and same_classes and self.models == other.models

    def _put(self, item: LabelledItem) -> None:
        """Add an item, or replace the one with its number."""
        numbers = self._numbers.get(item.digest, ())
        if item.id not in numbers:
            self._numbers = self._numbers.having(item.digest, (*numbers, item.id))
        self.items = self.items.having(item.id, item)

    def _remove(self, item: LabelledItem) -> None:
        rest = tuple(n for n in self._numbers[item.digest] if n != item.id)
        self._numbers = self._numbers.having(item.digest, rest)
        self.items = self.items.without(item.id)

    def _remove_all(self) -> None:
        self.items = PersistentMap()
        self._numbers = PersistentMap()

    def _apply(self, entry: Entry, id: int) -> None:
        """Apply a change, whose new item gets the number `id`."""
        match entry:
            case {"do": "add"}:
                item = LabelledItem.of_entry(id, entry)
                self._require_class(item.label)
                self._put(item)
            case {"do": "create", "label": label}:
                if clean_label(label) in self.classes:
                    raise ParameterError(
                        f"There is a class {clean_label(label)!r} already."
                    )
                self._require_class(clean_label(label))
            case {"do": "move", "ids": ids, "label": label}:
                self._require_class(clean_label(label))
                self._move(self._named(ids), clean_label(label))
            case {"do": "hold", "ids": ids}:
                held_out = entry.get("held_out") is not False
                for item in self._named(ids):
                    self._put(item._replace(held_out=held_out))
            case {"do": "delete", "ids": ids}:
                for item in self._named(ids):
                    self._remove(item)
            case {"do": "rename", "label": label, "to": to}:
                label, to = self._existing(label), clean_label(to)
                if to in self.classes and to != label:
                    raise ParameterError(
                        f"There is a class {to!r} already; merge {label!r} into it"
                        " instead."
                    )
                _check_leaf(to, self.classes.keys() - {label})
                self._move(self._of(label), to)
                self.classes = {
                    to if k == label else k: origin
                    for k, origin in self.classes.items()
                }
            case {"do": "merge", "label": label, "into": into}:
                label, into = self._existing(label), self._existing(into)
                if label == into:
                    raise ParameterError(f"{label!r} cannot be merged into itself.")
                if self.classes[label]:
                    raise ParameterError(
                        f"{label!r} came with a model, without its examples, so it"
                        " cannot be merged."
                    )
                self._move(self._of(label), into)
                del self.classes[label]
            case {"do": "drop", "label": label}:
                for leaf in LabelTree.of(self.classes).named(label):
                    for item in self._of(leaf):
                        self._remove(item)
                    del self.classes[leaf]
            case {"do": "clear"}:
                self.classes = {}
                self.models = ()
                self._remove_all()
            case {"do": "import", "labels": labels, "model": model}:
                self._import(str(model), labels)
            # earlier versions replaced the classes by those of a model file
            case {"do": "open", "labels": labels, "model": model}:
                self.classes = {}
                self._remove_all()
                self._import(str(model), labels)
            case _:
                raise ParameterError(
                    f"The change {entry.get('do')!r} is unknown or lacks an argument."
                )

    def _import(self, model: str, labels: Iterable[str]) -> None:
        """Add the classes of a model file, or merge them into those that exist."""
        if not self.classes:
            self.models = ()  # the settings are those of the new model
        if any(origin.model == model for origin in self.origins()):
            raise ParameterError(
                "This model was imported already, and its classes are here; undo that"
                " or delete them first."
            )
        for label in labels:
            name = clean_label(label)
            self._require_class(name)
            self.classes[name] = (*self.classes[name], Origin(model, str(label)))
        others = [digest for digest in self.models if digest != model]
        self.models = (*others, model)

    def _move(self, items: Iterable[LabelledItem], label: str) -> None:
        """Move items to a class; those whose content it already has are deleted."""
        for item in items:
            if item.label == label:
                continue
            if any(other.label == label for other in self.having(item.digest)):
                self._remove(item)
            else:
                self._put(item._replace(label=label))

    def _require_class(self, label: str) -> None:
        """Create a class that does not exist yet."""
        if label not in self.classes:
            _check_leaf(label, self.classes)
            self.classes[label] = ()

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
                raise ParameterError(
                    f"There is no item {i!r}; it may have been deleted."
                )
        return [self.items[i] for i in dict.fromkeys(ids)]


def _check_leaf(label: str, classes: Iterable[str]) -> None:
    """Refuse a new class above or below another one: only leaves of a tree are
    classes.
    """
    for other in classes:
        if f"{other}/".startswith(f"{label}/") or f"{label}/".startswith(f"{other}/"):
            raise ParameterError(
                f"{label!r} cannot be a class, because {other!r} is one; rename that"
                " first."
            )


class History(NamedTuple):
    """The labelled set and the changes behind it, as an immutable value: each entry
    gives another one.
    """

    labelled: LabelledSet = LabelledSet()
    done: PersistentList[RecordedChange] = PersistentList()
    undone: tuple[RecordedChange, ...] = ()  # the last one is redone first
    revision: int = 0  # the number of entries that have been applied
    next_id: int = 1

    def after(self, entry: Entry) -> "History":
        """The history with one more entry; this one itself if the entry changes
        nothing.
        """
        if entry.get("do") in ("undo", "redo"):
            return self.replayed([entry])
        change = RecordedChange(entry, self.next_id, self.revision + 1)
        labelled = self.labelled.after([change])
        if labelled.is_same(self.labelled):
            return self
        next_id = self.next_id + (entry.get("do") == "add")
        done = self.done.appended(change)
        return History(labelled, done, (), change.revision, next_id)

    def replayed(self, entries: Sequence[Entry]) -> "History":
        """The history after stored entries. Changes that were undone are not applied.

        Undo moves changes from `done` to `undone`, and redo moves them back. Both name
        the change that they are about as `change`, or else take the newest one.
        """
        done = list(self.done)
        undone = list(self.undone)
        next_id = self.next_id
        for revision, entry in enumerate(entries, self.revision + 1):
            kind = entry.get("do")
            if kind == "undo":
                undone += _take_undone(done, entry.get("change"))
            elif kind == "redo":
                for change in _take_redone(undone, entry.get("change")):
                    # Changes are always applied in the order in which they were made.
                    insort(done, change, key=lambda one: one.revision)
            else:
                done.append(RecordedChange(entry, next_id, revision))
                undone.clear()
                next_id += kind == "add"
        labelled = _set_after(done)
        revision = self.revision + len(entries)
        done_changes = PersistentList.of(done)
        return History(labelled, done_changes, tuple(undone), revision, next_id)


def _set_after(changes: Iterable[RecordedChange]) -> LabelledSet:
    """The set after some changes. It lacks those that are undone, on which others may
    depend.
    """
    try:
        return LabelledSet().after(changes)
    except ParameterError as e:
        raise ParameterError(
            f"This change cannot be undone, because a later one depends on it: {e}"
        ) from None


def _take_undone(done: list[RecordedChange], revision: Any) -> list[RecordedChange]:
    """Remove what an undo takes back, and return it, the newest change first.

    The newest change goes with those right before it in its group. That is always
    possible. An older one, which is undone by its name, goes with all of its group.
    """
    if not done:
        raise ParameterError("There is nothing to undo.")
    newest = done[-1]
    if revision is None or revision == newest.revision:
        return _take_last(done)
    named = next((one for one in done if one.revision == revision), None)
    if named is None:
        raise ParameterError(f"There is no change {revision!r}, or it was undone.")
    if named.entry.get("do") in ONLY_AS_NEWEST:
        raise ParameterError("Undo the later changes first: they use these classes.")
    taken = [named]
    group = named.entry.get("group")
    if group:
        taken = [one for one in done if one.entry.get("group") == group]
    taken_revisions = {one.revision for one in taken}
    done[:] = [one for one in done if one.revision not in taken_revisions]
    return taken[::-1]


def _take_redone(undone: list[RecordedChange], revision: Any) -> list[RecordedChange]:
    """Remove what a redo applies again, and return it, the oldest change first."""
    if not undone:
        raise ParameterError("There is nothing to redo.")
    if revision not in (None, undone[-1].revision):
        raise ParameterError(f"The change {revision!r} is not the next one to redo.")
    return _take_last(undone)


def _take_last(changes: list[RecordedChange]) -> list[RecordedChange]:
    """Remove the last change, and those right before it in its group; the last one is
    the first in the result.
    """
    taken = last_together(changes)
    del changes[len(changes) - len(taken) :]
    return taken[::-1]


def last_together(changes: Reversible[RecordedChange]) -> list[RecordedChange]:
    """The last change, and those right before it in its group, in the order of
    `changes`; none if there are no changes.
    """
    together: list[RecordedChange] = []
    for change in reversed(changes):
        group = change.entry.get("group")
        if together and (not group or together[0].entry.get("group") != group):
            break
        together.append(change)
    return together[::-1]
