"""`TagHead`: a head over label sets that scores single labels, as one immutable
value.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast

import numpy as np

from imprint.aggregators.kernel import Kernel, SolvedKernel
from imprint.calibration import CrossValidation
from imprint.core.arrays import Array, Proxies, State, class_rng, to_numpy
from imprint.core.component import DEFAULT_METHOD
from imprint.core.errors import ParameterError, unknown
from imprint.core.label_sets import as_text, indicator, texts_of
from imprint.core.labels import kind_of
from imprint.core.threads import lazy
from imprint.generators._base import row_masses
from imprint.head import Decider, Head
from imprint.head.decider import check_new_name
from imprint.head.merging import Merged, merge_heads
from imprint.method import ClassState, Method
from imprint.tags.calibration import TagCalibration, calibrate_tags


@dataclass(frozen=True, eq=False)
class TagHead(Decider):
    """Labels of which an input may have several. `learn` and `forget` return another
    head.

    The classes of the head `imprinted` are the label sets of the training rows, as
    texts (see `core.label_sets`). The kernel is solved for the labels: the target of a
    proxy is 1 for every label of its set. Each label has its own threshold and
    calibration, from leave-one-out predictions, which follow from the solved system.

    >>> method = Method.of(
    ...     norm_pre="l2",
    ...     generator="all",
    ...     norm_post="none",
    ...     norm_inf="l2",
    ...     aggregator="kernel",
    ... )
    >>> rows = np.array([[1, 0], [0, 1], [1, 1], [-1, 0]], dtype="float32")
    >>> empty = TagHead(Head(method, 0, "float32"), ("cat", "dog"))
    >>> head = empty.learn(rows, np.array(["cat", "dog", "cat|dog", ""]))
    >>> head.predict(rows[2:]).tolist(), head.forget("dog").classes.tolist()
    ([[1, 1], [0, 0]], ['cat'])
    """

    tags: ClassVar[bool] = True
    calibrated: ClassVar[bool] = True
    imprinted: Head
    labels: tuple[Any, ...]  # sorted

    def __post_init__(self) -> None:
        if reason := reason_against_tags(self.imprinted.method):
            raise ParameterError(reason)

    def learn(
        self,
        X: Array,
        y: Array,
        weight: Array | None = None,
    ) -> "TagHead":
        """This head after more rows; `y` are label sets as texts."""
        labels = {*self.labels, *self._new_labels(y)}
        return TagHead(self.imprinted.learn(X, y, weight), tuple(sorted(labels)))

    def _new_labels(self, y: Array) -> set[Any]:
        """The labels of label sets that this head does not have, of its kind."""
        texts: set[str] = set()
        for label_set in np.unique(y).tolist():
            texts.update(texts_of(label_set))
        texts.difference_update(map(str, self.labels))
        if isinstance(self.labels[0], str):
            return texts
        try:
            return set(map(int, texts))
        except ValueError:
            raise ParameterError(
                "The labels of the model are numbers, and the new ones are texts."
            ) from None

    def forget(self, label: Hashable) -> "TagHead":
        """This head without a label and the rows that have no other label; the others
        lose the label.
        """
        if label not in self:
            raise unknown("label", label, self.labels)
        labels = tuple(other for other in self.labels if other != label)
        before = self.imprinted.labels
        label_sets = [without_label(label_set, label) for label_set in before]
        is_empty = all(label_set is None for label_set in label_sets)
        if not labels or is_empty:
            raise ParameterError(
                f"forget({label!r}): no row has another label; a model needs at least"
                " one."
            )
        return TagHead(with_label_sets(self.imprinted, label_sets), labels)

    def forget_rows(
        self,
        X: Array,
        labels: Sequence[Hashable] | None = None,
    ) -> "TagHead":
        """This head without some rows, and without labels that no other row has."""
        if labels is not None:
            raise ParameterError("forget_rows: tags take no y; give the rows alone.")
        sets = self.imprinted.forget_rows(X)
        before = indicator(self.imprinted.labels, self.labels).sum(axis=0)
        after = indicator(sets.labels, self.labels).sum(axis=0)
        # a label that had no row before stays: it was declared, not learned
        stays = (after > 0) | (before == 0)
        labels = [self.labels[i] for i in np.flatnonzero(stays).tolist()]
        return TagHead(sets, tuple(labels))

    def without_rows(self) -> "TagHead":
        """This head without training rows; its calibration needs none."""
        return TagHead(self.imprinted.without_rows(), self.labels)

    def only(self, labels: set[Any]) -> "TagHead":
        """This head without all other labels."""
        head = self
        for label in self.labels:
            if label not in labels:
                head = head.forget(label)
        return head

    def rename(
        self,
        old: Hashable,
        new: Hashable,
    ) -> "TagHead":
        """This head with another name for a label, and with the same calibration."""
        check_new_name(self.labels, old, new)
        if str(new) == "":
            raise ParameterError("rename: a tag needs a name.")
        label_sets = [
            renamed_set(
                label_set,
                old,
                new,
                self.labels,
            )
            for label_set in self.imprinted.labels
        ]
        imprinted = replace(self.imprinted, labels=tuple(label_sets))
        labels: list[Any] = [new if label == old else label for label in self.labels]
        # labels are sorted: the new name may have another place
        order = sorted(range(len(labels)), key=lambda i: labels[i])
        renamed = TagHead(imprinted, tuple(labels[i] for i in order))
        renamed.derived.put("calibration", self.calibration.reordered(order))
        return renamed

    def merged_with(
        self,
        others: Sequence["TagHead"],
        names: Sequence[str],
    ) -> Merged:
        """The head of the rows of all heads, and what a report of the merge needs."""
        heads = (self, *others)
        kinds = {kind_of(head.labels) for head in heads}
        if len(kinds) > 1:
            raise ParameterError(
                "merge: the labels of some models are numbers and those of others are"
                " texts; fit them with labels of one kind."
            )
        merged = merge_heads([head.imprinted for head in heads], names)
        labels = {label for head in heads for label in head.labels}
        return merged._replace(head=TagHead(merged.head, tuple(sorted(labels))))

    @property
    def proxies(self) -> Proxies:
        """The proxies; their labels are indices into the label sets."""
        return self.imprinted.proxies

    @property
    def rows_per_class(self) -> Array:
        return np.asarray(self.proxies.mass @ self.targets)

    @property
    def targets(self) -> Array:
        """The indicator matrix of the labels of each proxy.  # (p, labels)"""
        label_sets = self.imprinted.classes.tolist()
        return indicator(label_sets, self.labels)[self.proxies.labels]

    @lazy
    def prepared(self) -> SolvedKernel:
        """The system, solved for the labels."""
        head = self.imprinted
        proxies = head.on_device(head.proxies)
        return self.aggregator.prepare(proxies, head.sums(), targets=self.targets)

    @property
    def aggregator(self) -> Kernel:
        """The aggregator, which `reason_against_tags` requires to be `Kernel`."""
        return cast(Kernel, self.imprinted.method.aggregator)

    @lazy
    def calibration(self) -> TagCalibration:
        """The calibration of each label, from leave-one-out predictions."""
        return calibrate_tags(self)

    def probabilities(self, S: Array) -> Array:
        """The calibrated probability of each label, in (0, 1).  # (q, labels)"""
        return self.calibration.probabilities(S)

    def predict(
        self,
        Q: Array,
        level: int | None = None,
    ) -> Array:
        """Which labels each query has: those whose score reaches their threshold.  #
        (q, labels) int64

        With `level`, the most probable label of every query.  # (q,)
        """
        if level is not None:
            return np.asarray(super().predict(Q, level))
        reached = to_numpy(self.scores(Q)) >= self.calibration.thresholds
        return np.asarray(reached.astype(np.int64))


