"""The scikit-learn interface of a method: its parameters, down to those of components, and its fitted attributes."""

from contextlib import suppress
from dataclasses import asdict
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from imprint.core.component import PARTS
from imprint.core.errors import ParameterError
from imprint.core.tree import LabelTree
from imprint.core.types import Array, Proxies
from imprint.head import Head
from imprint.method import FAMILIES, Method
from imprint.tags import TagHead


class FittedState(NamedTuple):
    """The fitted state, behind one reference."""

    head: Head | TagHead
    columns: tuple[str, ...] | None  # their names, if the training data were a table with names


class MethodEstimator(BaseEstimator):  # type: ignore[misc]
    """An estimator with a parameter for each part of a method: a component, or its text."""

    _learnt: FittedState

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's arguments; deep, also those of the components, such as `generator__k`."""
        params: dict[str, Any] = super().get_params(deep=False)
        if deep:
            for part in PARTS:
                with suppress(ParameterError):
                    settings = asdict(FAMILIES[part].resolve(params[part]))
                    params |= {f"{part}__{name}": value for name, value in settings.items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Change arguments, or one of a component: `set_params(generator__k=5)`. A fitted model stays as it is."""
        inner = {name: value for name, value in params.items() if "__" in name}
        super().set_params(**{name: value for name, value in params.items() if name not in inner})
        for name, value in inner.items():
            part, _, parameter = name.partition("__")
            if part not in PARTS:
                raise ParameterError(f"set_params({name}=...): there is no part {part!r}; parts: {', '.join(PARTS)}.")
            before = getattr(self, part)
            after = FAMILIES[part].changed(before, {parameter: value})
            setattr(self, part, str(after) if isinstance(before, str) else after)
        return self

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """The parameters; where `set_params` has changed them since `fit`, also the method that was fitted."""
        given = str(super().__repr__(N_CHAR_MAX))
        with suppress(ParameterError):
            if not self.__sklearn_is_fitted__() or self._method() == self._learnt.head.imprinted.method:
                return given
        return f"{given}, fitted as {self._learnt.head.imprinted.method}"

    def _method(self) -> Method:
        return Method.of(**{part: getattr(self, part) for part in PARTS})

    def __sklearn_is_fitted__(self) -> bool:
        return "_learnt" in self.__dict__

    def _known(self) -> FittedState:
        """The fitted state; raises the error of scikit-learn if there is none."""
        if not self.__sklearn_is_fitted__():
            check_is_fitted(self)  # not called for a fitted model because it reads all parameters
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
        """The labels as the leaves of a tree: `animal/cat` is below `animal`."""
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
        if self._learnt.columns is None:
            raise AttributeError("feature_names_in_: the training data had no names of columns.")
        return np.array(self._learnt.columns, dtype=object)

    @property
    def expected_accuracy_(self) -> float:
        """The cross-validated accuracy; NaN if no row could be held out."""
        return self._learnt.head.calibration.expected_accuracy

    @property
    def expected_interval_(self) -> tuple[float, float]:
        """The 95 % interval of the expected accuracy."""
        return self._learnt.head.calibration.expected_interval
