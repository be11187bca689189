"""Class labels: Python values of one kind, and arrays of them.

The kinds are text, integers, floats and booleans. A model has labels of one kind.
NumPy would convert mixed kinds (integers and floats become floats, in which large
integers are no longer distinct), so labels are Python values in all that is stored,
and the type of an array of labels follows from their values alone.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from imprint.core.arrays import Array, plain
from imprint.core.errors import ParameterError

KINDS = {str: "text", int: "integer", float: "float", bool: "boolean"}
"""The Python types of labels, and their names in errors."""
# 1,233 decimal digits; Python refuses to print integers of more than 4,300
MAX_INTEGER_BITS = 4096
INT64 = np.iinfo(np.int64)
UINT64 = np.iinfo(np.uint64)


def as_labels(values: Iterable[Any]) -> Array:
    """Labels of one kind as an array: texts, booleans, float64 or integers.

    Integers are int64 if all of them fit, else uint64, else Python integers in an array
    of objects. Refuses what an array would change: kinds that are mixed, and texts that
    end with NUL, which NumPy cuts off.
    """
    labels = [plain(value) for value in values]
    types = sorted({type(label).__name__ for label in labels})
    if len(types) > 1:
        raise ParameterError(f"y mixes labels of the types {', '.join(types)}.")
    if labels and type(labels[0]) not in KINDS:
        raise ParameterError(
            f"labels of the type {types[0]} are not supported; use text or whole"
            " numbers."
        )
    if labels and type(labels[0]) is int:
        return np.array(labels, dtype=_integer_type(min(labels), max(labels)))
    for label in labels:
        if type(label) is str and label.endswith("\0"):
            raise ParameterError(
                f"{label!r}: a label must not end with the character NUL."
            )
    return np.array(labels, dtype=type(labels[0]) if labels else str)


def _integer_type(smallest: int, largest: int) -> Any:
    """The type of an array of integers that holds all of them exactly."""
    if max(smallest.bit_length(), largest.bit_length()) > MAX_INTEGER_BITS:
        raise ParameterError(
            f"an integer label has more than {MAX_INTEGER_BITS:,} bits; use text."
        )
    if smallest >= INT64.min and largest <= INT64.max:
        return np.int64
    return np.uint64 if smallest >= 0 and largest <= UINT64.max else object


def kind_of(labels: Array | Sequence[Any]) -> str | None:
    """The kind of labels that are all of one kind; None if there are none."""
    return KINDS.get(type(plain(labels[0])), "other") if len(labels) else None


def check_kinds(
    subject: str, data: Array | Sequence[Any], model: Array | Sequence[Any]
) -> None:
    """Refuse labels of another kind than those of the model; `subject` begins the
    error.
    """
    data_kind = kind_of(data)
    model_kind = kind_of(model)
    if data_kind and model_kind and data_kind != model_kind:
        raise ParameterError(
            f"{subject} {data_kind} labels, the model {model_kind} labels."
        )


def distinct(y: Array) -> tuple[list[Any], NDArray[np.intp]]:
    """The distinct labels as sorted Python values, and the index of every label among
    them.  # (n,)
    """
    present, index = np.unique(np.asarray(y), return_inverse=True)
    return present.tolist(), index


def positions(y: Array, labels: Iterable[Any]) -> NDArray[np.intp]:
    """The index of every element of y among some labels; -1 where it is none of them.
    # (n,)
    """
    number = {label: i for i, label in enumerate(labels)}
    present, index = distinct(y)
    numbers = [number.get(label, -1) for label in present]
    return np.array(numbers, dtype=np.intp)[index]


def listed(call: str, labels: Iterable[Any]) -> list[Any]:
    """The labels of an argument; one text, which Python would take apart, is
    refused.
    """
    if isinstance(labels, str) or not isinstance(labels, Iterable):
        raise ParameterError(f"{call}: give a list of classes, not {labels!r}.")
    return list(labels)


def renamed_key(table: Mapping[Any, Any], old: Any, new: Any) -> dict[Any, Any]:
    """A table by label with another name for one of them."""
    return {new if plain(key) == old else key: table[key] for key in table}


def row_labels(call: str, y: Any, count: int) -> list[Any]:
    """The labels of rows, given as one label for all or one for each."""
    if isinstance(y, str) or np.ndim(y) == 0:
        return [plain(y)] * count
    labels = [plain(label) for label in y]
    if len(labels) != count:
        raise ParameterError(
            f"{call}: {count} rows and {len(labels)} labels; the numbers must be equal."
        )
    return labels
