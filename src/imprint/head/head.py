"""`Head`: the fitted state, as one immutable value that any thread may read."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from imprint.aggregators._base import Change
from imprint.core.arrays import (
    Array,
    Proxies,
    State,
    on_gpu,
    rows_at,
    split_rows,
    to_device,
)
from imprint.core.errors import NotFittedError, ParameterError, unknown
from imprint.core.labels import check_kinds, distinct
from imprint.core.threads import lazy
from imprint.head.decider import Decider, check_new_name
from imprint.head.forgetting import forget_rows
from imprint.head.merging import Merged, merge_heads
from imprint.head.windows import learn_newest
from imprint.method import ClassState, Method

# without these in its state, a proxy represents one row, itself
PROXY_DEFAULTS = {"mass": 1.0, "spread": 0.0}


@dataclass(frozen=True, eq=False)
class Head(Decider):
    """A method and the states of the classes, in the order of imprinting. `learn` and
    `forget` return another head.

    Proxies and what the aggregator prepares from them are computed when first needed.

    >>> from imprint.method import Method
    >>> method = Method.of(
    ...     norm_pre="l2",
    ...     generator="mean",
    ...     norm_post="l2",
    ...     norm_inf="l2",
    ...     aggregator="max",
    ... )
    >>> rows = np.eye(2, dtype="float32")
    >>> empty = Head(method, seed=0, dtype="float32")
    >>> head = empty.learn(rows, np.array(["cat", "dog"]))
    >>> head.classes[head.winners(np.array([[0.1, 0.9]], dtype="float32"))].tolist()
    ['dog']
    >>> head.forget("cat").classes.tolist(), head.classes.tolist()
    (['dog'], ['cat', 'dog'])
    """

    method: Method
    seed: int
    dtype: Any
    labels: tuple[Any, ...] = ()
    # those of a file are computed when they are needed
    states: Sequence[ClassState] = ()
    width: int | None = None
    folds: Any = None  # the `imprint.calibration.CrossValidation` of a calibrated model
    # the GPU of the rows learnt last, where the aggregator computes too
    device: Any = None
    # whether labels with a slash form a tree; None: nobody asked, so they do not
    tree_of_labels: bool | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", np.dtype(self.dtype))

    @property
    def imprinted(self) -> "Head":
        return self

    def learn(self, X: Array, y: Array, weight: Array | None = None) -> "Head":
        """This head after new classes and more rows of known ones; a row of weight 2
        counts as two equal rows.
        """
        self.method.check_width(X.shape[1])
        present, index = distinct(y)
        check_kinds("y holds", present, self.labels)
        # few classes are sorted in one pass
        index = index.astype(np.min_scalar_type(len(present)))
        order = np.argsort(index, kind="stable")
        sizes = np.bincount(index).tolist()
        parts = split_rows(rows_at(X, order), sizes)
        rows = dict(zip(present, parts))
        weights = {}
        if weight is not None:
            ordered = np.asarray(weight)[order]
            parts = split_rows(ordered, sizes)
            weights = dict(zip(rows, parts))
        states: Sequence[ClassState] = self.states
        known = set(rows).intersection(self.labels)
        if known:
            states = tuple(
                (
                    self.method.extend(
                        state, rows[label], self.seed, label, weights.get(label)
                    )
                    if label in rows
                    else state
                )
                for label, state in zip(self.labels, states)
            )
        new = [label for label in rows if label not in known]
        new_rows = [rows[label] for label in new]
        new_weights = None
        if weight is not None:
            new_weights = [weights[label] for label in new]
        added = self.method.summarise(new_rows, self.seed, new, new_weights)
        return self._changed(
            labels=self.labels + tuple(new),
            # a tuple stays itself: one copy of the pointers, not two
            states=tuple(states) + tuple(added),
            width=X.shape[1],
            device=X.device if on_gpu(X) else None,
            folds=self.folds and self.folds.learn(X, y, weight),
        )

    def forget(self, label: Any) -> "Head":
        """This head without a class, identical to one that never saw it."""
        if label not in self:
            raise unknown("class", label, self.labels)
        if len(self) == 1:
            raise ParameterError(
                f"forget({label!r}): it is the only class; a classifier needs at least"
                " one."
            )
        return self.only({*self.labels} - {label})

    def forget_rows(self, X: Array, labels: Sequence[Any] | None = None) -> "Head":
        """This head without some training rows; see `head.forgetting`."""
        return forget_rows(self, X, labels)

    def learn_newest(
        self, X: Array, y: Array, weight: Array | None, max_rows: int
    ) -> "Head":
        """This head after more rows, with the newest of each class; see
        `head.windows`.
        """
        check_kinds("y holds", y, self.labels)
        return learn_newest(self, X, y, weight, max_rows)

    def with_state(self, label: Any, state: ClassState, folds: Any) -> "Head":
        """This head with another state of a class, and its cross-validation."""
        i = self.labels.index(label)
        states = list(self.states)
        states[i] = state
        return self._changed(states=tuple(states), folds=folds)

    def without_rows(self) -> "Head":
        """This head without training rows, for a file that others may read.

        Its calibration keeps its numbers. Refused where the proxies of a class are its
        rows.
        """
        states = []
        for label, state in zip(self.labels, self.states):
            summary = self.method.generator.without_rows(state.summary)
            check_shareable(label, summary)
            states.append(ClassState(summary, state.sums))
        folds = self.folds and self.folds.without_rows()
        shared = replace(self, states=tuple(states), folds=folds)
        if not self.method.per_class:
            shared.derived.put("proxies", self.proxies)
        return shared

    def only(self, labels: set[Any]) -> "Head":
        chosen = [i for i, label in enumerate(self.labels) if label in labels]
        return self._changed(
            labels=tuple(self.labels[i] for i in chosen),
            states=tuple(self.states[i] for i in chosen),
            folds=self.folds and self.folds.only(labels),
        )

    def rename(self, old: Any, new: Any) -> "Head":
        """This head with another name for a class.

        Scores, probabilities and p-values stay the same. The state of the class stays
        that of its old name, whose random numbers it has: it differs from a fit under
        the new name where the generator draws random numbers.
        """
        check_new_name(self.labels, old, new)
        labels = tuple(new if label == old else label for label in self.labels)
        folds = self.folds and self.folds.rename(old, new)
        return replace(self, labels=labels, folds=folds)

    def merged_with(self, others: Sequence["Head"], names: Sequence[str]) -> Merged:
        return merge_heads([self, *others], names)

    def _changed(self, **fields: Any) -> "Head":
        """Another head, which prepares itself from the nearest ancestor that is
        prepared.
        """
        child = replace(self, **fields)
        if self.method.per_class:
            source = self.derived.source
            if "prepared" in self.derived:
                source = self
            child.derived.source = source
        return child

    @lazy
    def proxies(self) -> Proxies:
        """The normalised proxies, sorted by class."""
        order = sorted(range(len(self)), key=self.labels.__getitem__)
        summaries = [self.states[i].summary for i in order]
        arrival = np.argsort(order).tolist()
        weights, sizes = self.method.weights(summaries, arrival, self.dtype)
        proxies = build_proxies(summaries, weights, sizes)
        return proxies._replace(blocks=self.method.blocks)

    @lazy
    def proxies_per_class(self) -> Array:
        """The number of proxies of each class, in the order of `classes`."""
        return np.bincount(self.proxies.labels)

    def with_folds(self, folds: Any) -> "Head":
        """The same head with another cross-validation; everything derived is shared."""
        head = replace(self, folds=folds)
        head.derived.share(self.derived)
        return head

    @lazy
    def prepared(self) -> Any:
        """What the aggregator computes once from the proxies."""
        sums, ancestor = self.sums(), self.derived.source
        prepared = (
            None
            if ancestor is None
            else self.aggregator.update(self._change(ancestor), sums)
        )
        if prepared is None:
            prepared = self.aggregator.prepare(self.on_device(self.proxies), sums)
        self.derived.source = None  # frees the memory of the ancestor
        return prepared

    def on_device(self, proxies: Proxies) -> Proxies:
        """The proxies on the device on which the aggregator computes."""
        if self.device is None or not self.aggregator.takes_tensors:
            return proxies
        return proxies._replace(weights=to_device(proxies.weights, self.device))

    def sorted_states(self) -> list[ClassState]:
        """The states in the order of the labels."""
        return [
            state
            for _, state in sorted(
                zip(self.labels, self.states),
                key=lambda pair: pair[0],
            )
        ]

    def sums(self) -> State:
        """The statistics of all training rows, merged in the order of the labels."""
        return self.aggregator.merge([state.sums for state in self.sorted_states()])

    def _change(self, ancestor: "Head") -> Change:
        """How the classes differ from those of an ancestor; a class is unchanged if its
        state is the same object.

        Only the proxies of new classes are computed, because the proxies of a class
        depend only on that class.
        """
        earlier = dict(zip(ancestor.labels, ancestor.states))
        unchanged = {
            label
            for label, state in zip(self.labels, self.states)
            if earlier.get(label) is state
        }
        removed = [
            i
            for i, label in enumerate(sorted(ancestor.labels))
            if label not in unchanged
        ]
        summaries = [state.summary for state in self.sorted_states()]
        sizes = [len(rows) for rows in self.method.generator.proxies(summaries)]
        added = [
            i for i, label in enumerate(sorted(self.labels)) if label not in unchanged
        ]
        proxies = None
        if added:
            new = [summaries[i] for i in added]
            arrival = range(len(new))
            weights, sizes_of_new = self.method.weights(new, arrival, self.dtype)
            new_proxies = build_proxies(new, weights, sizes_of_new)
            proxies = self.on_device(
                new_proxies._replace(labels=np.array(added)[new_proxies.labels])
            )
        labels = np.repeat(np.arange(len(sizes)), sizes)
        mass = _per_proxy(summaries, sizes, "mass")
        return Change(
            ancestor.prepared,
            np.array(removed, dtype=np.intp),
            proxies,
            labels,
            mass,
            lambda: self.on_device(self.proxies),
        )

    @property
    def calibrated(self) -> bool:
        return self.folds is not None

    @property
    def calibration(self) -> Any:
        if self.folds is None:
            raise NotFittedError(
                "This model was not calibrated: fit it with calibrate=True."
            )
        return self.folds.calibration


def build_proxies(
    summaries: Sequence[State], weights: Array, sizes: Sequence[int]
) -> Proxies:
    """Proxies from the states of the classes, the weights of all proxies, and the
    number of proxies of each class.
    """
    mass, spread = (_per_proxy(summaries, sizes, name) for name in PROXY_DEFAULTS)
    labels = np.repeat(np.arange(len(sizes)), sizes)
    return Proxies(weights, labels, mass, spread)


def _per_proxy(summaries: Sequence[State], sizes: Sequence[int], name: str) -> Array:
    """The mass or spread of all proxies.  # (p,)"""
    parts = [
        s[name] if name in s else np.full(n, PROXY_DEFAULTS[name])
        for s, n in zip(summaries, sizes)
    ]
    if [len(part) for part in parts] != list(sizes):
        raise ParameterError(
            f"A state's {name} must hold one number for each proxy of its class."
        )
    return np.concatenate(parts)


def check_shareable(label: Any, summary: State) -> None:
    """Refuse to share a class each of whose proxies is a training row."""
    if count_single_rows(summary) == len(summary["mass"]):
        raise ParameterError(
            f"share: every proxy of the class {label!r} is a training row; fit the"
            " model with fewer proxies, such as kmeans(k=5), or with more rows."
        )


def count_single_rows(summary: State) -> int:
    """The number of proxies of a class that are a training row."""
    if "mass" not in summary:
        # then the state consists of rows
        return len(summary["rows"]) if "rows" in summary else 0
    is_single = summary["mass"] <= 1
    if "spread" in summary:
        # of copies of one row
        is_single |= summary["spread"] == 0
    return int(is_single.sum())
