"""`TagHead`: a head over label sets that scores single labels, as one immutable
value.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast

import numpy as np

from imprint.aggregators.kernel import Kernel, SolvedKernel
from imprint.calibration import CrossValidation
from imprint.core.arrays import Array, Proxies, class_rng, to_numpy
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

    def learn(self, X: Array, y: Array, weight: Array | None = None) -> "TagHead":
        """This head after more rows; `y` are label sets as texts."""
        labels = {
            text for label_set in np.unique(y).tolist() for text in texts_of(label_set)
        }
        texts = labels - set(map(str, self.labels))
        try:
            new = texts if isinstance(self.labels[0], str) else set(map(int, texts))
        except ValueError:
            raise ParameterError(
                "The labels of the model are numbers, and the new ones are texts."
            ) from None
        return TagHead(
            self.imprinted.learn(X, y, weight), tuple(sorted({*self.labels, *new}))
        )

    def forget(self, label: Any) -> "TagHead":
        """This head without a label and the rows that have no other label; the others
        lose the label.
        """
        if label not in self:
            raise unknown("label", label, self.labels)
        labels = tuple(other for other in self.labels if other != label)
        label_sets = [
            without_label(label_set, label) for label_set in self.imprinted.labels
        ]
        if not labels or all(label_set is None for label_set in label_sets):
            raise ParameterError(
                f"forget({label!r}): no row has another label; a model needs at least"
                " one."
            )
        return TagHead(with_label_sets(self.imprinted, label_sets), labels)

    def forget_rows(self, X: Array, labels: Sequence[Any] | None = None) -> "TagHead":
        """This head without some rows, and without labels that no other row has."""
        if labels is not None:
            raise ParameterError("forget_rows: tags take no y; give the rows alone.")
        sets = self.imprinted.forget_rows(X)
        before = indicator(self.imprinted.labels, self.labels).sum(axis=0)
        after = indicator(sets.labels, self.labels).sum(axis=0)
        rest = np.flatnonzero((after > 0) | (before == 0)).tolist()
        return TagHead(sets, tuple(self.labels[i] for i in rest))

    def without_rows(self) -> "TagHead":
        """This head without training rows; its calibration needs none."""
        return TagHead(self.imprinted.without_rows(), self.labels)

    def only(self, labels: set[Any]) -> "TagHead":
        head = self
        for label in self.labels:
            if label not in labels:
                head = head.forget(label)
        return head

    def rename(self, old: Any, new: Any) -> "TagHead":
        """This head with another name for a label, and with the same calibration."""
        check_new_name(self.labels, old, new)
        if str(new) == "":
            raise ParameterError("rename: a tag needs a name.")
        label_sets = [
            renamed_set(label_set, old, new, self.labels)
            for label_set in self.imprinted.labels
        ]
        labels = [new if label == old else label for label in self.labels]
        order = sorted(range(len(labels)), key=labels.__getitem__)
        renamed = TagHead(
            replace(self.imprinted, labels=tuple(label_sets)),
            tuple(labels[i] for i in order),
        )
        renamed.derived.put("calibration", self.calibration.reordered(order))
        return renamed

    def merged_with(self, others: Sequence["TagHead"], names: Sequence[str]) -> Merged:
        kinds = {kind_of(head.labels) for head in (self, *others)}
        if len(kinds) > 1:
            raise ParameterError(
                "merge: the labels of some models are numbers and those of others are"
                " texts; fit them with labels of one kind."
            )
        merged = merge_heads([head.imprinted for head in (self, *others)], names)
        labels = set(self.labels).union(*(head.labels for head in others))
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
        return indicator(self.imprinted.classes.tolist(), self.labels)[
            self.proxies.labels
        ]

    @lazy
    def prepared(self) -> SolvedKernel:
        """The system, solved for the labels."""
        head, kernel = self.imprinted, cast(Kernel, self.aggregator)
        return kernel.prepare(
            head.on_device(head.proxies), head.sums(), targets=self.targets
        )

    @lazy
    def calibration(self) -> TagCalibration:
        """The calibration of each label, from leave-one-out predictions."""
        return calibrate_tags(self)

    def probabilities(self, S: Array) -> Array:
        """The calibrated probability of each label, in (0, 1).  # (q, labels)"""
        return self.calibration.probabilities(S)

    def predict(self, Q: Array, level: int | None = None) -> Array:
        """Which labels each query has: those whose score reaches their threshold.  #
        (q, labels) int64

        With `level`, the most probable label of every query.  # (q,)
        """
        if level is not None:
            return np.asarray(super().predict(Q, level))
        return (to_numpy(self.scores(Q)) >= self.calibration.thresholds).astype(
            np.int64
        )


