"""Label sets: the labels of a row that may have several (tags), written as one text
such as `joy|love`.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from imprint.core.arrays import Array, plain
from imprint.core.errors import ParameterError
from imprint.core.labels import as_labels

SEPARATOR = "|"
# in a label, | and \ are preceded by a backslash
ESCAPED_LABEL = re.compile(r"(?:[^|\\]|\\.)+", re.DOTALL)


class Tagged(NamedTuple):
    """The label sets of rows, and all labels, sorted; some labels may belong to no
    row.
    """

    sets: Array  # (n,) texts
    labels: tuple[Any, ...]


def as_text(labels: Iterable[Any]) -> str:
    """A label set, in ascending order, as one text."""
    return SEPARATOR.join(re.sub(r"([|\\])", r"\\\1", str(label)) for label in labels)


def texts_of(label_set: str) -> list[str]:
    """The labels of a set, as texts."""
    return [
        re.sub(r"\\(.)", r"\1", piece, flags=re.DOTALL)
        for piece in ESCAPED_LABEL.findall(label_set)
    ]


def indicator(sets: Sequence[str], labels: Sequence[Any]) -> Array:
    """Which of the labels each set has.  # (n, labels) int64"""
    column = {str(label): c for c, label in enumerate(labels)}
    Y = np.zeros((len(sets), len(labels)), dtype=np.int64)
    for row, label_set in zip(Y, sets):
        row[[column[text] for text in texts_of(label_set)]] = 1
    return Y


def from_lists(rows: Iterable[Iterable[Any]], classes: Iterable[Any] = ()) -> Tagged:
    """Label sets given as sets, lists or tuples of texts or of integers; labels among
    `classes` may have no row.
    """
    sets = [set(map(plain, row)) for row in rows]
    labels = set(classes).union(*sets)
    if {type(label) for label in labels} not in ({str}, {int}) or "" in labels:
        raise ParameterError(
            "tags: labels must be all texts that are not empty, or all whole numbers."
        )
    return Tagged(
        as_labels(as_text(sorted(labels)) for labels in sets),
        tuple(sorted(labels)),
    )


def single_labels(labels: Iterable[Any]) -> Array:
    """The label sets of rows that have one label each."""
    return as_labels(as_text([label]) for label in labels)


def read_tags(y: Any, classes: Sequence[Any] | None = None) -> Tagged | None:
    """Tags as an indicator matrix (n, labels), or as one set or list of labels per row;
    None for anything else.

    The labels of a matrix are `classes`, the column names of a data frame, or else 0,
    1, ... Lists of equal length that hold only 0 and 1 are a matrix, as in
    scikit-learn.
    """
    column_names = [plain(name) for name in getattr(y, "columns", [])]
    if hasattr(y, "toarray"):  # a sparse matrix
        y = y.toarray()
    rows = _rows_of_labels(y)
    if rows is not None:
        return from_lists(rows, classes or ())
    Y = np.asarray(y.cpu() if hasattr(y, "cpu") else y)
    if not _is_indicator(Y):
        return None
    labels: Sequence[Any] = range(Y.shape[1])
    if column_names:
        labels = column_names
    elif classes is not None:
        labels = classes
    if len(labels) != Y.shape[1]:
        raise ParameterError(
            f"y has {Y.shape[1]} columns; the model has {len(labels)} labels. Give sets"
            " of labels."
        )
    sets = []
    for row in Y:
        columns = np.flatnonzero(row).tolist()
        sets.append([labels[c] for c in columns])
    return from_lists(sets, labels)


def _rows_of_labels(y: Any) -> list[Any] | None:
    """The rows of y if each is a set or list of labels; None if they are not, or if
    they are the rows of an indicator matrix.
    """
    is_list = isinstance(y, list | tuple)
    holds_objects = getattr(getattr(y, "dtype", None), "kind", "") == "O"
    if not is_list and not holds_objects:
        return None
    rows = list(y)
    if not rows:
        return None
    if not all(isinstance(row, set | frozenset | list | tuple) for row in rows):
        return None
    # a matrix has rows of one length, in an order, with at least two columns
    width = len(rows[0])
    if isinstance(rows[0], set | frozenset) or width < 2:
        return rows
    if any(len(row) != width for row in rows):
        return rows
    values = {plain(value) for row in rows for value in row}
    return None if values <= {0, 1} else rows


def _is_indicator(Y: Array) -> bool:
    """Whether an array is a matrix of 0 and 1 with at least two columns."""
    if Y.ndim != 2 or Y.shape[1] < 2 or Y.dtype.kind not in "biuf":
        return False
    return bool(np.isin(Y, (0, 1)).all())
