"""The scikit-learn side of `ImprintClassifier`: its parameters, fitted attributes and
checks of inputs.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, fields
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import assert_all_finite, check_random_state
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from imprint.core.arrays import (
    Array,
    Proxies,
    all_finite,
    dtype_name,
    on_gpu,
    plain,
    rows_at,
    to_numpy,
)
from imprint.core.blocks import read_groups
from imprint.core.component import PARTS
from imprint.core.errors import KindError, ParameterError, first_line
from imprint.core.label_sets import Tagged, from_lists, read_tags
from imprint.core.labels import as_labels, check_kinds, distinct
from imprint.core.tree import LabelTree
from imprint.core.weights import check_range
from imprint.head import Head
from imprint.method import FAMILIES, Method
from imprint.tags import TagHead, new_head

FLOATS = (np.float64, np.float32)
# the errors by which scikit-learn refuses inputs
INPUT_ERRORS = (ValueError, TypeError)
INPUT_HINTS = {  # by a part of their sentences
    "Expected 2D array": ("; Reshape your data with X.reshape(1, -1) if it is one row"),
    "setting an array element with a sequence": (
        "; if a column of a table holds rows, give it alone, as"
        " np.stack(df['embedding'])"
    ),
}


@contextmanager
def naming(
    call: str, kinds: tuple[type[Exception], ...] = (ParameterError,)
) -> Iterator[None]:
    """Report errors of some kinds as one sentence that starts with the call."""
    try:
        yield
    except kinds as e:
        first = first_line(e)
        hints = [hint for problem, hint in INPUT_HINTS.items() if problem in first]
        hint = hints[0] if hints else ""
        kind = KindError if isinstance(e, TypeError) else ParameterError
        raise kind(f"{call}: {first}{hint}.") from None


class _ColumnCheck(BaseEstimator):  # type: ignore[misc]
    """What scikit-learn checks the columns of rows against, for the time of one
    check.
    """


_ColumnCheck.__name__ = "ImprintClassifier"  # the name in scikit-learn's errors


class Columns:
    """The number and names of the columns of a model, named as in scikit-learn."""

    n_features_in_: int
    feature_names_in_: Array

    def __init__(self, width: int | None = None, names: list[str] | None = None):
        if width is not None:
            self.n_features_in_ = width
        if names:
            self.feature_names_in_ = np.array(names, dtype=object)

    def read(self, call: str, X: Any, dtype: Any = FLOATS) -> Any:
        """Checked rows. The first rows that are read determine the columns."""
        width = getattr(self, "n_features_in_", None)
        with naming(call, INPUT_ERRORS):
            if on_gpu(X):
                return self._read_tensor(X, width, dtype)
            rows = _stacked(to_numpy(X))
            check = _ColumnCheck()
            check.__dict__.update(self.__dict__)
            # numbers that are too large for the type become infinite and are refused
            with np.errstate(over="ignore"):
                checked = validate_data(
                    check, rows, reset=width is None, dtype=dtype, order="C"
                )
            self.__dict__.update(check.__dict__)
            return np.asarray(checked)

    def _read_tensor(self, X: Any, width: int | None, dtype: Any) -> Any:
        """Checked rows of a tensor on a GPU."""
        import torch

        float_type = (
            dtype_name(X) if dtype_name(X) in ("float32", "float64") else "float32"
        )
        X = X.to(
            getattr(torch, float_type if dtype is FLOATS else np.dtype(dtype).name)
        )
        if X.ndim != 2 or not len(X) or not all_finite(X):
            raise ParameterError(
                "X must be finite rows of numbers (n, d), not of shape"
                f" {tuple(X.shape)}."
            )
        if width not in (None, X.shape[1]):
            raise ParameterError(
                f"X has {X.shape[1]} features, but ImprintClassifier is expecting"
                f" {width}."
            )
        self.n_features_in_ = X.shape[1]
        return X


def _stacked(X: Any) -> Any:
    """A sequence of rows, such as a column of a table whose cells are embeddings, as a
    matrix; anything else unchanged.
    """
    if not isinstance(X, list) and len(getattr(X, "shape", ())) != 1:
        return X
    cells = X if isinstance(X, list) else np.asarray(X).tolist()
    if not cells or not all(isinstance(cell, np.ndarray | list) for cell in cells):
        return X
    try:
        return np.stack([np.asarray(cell) for cell in cells])
    except ValueError:
        raise ParameterError("X must hold rows of one width.") from None


class FittedState(NamedTuple):
    """The fitted state, behind one reference."""

    head: Head | TagHead
    columns: Columns


class MethodEstimator(BaseEstimator):  # type: ignore[misc]
    """An estimator with a parameter for each part of a method: a component, or its
    text.
    """

    _learnt: FittedState
    blocks: Any

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's arguments; deep, also those of the components, such as
        `generator__k`.
        """
        params: dict[str, Any] = super().get_params(deep=False)
        if deep:
            for part in PARTS:
                with suppress(ParameterError):
                    settings = asdict(FAMILIES[part].resolve(params[part]))
                    params |= {
                        f"{part}__{name}": value for name, value in settings.items()
                    }
        return params

    def set_params(self, **params: Any) -> Self:
        """Change arguments, or one of a component: `set_params(generator__k=5)`. A
        fitted model stays as it is.

        A parameter given together with its component is left out where the component
        has none of that name, as in a search over `generator` and `generator__k`.
        """
        inner = {name: value for name, value in params.items() if "__" in name}
        super().set_params(
            **{name: value for name, value in params.items() if name not in inner}
        )
        for name, value in inner.items():
            part, _, parameter = name.partition("__")
            if part not in PARTS:
                raise ParameterError(
                    f"set_params({name}=...): there is no part {part!r}; parts:"
                    f" {', '.join(PARTS)}."
                )
            component = getattr(self, part)
            if part in params and not _takes(part, component, parameter):
                continue
            changed = FAMILIES[part].changed(component, {parameter: value})
            setattr(self, part, str(changed) if isinstance(component, str) else changed)
        return self

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """The parameters; where `set_params` has changed them since `fit`, also the
        method that was fitted.
        """
        parameters = str(super().__repr__(N_CHAR_MAX))
        with suppress(ParameterError):
            if (
                not self.__sklearn_is_fitted__()
                or self._method() == self._learnt.head.imprinted.method
            ):
                return parameters
        return f"{parameters}, fitted as {self._learnt.head.imprinted.method}"

    def _method(self, columns: Columns | None = None) -> Method:
        parts = {part: getattr(self, part) for part in PARTS}
        return Method.of(**parts, blocks=self._block_widths(columns))

    def _block_widths(self, columns: Columns | None) -> Any:
        """The parameter `blocks` with named groups of columns as widths."""
        if not isinstance(self.blocks, Mapping):
            return self.blocks
        if columns is None and self.__sklearn_is_fitted__():
            columns = self._learnt.columns
        names = getattr(columns, "feature_names_in_", None)
        if names is None:
            raise ParameterError(
                "ImprintClassifier(blocks={...}): blocks by name need a table whose"
                " columns have names, such as a data frame."
            )
        return read_groups(self.blocks, names.tolist())

    def _learn(
        self,
        call: str,
        X: Any,
        y: Any,
        sample_weight: Any,
        before: FittedState | None = None,
        max_rows: int | None = None,
    ) -> FittedState:
        """The fitted state after more rows, which must match the state `before`; with
        None, a state of these rows. With `max_rows`, that of the newest rows.
        """
        head, columns = (None, Columns()) if before is None else before
        rows = columns.read(call, X, FLOATS if head is None else head.imprinted.dtype)
        with naming(call, INPUT_ERRORS):
            if y is None:
                raise ParameterError(
                    "requires y to be passed, but the target y is None."
                )
            tagged = _read_label_sets(y, head)
            labels = read_labels(y) if tagged is None else tagged.sets
            if len(labels) != len(rows):
                raise ParameterError(
                    f"X and y must have the same number of rows, not {len(rows)} and"
                    f" {len(labels)}."
                )
            if tagged is None and head is not None:
                check_kinds("y holds", labels, head.imprinted.labels)
            if tagged is not None and self.class_weight is not None:
                raise ParameterError(
                    "class_weight is not available for tags; use sample_weight."
                )
            weight = _read_weights(labels, sample_weight, self.class_weight)
        if weight is not None and not weight.all():
            positive = np.flatnonzero(weight)
            rows, labels, weight = (
                rows_at(rows, positive),
                labels[positive],
                weight[positive],
            )
        if weight is not None and (weight == 1).all():
            weight = None
        if head is None:
            for name in ("calibrate", "keep_rows", "tree"):
                value = getattr(self, name)
                if not isinstance(value, bool | np.bool_):
                    rule = f"{name} must be True or False"
                    raise ParameterError(
                        f"ImprintClassifier({name}={value!r}): {rule}."
                    )
            empty = Head(
                self._method(columns),
                read_seed(self.random_state),
                dtype_name(rows),
                tree_of_labels=True if self.tree else None,
            )
            head = new_head(
                empty,
                None if tagged is None else tagged.labels,
                bool(self.calibrate),
                bool(self.keep_rows),
            )
        if max_rows is None:
            return FittedState(head.learn(rows, labels, weight), columns)
        if isinstance(head, TagHead):
            raise ParameterError("max_rows: tags have no such limit; leave it out.")
        return FittedState(head.learn_newest(rows, labels, weight, max_rows), columns)

    def __sklearn_is_fitted__(self) -> bool:
        return "_learnt" in self.__dict__

    def _fitted_state(self) -> FittedState:
        """The fitted state; raises the error of scikit-learn if there is none."""
        if not self.__sklearn_is_fitted__():
            # not called for a fitted model because it reads all parameters
            check_is_fitted(self)
        return self._learnt

    @property
    def head_(self) -> Head | TagHead:
        """The fitted state, an immutable value."""
        return self._learnt.head

    @property
    def classes_(self) -> Array:
        """The labels, sorted."""
        return self._learnt.head.classes

    @property
    def tree_(self) -> LabelTree:
        """With `tree=True`, the labels as the leaves of a tree: `animal/cat` is below
        `animal`.
        """
        return self._learnt.head.tree()

    @property
    def proxies_(self) -> Proxies:
        """The proxies, sorted by class."""
        return self._learnt.head.proxies

    @property
    def n_features_in_(self) -> int:
        """The number of columns."""
        return int(self._learnt.head.imprinted.width or 0)

    @property
    def feature_names_in_(self) -> Array:
        """The names of the columns, if the training data were a table with names."""
        return np.asarray(self._learnt.columns.feature_names_in_)

    @property
    def expected_accuracy_(self) -> float:
        """The cross-validated accuracy; NaN if no row could be held out."""
        return self._learnt.head.calibration.expected_accuracy

    @property
    def expected_interval_(self) -> tuple[float, float]:
        """The 95 % interval of the expected accuracy."""
        return self._learnt.head.calibration.expected_interval


