"""Models that each leave out one part of the rows, and some of those rows: what a head needs to know about itself."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np

from imprint.calibration.calibration import Calibration, OutOfFold, calibrate
from imprint.core.arrays import all_finite, dtype_name, kept, rows_at, to_numpy
from imprint.core.digest import class_entropy
from imprint.core.errors import ParameterError
from imprint.core.labels import as_labels
from imprint.core.layout import Entry, Layout
from imprint.core.lazy import Lazy
from imprint.core.types import Array, State
from imprint.head import Head
from imprint.method import Method

FOLDS = 5
HELD = 100
"""Rows that are kept of a class, at most; the others only teach."""
ASSESSED = 3_000
"""Rows that are asked about in all, unless there are more classes."""
LAYOUT: Layout = {
    "rows": Entry("m d"),
    "fold": Entry("m", least=0, most=FOLDS - 1, whole=True),
    "keys": Entry("m", least=0, most=1),
    "seen": Entry("1", least=1, whole=True),
}
"""What is held of a class: the rows with the smallest keys, ascending, and how many rows there have been."""


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """Five heads, each fitted without one fold of the rows, and some rows of every class to assess them with.

    The fold and the key of a row follow from the seed, its label and the number of rows of its class before it; the
    rows with the smallest keys are held. So this is a value like `Head`: `learn` and `forget` return another one, and
    one that forgot a class equals one that never saw it. Predictions are computed when first needed.
    """

    heads: tuple[Head, ...]
    held: Mapping[Any, State]
    stored: Calibration | None = None
    """The calibration where it was computed before, such as one from a file."""
    derived: Lazy = field(default_factory=Lazy, init=False, repr=False)

    @classmethod
    def new(cls, method: Method, seed: int, dtype: Any, folds: int = FOLDS) -> "CrossValidation":
        """Folds that have seen no row."""
        return cls((Head(method, seed, dtype),) * folds, {})

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled: a calibration that was computed is stored."""
        known = self.calibration if "calibration" in self.derived else self.stored
        return {"heads": self.heads, "held": self.held, "stored": known, "derived": self.derived}

    def learn(self, X: Array, y: Array) -> "CrossValidation":
        """These after new classes and more rows of known ones."""
        held, fold = dict(self.held), np.empty(len(y), dtype=np.int64)
        for label, mine in _rows_by_class(y).items():
            before = held.get(label)
            seen = int(before["seen"][0]) if before else 0
            fold[mine] = folds_of(self.heads[0].seed, label, seen, len(mine), len(self.heads))
            keys = _stream(self.heads[0].seed, label, "keys", seen).random(len(mine))
            few = mine[np.argsort(keys, kind="stable")[:HELD]]
            new = {"rows": kept(rows_at(X, few)), "fold": fold[few], "keys": np.sort(keys)[:HELD]}
            held[label] = _merged(before, {**new, "seen": np.array([len(mine)])})
        heads = tuple(_learn_some(head, X, y, fold != f) for f, head in enumerate(self.heads))
        return CrossValidation(heads, held)

    def forget(self, label: Any) -> "CrossValidation":
        """These without a class, exactly as if it had never been there."""
        heads = tuple(_without(head, label) if label in head else head for head in self.heads)
        return CrossValidation(heads, {k: state for k, state in self.held.items() if k != label})

    @property
    def answers(self) -> OutOfFold:
        """Out-of-fold predictions of held rows; with very many classes of fewer rows each."""
        return self.derived.get("answers", self._answers)

    def _answers(self) -> OutOfFold:
        labels = sorted(self.held)
        states, most = [self.held[label] for label in labels], max(1, ASSESSED // len(labels))
        taken = [min(len(s["keys"]), most) for s in states]
        X, fold = (np.concatenate([s[name][:n] for s, n in zip(states, taken)]) for name in ("rows", "fold"))
        weight = np.repeat([s["seen"][0] / n for s, n in zip(states, taken)], taken)
        label_type = np.result_type(*(h.label_type for h in self.heads if h.label_type is not None))
        return predict_out_of_fold(
            self.heads, X, np.repeat(np.arange(len(labels)), taken), fold, as_labels(labels, label_type), weight
        )

    @property
    def calibration(self) -> Calibration:
        """What the predictions tell."""
        return self.stored or self.derived.get("calibration", lambda: calibrate(self.answers))


def out_of_fold(method: Method, seed: int, X: Array, y: Array, folds: int = FOLDS) -> OutOfFold:
    """What models say about every row that have not seen its fold, in the order of the rows.

    >>> method = Method.of(norm_pre="none", generator="mean", norm_post="none", norm_inf="none", aggregator="max")
    >>> answers = out_of_fold(method, 0, np.repeat(np.eye(2), 10, axis=0), np.repeat(["cat", "dog"], 10))
    >>> bool(answers.right.all()), np.bincount(answers.fold).tolist()
    (True, [4, 4, 4, 4, 4])
    """
    if folds < 2:
        raise ParameterError(f"out_of_fold(folds={folds}): folds must be int >= 2.")
    X, y = to_numpy(X), np.asarray(y)
    fold = np.empty(len(y), dtype=np.int64)
    for label, mine in _rows_by_class(y).items():
        fold[mine] = folds_of(seed, label, 0, len(mine), folds)
    heads = [_learn_some(Head(method, seed, dtype_name(X)), X, y, fold != f) for f in range(folds)]
    classes, own = np.unique(y, return_inverse=True)
    return predict_out_of_fold(heads, X, own, fold, classes, np.ones(len(y)))


def predict_out_of_fold(
    heads: Sequence[Head], X: Array, own: Array, fold: Array, classes: Array, weight: Array
) -> OutOfFold:
    """What every head says about the rows of its fold."""
    scores, shares = np.full((len(X), len(classes)), -np.inf), np.zeros((len(X), len(classes)))
    doubts, assessed = np.zeros(len(X)), np.zeros(len(X), dtype=bool)
    unsure, place = False, {label: c for c, label in enumerate(classes.tolist())}
    for f, head in enumerate(heads):
        rows = np.flatnonzero(fold == f)
        said = _predictions(head, X[rows]) if len(rows) and len(head) else None
        if said is not None:
            columns = np.array([place[label] for label in head.classes.tolist()])
            scores[np.ix_(rows, columns)], shares[np.ix_(rows, columns)] = said[:2]
            assessed[rows] = np.isin(own[rows], columns)
            unsure = said[2] is not None
            doubts[rows] = said[2] if unsure else 0
    return OutOfFold(classes, own, fold, scores, shares, doubts if unsure else None, assessed, weight)


def _predictions(head: Head, X: Array) -> tuple[Array, Array, Array | None] | None:
    """Scores, probabilities and doubts of rows; None where so few proxies cannot decide, or scores overflow.

    What the aggregator prepares is not kept: it may be large, and five are not needed again soon.
    """
    brief = replace(head)  # prepares itself again, on the device of the head
    try:
        S = brief.scores(X)
    except ParameterError:
        return None
    if not all_finite(S):
        return None
    return S, brief.method.aggregator.probabilities(S, brief.prepared), brief.doubt(X)


def _learn_some(head: Head, X: Array, y: Array, these: Array) -> Head:
    return head.learn(rows_at(X, np.flatnonzero(these)), y[these]) if these.any() else head


def _without(head: Head, label: Any) -> Head:
    if len(head) > 1:
        return head.forget(label)
    return Head(head.method, head.seed, head.dtype, label_type=head.label_type, width=head.width)


def _rows_by_class(y: Array) -> dict[Any, Array]:
    present, index = np.unique(y, return_inverse=True)
    parts = np.split(np.argsort(index, kind="stable"), np.cumsum(np.bincount(index))[:-1])
    return dict(zip(present.tolist(), parts))


def folds_of(seed: int, label: Any, seen: int, count: int, folds: int) -> Array:
    """The folds of the next rows of a class: of every `folds` rows one in each, in random order.  # (count,)"""
    skipped = seen % folds
    blocks = -(-(skipped + count) // folds)
    drawn = _stream(seed, label, "folds", seen - skipped).random((blocks, folds))
    return np.asarray(drawn.argsort(axis=1).ravel()[skipped : skipped + count])


def _stream(seed: int, label: Any, purpose: str, drawn: int) -> np.random.Generator:
    """Random numbers of a class for one purpose, after so many."""
    rng = np.random.default_rng((*class_entropy(seed, label), *purpose.encode()))
    cast(Any, rng.bit_generator).advance(drawn)
    return rng


def _merged(before: State | None, new: State) -> State:
    if before is None:
        return new
    both = {name: np.concatenate([before[name], new[name]]) for name in new}
    best = np.argsort(both["keys"], kind="stable")[:HELD]
    return {**{name: both[name][best] for name in ("rows", "fold", "keys")}, "seen": before["seen"] + new["seen"]}
