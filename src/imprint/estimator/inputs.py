"""Checks of rows and labels by the rules of scikit-learn; every error is one sentence."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import assert_all_finite, check_random_state
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, column_or_1d, validate_data

from imprint.core.arrays import all_finite, dtype_name, on_gpu, plain, rows_at, to_numpy
from imprint.core.errors import KindError, ParameterError
from imprint.core.label_sets import Tagged, from_lists, read_tags
from imprint.core.types import Array
from imprint.estimator.base import FittedState
from imprint.head import Head, check_label_types
from imprint.method import Method
from imprint.tags import TagHead, new_head

FLOATS = (np.float64, np.float32)
LARGEST_WEIGHT = 1e9
LABEL_KINDS = "biufU"  # of NumPy's types: booleans, whole numbers, text


@contextmanager
def naming(call: str) -> Iterator[None]:
    """Put the call in front of the errors of the block."""
    try:
        yield
    except ParameterError as e:
        raise ParameterError(f"{call}: {e}") from None


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
        if on_gpu(X):
            return read_tensor(call, X, self.width, dtype)
        try:
            with np.errstate(over="ignore"):  # what does not fit the type becomes infinite and is refused
                rows = validate_data(self, to_numpy(X), reset=self.width is None, dtype=dtype, order="C")
        except (ValueError, TypeError) as e:
            raise _in_one_sentence(call, e) from None
        names = getattr(self, "feature_names_in_", None)
        self.names = None if names is None else tuple(names.tolist())
        return np.asarray(rows)


Columns.__name__ = "ImprintClassifier"  # what its sentences name


def read_tensor(call: str, X: Any, width: int | None, dtype: Any) -> Any:
    """Checked rows of a tensor on a GPU."""
    import torch

    float_type = dtype_name(X) if dtype_name(X) in ("float32", "float64") else "float32"
    X = X.to(getattr(torch, float_type if dtype is FLOATS else np.dtype(dtype).name))
    if X.ndim != 2 or not len(X) or not all_finite(X):
        raise ParameterError(f"{call}: X must be finite rows of numbers (n, d), not of shape {tuple(X.shape)}.")
    if width not in (None, X.shape[1]):
        raise ParameterError(f"{call}: X has {X.shape[1]} features, but ImprintClassifier is expecting {width}.")
    return X


def read_labels(call: str, y: Any, rows: int) -> Array:
    """As many labels as there are rows: text, whole numbers or booleans."""
    try:
        y = column_or_1d(to_numpy(y), warn=True)
        if y.dtype == object:
            kinds = sorted({type(plain(v)).__name__ for v in y})
            if len(kinds) > 1:
                raise ValueError(f"y mixes labels of the types {', '.join(kinds)}")
            y = np.array(list(y))
            if y.dtype == object:
                raise ValueError(f"labels of the type {kinds[0]} cannot be kept; give text or whole numbers")
        if y.dtype.kind not in "biuU":
            assert_all_finite(y, input_name="y")
            check_classification_targets(np.repeat(np.unique(y), 2))  # once each looks like a regression to it
        if y.dtype.kind not in LABEL_KINDS:
            raise ValueError(f"labels of the type {y.dtype} cannot be kept; give text or whole numbers")
    except (ValueError, TypeError) as e:
        raise _in_one_sentence(call, e) from None
    if len(y) != rows:
        raise ParameterError(f"{call}: X has {rows} rows and y has {len(y)} labels; the numbers must be equal.")
    return np.asarray(y)


class TrainingRows(NamedTuple):
    """Rows, labels and weights, the names of columns, and the labels of tags (None where each row has one label)."""

    X: Any
    y: Array  # labels, or the label sets of tags
    weight: Array | None
    columns: tuple[str, ...] | None
    labels: tuple[Any, ...] | None


def read_training(
    call: str, X: Any, y: Any, sample_weight: Any, class_weight: Any, learnt: FittedState | None = None
) -> TrainingRows:
    """Rows and labels that fit what was learnt, or any where nothing was."""
    if y is None:
        raise ParameterError(f"{call}: requires y to be passed, but the target y is None.")
    head = None if learnt is None else learnt.head
    columns = Columns() if head is None or learnt is None else Columns(head.imprinted.width, learnt.columns)
    rows = columns.read(call, X, FLOATS if head is None else head.imprinted.dtype)
    tagged = _read_sets(call, y, len(rows), head, class_weight)
    if tagged is not None:
        return TrainingRows(*weighted(call, rows, tagged.sets, sample_weight, None), columns.names, tagged.labels)
    labels = read_labels(call, y, len(rows))
    if head is not None:
        check_label_types(f"{call}: y holds", labels.dtype, head.imprinted.label_type)
    return TrainingRows(*weighted(call, rows, labels, sample_weight, class_weight), columns.names, None)


def empty_head(method: Method, rows: TrainingRows, calibrate: Any, random_state: Any) -> Head | TagHead:
    """A head that can learn these rows, and has learnt nothing yet."""
    if not isinstance(calibrate, bool | np.bool_):
        raise ParameterError(f"ImprintClassifier(calibrate={calibrate!r}): calibrate must be True or False.")
    seed, dtype = read_seed(random_state), dtype_name(rows.X)
    return new_head(method, seed, dtype, rows.labels, bool(calibrate))


def _read_sets(call: str, y: Any, rows: int, head: Head | TagHead | None, class_weight: Any) -> Tagged | None:
    """The label sets of tags; None where each row has one label and the model is not one of tags."""
    with naming(call):
        tagged = read_tags(y, head.labels if isinstance(head, TagHead) else None)
    if tagged is None and isinstance(head, TagHead):
        labels = read_labels(call, y, rows).tolist()
        with naming(call):
            tagged = from_lists([[label] for label in labels])
    if tagged is None:
        return None
    if isinstance(head, Head):
        raise ParameterError(f"{call}: the model has one label per row, and y has tags; fit a new model.")
    if class_weight is not None:
        raise ParameterError(f"{call}: class_weight is not available for tags; use sample_weight.")
    if len(tagged.sets) != rows:
        raise ParameterError(f"{call}: X has {rows} rows and y has {len(tagged.sets)}; the numbers must be equal.")
    return tagged


def refuse_balanced(call: str, class_weight: Any) -> None:
    """Refuse to change some classes of a model whose weights depend on all of them."""
    if class_weight == "balanced":
        rule = "the balance depends on all classes; use fit, or a dict of class weights"
        raise ParameterError(f"{call} with class_weight='balanced': {rule}.")


def weighted(call: str, X: Any, y: Array, sample_weight: Any, class_weight: Any) -> tuple[Any, Array, Array | None]:
    """Rows and labels without those of weight 0, and the weight of each; None where all rows count the same."""
    if sample_weight is None and class_weight is None:
        return X, y, None
    try:
        weight = _check_sample_weight(to_numpy(sample_weight), y, dtype=np.float64, ensure_non_negative=True)
        if class_weight is not None:
            weight = weight * compute_sample_weight(class_weight, y)
    except (ValueError, TypeError) as e:
        raise _in_one_sentence(call, e) from None
    positive = np.flatnonzero(weight > 0)
    if not len(positive) or not np.isfinite(weight).all() or weight.max() > LARGEST_WEIGHT:
        raise ParameterError(
            f"{call}: the weights of rows must be at most {LARGEST_WEIGHT:g}, and one must be positive."
        )
    if len(positive) < len(weight):
        X, y, weight = rows_at(X, positive), y[positive], weight[positive]
    return X, y, None if (weight == 1).all() else weight


def read_seed(random_state: Any) -> int:
    """The whole number behind scikit-learn's `random_state`; None gives a new one each time."""
    if isinstance(random_state, int | np.integer) and random_state >= 0:
        return int(random_state)
    try:
        return int(check_random_state(random_state).randint(2**31 - 1))
    except ValueError:
        raise ParameterError(
            f"random_state={random_state!r}: random_state must be an int >= 0, a numpy RandomState or None."
        ) from None


def _in_one_sentence(call: str, error: Exception) -> ParameterError:
    first = str(error).splitlines()[0].rstrip(".:")
    hint = "; Reshape your data with X.reshape(1, -1) if it is one row" if "Expected 2D array" in first else ""
    kind = KindError if isinstance(error, TypeError) else ParameterError
    return kind(f"{call}: {first}{hint}.")
