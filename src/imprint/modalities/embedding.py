from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from imprint.core.arrays import Array
from imprint.core.errors import ParameterError
from imprint.modalities._base import Modality, refused

BLOCK_VALUES = 1 << 22  # that are checked at once


@dataclass(frozen=True, kw_only=True)
class Embedding(Modality):
    """Rows of numbers that a backbone computed elsewhere."""

    noun: ClassVar[str] = "embedding"
    needs_backbone: ClassVar[bool] = False

    def read(self, raw: bytes) -> Array:
        raise refused("embeddings are rows of a table, not single files")

    def convert(self, value: Any) -> Array:
        return matrix([value])[0]

    def recognises(self, value: Any) -> bool:
        if isinstance(value, np.ndarray):
            return value.ndim == 1 and value.dtype.kind in "fiu"
        return isinstance(value, list | tuple) and all(
            isinstance(v, float | int | np.number) for v in value
        )

    def listed(self, values: Any) -> Sequence[Any]:
        return matrix(values)

    def name_of(self, value: Any, i: int) -> str:
        return f"row {i + 1}"


def check_width(X: Any, expected: int | None) -> None:
    """Refuse rows of another width than the model's."""
    if expected is not None and X.shape[1] != expected:
        raise ParameterError(
            f"The embeddings have {X.shape[1]} columns, and the model was fitted on"
            f" {expected}."
        )


def matrix(rows: Any, dtype: Any = None) -> Any:
    """Embeddings as a matrix of finite numbers; by default, float64 stays and other
    types become float32.  # (n, d)
    """
    try:
        numbers = np.asarray(rows)
    except ValueError:
        raise ParameterError(
            "Embeddings must be rows of numbers of one width."
        ) from None
    if numbers.ndim != 2 or numbers.dtype.kind not in "fiu" or not numbers.size:
        raise ParameterError(
            f"Embeddings must be rows of numbers, not {numbers.dtype} of shape"
            f" {numbers.shape}."
        )
    with np.errstate(over="ignore"):
        X = numbers.astype(
            dtype or (np.float64 if numbers.dtype == np.float64 else np.float32),
            copy=False,
        )
    step = max(1, BLOCK_VALUES // X.shape[1])
    for first in range(0, len(X), step):
        finite = np.isfinite(X[first : first + step])
        if not finite.all():
            row, column = np.argwhere(~finite)[0] + (first, 0)
            cell = f"Embeddings, row {row + 1}, column {column + 1}"
            raise ParameterError(
                f"{cell}: {numbers[row, column]} is not a finite {X.dtype} number."
            )
    return X
