"""The weights of rows."""

from typing import Any

import numpy as np

from imprint.core.arrays import Array, to_numpy
from imprint.core.errors import ParameterError

MAX_WEIGHT = 1e9
# with 1e-50, `kernel` predicts digits at chance: the noise of a proxy is noise / weight
MIN_WEIGHT = 1e-30


def check_range(weight: Array) -> Array:
    """Weights, refused unless all are usable and one is positive."""
    in_range = (weight >= MIN_WEIGHT) & (weight <= MAX_WEIGHT)
    if not weight.any() or not (in_range | (weight == 0)).all():
        raise ParameterError(
            f"the weights of rows must be 0, or {MIN_WEIGHT:g} to {MAX_WEIGHT:g}, and"
            " one must be positive."
        )
    return weight


def read_weights(call: str, sample_weight: Any, n: int) -> Array:
    """The weight of each of n inputs as float64; the error names the call."""
    rule = "it must hold one number per input"
    try:
        weight = np.asarray(to_numpy(sample_weight), dtype=np.float64)
    except (TypeError, ValueError):
        weight = np.empty((0, 0))
    if weight.ndim != 1:
        raise ParameterError(f"{call}(sample_weight=...): {rule}.")
    if len(weight) != n:
        raise ParameterError(
            f"{call}(sample_weight=...): {rule}, and there are {len(weight)} weights"
            f" and {n} inputs."
        )
    try:
        return check_range(weight)
    except ParameterError as e:
        raise ParameterError(f"{call}(sample_weight=...): {e}") from None
