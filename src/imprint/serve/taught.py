"""What has been taught so far, as a value, and how one entry of the journal changes it."""

import unicodedata
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from imprint.core.errors import ParameterError
from imprint.core.family import unknown

LONGEST_LABEL = 100
LONGEST_NAME = 120


class Item(NamedTuple):
    """A picture or a text in a class."""

    id: int
    label: str
    name: str
    digest: str
    """SHA-256 of the picture's bytes or of the text."""
    text: str | None = None

    @property
    def file(self) -> str:
        """Its name in the folder of its class. No two are the same, and the class is learnt in their order."""
        name = PurePosixPath(self.name)
        return f"{name.stem}-{self.digest[:12]}{name.suffix}"


class Taught(NamedTuple):
    """Classes and the items in them. A value: changes give another one."""

    classes: dict[str, str | None] = {}  # noqa: RUF012 - never changed
    """Every class and, where it came with an opened model, what it is called there."""
    items: dict[int, Item] = {}  # noqa: RUF012
    model: str | None = None
    """The digest of the model file that was opened, None where everything was taught here."""

    def of(self, label: str) -> list[Item]:
        """The items of a class, in the order in which they are learnt."""
        return sorted((i for i in self.items.values() if i.label == label), key=lambda i: i.file)

    def found(self, label: str, digest: str) -> Item | None:
        """The item of a class that has this content."""
        return next((i for i in self.items.values() if i.digest == digest and i.label == label), None)

    def by_class(self) -> dict[str, list[Item]]:
        """The items of all classes, in the order in which they came."""
        found: dict[str, list[Item]] = {label: [] for label in self.classes}
        for item in self.items.values():
            found[item.label].append(item)
        return found


class Change(NamedTuple):
    """One step that can be undone: for every item that it touches how it was and how it is, and so for the rest."""

    items: dict[int, tuple[Item | None, Item | None]]
    classes: tuple[dict[str, str | None], dict[str, str | None]]
    model: tuple[str | None, str | None]
    group: str = ""
    """Changes that follow one another and have the same group are undone together."""

    def reversed(self) -> "Change":
        """The change that undoes this one."""
        items = {i: (after, before) for i, (before, after) in self.items.items()}
        return Change(items, self.classes[::-1], self.model[::-1], self.group)

    def labels(self) -> set[str]:
        """The classes that must be learnt again."""
        moved = {item.label for pair in self.items.values() for item in pair if item is not None}
        before, after = self.classes
        return moved | {k for k in before.keys() | after.keys() if before.get(k, "") != after.get(k, "")}


def applied(taught: Taught, change: Change, *, in_place: bool = False) -> Taught:
    """What is taught after a change; `in_place` uses up the items of what was taught before."""
    last = next(reversed(taught.items), 0)
    items = taught.items if in_place else dict(taught.items)
    for i, (_, after) in change.items.items():
        if after is None:
            items.pop(i, None)
        else:
            items[i] = after
    back = [i for i, (before, _) in change.items.items() if before is None]
    if back and min(back) < last:
        items = dict(sorted(items.items()))  # what an undo brings back stands where it stood
    return Taught(change.classes[1], items, change.model[1])


def change_of(taught: Taught, entry: dict[str, Any], next_id: int) -> Change | None:
    """What an entry does, None for nothing; refused in a sentence where it cannot be done."""
    kind = entry.get("do")
    if kind not in CHANGES:
        raise unknown("change", kind, CHANGES)
    try:
        found: Change | None = CHANGES[kind](taught, entry, next_id)
    except (KeyError, TypeError) as e:
        raise ParameterError(f"{kind}: the entry lacks {e} or it has the wrong type.") from None
    return found._replace(group=str(entry.get("group", ""))[:64]) if found else None


def clean_label(given: Any) -> str:
    """A label as it is kept; it names a folder too, so some are refused.

    >>> clean_label("  red  fox ")
    'red fox'
    """
    label = " ".join(unicodedata.normalize("NFC", given).split()) if isinstance(given, str) else ""
    if not label or len(label) > LONGEST_LABEL:
        raise ParameterError(f"The name of a class must have 1 to {LONGEST_LABEL} characters.")
    if label[0] == "." or any(c in '/\\:*?"<>|' or not c.isprintable() for c in label):
        raise ParameterError(
            f'{label!r} cannot name a class: no leading dot, no control characters, none of / \\ : * ? " < > |.'
        )
    return label


def clean_name(given: str, otherwise: str) -> str:
    """The last part of a file's name, without what file systems dislike.

    >>> clean_name("../../etc/pass wd.JPG", "picture"), clean_name("..", "picture")
    ('pass wd.JPG', 'picture')
    """
    last = given.replace("\\", "/").rsplit("/", 1)[-1]
    kept = "".join(c for c in unicodedata.normalize("NFC", last) if c.isprintable() and c not in ':*?"<>|')
    return kept.strip(" .")[-LONGEST_NAME:] if kept.strip(" .") else otherwise