def new_head(
    empty: Head,
    labels: tuple[Any, ...] | None,
    calibrate: bool,
    keep_rows: bool = False,
) -> Head | TagHead:
    """The head that learns the rows of a model.

    Parameters
    ----------
    empty : Head
        Without classes.
    labels : tuple, optional
        The labels of a model of tags, which is always calibrated.
    calibrate : bool
        Whether cross-validation goes with a model of classes.
    keep_rows : bool
        Whether cross-validation holds all rows of every class.
    """
    if labels is not None and keep_rows:
        raise ParameterError(
            "keep_rows: a model of tags has no such option; with generator='all' it"
            " keeps all rows."
        )
    if labels is not None:
        return TagHead(empty, labels)
    if keep_rows and not calibrate:
        raise ParameterError(
            "keep_rows: cross-validation holds the rows; it needs calibrate=True."
        )
    if not calibrate:
        return empty
    return replace(empty, folds=CrossValidation(empty, keep_rows=keep_rows))


def predicted_sets(Y: Array, labels: Sequence[Hashable]) -> list[str]:
    """The rows of an indicator matrix as label sets."""
    label_sets = []
    for row in Y:
        columns = np.flatnonzero(row).tolist()
        label_sets.append(as_text(labels[c] for c in columns))
    return label_sets