def new_head(
    empty: Head,
    labels: tuple[Any, ...] | None,
    calibrate: bool,
    keep_rows: bool = False,
) -> Head | TagHead:
    """The head that learns the rows of a model; with `labels`, a head of tags, which is
    always calibrated.

    With `keep_rows`, cross-validation holds all rows of every class.
    """
    if labels is not None:
        if keep_rows:
            raise ParameterError(
                "keep_rows: a model of tags has no such option; with generator='all' it"
                " keeps all rows."
            )
        return TagHead(empty, labels)
    if not calibrate:
        if keep_rows:
            raise ParameterError(
                "keep_rows: cross-validation holds the rows; it needs calibrate=True."
            )
        return empty
    return replace(empty, folds=CrossValidation(empty, keep_rows=keep_rows))


def predicted_sets(Y: Array, labels: Sequence[Any]) -> list[str]:
    """The rows of an indicator matrix as label sets."""
    return [as_text(labels[c] for c in np.flatnonzero(row).tolist()) for row in Y]


def default_method() -> Method:
    """The default method for tags: every row is a proxy, with more noise than for
    classes.
    """
    return Method.of(
        **{**DEFAULT_METHOD, "generator": "all", "aggregator": "kernel(noise=1)"}
    )


def reason_against_tags(method: Method) -> str | None:
    """Why a method cannot score several labels, as a sentence; None if it can."""
    if not isinstance(method.aggregator, Kernel):
        return (
            f"{method.aggregator}: it predicts one class; for tags, use"
            " aggregator='kernel'."
        )
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
        if label_set is not None:
            earlier = states.get(label_set)
            states[label_set] = (
                state if earlier is None else _merged(head, label_set, earlier, state)
            )
    return replace(head, labels=tuple(states), states=tuple(states.values()))


def without_label(label_set: str, label: Any) -> str | None:
    """A label set without a label; None where it has no other label and is removed."""
    texts = texts_of(label_set)
    rest = [text for text in texts if text != str(label)]
    if len(rest) == len(texts):
        return label_set
    return as_text(rest) if rest else None


def renamed_set(label_set: str, old: Any, new: Any, labels: Sequence[Any]) -> str:
    """A label set with another name for one of the labels."""
    label_of = {str(label): label for label in labels}
    present = [label_of[text] for text in texts_of(label_set)]
    return as_text(sorted(new if label == old else label for label in present))


def _merged(
    head: Head, label_set: str, first: ClassState, second: ClassState
) -> ClassState:
    """The state of the rows of two classes.

    It has the proxies of both if a class may have any number; otherwise, the first is
    extended by those of the second.
    """
    generator = head.method.generator
    sums = head.method.aggregator.merge([first.sums, second.sums])
    if generator.layout and all(
        entry.shape.startswith("p") for entry in generator.layout.values()
    ):
        parts = [
            {"mass": row_masses(state["rows"], None), **state}
            for state in (first.summary, second.summary)
        ]
        names = sorted(first.summary.keys() | second.summary.keys())
        return ClassState(
            {name: np.concatenate([part[name] for part in parts]) for name in names},
            sums,
        )
    mass = (
        [second.summary["mass"]]
        if generator.takes_weights and "mass" in second.summary
        else []
    )
    summary = generator.extend(
        first.summary, second.summary["rows"], class_rng(head.seed, label_set), *mass
    )
    # the second rows also spread around their own mean
    if "spread" in summary and len(summary["rows"]) == 1:
        inner = second.summary["mass"] @ second.summary["spread"] / summary["mass"]
        summary = {**summary, "spread": summary["spread"] + inner}
    return ClassState(summary, sums)
