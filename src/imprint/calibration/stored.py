"""A calibration as JSON and named arrays for a model's file."""

from typing import Any

import numpy as np

from imprint.calibration.calibration import Calibration
from imprint.calibration.conformal import Familiarity
from imprint.core.files.container import require
from imprint.core.types import Array

POSITIVE = ("temperature", "score_spread", "doubt_spread", "heaviest")
SHARES = ("floor", "expected", "low", "high")
PREFIX = "calibration/"
ARRAYS = tuple(f"{PREFIX}{name}" for name in ("usual", "reference", "below"))


def calibration_to_parts(found: Calibration) -> tuple[dict[str, Any], dict[str, Array]]:
    """Numbers by name, and arrays."""
    seen, told = found.familiarity, found.expected_accuracy == found.expected_accuracy
    numbers = {
        "temperature": found.temperature,
        "floor": found.floor,
        "expected": found.expected_accuracy if told else None,
        "low": found.expected_interval[0],
        "high": found.expected_interval[1],
        "score_spread": seen.score_spread,
        "doubt_spread": seen.doubt_spread,
        "heaviest": seen.heaviest,
    }
    return numbers, {name: getattr(seen, name.removeprefix(PREFIX)) for name in ARRAYS}


def calibration_from_parts(numbers: dict[str, Any], arrays: dict[str, Array], classes: int) -> Calibration:
    """What `calibration_to_parts` described; raises KeyError, TypeError or ValueError for anything else."""
    require(set(numbers) == {*POSITIVE, *SHARES})
    values = {**numbers, "expected": 0.0 if numbers["expected"] is None else numbers["expected"]}
    require(all(type(value) is float and np.isfinite(value) for value in values.values()))
    require(all(values[name] > 0 for name in POSITIVE) and all(0 <= values[name] <= 1 for name in SHARES))
    usual, reference, below = (arrays[name] for name in ARRAYS)
    require(usual.shape == (classes,) and reference.ndim == 1 and below.shape == (len(reference) + 1,))
    for array in (usual, reference, below):
        require(array.dtype == np.float64 and bool(np.isfinite(array).all()))
    require(below[0] == 0 and bool((np.diff(below) > 0).all()) and bool((np.diff(reference) >= 0).all()))
    spreads = values["score_spread"], values["doubt_spread"]
    seen = Familiarity(*spreads, usual, reference, below, values["heaviest"])
    expected = float("nan") if numbers["expected"] is None else values["expected"]
    return Calibration(values["temperature"], values["floor"], expected, (values["low"], values["high"]), seen)
