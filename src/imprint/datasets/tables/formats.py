"""Formats of tables: JSON Lines, JSON and Excel row by row, Parquet and Feather in Arrow batches of bounded size."""

import gzip
import json
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from imprint.core.errors import FileError
from imprint.core.extras import missing
from imprint.datasets.tables.values import check_distinct

CELLS = 1 << 21  # values in a batch of Parquet
LISTS = 64  # rows in a batch of lists, whose lengths are not known before they are read
SMALL, EXPANSION = 1 << 28, 1000  # bytes; a file may unpack to SMALL, or to EXPANSION times its size
NumberedRow: TypeAlias = tuple[int, dict[str, Any]]


def open_text(path: Path) -> Any:
    """A text file, decompressed if its name ends in `.gz`."""
    opener: Any = gzip.open if path.suffix.lower() == ".gz" else open
    return opener(path, "rt", encoding="utf-8-sig", newline="")


def _json_rows(path: Path) -> Iterator[NumberedRow]:
    with open_text(path) as f:
        for number, line in enumerate(f, 1):
            if line.strip():
                yield number, _json_object(path, number, line)


def _json_object(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as e:
        reason = getattr(e, "msg", "it is nested too deeply")
        raise FileError(f"{path}, row {number}: not JSON ({reason}).") from None
    if not isinstance(row, dict):
        raise FileError(f"{path}, row {number}: not a JSON object, such as {{'text': ..., 'label': ...}}.")
    return row


def _json_array(path: Path) -> Iterator[NumberedRow]:
    """The objects of a JSON array, or the columns of one object; the first row is 1."""
    with open_text(path) as f:
        content = json.load(f)
    if isinstance(content, dict) and content and all(isinstance(column, list) for column in content.values()):
        if len({len(column) for column in content.values()}) > 1:
            raise FileError(f"{path}: its columns must be of one length.")
        content = [dict(zip(content, values)) for values in zip(*content.values())]
    if not isinstance(content, list) or not all(isinstance(row, dict) for row in content):
        raise FileError(f"{path} must hold a list of objects, such as [{{'text': ..., 'label': ...}}].")
    yield from enumerate(content, 1)


def _excel_rows(path: Path) -> Iterator[NumberedRow]:
    """The rows of the first sheet of a workbook, whose first row names the columns."""
    try:
        from openpyxl import load_workbook
        from openpyxl.utils.exceptions import InvalidFileException
    except ImportError:
        raise missing("excel", f"{path.name}: .xlsx files need openpyxl") from None
    try:
        book = load_workbook(path, read_only=True, data_only=True)
    except (InvalidFileException, zipfile.BadZipFile, KeyError) as e:
        raise FileError(f"{path} is not a readable workbook ({str(e).rstrip('.')}).") from None
    rows = book.worksheets[0].iter_rows(values_only=True)
    header = ["" if name is None else str(name) for name in next(rows, ())]
    while header and not header[-1]:
        header.pop()
    check_distinct(path, header)
    for number, values in enumerate(rows, 2):
        if any(value is not None for value in values):
            yield number, dict(zip(header, values))


ROW_READERS: dict[str, Callable[[Path], Iterator[NumberedRow]]] = {
    ".jsonl": _json_rows,
    ".jsonl.gz": _json_rows,
    ".json": _json_array,
    ".xlsx": _excel_rows,
}


def parquet_batches(path: Path, columns: Sequence[str] | None) -> Iterator[Any]:
    """The batches of a Parquet file; texts stay dictionary-encoded, so that equal ones are in memory once.

    One encoded value may stand for millions: a file that unpacks to far more than its size is refused.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    limit, size = max(SMALL, EXPANSION * path.stat().st_size), 0
    with open(path, "rb") as f:
        schema = pq.read_schema(f)
        check_distinct(path, schema.names)
        texts = [field.name for field in schema if pa.types.is_string(field.type)]
        fields = [field for field in schema if columns is None or field.name in columns]
        rows = LISTS if any(field.type.num_fields for field in fields) else max(LISTS, CELLS // max(len(fields), 512))
        with pq.ParquetFile(f, pre_buffer=False, read_dictionary=texts) as table:
            if 8 * table.metadata.num_rows * len(fields) > limit:
                raise _too_large(path, limit)
            for batch in table.iter_batches(rows, columns=list(columns) if columns is not None else None):
                size += sum(getattr(column, "indices", column).nbytes for column in batch.columns)
                if size > limit:
                    raise _too_large(path, limit)
                yield batch


def _too_large(path: Path, limit: int) -> FileError:
    ratio = f"{EXPANSION:,} times its size" if limit > SMALL else "the limit for a small file"
    return FileError(f"{path} unpacks to over {limit / 1e9:.1f} GB, {ratio}; it is not read.")


def feather_batches(path: Path, columns: Sequence[str] | None) -> Iterator[Any]:
    """The batches of an Arrow file, as large as they were written, and validated."""
    import pyarrow as pa

    with pa.memory_map(str(path)) as f, pa.ipc.open_file(f) as table:
        check_distinct(path, table.schema.names)
        for i in range(table.num_record_batches):
            batch = table.get_batch(i)
            batch.validate(full=True)
            yield batch.select(list(columns)) if columns is not None else batch