def default_method() -> Method:
    """The default method for tags: every row is a proxy, with more noise than for
    classes.
    """
    # one label of a set is less certain than the one label of a row
    parts = {"generator": "all", "aggregator": "kernel(noise=1)"}
    return Method.of(**{**DEFAULT_METHOD, **parts})


def reason_against_tags(method: Method) -> str | None:
    """Why a method cannot score several labels, as a sentence; None if it can."""
    if not isinstance(method.aggregator, Kernel):
        return (
            f"{method.aggregator}: it predicts one class; for tags, use"
            " aggregator='kernel'."
        )
    # leave-one-out predictions are made for proxies, which must be queries therefore
    if method.norm_pre != method.norm_inf or str(method.norm_post) != "none":
        return (
            f"{method}: tags need norm_pre and norm_inf to be equal, and"
            " norm_post='none'."
        )
    return None


def with_label_sets(head: Head, label_sets: Sequence[str | None]) -> Head:
    """The head with new label sets for its classes; classes of one set are merged, and
    those with None are removed.
    """
    states: dict[str, ClassState] = {}
    for label_set, state in zip(label_sets, head.states):
        if label_set is None:
            continue
        if label_set in states:
            state = _merged(
                head,
                label_set,
                states[label_set],
                state,
            )
        states[label_set] = state
    return replace(head, labels=tuple(states), states=tuple(states.values()))


def without_label(label_set: str, label: Hashable) -> str | None:
    """A label set without a label; None where it has no other label and is removed."""
    texts = texts_of(label_set)
    rest = [text for text in texts if text != str(label)]
    if len(rest) == len(texts):
        return label_set
    return as_text(rest) if rest else None


def renamed_set(
    label_set: str,
    old: Hashable,
    new: Hashable,
    labels: Sequence[Any],
) -> str:
    """A label set with another name for one of the labels."""
    label_of = {str(label): label for label in labels}
    present = [label_of[text] for text in texts_of(label_set)]
    return as_text(sorted(new if label == old else label for label in present))


def _merged(
    head: Head,
    label_set: str,
    first: ClassState,
    second: ClassState,
) -> ClassState:
    """The state of the rows of two classes."""
    sums = head.method.aggregator.merge([first.sums, second.sums])
    layout = head.method.generator.layout
    # where every entry has one element per proxy, a class may have any number of them
    if layout and all(entry.shape.startswith("p") for entry in layout.values()):
        return ClassState(_joined(first.summary, second.summary), sums)
    extended = _extended(
        head,
        label_set,
        first.summary,
        second.summary,
    )
    return ClassState(extended, sums)


def _joined(first: State, second: State) -> State:
    """The proxies of both classes."""
    parts = []
    for summary in (first, second):
        # without masses, each proxy is one row
        parts.append({"mass": row_masses(summary["rows"], None), **summary})
    joined = {}
    for name in sorted(first.keys() | second.keys()):
        joined[name] = np.concatenate([part[name] for part in parts])
    return joined


def _extended(
    head: Head,
    label_set: str,
    first: State,
    second: State,
) -> State:
    """The first class, extended by the proxies of the second as if they were rows."""
    generator = head.method.generator
    rng = class_rng(head.seed, label_set)
    has_masses = generator.takes_weights and "mass" in second
    masses = [second["mass"]] if has_masses else []
    summary = generator.extend(
        first,
        second["rows"],
        rng,
        *masses,
    )
    if "spread" not in summary or len(summary["rows"]) > 1:
        return summary
    # the second rows also spread around their own mean
    inner = second["mass"] @ second["spread"] / summary["mass"]
    return {**summary, "spread": summary["spread"] + inner}
