"""`Decider`: the base of every fitted head, and how scores become predictions."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from imprint.aggregators._base import Aggregator
from imprint.core.arrays import (
    Array,
    Proxies,
    all_finite,
    concatenate,
    dtype_name,
    like,
    rows_at,
    to_numpy,
)
from imprint.core.errors import ParameterError, unknown
from imprint.core.labels import as_labels, check_kinds
from imprint.core.threads import Lazy, lazy
from imprint.core.tree import LabelTree
from imprint.head.merging import Merged, check_types, default_names
from imprint.kernels.scores import keep_winners
from imprint.normalisers._base import Scaling

if TYPE_CHECKING:
    from imprint.head.head import Head

MAX_SCORES = 2**24  # in memory at once, if only the winners or p-values are needed


@dataclass(frozen=True, eq=False)
class Decider:
    """Classifies embeddings: `Head`, `TagHead` for tags, and `PretrainedHead` for
    pre-trained and new classes.

    The aggregator computes scores from normalised queries and from `prepared`, which it
    computes once from the proxies.
    """

    # whether an input may have several of the classes, or none
    tags: ClassVar[bool] = False
    derived: Lazy = field(default_factory=Lazy, init=False, repr=False)

    if TYPE_CHECKING:  # provided by each head, as fields or properties

        @property
        # the head of the imprinted classes, for a `Head` itself
        def imprinted(self) -> "Head": ...
        @property
        def labels(self) -> tuple[Any, ...]: ...  # of all classes, in any order
        @property
        def proxies(self) -> Proxies: ...  # sorted by class
        @property
        # what the aggregator computed once from the proxies
        def prepared(self) -> Any: ...
        @property
        def calibrated(self) -> bool: ...
        @property
        def calibration(self) -> Any: ...  # raises `NotFittedError` if there is none

        def learn(self, X: Array, y: Array, weight: Array | None = None) -> Self: ...
        def forget(self, label: Any) -> Self: ...
        # this head without all other classes, and with another name for a class
        def only(self, labels: set[Any]) -> Self: ...
        def rename(self, old: Any, new: Any) -> Self: ...
        # this head without some rows, perhaps only in the classes of these labels
        def forget_rows(
            self, X: Array, labels: Sequence[Any] | None = None
        ) -> Self: ...
        def without_rows(self) -> Self: ...  # for a file without training rows
        # the result of `merge`, after `check_types`
        def merged_with(
            self, others: Sequence[Self], names: Sequence[str]
        ) -> Merged: ...

    def __len__(self) -> int:
        return len(self.labels)

    def __contains__(self, label: Any) -> bool:
        return isinstance(label, Hashable) and label in self.labels

    @lazy
    def classes(self) -> Array:
        """The labels, sorted."""
        return as_labels(sorted(self.labels))

    @property
    def owners(self) -> Array:
        """The labels that `proxies.labels` refer to: the classes, or the label sets of
        tags.
        """
        return (self.imprinted if self.tags else self).classes

    @property
    def rows_per_class(self) -> Array:
        """The number of training rows of each imprinted class."""
        proxies = self.imprinted.proxies
        return np.bincount(proxies.labels, proxies.mass)

    @property
    def norm_inf(self) -> Scaling:
        """How queries are scaled."""
        return self.imprinted.method.scaling("inf")

    @property
    def aggregator(self) -> Aggregator:
        """The aggregator that scores the classes."""
        return self.imprinted.method.aggregator

    @property
    def description(self) -> str:
        """The method in one line."""
        return str(self.imprinted.method)

    def tree(self) -> LabelTree:
        """The classes as the leaves of a tree: `animal/cat` is below `animal`. Tags,
        and classes for which no tree was asked, have one level.
        """
        is_tree = not self.tags and self.imprinted.tree_of_labels
        return LabelTree.of(self.classes.tolist(), flat=not is_tree)

    def merge(self, *others: Self) -> Self:
        """The head of all rows of this head and others, which were fitted with the same
        settings.

        It is the head of one fit where all rows of shared classes are stored, or where
        the generator merges exactly.
        """
        return merge([self, *others]).head

    def split(self, labels: Iterable[Any]) -> Self:
        """This head with only some classes: identical to one that never saw the others.

        `animal/` stands for all classes below this node of the tree.
        """
        tree = self.tree()
        chosen: set[Any] = set()
        for label in labels:
            chosen.update([label] if label in self else tree.named(label))
        if not chosen:
            raise ParameterError("split(classes): give at least one class.")
        return self.only(chosen)

    def without(self, label: Any) -> Self:
        """This head without a class or, for `animal/` with a slash at the end, without
        the classes below this node of the tree.
        """
        if self.tags or label in self:
            return self.forget(label)
        head = self
        for leaf in self.tree().named(label):
            head = head.forget(leaf)
        return head

    def scores(self, Q: Array) -> Array:
        """Class scores of raw queries; refused if they overflow.  # (q, C)"""
        queries = self._normalised(Q)
        S = self.aggregator.scores(queries, self.prepared)
        _refuse_overflow(S)
        return S

    def doubt(self, Q: Array) -> Array | None:
        """How little the proxies determine the scores of queries; None if the
        aggregator has no doubt.  # (q,)
        """
        queries = self._normalised(Q)
        return self.aggregator.doubt(queries, self.prepared)

    def scores_and_doubt(self, Q: Array) -> tuple[Array, Array | None]:
        """`scores` and `doubt` of the same raw queries, in less time."""
        queries = self._normalised(Q)
        S, doubt = self.aggregator.scores_and_doubt(queries, self.prepared)
        _refuse_overflow(S)
        return S, doubt

    def _normalised(self, Q: Array) -> Array:
        width = self.imprinted.width or self.proxies.weights.shape[1]
        if Q.shape[1] != width:
            raise ParameterError(
                f"X has {Q.shape[1]} columns; the model was fitted on {width}."
            )
        return self.norm_inf.apply(Q)

    def probabilities(self, S: Array) -> Array:
        """Class scores as probabilities, calibrated where possible; the winner's is the
        largest.  # (q, C)
        """
        P = self.aggregator.probabilities(S, self.prepared)
        if self.calibrated:
            P = self.calibration.probabilities(P)
        return keep_winners(P, S)

    def class_probabilities(
        self, Q: Array, level: int | None = None
    ) -> tuple[list[Any], Array]:
        """The classes, or the nodes at a level of the tree, and their probabilities for
        raw queries.  # (q, C)
        """
        S = self.scores(Q)
        P = self.probabilities(S)
        if level is None:
            return self.classes.tolist(), P
        tree = self.tree()
        return tree.at(to_numpy(P), level)

    def winners(self, Q: Any) -> Any:
        """The index in `classes` of the largest score of every query; on a tie the
        first.  # (q,)
        """

        def winners(block: Any) -> Any:
            return self.scores(block).argmax(axis=1)

        return self._in_blocks(Q, winners)

    def predict(self, Q: Any, level: int | None = None) -> Any:
        """The label of every raw query; with `level`, its most probable node at that
        level of the tree.  # (q,)
        """
        if level is not None:
            nodes, P = self.class_probabilities(Q, level)
            return as_labels(nodes)[P.argmax(axis=1)]
        winners = self.winners(Q)
        return rows_at(like(self.classes, winners), winners)

    def known(self, Q: Array) -> Array:
        """The conformal p-value that each query belongs to one of the classes, in (0,
        1].  # (q,) float64
        """
        calibration = self.calibration

        def p_values(block: Array) -> Array:
            S, doubt = self.scores_and_doubt(block)
            if doubt is not None:
                doubt = to_numpy(doubt)
            return calibration.p_values(to_numpy(S), doubt)

        return self._in_blocks(Q, p_values)

    def _in_blocks(self, Q: Any, answer: Callable[[Any], Any]) -> Any:
        rows = max(1, MAX_SCORES // len(self))
        starts = range(0, len(Q), rows)
        blocks = (Q[i : i + rows] for i in starts)
        return concatenate([answer(block) for block in blocks])

    def evidence(self, x: Array) -> Array:
        """The contribution of every proxy to the class that wins one raw query; see
        `Aggregator.evidence`.  # (p,)
        """
        row = x[None, :]
        winner = int(self.winners(row)[0])
        q = self.norm_inf.apply(row)[0]
        return self.aggregator.evidence(q, self.proxies, self.prepared, winner)


def _refuse_overflow(S: Any) -> None:
    if not all_finite(S):
        raise ParameterError(
            f"the scores overflow {dtype_name(S)}; scale the rows down or use"
            " norm_inf='l2'."
        )


def check_new_name(labels: Sequence[Any], old: Any, new: Any) -> None:
    """Refuse to rename a class that does not exist, or to a name that cannot be
    used.
    """
    if old not in labels:
        raise unknown("class", old, labels)
    call = f"rename({old!r}, {new!r})"
    if new in labels:
        raise ParameterError(f"{call}: the model has a class {new!r} already.")
    as_labels([new])  # refuses what cannot be a label
    check_kinds(f"{call}: the new name is among", [new], labels)


def merge(heads: Sequence[Decider], names: Sequence[str] = ()) -> Merged:
    """One head from several, and what its user should know; `names` are used in
    errors.
    """
    names = names or default_names(len(heads))
    check_types(heads, names)
    return heads[0].merged_with(heads[1:], names)
