"""Time series in files: one per CSV file, or several in a `.ts` file or a table.

In a wide table a row is a series. In a long table a row is a sample: a column names its
series, others are channels or name the channel.
"""

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from imprint.core.arrays import Array
from imprint.core.errors import ParameterError, printable
from imprint.modalities._base import Collection, TableInputs, refused
from imprint.modalities._series_arrays import without_missing

SERIES_COLUMNS = ("series", "series_id", "case_id", "window", "window_id", "recording")
# only where series were asked for: other tables name their rows so
ID_COLUMNS = ("id", "name")
TIME_COLUMNS = frozenset(
    {
        "time",
        "timestamp",
        "date",
        "datetime",
        "t",
        "second",
        "seconds",
        "index",
        "sample",
        "reading_id",
    }
)
CHANNEL_COLUMNS = ("channel", "dim_id")
VALUE_COLUMN = "value"
# of wide tables: `t0`, `t_1`; or a channel before the number of the sample, `x:0`
SAMPLE_NAME = re.compile(r"t_?\d+")
CHANNEL_SAMPLE_NAME = re.compile(r"(.+):(\d+)")
MISSING = ["", "nan", "NaN", "NA", "null", "?"]


def read_series(raw: bytes) -> Array:
    """The series in a CSV file: a row is a sample, a column a channel.

    A first row that is not of numbers names the columns. A column such as `time` is
    left out: samples are taken as equally spaced.
    """
    import pyarrow as pa
    from pyarrow import csv

    if not raw.strip():
        raise refused("the file is empty")
    header = _first_line(raw)
    delimiter = max("\t;,", key=header.count)
    has_names = any(not _is_number(cell) for cell in header.split(delimiter))
    try:
        table = csv.read_csv(
            io.BytesIO(raw.removeprefix(b"\xef\xbb\xbf")),
            csv.ReadOptions(use_threads=False, autogenerate_column_names=not has_names),
            csv.ParseOptions(delimiter=delimiter),
            csv.ConvertOptions(null_values=MISSING),
        )
    except pa.ArrowInvalid as e:
        raise refused(f"not a CSV file ({str(e).splitlines()[0]})") from None
    channels = {
        name: column
        for name, column in zip(table.column_names, table.columns)
        if name.strip().lower() not in TIME_COLUMNS
    }
    if not channels:
        raise refused("it has no column of values")
    samples = [_as_numbers(name, column) for name, column in channels.items()]
    return without_missing(np.stack(samples), list(channels) if has_names else ())


def _first_line(raw: bytes) -> str:
    try:
        return raw.split(b"\n", 1)[0].decode("utf-8-sig").strip()
    except UnicodeDecodeError:
        raise refused("it is not UTF-8") from None


def _is_number(cell: str) -> bool:
    text = cell.strip().strip('"')
    try:
        float(text)
    except ValueError:
        return text in MISSING
    return True


def _as_numbers(name: str, column: Any) -> Array:
    """A column of Arrow as float64; missing values become NaN."""
    import pyarrow as pa

    if pa.types.is_null(column.type):
        return np.full(len(column), np.nan)
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        return np.asarray(column.cast(pa.float64()).to_numpy(), np.float64)
    value = next((v for v in column.to_pylist() if not _is_number(str(v))), "")
    shown = printable(value, 40)
    raise refused(f"the column {name!r} holds {shown!r}, which is not a number")


def read_ts(raw: bytes) -> Collection:
    """The series and labels in a `.ts` file, the format of aeon and sktime."""
    try:
        lines = raw.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise refused("it is not UTF-8") from None
    has_labels = has_times = False
    inputs: list[Array] = []
    labels: list[str] = []
    in_data = False
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        if not in_data:
            words = text.lower().split()
            has_labels |= words[:2] == ["@classlabel", "true"]
            has_times |= words[:2] == ["@timestamps", "true"]
            in_data = words[0] == "@data"
            if not text.startswith("@"):
                raise refused(f"line {number} is before @data and has no @")
            continue
        if has_times:
            raise refused("it has time stamps; write it with equally spaced samples")
        channels = text.split(":")
        if has_labels:
            labels.append(channels.pop().strip())
        inputs.append(_ts_series(number, channels))
    if not inputs:
        raise refused("it has no series after @data")
    return Collection(inputs, labels if has_labels else None)


def _ts_series(number: int, channels: Sequence[str]) -> Array:
    """The series of one line; shorter channels end with missing values."""
    rows = []
    for channel in channels:
        cells = channel.replace("?", "nan").split(",") if channel.strip() else []
        try:
            rows.append(np.array(cells, dtype=np.float64))
        except ValueError:
            shown = printable(channel, 40)
            raise refused(f"line {number}: {shown!r} is not a row of numbers") from None
    longest = max(map(len, rows), default=0)
    series = np.full((len(rows), longest), np.nan)
    for row, values in zip(series, rows):
        row[: len(values)] = values
    return series


def reads_columns(names: Sequence[str], requested: bool) -> bool:
    """Whether the columns of a table hold series.

    Parameters
    ----------
    names : sequence of str
        The columns without those of labels and of splits.
    requested : bool
        Whether series were asked for, such as by the name of a backbone. Then columns
        of numbers are the samples of one channel.
    """
    lower = [name.strip().lower() for name in names]
    if "text" in lower:
        return False
    if requested:
        return True
    values = [name for name in lower if name not in TIME_COLUMNS]
    if any(name in SERIES_COLUMNS for name in lower):
        return len(values) > 1
    is_wide = all(map(SAMPLE_NAME.fullmatch, lower))
    return len(lower) > 1 and (
        is_wide or all(map(CHANNEL_SAMPLE_NAME.fullmatch, lower))
    )


