"""The labelled items of a project, as a value, and how one change alters them."""

from pathlib import PurePosixPath
from typing import Any, NamedTuple

from imprint.core.errors import ParameterError
from imprint.core.family import unknown
from imprint.core.tree import LabelTree
from imprint.serve.labels import check_leaf, clean_label


class LabelledItem(NamedTuple):
    """A picture or a text in a class."""

    id: int
    label: str
    name: str
    digest: str
    """SHA-256 of the picture's bytes or of the text."""
    text: str | None = None
    held_out: bool = False
    """Held-out items are not fitted; the model is evaluated on them."""

    @property
    def file(self) -> str:
        """Its file name in the folder of its class. Names are unique, and a class is fitted in their order."""
        name = PurePosixPath(self.name)
        return f"{name.stem}-{self.digest[:12]}{name.suffix}"


Pairs = dict[int, tuple[LabelledItem | None, LabelledItem | None]]
"""By number, an item before and after a change; None where it does not exist."""


class LabelledSet(NamedTuple):
    """Classes and the items in them. A value: a change gives another one."""

    classes: dict[str, str | None] = {}  # noqa: RUF012 - never changed
    """Every class and, if it came with an imported model, its label there."""
    items: dict[int, LabelledItem] = {}  # noqa: RUF012
    model: str | None = None
    """The digest of the imported model file, None where all classes were labelled here."""

    def of(self, label: str) -> list[LabelledItem]:
        """The items of a class, in the order in which they are fitted."""
        return sorted((i for i in self.items.values() if i.label == label), key=lambda i: i.file)

    def with_content(self, digest: str) -> list[LabelledItem]:
        """The items that have this content, in any class."""
        return [i for i in self.items.values() if i.digest == digest]

    def by_class(self) -> dict[str, list[LabelledItem]]:
        """The items of all classes, in the order in which they came."""
        items_of: dict[str, list[LabelledItem]] = {label: [] for label in self.classes}
        for item in self.items.values():
            items_of[item.label].append(item)
        return items_of


class LabelChange(NamedTuple):
    """One step that can be undone: the items, the classes and the imported model, before and after."""

    items: Pairs
    classes: tuple[dict[str, str | None], dict[str, str | None]]
    model: tuple[str | None, str | None]
    group: str = ""
    """Changes that follow one another and have the same group are undone together."""

    def reversed(self) -> "LabelChange":
        """The change that undoes this one."""
        items = {i: (after, before) for i, (before, after) in self.items.items()}
        return LabelChange(items, self.classes[::-1], self.model[::-1], self.group)


def changed_labels(before: LabelledSet, after: LabelledSet) -> set[str]:
    """The classes that differ between two states: those that must be fitted again."""
    ids = [i for i, item in before.items.items() if after.items.get(i) is not item]
    ids += [i for i in after.items if i not in before.items]
    pairs = [(before.items.get(i), after.items.get(i)) for i in ids]
    labels = {item.label for pair in pairs if pair[0] != pair[1] for item in pair if item is not None}
    both = before.classes.keys() | after.classes.keys()
    return labels | {k for k in both if before.classes.get(k, "") != after.classes.get(k, "")}


def applied(labelled: LabelledSet, change: LabelChange, *, in_place: bool = False) -> LabelledSet:
    """The state after a change; `in_place` alters the dictionary of items of the state before."""
    last = next(reversed(labelled.items), 0)
    items = labelled.items if in_place else dict(labelled.items)
    for i, (_, after) in change.items.items():
        if after is None:
            items.pop(i, None)
        else:
            items[i] = after
    restored = [i for i, (before, _) in change.items.items() if before is None]
    if restored and min(restored) < last:
        items = dict(sorted(items.items()))  # an item that an undo restores returns to its position
    return LabelledSet(change.classes[1], items, change.model[1])


def change_of(labelled: LabelledSet, entry: dict[str, Any], next_id: int) -> LabelChange | None:
    """What an entry changes, None for nothing; an entry that cannot be applied is refused in one sentence."""
    kind = entry.get("do")
    if not isinstance(kind, str) or kind not in CHANGES:
        raise unknown("change", kind, CHANGES)
    try:
        change: LabelChange | None = CHANGES[kind](labelled, entry, next_id)
    except (KeyError, TypeError) as e:
        raise ParameterError(f"{kind}: the entry lacks {e} or it has the wrong type.") from None
    return change._replace(group=str(entry.get("group", ""))[:64]) if change else None


def _existing(labelled: LabelledSet, label: Any) -> str:
    if not isinstance(label, str) or label not in labelled.classes:
        raise unknown("class", label, labelled.classes)
    return label


def _items(labelled: LabelledSet, ids: Any) -> list[LabelledItem]:
    if not isinstance(ids, list) or not ids:
        raise ParameterError("ids must be a list of numbers, at least one.")
    for i in ids:
        if not isinstance(i, int) or i not in labelled.items:
            raise ParameterError(f"There is no picture {i!r}; it may have been deleted.")
    return [labelled.items[i] for i in dict.fromkeys(ids)]


