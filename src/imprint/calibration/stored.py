"""A calibration and its cross-validation as JSON and named arrays for a model file."""

from typing import Any

import numpy as np

from imprint.calibration.calibration import Calibration
from imprint.calibration.conformal import SMALLEST_SPREAD, ConformalScore
from imprint.core.errors import require
from imprint.core.layout import to_arrays, to_stacks
from imprint.core.types import Array
from imprint.kernels.rows import lengths

POSITIVE = ("temperature", "score_spread", "doubt_spread", "heaviest")
SHARES = ("floor", "expected", "low", "high")
PREFIX = "calibration/"
ARRAYS = tuple(f"{PREFIX}{name}" for name in ("reference", "below"))
EARLIER_ARRAYS = (f"{PREFIX}usual",)
"""Arrays of files whose calibration is computed again."""
TEMPERATURES = (1e-6, 1e6)
"""The range of temperatures in a file; fitted temperatures lie well within it."""
SHARED, STATE_ROWS = "shared", "state/rows"


def calibration_to_parts(calibration: Calibration) -> tuple[dict[str, Any], dict[str, Array]]:
    """Numbers by name, and arrays."""
    conformal, expected = calibration.conformal, calibration.expected_accuracy
    numbers = {
        "temperature": calibration.temperature,
        "floor": calibration.floor,
        "expected": None if np.isnan(expected) else expected,
        "low": calibration.expected_interval[0],
        "high": calibration.expected_interval[1],
        "score_spread": conformal.score_spread,
        "doubt_spread": conformal.doubt_spread,
        "heaviest": conformal.heaviest,
    }
    return numbers, {name: getattr(conformal, name.removeprefix(PREFIX)) for name in ARRAYS}


def calibration_from_parts(numbers: dict[str, Any], arrays: dict[str, Array]) -> Calibration | None:
    """The calibration from the parts of `calibration_to_parts`; KeyError, TypeError or ValueError for anything else.

    None for a file of an earlier version, whose calibration is computed again.
    """
    require(set(numbers) == {*POSITIVE, *SHARES})
    values = {**numbers, "expected": 0.0 if numbers["expected"] is None else numbers["expected"]}
    require(all(type(value) is float and np.isfinite(value) for value in values.values()))
    require(all(values[name] > 0 for name in POSITIVE) and all(0 <= values[name] <= 1 for name in SHARES))
    if any(name in arrays for name in EARLIER_ARRAYS):
        return None
    low, high = TEMPERATURES
    require(low <= values["temperature"] <= high and values["low"] <= values["high"])
    require(min(values["score_spread"], values["doubt_spread"]) >= SMALLEST_SPREAD)
    reference, below = (arrays[name] for name in ARRAYS)
    check_reference(reference, below)
    conformal = ConformalScore(values["score_spread"], values["doubt_spread"], reference, below, values["heaviest"])
    expected = float("nan") if numbers["expected"] is None else values["expected"]
    return Calibration(values["temperature"], values["floor"], expected, (values["low"], values["high"]), conformal)


def check_reference(reference: Array, below: Array) -> None:
    """Refuse arrays that cannot be those of a `ConformalScore`."""
    require(reference.ndim == 1 and below.shape == (len(reference) + 1,))
    for array in (reference, below):
        require(array.dtype == np.float64 and bool(np.isfinite(array).all()))
    require(below[0] == 0 and bool((np.diff(below) >= 0).all()) and bool((np.diff(reference) >= 0).all()))


def share_rows(arrays: dict[str, Array]) -> dict[str, Array]:
    """The arrays of a model without proxies that are held rows, or held rows at unit length: rows are stored once.

    For such a class, `SHARED` holds the indices of the rows and the numbers by which they are divided.
    """
    if STATE_ROWS + "/values" not in arrays:
        return arrays
    proxies, held = (to_stacks(arrays, kind)["rows"].by_class() for kind in ("state", "held"))
    states: dict[int, dict[str, Array]] = {}
    for c, rows in proxies.items():
        if rows.dtype == held[c].dtype and (state := _reference(rows, held[c])):
            states[c] = state
    unshared = [{"rows": rows} if c not in states else {} for c, rows in proxies.items()]
    rest = {name: array for name, array in arrays.items() if not name.startswith(STATE_ROWS)}
    return {**rest, **to_arrays("state", unshared), **to_arrays(SHARED, [states.get(c, {}) for c in range(len(held))])}


def unshare_rows(arrays: dict[str, Array]) -> dict[str, Array]:
    """The inverse of `share_rows`; raises KeyError, ValueError or IndexError if the file is inconsistent."""
    shared = to_stacks(arrays, SHARED)
    if not shared:
        return arrays
    indices, divisors = (shared[name].by_class() for name in ("index", "length"))
    held, stored = to_stacks(arrays, "held")["rows"].by_class(), to_stacks(arrays, "state")
    proxies = stored["rows"].by_class() if "rows" in stored else {}
    require(not {*proxies} & {*indices} and {*indices} == {*divisors})
    for c, index in indices.items():
        rows, length = held[c], divisors[c]
        require(index.dtype == np.int64 and index.ndim == 1 and length.dtype == rows.dtype and rows.ndim == 2)
        require(
            len(set(index.tolist())) == len(index) == len(length) and bool(((index >= 0) & (index < len(rows))).all())
        )
        require(bool((length > 0).all()) and bool(np.isfinite(length).all()))
        proxies[c] = rows[index] / length[:, None]
    rest = {name: array for name, array in arrays.items() if not name.startswith((STATE_ROWS, f"{SHARED}/"))}
    return {**rest, **to_arrays("state", [{"rows": proxies[c]} for c in sorted(proxies)])}


def _reference(proxies: Array, held: Array) -> dict[str, Array] | None:
    """The indices of the held rows that equal the proxies bit for bit, and the divisors; None if one equals none."""
    if len(proxies) > len(held):
        return None
    for length in (np.ones(len(held), dtype=held.dtype), lengths(held)):
        if length is not None:
            row_of = {row.tobytes(): i for i, row in enumerate(held / length[:, None])}
            index = [row_of.get(row.tobytes(), -1) for row in proxies]
            if min(index) >= 0 and len({*index}) == len(index):
                return {"index": np.array(index, dtype=np.int64), "length": length[index]}
    return None
