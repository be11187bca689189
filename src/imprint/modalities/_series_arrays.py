"""Time series as arrays, lists and data frames in memory."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from imprint.core.arrays import Array
from imprint.core.errors import ParameterError, UnreadableInput, count

FORMS = (
    "an array (channels, length) or (length,) of numbers, or a data frame with one"
    " column per channel"
)


def one_series(value: Any) -> Array:
    """A series as float32 or float64.  # (channels, length)

    Missing values at the end of all channels end the series; others are refused.

    Parameters
    ----------
    value : array, list or data frame
        An array is (channels, length) or (length,). A data frame of pandas or polars
        has one column per channel, and one row per sample.

    Raises
    ------
    ParameterError
        If it holds no series.
    UnreadableInput
        If the series is empty, or has missing or infinite values.
    """
    return without_missing(_numbers(value))


def _numbers(value: Any) -> Array:
    """The values of a series, missing ones among them.  # (channels, length)"""
    is_frame = hasattr(value, "columns") and hasattr(value, "to_numpy")
    try:
        numbers = np.asarray(value.to_numpy() if is_frame else value)
    except (ValueError, TypeError):
        raise ParameterError(
            f"A series must be {FORMS}, not a {type(value).__name__} of unequal parts."
        ) from None
    if numbers.dtype.kind not in "fiub" or numbers.ndim not in (1, 2):
        what = f"{numbers.dtype} of shape {numbers.shape}"
        raise ParameterError(f"A series must be {FORMS}, not {what}.")
    series = numbers.T if is_frame else np.atleast_2d(numbers)
    # Half precision has no range for sums; integers become float64 without loss.
    dtype = np.float32 if series.dtype.itemsize < 8 else np.float64
    return np.ascontiguousarray(series, dtype)


def without_missing(series: Array, channels: Sequence[str] = ()) -> Array:
    """The series up to its end; refused if a value before that is missing.

    Parameters
    ----------
    series : array (channels, length)
    channels : sequence of str
        The names of the channels, for messages.
    """
    is_missing = np.isnan(series)
    if is_missing.any():
        has_values = np.flatnonzero(~is_missing.all(axis=0))
        length = has_values[-1] + 1 if len(has_values) else 0
        series = np.ascontiguousarray(series[:, :length])
        is_missing = is_missing[:, :length]
    if not series.size:
        raise UnreadableInput("a series", "it has no samples")
    for problem, name in ((is_missing, "missing"), (np.isinf(series), "infinite")):
        if problem.any():
            channel, sample = np.argwhere(problem)[0].tolist()
            named = channels[channel] if channels else channel + 1
            total = count(int(problem.sum()), f"{name} value")
            reason = f"{total}, the first in channel {named} at sample {sample + 1}"
            raise UnreadableInput("a series", reason)
    return series


def several_series(values: Any, lengths: Any = None) -> Any:
    """Several series as a sequence whose items `one_series` reads.

    Parameters
    ----------
    values : array or sequence
        An array is (n, channels, length), or (n, length) for one channel. A sequence
        holds one series each. A data frame is in one of sktime's forms: cells that
        hold series, or two levels of rows, series and time.
    lengths : array of int, optional
        The number of samples of each series in an array.
    """
    if hasattr(values, "columns") and hasattr(values, "to_numpy"):
        return _series_of_frame(values)
    if isinstance(values, np.ndarray) and values.dtype != object:
        if values.ndim not in (2, 3):
            raise ParameterError(
                "Series in one array must be (n, channels, length) or (n, length), not"
                f" of shape {values.shape}."
            )
        stack = values[:, None] if values.ndim == 2 else values
        if lengths is None:
            return stack
        return [series[:, :length] for series, length in zip(stack, lengths)]
    return list(values)


def is_nested(values: Any) -> bool:
    """Whether a data frame holds series in its cells, or has two levels of rows."""
    if not hasattr(values, "iloc") or not hasattr(values, "columns") or values.empty:
        return False
    has_levels = getattr(values.index, "nlevels", 1) == 2
    first = values.iloc[0, 0]
    return has_levels or (hasattr(first, "__len__") and not isinstance(first, str))


def is_unlike_embeddings(frame: Any) -> bool:
    """Whether a nested data frame has two levels of rows, or series of pandas in its
    cells; lists in cells are embeddings more often.
    """
    if getattr(frame.index, "nlevels", 1) == 2:
        return True
    return all(hasattr(cell, "iloc") for cell in frame.iloc[0])


def _series_of_frame(frame: Any) -> list[Array]:
    """The series of a data frame in one of sktime's two forms."""
    if getattr(frame.index, "nlevels", 1) == 2:
        groups = frame.groupby(level=0, sort=False)
        return [_numbers(group) for _, group in groups]
    if not is_nested(frame):
        # one series of one channel per row
        return list(np.asarray(frame.to_numpy())[:, None])
    rows = zip(*(frame[column] for column in frame.columns))
    return [np.stack([np.asarray(cell) for cell in row]) for row in rows]
