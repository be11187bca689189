"""A calibration and the rows of its cross-validation as numbers and named arrays for a model file."""

from typing import Any, TypeVar

import numpy as np

from imprint.calibration.calibration import Estimates
from imprint.calibration.conformal import ConformalScore
from imprint.core.errors import require
from imprint.core.layout import SMALLEST_MASS, Entry, Layout, to_arrays, to_stacks, to_states
from imprint.core.types import Array
from imprint.kernels.rows import lengths

NUMBERS, SCORE_NUMBERS = ("expected", "low", "high"), ("score_spread", "doubt_spread", "heaviest")
SCORE_ARRAYS = ("reference", "below")
EARLIER_ARRAY = "calibration/usual"  # in files whose calibration is computed again
SHARED, STATE_ROWS = "shared", "state/rows"
SHARED_LAYOUT: Layout = {
    "index": Entry("m", least=0, whole=True, optional=True),
    "length": Entry("m", least=SMALLEST_MASS, optional=True),
}
E = TypeVar("E", bound=Estimates)


def array_names(kind: type[Estimates]) -> set[str]:
    """The names of the arrays of a calibration."""
    return {f"{kind.prefix}{name}" for name in (*kind.arrays, *SCORE_ARRAYS)}


def calibration_to_parts(calibration: Estimates) -> tuple[dict[str, Any], dict[str, Array]]:
    """Numbers and arrays by name."""
    conformal, expected = calibration.conformal, calibration.expected_accuracy
    numbers = {name: getattr(calibration, name) for name in calibration.numbers}
    numbers |= zip(NUMBERS, (None if np.isnan(expected) else expected, *calibration.expected_interval))
    numbers |= {name: getattr(conformal, name) for name in SCORE_NUMBERS}
    arrays = {name: getattr(calibration, name) for name in calibration.arrays}
    arrays |= {name: getattr(conformal, name) for name in SCORE_ARRAYS}
    return numbers, {f"{calibration.prefix}{name}": array for name, array in arrays.items()}


def calibration_from_parts(kind: type[E], numbers: dict[str, Any], arrays: dict[str, Array]) -> E:
    """The calibration from the parts of `calibration_to_parts`; KeyError, TypeError or ValueError for anything else."""
    require(set(numbers) == {*kind.numbers, *NUMBERS, *SCORE_NUMBERS})
    is_known = numbers["expected"] is not None
    values = numbers | ({} if is_known else {"expected": 0.0})
    require(all(type(value) is float and np.isfinite(value) for value in values.values()))
    expected, interval = values["expected"] if is_known else float("nan"), (values["low"], values["high"])
    values |= {name: arrays[f"{kind.prefix}{name}"] for name in (*kind.arrays, *SCORE_ARRAYS)}
    conformal = ConformalScore(**{name: values[name] for name in (*SCORE_NUMBERS, *SCORE_ARRAYS)})
    return kind(expected, interval, conformal, **{name: values[name] for name in (*kind.numbers, *kind.arrays)})


def share_rows(arrays: dict[str, Array]) -> dict[str, Array]:
    """The arrays of a model without proxies that are held rows, or held rows at unit length: rows are stored once.

    For such a class, `SHARED` holds the indices of the rows and the numbers by which they are divided.
    """
    if STATE_ROWS + "/values" not in arrays:
        return arrays
    proxies, held = (to_stacks(arrays, kind)["rows"].by_class() for kind in ("state", "held"))
    shared = {c: _references(rows, held[c]) for c, rows in proxies.items()}
    unshared = [{} if shared[c] else {"rows": rows} for c, rows in proxies.items()]
    rest = {name: array for name, array in arrays.items() if not name.startswith(STATE_ROWS)}
    return {**rest, **to_arrays("state", unshared), **to_arrays(SHARED, list(shared.values()))}


def unshare_rows(arrays: dict[str, Array]) -> dict[str, Array]:
    """The inverse of `share_rows`; raises KeyError, ValueError or IndexError if the file is inconsistent."""
    if f"{SHARED}/index/values" not in arrays:
        return arrays
    held, stored = to_stacks(arrays, "held")["rows"].by_class(), to_stacks(arrays, "state")
    proxies = stored["rows"].by_class() if "rows" in stored else {}
    for c, state in enumerate(to_states(arrays, SHARED, SHARED_LAYOUT, len(held), 0)):
        if state:
            index, length = state["index"], state["length"]
            require(c not in proxies and len(set(index.tolist())) == len(index) and length.dtype == held[c].dtype)
            proxies[c] = held[c][index] / length[:, None]
    rest = {name: array for name, array in arrays.items() if not name.startswith((STATE_ROWS, f"{SHARED}/"))}
    return {**rest, **to_arrays("state", [{"rows": proxies[c]} for c in sorted(proxies)])}


def _references(proxies: Array, held: Array) -> dict[str, Array]:
    """The indices of the held rows that equal the proxies bit for bit, and the divisors; empty if one equals none."""
    if len(proxies) <= len(held) and proxies.dtype == held.dtype:
        for length in (np.ones(len(held), dtype=held.dtype), lengths(held)):
            row_of = {} if length is None else {row.tobytes(): i for i, row in enumerate(held / length[:, None])}
            index = [row_of.get(row.tobytes(), -1) for row in proxies]
            if length is not None and min(index) >= 0 and len({*index}) == len(index):
                return {"index": np.array(index, dtype=np.int64), "length": length[index]}
    return {}