def _takes(part: str, component: Any, parameter: str) -> bool:
    """Whether a component has a parameter; an unknown one, which no component of its
    family has, counts, so that it is refused.
    """
    family = FAMILIES[part]
    if hasattr(family.resolve(component), parameter):
        return True
    known = {field.name for each in family for field in fields(each)}
    return parameter not in known


def _read_label_sets(y: Any, head: Head | TagHead | None) -> Tagged | None:
    """The label sets of tags; None where each row has one label and the model is not
    one of tags.
    """
    if isinstance(head, TagHead):
        return read_tags(y, head.labels) or from_lists(
            [label] for label in read_labels(y).tolist()
        )
    tagged = read_tags(y)
    if tagged is not None and head is not None:
        raise ParameterError(
            "the model has one label per row, and y has tags; fit a new model."
        )
    return tagged


def read_labels(y: Any) -> Array:
    """Labels of one kind: text, integers, whole numbers or booleans."""
    y = to_numpy(y)
    if not hasattr(y, "__array__"):
        # NumPy would convert a list of integers and floats to floats
        y = np.array(y, dtype=object)
    y = column_or_1d(y, warn=True)
    if y.dtype == object:
        y = as_labels(y)
    if y.dtype.kind == "f":
        assert_all_finite(y, input_name="y")
        # once each looks like a regression to it
        check_classification_targets(np.repeat(np.unique(y), 2))
    if y.dtype.kind not in "biufUO":
        raise ParameterError(
            f"labels of the type {y.dtype} are not supported; use text or whole"
            " numbers."
        )
    return np.asarray(y)


