"""The fitted state of `ImprintClassifier`, and its attributes as scikit-learn names them."""

import os
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from imprint.core.files import container
from imprint.core.tree import LabelTree
from imprint.core.types import Array, Proxies
from imprint.head import Head
from imprint.tags import TagHead


class FittedState(NamedTuple):
    """The fitted state, behind one reference."""

    head: Head | TagHead
    columns: tuple[str, ...] | None
    """The names of the columns, if the training data were a table with names."""


class Fitted:
    """The attributes of an estimator whose fitted state is `_learnt`."""

    _learnt: FittedState

    def __sklearn_is_fitted__(self) -> bool:
        return "_learnt" in self.__dict__

    def _known(self) -> FittedState:
        """The fitted state; raises the error of scikit-learn if there is none."""
        if "_learnt" not in self.__dict__:
            check_is_fitted(self)  # raises; asked first it would read all parameters for every prediction
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


def read_columns(names: Any, source: str | os.PathLike[str]) -> tuple[str, ...] | None:
    """The names of the columns in a file, if it has any; raises FileError if they are not names."""
    if names is None:
        return None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise container.foreign(source)
    return tuple(names)
