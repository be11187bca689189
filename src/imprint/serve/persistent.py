"""Immutable collections, of which a changed copy shares nearly everything with the
original: n changes take time in proportion to n log n, and every earlier state can
still be read, also by other threads.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")

# Bits of the hash of a key that choose a branch. More make changes slower, fewer make
# the tree deeper; with these, a change copies two or three short tuples and one small
# dictionary. A matter of taste.
BITS = 4
BRANCHES = 1 << BITS
MAX_BUCKET = 16  # of a dictionary at the end of a branch, before it is divided
MAX_DEPTH = 15  # so many times four bits are the whole hash of a key


class PersistentMap(Mapping[K, V], Generic[K, V]):
    """An immutable mapping in the order of its keys.

    It is a tree whose inner nodes are tuples, by bits of the hash of a key, and whose
    leaves are dictionaries, which are never modified.
    """

    __slots__ = ("_count", "_root")

    def __init__(self) -> None:
        self._root: Any = {}
        self._count = 0

    @classmethod
    def _of(cls, root: Any, count: int) -> "PersistentMap[K, V]":
        new = cls()
        new._root = root
        new._count = count
        return new

    def having(self, key: K, value: V) -> "PersistentMap[K, V]":
        """The mapping with a value for a key; this one itself if it has that."""
        leaf = self._leaf(key)
        if key in leaf and leaf[key] == value:
            return self
        root = _changed(self._root, key, hash(key), 0, {key: value})
        return self._of(root, self._count + (key not in leaf))

    def without(self, key: K) -> "PersistentMap[K, V]":
        """The mapping without a key that it has."""
        if key not in self._leaf(key):
            raise KeyError(key)
        root = _changed(self._root, key, hash(key), 0, {})
        return self._of(root if self._count > 1 else {}, self._count - 1)

    def __getitem__(self, key: K) -> V:
        return self._leaf(key)[key]

    def __contains__(self, key: object) -> bool:
        return key in self._leaf(key)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[K]:
        return iter(self._sorted())

    def items(self) -> Any:
        return self._sorted().items()

    def values(self) -> Any:
        return self._sorted().values()

    def _leaf(self, key: object) -> dict[Any, V]:
        """The dictionary that holds a key if any does."""
        node = self._root
        bits = hash(key)
        while type(node) is tuple:
            node = node[bits & (BRANCHES - 1)]
            bits >>= BITS
        leaf: dict[Any, V] = node
        return leaf

    def _sorted(self) -> dict[K, V]:
        """All keys in their order, with their values."""
        pairs: dict[Any, V] = {}
        nodes = [self._root]
        while nodes:
            node = nodes.pop()
            if type(node) is tuple:
                nodes += node
            else:
                pairs.update(node)
        return dict(sorted(pairs.items()))


def _changed(node: Any, key: Any, bits: int, depth: int, pair: dict[Any, Any]) -> Any:
    """A copy of a node with another value for a key, or without it."""
    if type(node) is tuple:
        branch = bits & (BRANCHES - 1)
        child = _changed(node[branch], key, bits >> BITS, depth + 1, pair)
        return (*node[:branch], child, *node[branch + 1 :])
    leaf = {k: v for k, v in node.items() if k != key}
    leaf.update(pair)
    if len(leaf) <= MAX_BUCKET or depth == MAX_DEPTH:
        return leaf
    leaves: list[dict[Any, Any]] = [{} for _ in range(BRANCHES)]
    for k, v in leaf.items():
        leaves[(hash(k) >> (BITS * depth)) & (BRANCHES - 1)][k] = v
    return tuple(leaves)


class PersistentList(Generic[T]):
    """An immutable list; to append to it takes constant time."""

    __slots__ = ("_count", "_earlier", "last")

    def __init__(self) -> None:
        self.last: Any = None
        self._earlier: PersistentList[T] | None = None
        self._count = 0

    @classmethod
    def of(cls, values: Iterable[T]) -> "PersistentList[T]":
        """A list of some values."""
        result = cls()
        for value in values:
            result = result.appended(value)
        return result

    def appended(self, value: T) -> "PersistentList[T]":
        """The list with one more value."""
        new: PersistentList[T] = PersistentList()
        new.last = value
        new._earlier = self
        new._count = self._count + 1
        return new

    def __len__(self) -> int:
        return self._count

    def __reversed__(self) -> Iterator[T]:
        node = self
        while node._earlier is not None:
            yield node.last
            node = node._earlier

    def __iter__(self) -> Iterator[T]:
        return reversed(list(reversed(self)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PersistentList):
            return NotImplemented
        return len(self) == len(other) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"PersistentList.of({list(self)!r})"
