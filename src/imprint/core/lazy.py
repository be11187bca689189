"""Values that are computed when they are first needed."""

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class Lazy:
    """What follows from an immutable value, computed on first use: the only part of the value that is written later.

    Two threads may compute the same entry; both results are equal, and one is stored. A copy starts empty.

    >>> cell = Lazy()
    >>> cell.get("answer", lambda: 42), "answer" in cell
    (42, True)
    """

    __slots__ = ("_entries", "source")

    def __init__(self, source: Any = None) -> None:
        self.source = source
        """What entries may be computed from; whoever no longer needs it sets it to None, which frees its memory."""
        self._entries: dict[str, Any] = {}

    def __reduce__(self) -> Any:
        return Lazy, ()

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    def get(self, name: str, compute: Callable[[], T]) -> T:
        """The entry of this name, computed where there is none."""
        if name not in self._entries:
            self._entries.setdefault(name, compute())
        value: T = self._entries[name]
        return value

    def put(self, name: str, value: Any) -> None:
        """Store an entry that was computed elsewhere."""
        self._entries[name] = value
