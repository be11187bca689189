"""The labelled items of a project as a value, and the editor that applies changes to a copy of it."""

from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from imprint.core.errors import ParameterError
from imprint.core.family import unknown
from imprint.core.tree import LabelTree
from imprint.serve.labels import check_leaf, clean_label

Entry = dict[str, Any]
"""A change as JSON: `do` is one of `CHANGES`, `undo` or `redo`, and the other keys are its arguments."""
CHANGES = ("create", "add", "move", "hold", "delete", "rename", "merge", "drop", "clear", "open")


class LabelledItem(NamedTuple):
    """A picture, a sound or a text in a class."""

    id: int
    label: str
    name: str
    digest: str
    """SHA-256 of the file's bytes or of the text."""
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

    def with_content(self, digest: str) -> list[LabelledItem]:
        """The items that have this content, in any class."""
        return [i for i in self.items.values() if i.digest == digest]

    def by_class(self) -> dict[str, list[LabelledItem]]:
        """The items of all classes, in the order in which they were added."""
        items_of: dict[str, list[LabelledItem]] = {label: [] for label in self.classes}
        for item in self.items.values():
            items_of[item.label].append(item)
        return items_of


def changed_labels(before: LabelledSet, after: LabelledSet) -> set[str]:
    """The classes that differ between two states: those that must be fitted again."""
    ids = [i for i, item in before.items.items() if after.items.get(i) is not item]
    ids += [i for i in after.items if i not in before.items]
    pairs = [(before.items.get(i), after.items.get(i)) for i in ids]
    labels = {item.label for pair in pairs if pair[0] != pair[1] for item in pair if item is not None}
    both = before.classes.keys() | after.classes.keys()
    return labels | {k for k in both if before.classes.get(k, "") != after.classes.get(k, "")}


class LabelEditor:
    """A copy of a labelled set, which changes modify in place. Each method of a change returns whether it did."""

    def __init__(self, labelled: LabelledSet):
        self.classes, self.items, self.model = dict(labelled.classes), dict(labelled.items), labelled.model

    def result(self) -> LabelledSet:
        """The labelled set after the changes."""
        return LabelledSet(self.classes, self.items, self.model)

    def apply(self, entry: Entry, id: int) -> bool:
        """Apply a change, whose new item gets the number `id`; False if nothing changes.

        An entry that cannot be applied is refused in one sentence, after which this copy must not be used.
        """
        kind = entry.get("do")
        if not isinstance(kind, str) or kind not in CHANGES:
            raise unknown("change", kind, CHANGES)
        try:
            changed: bool = self._add(id, entry) if kind == "add" else getattr(self, f"_{kind}")(entry)
        except (KeyError, TypeError) as e:
            raise ParameterError(f"{kind}: the entry lacks {e} or it has the wrong type.") from None
        return changed

    def _add(self, id: int, entry: Entry) -> bool:
        item = LabelledItem.of_entry(id, entry)
        self._require_class(item.label)
        self.items[id] = item
        return True

    def _create(self, entry: Entry) -> bool:
        label = clean_label(entry["label"])
        if label in self.classes:
            raise ParameterError(f"There is a class {label!r} already.")
        self._require_class(label)
        return True

    def _move(self, entry: Entry) -> bool:
        label = clean_label(entry["label"])
        self._require_class(label)
        return self._move_to(label, self._named(entry["ids"]))

    def _hold(self, entry: Entry) -> bool:
        held_out = entry.get("held_out") is not False
        items = [item for item in self._named(entry["ids"]) if item.held_out != held_out]
        self.items.update({item.id: item._replace(held_out=held_out) for item in items})
        return bool(items)

    def _delete(self, entry: Entry) -> bool:
        for item in self._named(entry["ids"]):
            del self.items[item.id]
        return True

    def _rename(self, entry: Entry) -> bool:
        label, to = self._existing(entry["label"]), clean_label(entry["to"])
        if label == to:
            return False
        if to in self.classes:
            raise ParameterError(f"There is a class {to!r} already; merge {label!r} into it instead.")
        check_leaf(to, self.classes.keys() - {label})
        self._move_to(to, self._of(label))
        self.classes = {to if k == label else k: origin for k, origin in self.classes.items()}
        return True

    def _merge(self, entry: Entry) -> bool:
        label, into = self._existing(entry["label"]), self._existing(entry["into"])
        if label == into:
            raise ParameterError(f"{label!r} cannot be merged into itself.")
        if self.classes[label] is not None:
            raise ParameterError(f"{label!r} came with a model, without its examples, so it cannot be merged.")
        self._move_to(into, self._of(label))
        del self.classes[label]
        return True

    def _drop(self, entry: Entry) -> bool:
        for label in LabelTree.of(self.classes).leaves(entry["label"]) or [self._existing(entry["label"])]:
            for item in self._of(label):
                del self.items[item.id]
            del self.classes[label]
        return True

    def _clear(self, entry: Entry) -> bool:
        changed = bool(self.classes)
        self.classes, self.items, self.model = {}, {}, None
        return changed

    def _open(self, entry: Entry) -> bool:
        """Replace all classes by those of a model file."""
        self.classes, self.items = {clean_label(label): str(label) for label in entry["labels"]}, {}
        self.model = str(entry["model"])
        return True

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

    def _move_to(self, label: str, items: Iterable[LabelledItem]) -> bool:
        """Move items to a class; those whose content it already has are deleted."""
        digests, changed = {item.digest for item in self._of(label)}, False
        for item in items:
            if item.label != label:
                if item.digest in digests:
                    del self.items[item.id]
                else:
                    self.items[item.id] = item._replace(label=label)
                digests.add(item.digest)
                changed = True
        return changed