def _change(labelled: LabelledSet, items: Pairs, classes: dict[str, str | None] | None = None) -> LabelChange:
    after = labelled.classes if classes is None else classes
    return LabelChange(items, (labelled.classes, after), (labelled.model, labelled.model))


def _moved(labelled: LabelledSet, items: list[LabelledItem], label: str) -> Pairs:
    """Items in another class; an item whose content that class has already is deleted."""
    digests = {i.digest for i in labelled.items.values() if i.label == label}
    pairs: Pairs = {}
    for item in items:
        if item.label != label:
            pairs[item.id] = (item, None if item.digest in digests else item._replace(label=label))
            digests.add(item.digest)
    return pairs


def _with_class(labelled: LabelledSet, label: str) -> dict[str, str | None]:
    if label in labelled.classes:
        return labelled.classes
    check_leaf(label, labelled.classes)
    return {**labelled.classes, label: None}


def _create(labelled: LabelledSet, entry: dict[str, Any], next_id: int) -> LabelChange | None:
    label = clean_label(entry["label"])
    if label in labelled.classes:
        raise ParameterError(f"There is a class {label!r} already.")
    return _change(labelled, {}, _with_class(labelled, label))


def _add(labelled: LabelledSet, entry: dict[str, Any], next_id: int) -> LabelChange | None:
    label = clean_label(entry["label"])
    item = LabelledItem(
        next_id, label, entry["name"], entry["digest"], entry.get("text"), entry.get("held_out") is True
    )
    return _change(labelled, {next_id: (None, item)}, _with_class(labelled, label))


def _move(labelled: LabelledSet, entry: dict[str, Any], next_id: int) -> LabelChange | None:
    label = clean_label(entry["label"])
    pairs = _moved(labelled, _items(labelled, entry["ids"]), label)
    return _change(labelled, pairs, _with_class(labelled, label)) if pairs else None


def _hold(labelled: LabelledSet, entry: dict[str, Any], next_id: int) -> LabelChange | None:
    held_out = entry.get("held_out") is not False
    items = [item for item in _items(labelled, entry["ids"]) if item.held_out != held_out]
    return _change(labelled, {i.id: (i, i._replace(held_out=held_out)) for i in items}) if items else None


def _delete(labelled: LabelledSet, entry: dict[str, Any], next_id: int) -> LabelChange | None:
    return _change(labelled, {item.id: (item, None) for item in _items(labelled, entry["ids"])})


def _rename(labelled: LabelledSet, entry: dict[str, Any], next_id: int) -> LabelChange | None:
    label, to = _existing(labelled, entry["label"]), clean_label(entry["to"])
    if label == to:
        return None
    if to in labelled.classes:
        raise ParameterError(f"There is a class {to!r} already; merge {label!r} into it instead.")
    check_leaf(to, labelled.classes.keys() - {label})
    classes = {to if k == label else k: origin for k, origin in labelled.classes.items()}
    return _change(labelled, _moved(labelled, labelled.of(label), to), classes)


def _merge(labelled: LabelledSet, entry: dict[str, Any], next_id: int) -> LabelChange | None:
    label, into = _existing(labelled, entry["label"]), _existing(labelled, entry["into"])
    if label == into:
        raise ParameterError(f"{label!r} cannot be merged into itself.")
    if labelled.classes[label] is not None:
        raise ParameterError(f"{label!r} came with a model, without its pictures, so it cannot be merged into another.")
    classes = {k: origin for k, origin in labelled.classes.items() if k != label}
    return _change(labelled, _moved(labelled, labelled.of(label), into), classes)


def _drop(labelled: LabelledSet, entry: dict[str, Any], next_id: int) -> LabelChange | None:
    label = entry["label"]
    labels = LabelTree.of(labelled.classes).leaves(label) or [_existing(labelled, label)]
    classes = {k: origin for k, origin in labelled.classes.items() if k not in labels}
    return _change(labelled, {item.id: (item, None) for k in labels for item in labelled.of(k)}, classes)


def _clear(labelled: LabelledSet, entry: dict[str, Any], next_id: int) -> LabelChange | None:
    removed: Pairs = {i: (item, None) for i, item in labelled.items.items()}
    return LabelChange(removed, (labelled.classes, {}), (labelled.model, None)) if labelled.classes else None


def _import(labelled: LabelledSet, entry: dict[str, Any], next_id: int) -> LabelChange | None:
    removed: Pairs = {i: (item, None) for i, item in labelled.items.items()}
    classes: dict[str, str | None] = {clean_label(label): str(label) for label in entry["labels"]}
    return LabelChange(removed, (labelled.classes, classes), (labelled.model, str(entry["model"])))


CHANGES = {
    "create": _create,
    "add": _add,
    "move": _move,
    "hold": _hold,
    "delete": _delete,
    "rename": _rename,
    "merge": _merge,
    "drop": _drop,
    "clear": _clear,
    "open": _import,
}
"""What an entry may do, apart from `undo` and `redo`."""
