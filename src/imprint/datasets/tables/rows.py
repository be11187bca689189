"""Rows of tables, one by one, as plain Python values: slow, and able to name the row and column of any mistake.

Rows are counted as a spreadsheet shows them: in `.csv` and `.tsv` the header is row 1; in `.jsonl` a row is a line; in
`.parquet` the first row is 1.
"""

import codecs
import csv
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from imprint.core.errors import FileError

Row: TypeAlias = tuple[int, dict[str, Any]]
LONGEST_FIELD = 1 << 24  # characters; the csv module's own limit is below a list of 8,192 numbers
PARQUET_ROWS = 1024  # that are made Python values at once


def read_rows(path: Path, columns: Sequence[str] | None = None) -> Iterator[Row]:
    """The number of each row and its values by column; of Parquet files only the given `columns` are read."""
    try:
        if path.suffix.lower() == ".parquet":
            yield from _parquet_rows(path, columns)
        else:
            yield from READERS[path.suffix.lower()](path)
    except UnicodeDecodeError:
        raise _not_utf8(path) from None
    except OSError as e:
        raise e if isinstance(e, FileError) else FileError(f"Cannot read {path}: {e.strerror or e}.") from None


def delimiter_of(path: Path, header: str) -> str:
    """What separates the fields: a tab in `.tsv`, else a comma, or a semicolon where the header has no comma."""
    if path.suffix.lower() == ".tsv":
        return "\t"
    return ";" if ";" in header and "," not in header else ","


def short(value: object) -> str:
    """A value as errors show it: quoted, at most 40 characters."""
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def some(names: Sequence[str]) -> str:
    """At most six names, and how many more there are.

    >>> some([f"x{i}" for i in range(100)])
    "'x0', 'x1', 'x2', 'x3', 'x4', 'x5' ... and 94 more"
    """
    more = f" ... and {len(names) - 6} more" if len(names) > 6 else ""
    return ", ".join(map(short, names[:6])) + more


def check_columns(path: Path, columns: Sequence[str]) -> None:
    """Refuse two columns of one name."""
    twice = [name for name, times in Counter(columns).items() if times > 1]
    if twice:
        raise FileError(f"{path} has more than one column called {some(twice)}.")


def _csv_rows(path: Path) -> Iterator[Row]:
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_FIELD))
    with open(path, encoding="utf-8-sig", newline="") as f:
        start = f.readline()
        f.seek(0)
        reader = csv.reader(f, delimiter=delimiter_of(path, start), strict=True)
        try:
            header = next(reader, [])
            _check_header(path, header)
            for number, fields in enumerate(reader, 2):
                if not fields:
                    continue  # an empty line
                if len(fields) != len(header):
                    raise FileError(
                        f"{path}, row {number}: {len(fields)} fields, but the header has {len(header)} columns."
                    )
                yield number, dict(zip(header, fields))
        except csv.Error as e:
            raise FileError(f"{path}, line {reader.line_num}: not readable as a table ({e}).") from None


def _check_header(path: Path, header: list[str]) -> None:
    if not any(name.strip() for name in header):
        raise FileError(f"{path} has no rows: its first line must name the columns.")
    if all(map(_is_number, header)):
        raise FileError(f"{path} has no header: its first row must name the columns, and it holds numbers.")
    check_columns(path, header)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _json_rows(path: Path) -> Iterator[Row]:
    with open(path, encoding="utf-8-sig", newline="\n") as f:
        for number, line in enumerate(f, 1):
            if line.strip():
                yield number, _object(path, number, line)


def _object(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as e:
        reason = getattr(e, "msg", "it is nested too deeply")
        raise FileError(f"{path}, row {number}: not JSON ({reason}).") from None
    if not isinstance(row, dict):
        raise FileError(f"{path}, row {number}: not a JSON object, such as {{'text': ..., 'label': ...}}.")
    return row


def _parquet_rows(path: Path, columns: Sequence[str] | None) -> Iterator[Row]:
    number = 0
    for batch in parquet_batches(path, PARQUET_ROWS, columns):
        for row in batch.to_pylist():
            number += 1
            yield number, row


def parquet_batches(path: Path, rows: int, columns: Sequence[str] | None = None) -> Iterator[Any]:
    """A Parquet file as Arrow batches; memory holds one of them, and the pages it came from."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with open(path, "rb") as f, pq.ParquetFile(f, pre_buffer=False) as table:
            check_columns(path, table.schema_arrow.names)
            yield from table.iter_batches(rows, columns=list(columns) if columns is not None else None)
    except (pa.ArrowException, UnicodeDecodeError, ValueError, OSError) as e:
        if isinstance(e, FileError) or getattr(e, "errno", None):
            raise
        reason = (str(e).splitlines() or [""])[0].rstrip(".")
        raise FileError(f"{path} is not a readable Parquet file ({reason}).") from None


def _not_utf8(path: Path) -> FileError:
    with open(path, "rb") as f:
        if f.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            return FileError(f"{path} is in UTF-16: save it as UTF-8.")
        f.seek(0)
        for number, line in enumerate(f, 1):
            try:
                line.decode("utf-8-sig")
            except UnicodeDecodeError as e:
                return FileError(f"{path}, line {number}: not UTF-8 (byte 0x{line[e.start]:02x}); save it as UTF-8.")
    return FileError(f"{path} is not UTF-8: save it as UTF-8.")


READERS: dict[str, Callable[[Path], Iterator[Row]]] = {".csv": _csv_rows, ".tsv": _csv_rows, ".jsonl": _json_rows}
SUFFIXES = (*READERS, ".parquet")
