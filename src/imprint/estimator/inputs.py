"""Checks of rows and labels by the rules of scikit-learn; `naming` turns every error into one sentence."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import assert_all_finite, check_random_state
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, column_or_1d, validate_data

from imprint.core.arrays import all_finite, dtype_name, on_gpu, plain, rows_at, to_numpy
from imprint.core.errors import KindError, ParameterError, first_line
from imprint.core.label_sets import Tagged, from_lists, read_tags
from imprint.core.types import Array
from imprint.estimator.base import FittedState
from imprint.head import Head, check_label_types
from imprint.tags import TagHead, new_head

FLOATS = (np.float64, np.float32)
LARGEST_WEIGHT = 1e9
REFUSALS = (ValueError, TypeError)  # the errors by which scikit-learn refuses inputs


@contextmanager
def naming(call: str, kinds: tuple[type[Exception], ...] = (ParameterError,)) -> Iterator[None]:
    """Report errors of these kinds as one sentence that starts with the call."""
    try:
        yield
    except kinds as e:
        first = first_line(e)
        hint = "; Reshape your data with X.reshape(1, -1) if it is one row" if "Expected 2D array" in first else ""
        kind = KindError if isinstance(e, TypeError) else ParameterError
        raise kind(f"{call}: {first}{hint}.") from None


class Columns(BaseEstimator):  # type: ignore[misc]
    """A temporary estimator that scikit-learn checks rows against, so that a refused call does not change the model."""

    def __init__(self, width: int | None = None, names: tuple[str, ...] | None = None):
        self.width, self.names = width, names
        if width is not None:
            self.n_features_in_ = width
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)

    def read(self, call: str, X: Any, dtype: Any = FLOATS) -> Any:
        """Checked rows. Where the width is not known yet, it and the names of the columns are taken from these rows."""
        with naming(call, REFUSALS):
            if on_gpu(X):
                return _read_tensor(X, self.width, dtype)
            with np.errstate(over="ignore"):  # what does not fit the type becomes infinite and is refused
                rows = validate_data(self, to_numpy(X), reset=self.width is None, dtype=dtype, order="C")
        names = getattr(self, "feature_names_in_", None)
        self.names = None if names is None else tuple(names.tolist())
        return np.asarray(rows)


Columns.__name__ = "ImprintClassifier"  # what its sentences name


def _read_tensor(X: Any, width: int | None, dtype: Any) -> Any:
    """Checked rows of a tensor on a GPU."""
    import torch

    float_type = dtype_name(X) if dtype_name(X) in ("float32", "float64") else "float32"
    X = X.to(getattr(torch, float_type if dtype is FLOATS else np.dtype(dtype).name))
    if X.ndim != 2 or not len(X) or not all_finite(X):
        raise ParameterError(f"X must be finite rows of numbers (n, d), not of shape {tuple(X.shape)}.")
    if width not in (None, X.shape[1]):
        raise ParameterError(f"X has {X.shape[1]} features, but ImprintClassifier is expecting {width}.")
    return X


def learn(
    estimator: Any, call: str, X: Any, y: Any, sample_weight: Any, before: FittedState | None = None
) -> FittedState:
    """The fitted state after rows that fit the state before, or after any rows if there is none."""
    head = before and before.head
    columns = Columns() if before is None else Columns(before.head.imprinted.width, before.columns)
    rows = columns.read(call, X, FLOATS if head is None else head.imprinted.dtype)
    with naming(call, REFUSALS):
        if y is None:
            raise ParameterError("requires y to be passed, but the target y is None.")
        tagged = _read_sets(y, head)
        labels = _read_labels(y) if tagged is None else tagged.sets
        if len(labels) != len(rows):
            raise ParameterError(f"X and y must have the same number of rows, not {len(rows)} and {len(labels)}.")
        if tagged is None and head is not None:
            check_label_types("y holds", labels.dtype, head.imprinted.label_type)
        if tagged is not None and estimator.class_weight is not None:
            raise ParameterError("class_weight is not available for tags; use sample_weight.")
        weight = _read_weights(labels, sample_weight, estimator.class_weight)
    if weight is not None and not weight.all():
        positive = np.flatnonzero(weight)
        rows, labels, weight = rows_at(rows, positive), labels[positive], weight[positive]
    if weight is not None and (weight == 1).all():
        weight = None
    if head is None:
        if not isinstance(estimator.calibrate, bool | np.bool_):
            rule = "calibrate must be True or False"
            raise ParameterError(f"ImprintClassifier(calibrate={estimator.calibrate!r}): {rule}.")
        seed, tags = read_seed(estimator.random_state), None if tagged is None else tagged.labels
        head = new_head(Head(estimator._method(), seed, dtype_name(rows)), tags, bool(estimator.calibrate))
    return FittedState(head.learn(rows, labels, weight), columns.names)


def _read_sets(y: Any, head: Head | TagHead | None) -> Tagged | None:
    """The label sets of tags; None where each row has one label and the model is not one of tags."""
    if not isinstance(head, TagHead):
        tagged = read_tags(y)
        if tagged is not None and head is not None:
            raise ParameterError("the model has one label per row, and y has tags; fit a new model.")
        return tagged
    return read_tags(y, head.labels) or from_lists([[label] for label in _read_labels(y).tolist()])


def _read_labels(y: Any) -> Array:
    """Labels of one type: text, whole numbers or booleans."""
    y = column_or_1d(to_numpy(y), warn=True)
    kind = str(y.dtype)
    if y.dtype == object:
        kind, *others = sorted({type(plain(v)).__name__ for v in y})
        if others:
            raise ParameterError(f"y mixes labels of the types {', '.join([kind, *others])}.")
        y = np.array(list(y))
    if y.dtype.kind == "f":
        assert_all_finite(y, input_name="y")
        check_classification_targets(np.repeat(np.unique(y), 2))  # once each looks like a regression to it
    if y.dtype.kind not in "biufU":
        raise ParameterError(f"labels of the type {kind} are not supported; use text or whole numbers.")
    return np.asarray(y)


def _read_weights(y: Array, sample_weight: Any, class_weight: Any) -> Array | None:
    """The weight of every row; None where none is given."""
    if sample_weight is None and class_weight is None:
        return None
    weight = _check_sample_weight(to_numpy(sample_weight), y, dtype=np.float64, ensure_non_negative=True)
    if class_weight is not None:
        weight = weight * compute_sample_weight(class_weight, y)
    if not weight.any() or not ((weight >= 0) & (weight <= LARGEST_WEIGHT)).all():
        raise ParameterError(f"the weights of rows must be 0 to {LARGEST_WEIGHT:g}, and one must be positive.")
    return np.asarray(weight)


def refuse_balanced(call: str, class_weight: Any) -> None:
    """Refuse to change some classes of a model whose weights depend on all of them."""
    if class_weight == "balanced":
        rule = "the balance depends on all classes; use fit, or a dict of class weights"
        raise ParameterError(f"{call} with class_weight='balanced': {rule}.")


def read_seed(random_state: Any) -> int:
    """The whole number behind scikit-learn's `random_state`; None gives a new one each time."""
    if isinstance(random_state, int | np.integer) and random_state >= 0:
        return int(random_state)
    try:
        return int(check_random_state(random_state).randint(2**31 - 1))
    except ValueError:
        rule = "random_state must be an int >= 0, a numpy RandomState or None"
        raise ParameterError(f"random_state={random_state!r}: {rule}.") from None
