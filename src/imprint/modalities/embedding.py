from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from imprint.core.errors import ParameterError
from imprint.core.types import Array
from imprint.modalities._base import Modality, refused


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
        return isinstance(value, list | tuple) and all(isinstance(v, float | int | np.number) for v in value)

    def listed(self, values: Any) -> Sequence[Any]:
        return matrix(values)

    def name_of(self, value: Any, i: int) -> str:
        return f"row {i + 1}"


def check_width(X: Any, expected: int | None) -> None:
    """Refuse rows of another width than the model's."""
    if expected is not None and X.shape[1] != expected:
        raise ParameterError(f"The embeddings have {X.shape[1]} columns, and the model was fitted on {expected}.")


def matrix(rows: Any) -> Any:
    """Embeddings as finite float32 or float64 rows.  # (n, d)"""
    try:
        X = np.asarray(rows)
    except ValueError:
        raise ParameterError("Embeddings must be rows of numbers of one width.") from None
    if X.ndim != 2 or X.dtype.kind not in "fiu" or not len(X):
        raise ParameterError(f"Embeddings must be rows of numbers (n, d), not {X.dtype} of shape {X.shape}.")
    X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float32)
    finite = np.isfinite(X).all(axis=1)
    if not finite.all():
        raise ParameterError(f"Embeddings must be finite numbers; row {int(np.argmin(finite)) + 1} is not.")
    return X