def from_columns(columns: Mapping[str, Any], requested: bool) -> TableInputs:
    """The series in the columns of a table; see `reads_columns`.

    Parameters
    ----------
    columns : mapping of str to sequence
        Numbers, or texts that state them; empty cells are missing values.
    requested : bool
        As in `reads_columns`.
    """
    by_lower = {name.strip().lower(): name for name in columns}
    ids: tuple[str, ...] = SERIES_COLUMNS
    if requested:
        ids += ID_COLUMNS
    key = next((by_lower[name] for name in ids if name in by_lower), None)
    if key is None:
        return _from_wide(columns, None)
    names = [str(cell) for cell in columns[key]]
    values = dict(columns)
    del values[key]
    is_one_per_row = len(set(names)) == len(names)
    if is_one_per_row and len(values) > 1:
        return _from_wide(values, names)
    return _from_long(values, names)


def _from_wide(columns: Mapping[str, Any], names: list[str] | None) -> TableInputs:
    """One series per row."""
    lists = _lists(columns)
    if lists is not None:
        return TableInputs(lists, np.arange(len(lists)), names)
    matches = [CHANNEL_SAMPLE_NAME.fullmatch(name) for name in columns]
    columns_of_channel: dict[str, list[str]] = {}
    for name, match in zip(columns, matches):
        channel = match[1] if match and all(matches) else ""
        group = columns_of_channel.setdefault(channel, [])
        group.append(name)
    groups = list(columns_of_channel.values())
    length = len(groups[0])
    if any(len(group) != length for group in groups):
        lengths = [len(group) for group in groups]
        raise ParameterError(
            "The channels of a wide table must have one number of columns, not"
            f" {lengths}."
        )
    n = len(columns[groups[0][0]])
    stack = np.empty((n, len(groups), length))
    for c, group in enumerate(groups):
        for t, name in enumerate(group):
            stack[:, c, t] = numbers_of(name, columns[name])
    return TableInputs(stack, np.arange(n), names)


def _lists(columns: Mapping[str, Any]) -> list[Array] | None:
    """The series in the cells of a single column; None if its cells hold none."""
    if len(columns) != 1:
        return None
    (column,) = columns.values()
    cells = list(column)
    if not cells or isinstance(cells[0], str) or np.ndim(cells[0]) == 0:
        return None
    return [np.asarray(cell) for cell in cells]


def _from_long(columns: Mapping[str, Any], ids: Sequence[str]) -> TableInputs:
    """One sample per row, or one value per row with a column that names its channel.

    `ids` names the series of each row.
    """
    names = list(dict.fromkeys(ids))
    number_of_name = {name: i for i, name in enumerate(names)}
    owner = np.array([number_of_name[name] for name in ids], dtype=np.intp)
    by_lower = {name.strip().lower(): name for name in columns}
    times = [name for lower, name in by_lower.items() if lower in TIME_COLUMNS]
    if times:
        order = np.lexsort((_sortable(columns[times[0]]), owner))
    else:
        order = np.argsort(owner, kind="stable")
    is_first = np.diff(owner[order], prepend=-1) > 0
    starts = np.flatnonzero(is_first)
    rows_of_series = np.split(order, starts[1:])
    values = {
        name: numbers_of(name, cells)
        for name, cells in columns.items()
        if name not in times and name.strip().lower() not in CHANNEL_COLUMNS
    }
    channel = next((by_lower[c] for c in CHANNEL_COLUMNS if c in by_lower), None)
    if channel is not None and VALUE_COLUMN in by_lower:
        channels = np.array([str(cell) for cell in columns[channel]])
        cells = values[by_lower[VALUE_COLUMN]]
        inputs = list(_pivoted(rows_of_series, channels, cells, names))
    else:
        samples = np.stack(list(values.values()))
        inputs = [samples[:, rows] for rows in rows_of_series]
    return TableInputs(inputs, owner, names)


def _pivoted(
    rows_of_series: Sequence[Array], channels: Array, values: Array, names: list[str]
) -> Iterator[Array]:
    """The series of a table with one value per row."""
    known = np.unique(channels)
    for name, rows in zip(names, rows_of_series):
        channel_of_row = channels[rows]
        parts = [values[rows[channel_of_row == channel]] for channel in known]
        lengths = [len(part) for part in parts]
        if len(set(lengths)) > 1:
            raise ParameterError(
                f"The series {printable(name, 40)!r} must have equally many values of"
                f" each channel, not {lengths}."
            )
        yield np.stack(parts)


def _sortable(times: Any) -> Array:
    """Times as numbers if they are numbers, else as texts such as 2026-11-19."""
    cells = list(times)
    try:
        return np.array(cells, dtype=np.float64)
    except (TypeError, ValueError):
        return np.array([str(cell) for cell in cells])


def numbers_of(name: str, cells: Any) -> Array:
    """A column as float64; empty cells are NaN."""
    if hasattr(cells, "dtype") and cells.dtype.kind in "fiu":
        return np.asarray(cells, np.float64)
    values = list(cells)
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        pass
    out = np.empty(len(values))
    for i, value in enumerate(values):
        text = "" if value is None else str(value).strip()
        try:
            out[i] = np.nan if text in MISSING else float(text)
        except ValueError:
            raise ParameterError(
                f"The column {name!r}, row {i + 1}: {printable(text, 40)!r} is not a"
                " number."
            ) from None
    return out
