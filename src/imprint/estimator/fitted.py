"""What a fitted `ImprintClassifier` knows, and its attributes as scikit-learn names them."""

import os
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from imprint.core.files import container
from imprint.core.types import Array, Proxies
from imprint.head import Head


class FittedState(NamedTuple):
    """What a fitted classifier knows, behind one reference."""

    head: Head
    columns: tuple[str, ...] | None
    """The names of the columns, where the training data were a table that has them."""


class Fitted:
    """The attributes of an estimator that keeps what it has learnt as `_learnt`."""

    _learnt: FittedState

    def __sklearn_is_fitted__(self) -> bool:
        return "_learnt" in self.__dict__

    def _known(self) -> FittedState:
        """What was learnt; scikit-learn's error where nothing was."""
        if "_learnt" not in self.__dict__:
            check_is_fitted(self)  # raises; asked first it would read all parameters for every prediction
        return self._learnt

    @property
    def head_(self) -> Head:
        """What was learnt, as one immutable value."""
        return self._learnt.head

    @property
    def classes_(self) -> Array:
        """The labels, sorted."""
        return self._learnt.head.classes

    @property
    def proxies_(self) -> Proxies:
        """The proxies, sorted by class."""
        return self._learnt.head.proxies

    @property
    def n_features_in_(self) -> int:
        """How many numbers a row has."""
        return int(self._learnt.head.width or 0)

    @property
    def feature_names_in_(self) -> Array:
        """The names of the columns, where the training data were a table that has them."""
        if self._learnt.columns is None:
            raise AttributeError("feature_names_in_: the training data had no names of columns.")
        return np.array(self._learnt.columns, dtype=object)

    @property
    def expected_accuracy_(self) -> float:
        """The share of new inputs that will be called right, by what was held back; NaN where that cannot be told."""
        return self._learnt.head.calibration.expected_accuracy

    @property
    def expected_interval_(self) -> tuple[float, float]:
        """Where the expected accuracy lies with 95 % confidence."""
        return self._learnt.head.calibration.expected_interval


def read_columns(names: Any, source: str | os.PathLike[str]) -> tuple[str, ...] | None:
    """The names of columns that a file holds; refused where they are none."""
    if names is None:
        return None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise container.foreign(source)
    return tuple(names)
