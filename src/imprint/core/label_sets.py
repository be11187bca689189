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
    sets = [{plain(label) for label in row} for row in rows]
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
    y = y.toarray() if hasattr(y, "toarray") else y
    rows = (
        list(y)
        if isinstance(y, list | tuple)
        or getattr(getattr(y, "dtype", None), "kind", "") == "O"
        else []
    )
    if rows and all(isinstance(row, set | frozenset | list | tuple) for row in rows):
        equal_length = len({len(row) for row in rows}) == 1 and not isinstance(
            rows[0], set | frozenset
        )
        if (
            not equal_length
            or len(rows[0]) < 2
            or not {plain(v) for row in rows for v in row} <= {0, 1}
        ):
            return from_lists(rows, classes or ())
    Y = np.asarray(y.cpu() if hasattr(y, "cpu") else y)
    if (
        Y.ndim != 2
        or Y.shape[1] < 2
        or Y.dtype.kind not in "biuf"
        or not np.isin(Y, (0, 1)).all()
    ):
        return None
    labels = column_names or (range(Y.shape[1]) if classes is None else classes)
    if len(labels) != Y.shape[1]:
        raise ParameterError(
            f"y has {Y.shape[1]} columns; the model has {len(labels)} labels. Give sets"
            " of labels."
        )
    return from_lists(
        ([labels[c] for c in np.flatnonzero(row).tolist()] for row in Y), labels
    )
