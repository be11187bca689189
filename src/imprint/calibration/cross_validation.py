"""Cross-validation: five models, each fitted without one fold of the rows, and the
held-out rows that assess them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from imprint.calibration.calibration import (
    Calibration,
    Outcomes,
    OutOfFold,
    calibrate,
)
from imprint.calibration.fold_predictions import (
    FoldOutcomes,
    FoldPredictions,
    HeldOut,
    predict_out_of_fold,
)
from imprint.calibration.gain import (
    COMPARED_FOLDS,
    SmallerModel,
    measured_gain,
)
from imprint.calibration.held import (
    FOLDS,
    MAX_HELD_ROWS,
    HeldRows,
    absorb,
    folds_of,
    folds_of_rows,
    is_fitted,
    near_copies,
)
from imprint.calibration.merging import merge_folds, rename_class, without_rows
from imprint.calibration.shared import SharedCalibration
from imprint.core.arrays import (
    Array,
    dtype_name,
    rows_at,
    to_numpy,
)
from imprint.core.labels import as_labels, distinct
from imprint.core.threads import Lazy, lazy
from imprint.generators._base import row_masses
from imprint.head import Head
from imprint.head.merging import StoredRows
from imprint.method import ClassState, Method

# rows that determine the temperature and the p-values, or one per class if there are
# more classes
MAX_ASSESSED_ROWS = 1_000
# Models of all five folds are fitted if the first has at most this many proxies: they
# then take a small part of the time of a fit. With more proxies, solving them takes
# longer than the fit, and as many folds are evaluated as `MAX_ASSESSED_ROWS` needs.
MAX_PROXIES_OF_ALL_FOLDS = 2_000
# of the model with fewer rows, with which fold models are compared; more would take as
# long as a fold model
MAX_COMPARED_ROWS = 3_000


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """Some rows of every class, and how to fit a head without one fold of them.
    Predictions are computed on first use.

    If all distinct rows of a class are held, the states of the class in the five heads
    are computed from them. Those of a larger class are updated when its rows arrive.
    Like `Head`, this is a value: `learn` and `forget` return another one, and one that
    forgot a class equals one that never saw it.
    """

    has_rows: ClassVar[bool] = True
    # without classes: the method, the seed and the types of rows and labels
    empty: Head
    held: Mapping[Any, HeldRows] = field(default_factory=dict)
    fitted: Mapping[Any, tuple[ClassState, ...]] = field(default_factory=dict)
    """For each class of which not every row is held, its states without each fold."""
    keep_rows: bool = False  # whether all rows of every class are held
    derived: Lazy = field(default_factory=Lazy, init=False, repr=False)

    def learn(
        self,
        X: Array,
        y: Array,
        weight: Array | None = None,
    ) -> "CrossValidation":
        """The cross-validation after new classes and more rows of known ones."""
        weight = row_masses(X, weight)
        held = dict(self.held)
        fitted = dict(self.fitted)
        seed = self.empty.seed
        large: dict[Any, tuple[Array, Array, Array]] = {}  # rows, weights and folds
        for label, indices in rows_by_class(y).items():
            rows = to_numpy(rows_at(X, indices))
            weights = weight[indices]
            before = self.held.get(label)
            earlier_count = 0 if before is None else len(before.digests)
            limit = self._limit(earlier_count + len(rows))
            held[label], fold = absorb(before, rows, weights, seed, label, limit)
            if not held[label].complete:
                # now its earlier rows are fitted too, with new folds
                if before is not None and before.complete:
                    earlier, earlier_weights, _ = before.in_order()
                    earlier_folds = folds_of(seed, label, len(held[label].digests))[
                        : len(earlier)
                    ]
                    rows = np.concatenate([earlier, rows])
                    weights = np.concatenate([earlier_weights, weights])
                    fold = np.concatenate([earlier_folds, fold])
                large[label] = rows, weights, fold
        states = [self._states_of_large(large, f) for f in range(FOLDS)]
        fitted |= {
            label: tuple(fold_states[label] for fold_states in states)
            for label in large
        }
        empty = replace(self.empty, width=X.shape[1])
        return replace(self, empty=empty, held=held, fitted=fitted)

    def _limit(self, count: int) -> int | None:
        """How many rows of a class with at most this number are held; None for all.

        Rows that the generator keeps anyway are held too: they take no more space, and
        the states of the folds follow from them.
        """
        keeps_all = self.empty.method.generator.keeps_all(count)
        return None if self.keep_rows or keeps_all else MAX_HELD_ROWS

    def forget(self, label: Any) -> "CrossValidation":
        """The cross-validation without a class, identical to one that never saw it."""
        held = {other: rows for other, rows in self.held.items() if other != label}
        fitted = {
            other: states for other, states in self.fitted.items() if other != label
        }
        return replace(self, held=held, fitted=fitted)

    def only(self, labels: set[Any]) -> "CrossValidation":
        """The cross-validation of some classes."""
        held = {label: self.held[label] for label in self.held if label in labels}
        fitted = {label: self.fitted[label] for label in self.fitted if label in labels}
        return replace(self, held=held, fitted=fitted)

    def rename(self, old: Any, new: Any) -> "CrossValidation":
        """The cross-validation with another name for a class, and with the same
        calibration until more rows arrive.
        """
        renamed = rename_class(self, old, new)
        renamed.derived.put("calibration", self.calibration)
        return renamed

    def without_rows(self) -> SharedCalibration:
        """The calibration alone."""
        return SharedCalibration(self.calibration)

    def contains(self, label: Any, X: Array) -> Array:
        """Which rows are rows of a class, held or not.  # (n,)"""
        return self.held[label].contains(X)

    def rows_of(self, label: Any) -> StoredRows | None:
        """All rows of a class; None if not every row is held."""
        held = self.held[label]
        if not held.complete:
            return None
        rows, weight, _ = held.in_order()
        return StoredRows(rows, weight)

    def forget_rows(self, label: Any, rest: StoredRows) -> "CrossValidation":
        """The cross-validation after the rows of a class, which are all held, were
        reduced to the rest.
        """
        seed = self.empty.seed
        rows, _ = absorb(None, rest.rows, rest.weight, seed, label, limit=None)
        return replace(self, held={**self.held, label: rows})

    def remove_rows(self, label: Any, X: Array) -> "CrossValidation":
        """The cross-validation without some rows of a class of which not every row is
        held.
        """
        return without_rows(self, label, X)

    def merge(self, parts: Sequence["CrossValidation"]) -> "CrossValidation":
        """The cross-validation of all rows of several; see `calibration.merging`."""
        return merge_folds(parts)

    def with_classes(
        self,
        source: "CrossValidation",
        names: Mapping[str, Any],
    ) -> "CrossValidation":
        """This cross-validation with some classes of `source`; `names` maps each new
        label to the old one.

        The fold of a row depends on its label: see `calibration.merging.rename_class`.
        """
        held = dict(self.held)
        fitted = dict(self.fitted)
        for new, old in names.items():
            part = source.only({old})
            if new != old:
                part = rename_class(part, old, new)
            held |= part.held
            fitted |= part.fitted
        empty = source.empty if self.empty.width is None else self.empty
        return CrossValidation(empty, held, fitted)

    def count_known(self, X: Array, y: Array) -> int:
        """How many rows of X are copies of a row that their class already has."""
        rows_of = rows_by_class(y)
        return sum(
            held.count_copies(X[rows_of[label]])
            for label, held in self.held.items()
            if label in rows_of
        )

    def folds_of(self, X: Array, y: Array) -> Array:
        """The fold of every row that was learnt.  # (n,)"""
        fold = np.empty(len(y), dtype=np.int64)
        for label, indices in rows_by_class(y).items():
            fold[indices] = folds_of_rows(
                X[indices],
                self.empty.seed,
                label,
                self.held[label].digests,
            )
        return fold

    def _states_of_large(
        self,
        arrived: Mapping[Any, tuple[Array, Array, Array]],
        f: int,
    ) -> dict[Any, ClassState]:
        """The states of large classes without fold `f`, after more rows, with their
        weights and folds, have arrived.
        """
        method = self.empty.method
        seed = self.empty.seed
        rest = {
            label: (rows[fold != f], weight[fold != f])
            for label, (rows, weight, fold) in arrived.items()
        }
        states = self._summarise(
            {label: rest[label] for label in rest if label not in self.fitted}
        )
        for label in rest.keys() - states.keys():
            (rows, weight) = rest[label]
            states[label] = self.fitted[label][f]
            if len(rows):
                weight_argument = None if (weight == 1).all() else weight
                states[label] = method.extend(
                    states[label],
                    rows,
                    seed,
                    label,
                    weight_argument,
                )
        return states

    def _summarise(
        self, classes: Mapping[Any, tuple[Array, Array]]
    ) -> dict[Any, ClassState]:
        """The states of classes from rows and weights."""
        method = self.empty.method
        labels = list(classes)
        parts = [rows for rows, _ in classes.values()]
        weights = [weight for _, weight in classes.values()]
        weight_argument = None
        if not all((weight == 1).all() for weight in weights):
            if method.generator.takes_weights:
                weight_argument = weights
            else:  # weights are then numbers of copies
                parts = [
                    np.repeat(rows, weight.astype(int), axis=0)
                    for rows, weight in zip(parts, weights)
                ]
        return dict(
            zip(
                labels,
                method.summarise(parts, self.empty.seed, labels, weight_argument),
            )
        )

    @lazy
    def settled(self) -> Head:
        """The model without classes, whose aggregator chooses as for all rows (of large
        classes, as for all but a fold).

        The models of the folds take over these choices: with others, their scores would
        not be those that the model gives to new rows.
        """
        method = self.empty.method
        if not method.blocks:
            return self.empty
        complete = {}
        for label, held in self.held.items():
            if held.complete:
                rows, weight, _ = held.in_order()
                complete[label] = rows, weight
        states = self._summarise(complete)
        for label, fold_states in self.fitted.items():
            states[label] = fold_states[0]
        labels = tuple(label for label in self.held if label in states)
        model = replace(
            self.empty,
            labels=labels,
            states=tuple(states[label] for label in labels),
        )
        aggregator = method.aggregator.settled(model.proxies)
        return replace(self.empty, method=replace(method, aggregator=aggregator))

    def head_without(self, f: int) -> Head:
        """The head that is fitted without fold `f`."""
        complete = {}
        for label, held in self.held.items():
            if held.complete:
                rows, weight, fold = held.in_order()
                fitted = is_fitted(fold, f)
                if fitted.any():
                    complete[label] = rows[fitted], weight[fitted]
        states = self._summarise(complete) | {
            label: fold_states[f] for label, fold_states in self.fitted.items()
        }
        labels = tuple(label for label in self.held if label in states)
        return replace(
            self.settled,
            labels=labels,
            states=tuple(states[label] for label in labels),
        )

    @lazy
    def heads(self) -> tuple[Head, ...]:
        """The five heads, each without one fold."""
        return tuple(map(self.head_without, range(FOLDS)))

    def smaller_model(self, first: int) -> SmallerModel:
        """The model that is fitted with the held rows of fold `first` and later ones.

        Of a class without such rows, it has as many as the model without fold 0.
        """
        limit = max(1, MAX_COMPARED_ROWS // len(self.held))
        classes: dict[Any, tuple[Array, Array]] = {}
        counts: dict[Any, int] = {}
        for label, held in self.held.items():
            chosen = np.flatnonzero(held.fold >= COMPARED_FOLDS)[:limit]
            chosen = chosen[held.fold[chosen] >= first]
            if len(chosen):
                counts[label] = len(chosen)
            else:
                chosen = np.flatnonzero(is_fitted(held.fold, 0))
            if len(chosen):
                classes[label] = held.rows[chosen], held.weight[chosen]
        states = self._summarise(classes)
        head = replace(
            self.settled,
            labels=tuple(states),
            states=tuple(states.values()),
        )
        return SmallerModel(head, counts)

    def _number_of_folds(self, first: Head) -> int:
        """How many fold models are evaluated; `first` is the one without fold 0."""
        if not len(first) or len(first.proxies.labels) <= MAX_PROXIES_OF_ALL_FOLDS:
            return FOLDS
        held = list(self.held.values())
        limit = max(1, MAX_ASSESSED_ROWS // len(held))
        folds = 1
        while folds < FOLDS and any(
            (rows.fold < folds).sum() < min(limit, len(rows.fold)) for rows in held
        ):
            folds += 1  # with many rows of every class, one fold has enough of them
        return folds

    @lazy
    def results(self) -> tuple[OutOfFold, Outcomes]:
        """Out-of-fold predictions of some held rows, the more classes, the fewer of
        each; and whether all rows of these folds are predicted correctly.
        """
        labels = sorted(self.held)
        classes = as_labels(labels)
        held = [self.held[label] for label in labels]
        first = self.head_without(0)
        folds = self._number_of_folds(first)
        limit = max(1, MAX_ASSESSED_ROWS // len(labels))
        chosen = [np.flatnonzero(rows.fold < folds)[:limit] for rows in held]
        sample = HeldOut.of(held, chosen)
        rows = HeldOut.all_of(self.held, self.empty.seed, folds, self.empty.dtype)
        predictions = FoldPredictions(sample, classes)
        outcomes = FoldOutcomes(rows, classes, folds)
        has_more_rows = len(rows.X) > len(sample.X)
        for f in range(folds):
            head = first if f == 0 else self.head_without(f)
            predictions.add(head, f)
            if has_more_rows:
                outcomes.add(head, f)
        del first, head  # frees their preparation, which may be large
        near_copy = near_copies(held, chosen, self.empty.norm_inf.apply)
        answers = predictions.result()._replace(near_copy=near_copy)
        smaller = [self.smaller_model(fold) for fold in (2, 3)]
        gain = measured_gain(smaller, self.held, answers, sample.X)
        answers = answers._replace(gain=gain)
        if not has_more_rows:
            return answers, Outcomes.of(answers, folds)
        return answers, outcomes.result()

    @property
    def predictions(self) -> OutOfFold:
        """Out-of-fold predictions of some held rows."""
        return self.results[0]

    @lazy
    def calibration(self) -> Calibration:
        """The calibration from the out-of-fold predictions."""
        return calibrate(*self.results)


def out_of_fold(
    method: Method,
    seed: int,
    X: Array,
    y: Array,
) -> OutOfFold:
    """The prediction of every row by a model fitted without its fold, in the order of
    the rows.
    """
    X = to_numpy(X)
    y = np.asarray(y)
    fold = np.empty(len(y), dtype=np.int64)
    fitted = np.empty((FOLDS, len(y)), dtype=bool)
    for label, indices in rows_by_class(y).items():
        fold[indices] = folds_of_rows(X[indices], seed, label)
        fitted[:, indices] = [is_fitted(fold[indices], f) for f in range(FOLDS)]
    empty = Head(method, seed, dtype_name(X))
    heads = (
        empty.learn(rows_at(X, rows), y[rows]) if len(rows) else empty
        for rows in map(np.flatnonzero, fitted)
    )
    labels, columns = distinct(y)
    classes = as_labels(labels)
    return predict_out_of_fold(heads, X, columns, fold, classes, np.ones(len(y)))


def rows_by_class(y: Array) -> dict[Any, Array]:
    """The indices of the rows of each class, in ascending order."""
    present, index = distinct(y)
    parts = np.split(
        np.argsort(index, kind="stable"), np.cumsum(np.bincount(index))[:-1]
    )
    return dict(zip(present, parts))