def _read_weights(y: Array, sample_weight: Any, class_weight: Any) -> Array | None:
    """The weight of every row; None where none is given."""
    if sample_weight is None and class_weight is None:
        return None
    weight = _check_sample_weight(
        to_numpy(sample_weight), y, dtype=np.float64, ensure_non_negative=True
    )
    weight = weight * _class_factors(y, class_weight)
    return check_range(np.asarray(weight))


def _class_factors(y: Array, class_weight: Any) -> Array:
    """The factor of the weight of every row that its class gives.  # (n,)

    A dict may name classes without rows, which may arrive later; classes that it does
    not name have the factor 1.
    """
    if isinstance(class_weight, dict):
        factor_of = {plain(label): factor for label, factor in class_weight.items()}
        present, index = distinct(y)
        check_kinds("class_weight holds", list(factor_of), present)
        factors = [factor_of.get(label, 1.0) for label in present]
        return np.array(factors, dtype=np.float64)[index]
    if class_weight is not None and str(class_weight) != "balanced":
        raise ParameterError("class_weight must be a dict, 'balanced' or None.")
    return np.asarray(compute_sample_weight(class_weight, distinct(y)[1]))


def read_seed(random_state: Any) -> int:
    """The whole number behind scikit-learn's `random_state`; None gives a new one each
    time.
    """
    if isinstance(random_state, int | np.integer) and random_state >= 0:
        return int(random_state)
    try:
        return int(check_random_state(random_state).randint(2**31 - 1))
    except ValueError:
        rule = "random_state must be an int >= 0, a numpy RandomState or None"
        raise ParameterError(f"random_state={random_state!r}: {rule}.") from None