def _known(taught: Taught, label: Any) -> str:
    if label not in taught.classes:
        raise unknown("class", label, taught.classes)
    return str(label)


def _items(taught: Taught, ids: Any) -> list[Item]:
    if not isinstance(ids, list) or not ids:
        raise ParameterError("ids must be a list of numbers, at least one.")
    for i in ids:
        if not isinstance(i, int) or i not in taught.items:
            raise ParameterError(f"There is no picture {i!r}; it may have been deleted.")
    return [taught.items[i] for i in dict.fromkeys(ids)]


def _changed(
    taught: Taught, items: dict[int, tuple[Item | None, Item | None]], classes: Any = None, model: Any = None
) -> Change:
    after = taught.classes if classes is None else classes
    return Change(items, (taught.classes, after), (taught.model, taught.model if model is None else model))


def _into(taught: Taught, items: list[Item], label: str) -> dict[int, tuple[Item | None, Item | None]]:
    """Items in another class; one whose content is there already vanishes."""
    there = {i.digest for i in taught.items.values() if i.label == label}
    found: dict[int, tuple[Item | None, Item | None]] = {}
    for item in items:
        if item.label != label:
            found[item.id] = (item, None if item.digest in there else item._replace(label=label))
            there.add(item.digest)
    return found


def _create(taught: Taught, entry: dict[str, Any], next_id: int) -> Change | None:
    label = clean_label(entry["label"])
    if label in taught.classes:
        raise ParameterError(f"There is a class {label!r} already.")
    return _changed(taught, {}, {**taught.classes, label: None})


def _add(taught: Taught, entry: dict[str, Any], next_id: int) -> Change | None:
    label = clean_label(entry["label"])
    item = Item(next_id, label, entry["name"], entry["digest"], entry.get("text"))
    classes = taught.classes if label in taught.classes else {**taught.classes, label: None}
    return _changed(taught, {next_id: (None, item)}, classes)


def _move(taught: Taught, entry: dict[str, Any], next_id: int) -> Change | None:
    label = clean_label(entry["label"])
    moved = _into(taught, _items(taught, entry["ids"]), label)
    classes = taught.classes if label in taught.classes else {**taught.classes, label: None}
    return _changed(taught, moved, classes) if moved else None


def _delete(taught: Taught, entry: dict[str, Any], next_id: int) -> Change | None:
    return _changed(taught, {item.id: (item, None) for item in _items(taught, entry["ids"])})


def _rename(taught: Taught, entry: dict[str, Any], next_id: int) -> Change | None:
    label, to = _known(taught, entry["label"]), clean_label(entry["to"])
    if label == to:
        return None
    if to in taught.classes:
        raise ParameterError(f"There is a class {to!r} already; merge {label!r} into it instead.")
    classes = {to if k == label else k: origin for k, origin in taught.classes.items()}
    return _changed(taught, _into(taught, taught.of(label), to), classes)


def _merge(taught: Taught, entry: dict[str, Any], next_id: int) -> Change | None:
    label, into = _known(taught, entry["label"]), _known(taught, entry["into"])
    if label == into:
        raise ParameterError(f"{label!r} cannot be merged into itself.")
    if taught.classes[label] is not None:
        raise ParameterError(f"{label!r} came with a model, without its pictures, so it cannot be merged into another.")
    classes = {k: origin for k, origin in taught.classes.items() if k != label}
    return _changed(taught, _into(taught, taught.of(label), into), classes)


def _drop(taught: Taught, entry: dict[str, Any], next_id: int) -> Change | None:
    label = _known(taught, entry["label"])
    classes = {k: origin for k, origin in taught.classes.items() if k != label}
    return _changed(taught, {item.id: (item, None) for item in taught.of(label)}, classes)


def _clear(taught: Taught, entry: dict[str, Any], next_id: int) -> Change | None:
    gone: dict[int, tuple[Item | None, Item | None]] = {i: (item, None) for i, item in taught.items.items()}
    return Change(gone, (taught.classes, {}), (taught.model, None)) if taught.classes else None


def _open(taught: Taught, entry: dict[str, Any], next_id: int) -> Change | None:
    gone: dict[int, tuple[Item | None, Item | None]] = {i: (item, None) for i, item in taught.items.items()}
    classes: dict[str, str | None] = {clean_label(label): str(label) for label in entry["labels"]}
    return Change(gone, (taught.classes, classes), (taught.model, str(entry["model"])))


CHANGES = {
    "create": _create,
    "add": _add,
    "move": _move,
    "delete": _delete,
    "rename": _rename,
    "merge": _merge,
    "drop": _drop,
    "clear": _clear,
    "open": _open,
}
"""What an entry may do, apart from `undo` and `redo`."""
