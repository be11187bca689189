"""Values that several threads read and replace."""

from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

T = TypeVar("T")
# the only entry that copies and pickles of a `Lazy` have: small, slow to compute
PICKLED_ENTRY = "calibration"


class Lazy:
    """A cache of results derived from an immutable value, each computed on first use.

    Two threads may compute the same entry; both results are equal, and one is stored.
    """

    __slots__ = ("_entries", "source")

    _entries: dict[str, Any]
    source: Any
    """What entries are computed from; set it to None to free its memory once it is no
    longer needed.
    """

    def __new__(cls) -> "Lazy":
        """An empty cache. Libraries that restore objects call nothing else."""
        self = super().__new__(cls)
        self._entries = {}
        self.source = None
        return self

    def __getstate__(self) -> dict[str, Any]:
        entries = self._entries
        return {name: entries[name] for name in entries if name == PICKLED_ENTRY}

    def __setstate__(self, entries: dict[str, Any]) -> None:
        self._entries = entries

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    def get(self, name: str, compute: Callable[[], T]) -> T:
        """The entry of this name, computed if absent."""
        if name not in self._entries:
            self._entries.setdefault(name, compute())
        return self._entries[name]

    def put(self, name: str, value: Any) -> None:
        """Store an entry that was computed elsewhere."""
        self._entries[name] = value

    def share(self, other: "Lazy") -> None:
        """Use the entries of another cache, present and future; both must derive from
        the same value.
        """
        self._entries = other._entries
        self.source = other.source


if TYPE_CHECKING:
    lazy = property
else:

    def lazy(compute: Callable[[Any], T]) -> property:
        """A property that is computed on first use and stored in `self.derived`, a
        `Lazy`, under its name.
        """
        name = compute.__name__
        return property(
            lambda self: self.derived.get(name, lambda: compute(self)),
            doc=compute.__doc__,
        )


_COMPARE_LOCK = Lock()  # held for one comparison, never while `update` runs


def compare_and_set(owner: object, name: str, update: Callable[[Any], Any]) -> None:
    """Replace the value of an attribute by `update(value)`; retry if another thread has
    replaced it meanwhile.

    `update` gets None if there is no such attribute. It may run more than once, so it
    must not have side effects.
    """
    while True:
        value = getattr(owner, name, None)
        replacement = update(value)
        with _COMPARE_LOCK:
            if getattr(owner, name, None) is value:
                setattr(owner, name, replacement)
                return
