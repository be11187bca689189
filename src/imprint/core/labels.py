"""Labels as plain values and as arrays."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from imprint.core.types import Array


def plain(label: Any) -> Any:
    """A label as the plain Python value it stands for."""
    return label.item() if isinstance(label, np.generic) else label


def as_labels(values: Sequence[Any], dtype: Any) -> Array:
    """Labels as an array of a type; text as wide as its longest."""
    text = dtype is None or np.dtype(dtype).kind == "U"
    return np.array(values, dtype=str if text else dtype)
