"""Class labels as the leaves of a tree: `animal/cat` and `animal/dog` are below the
node `animal`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from imprint.core.arrays import Array
from imprint.core.errors import ParameterError, first_names, unknown

SEPARATOR = "/"
# of a node that replaces the answer 'none of these'; see `benchmarks/trees.py`
MIN_PROBABILITY = 0.8
# inputs whose p-value is below threshold / 5 seldom belong to any node
THRESHOLD_DIVISOR = 5
MAX_NAMED = 3  # classes that an error names


class Node(NamedTuple):
    """An inner node and its probability, the sum of its leaves."""

    label: str
    probability: float


@dataclass(frozen=True)
class LabelTree:
    """The paths of the classes, in the order of the classes.

    The labels define the tree. Numbers, and labels with an empty part such as
    `http://x`, are paths of one part.

    >>> tree = LabelTree.of(["animal/cat", "animal/dog", "sky"])
    >>> tree.depth, tree.level(1), tree.leaves("animal")
    (2, ['animal', 'sky'], ['animal/cat', 'animal/dog'])
    >>> P = np.array([[0.5, 0.4, 0.1]])
    >>> tree.at(P, 1)[1].tolist(), tree.instead(P, known=np.array([0.02]), unknown=0.05)
    ([[0.9, 0.1]], [Node(label='animal', probability=0.9)])
    """

    classes: tuple[Any, ...]
    paths: tuple[tuple[Any, ...], ...]

    @classmethod
    def of(cls, classes: Iterable[Any], *, flat: bool = False) -> "LabelTree":
        """The tree of some labels; with `flat`, a tree of one level."""
        classes = tuple(classes)
        return cls(
            classes, tuple((label,) if flat else path_of(label) for label in classes)
        )

    @cached_property
    def grouped_levels(self) -> list[int]:
        """The levels at which some node has two or more classes; empty if the classes
        do not form a tree.
        """
        return [
            n for n in range(1, self.depth) if len(self.level(n)) < len(self.classes)
        ]

    @cached_property
    def depth(self) -> int:
        """The number of levels."""
        return max(map(len, self.paths), default=1)

    def node(self, label: Any, level: int) -> Any:
        """The node of a label at a level, whether it is a class or not; a label at a
        higher level is its own node.
        """
        path = path_of(label) if self.depth > 1 else (label,)
        return label if len(path) <= level else SEPARATOR.join(path[:level])

    def level(self, level: int) -> list[Any]:
        """The nodes at a level, sorted."""
        return self._nodes(level)[0]

    def at(self, P: Array, level: int) -> tuple[list[Any], Array]:
        """The nodes at a level, sorted, and their probabilities from those of the
        classes.  # (n, C) -> (n, nodes)
        """
        nodes, index = self._nodes(level)
        order = np.argsort(index, kind="stable")
        starts = np.searchsorted(index[order], np.arange(len(nodes)))
        return nodes, np.add.reduceat(P[:, order], starts, axis=1)

    def _nodes(self, level: int) -> tuple[list[Any], Array]:
        """The nodes at a level, sorted, and for each class the index of its node.  #
        (C,)
        """
        if (
            isinstance(level, bool)
            or not isinstance(level, int)
            or not 1 <= level <= self.depth
        ):
            levels = "one level" if self.depth == 1 else f"levels 1 to {self.depth}"
            raise ParameterError(
                f"level={level!r}: the classes of this model have {levels}."
            )
        nodes, index = np.unique(
            [self.node(label, level) for label in self.classes], return_inverse=True
        )
        return nodes.tolist(), index

    def leaves(self, node: Any) -> list[Any]:
        """The classes below a node; empty where there is no such node."""
        path = path_of(node)
        deeper = (
            (label, leaf)
            for label, leaf in zip(self.classes, self.paths)
            if len(leaf) > len(path)
        )
        return [label for label, leaf in deeper if leaf[: len(path)] == path]

    def named(self, label: Any) -> list[Any]:
        """The class of this label or, for `animal/` with a slash at the end, the
        classes below this node. Anything else is refused.
        """
        if label in self.classes:
            return [label]
        is_node = isinstance(label, str) and label.endswith(SEPARATOR)
        leaves = self.leaves(label.removesuffix(SEPARATOR) if is_node else label)
        if not leaves:
            raise unknown("class", label, self.classes)
        if not is_node:
            raise ParameterError(
                f"{label!r} is not a class but a node of the tree, above"
                f" {first_names(leaves, MAX_NAMED)}; {label + SEPARATOR!r} means all"
                " classes below it."
            )
        return leaves

    def instead(
        self, P: Array, known: Array, unknown: float, level: int | None = None
    ) -> list[Node | None]:
        """The nodes that replace 'none of these' for rows whose p-value `known` is
        below `unknown`; None elsewhere.

        `P` holds the class probabilities (n, C). The node is the deepest one, at most
        at `level`, that has two or more classes and a sufficient probability.
        """
        replaceable = (known < unknown) & (known >= unknown / THRESHOLD_DIVISOR)
        return [
            node if r else None
            for node, r in zip(self.deepest(P, level), replaceable.tolist())
        ]

    def deepest(
        self, P: Array, level: int | None = None, minimum: float = MIN_PROBABILITY
    ) -> list[Node | None]:
        """For each row of P (n, C), the deepest node that has two or more classes and a
        probability >= `minimum`.
        """
        likely: list[Node | None] = [None] * len(P)
        for depth in (n for n in self.grouped_levels if level is None or n <= level):
            nodes, sums = self.at(P, depth)
            sums = np.where(np.bincount(self._nodes(depth)[1]) > 1, sums, 0)
            for i in np.flatnonzero(sums.max(axis=1) >= minimum).tolist():
                best = int(sums[i].argmax())
                likely[i] = Node(nodes[best], min(float(sums[i, best]), 1.0))
        return likely


def path_of(label: Any) -> tuple[Any, ...]:
    """The parts of a label, from the top of the tree; a label that cannot be a path is
    its only part.
    """
    parts = (
        tuple(part.strip() for part in label.split(SEPARATOR))
        if isinstance(label, str)
        else ()
    )
    return parts if all(parts) and parts else (label,)
