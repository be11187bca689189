"""Tables in bounded batches of columns: CSV, Parquet and Feather by pyarrow, JSON Lines by the standard library.

pyarrow's JSON reader infers one type per column, such as a date for a label '2024-01-01', and refuses columns of mixed
types without naming the value; here each line is parsed alone.
Rows are numbered as a spreadsheet shows them: in `.csv`, `.tsv` and `.xlsx` the header is row 1; in `.jsonl` a row is a
line; in other tables the first row is 1.
"""

import codecs
import csv
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import compress, islice
from pathlib import Path
from typing import Any, NamedTuple

from imprint.core.errors import FileError
from imprint.datasets.tables.formats import ROW_READERS, NumberedRow, feather_batches, open_text, parquet_batches
from imprint.datasets.tables.values import check_distinct, is_number

BYTES = 1 << 23  # of text in a batch of CSV; a row must fit
ROWS = 1024  # in a batch of a table that is read row by row
DELIMITED = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
SUFFIXES = (".csv", ".tsv", ".jsonl", ".parquet", ".csv.gz", ".tsv.gz", ".jsonl.gz", ".feather", ".json", ".xlsx")


def table_suffix(path: str | Path) -> str | None:
    """The suffix in `SUFFIXES` that a path ends in.

    >>> table_suffix("mails.CSV.gz"), table_suffix("photo.jpg")
    ('.csv.gz', None)
    """
    name = Path(path).name.lower()
    return max((s for s in SUFFIXES if name.endswith(s)), key=len, default=None)


class TableBatch(NamedTuple):
    """Consecutive rows: their numbers in the file, and their values by column."""

    rows: Sequence[int]
    columns: dict[str, Any]  # Arrow arrays, or lists

    def values(self, column: str) -> list[Any]:
        """The values of a column as Python objects; None for a column that the batch does not have."""
        array = self.columns.get(column)
        if array is None or isinstance(array, list):
            return [None] * len(self.rows) if array is None else array
        if not hasattr(array, "dictionary"):
            return list(array.to_pylist())
        distinct = array.dictionary.to_pylist()  # equal values share one object
        return [None if i is None else distinct[i] for i in array.indices.to_pylist()]


def read_batches(path: Path, columns: Sequence[str] | None = None) -> Iterator[TableBatch]:
    """The batches of a table; only the given `columns` are decoded."""
    suffix = table_suffix(path)
    with _explained(path):
        if suffix in DELIMITED:
            yield from _delimited_batches(path, columns)
        elif suffix in ROW_READERS:
            rows = ROW_READERS[suffix](path)
            while batch := list(islice(rows, ROWS)):
                names = dict.fromkeys(name for _, values in batch for name in values)
                yield TableBatch([n for n, _ in batch], {c: [v.get(c) for _, v in batch] for c in names})
        else:
            first = 1
            read = parquet_batches if suffix == ".parquet" else feather_batches
            for arrow in read(path, columns):
                arrow.validate(full=True)  # Arrow does not check the indices and offsets of a damaged file
                yield TableBatch(range(first, first + len(arrow)), dict(zip(arrow.schema.names, arrow.columns)))
                first += len(arrow)


def read_rows(path: Path, columns: Sequence[str] | None = None) -> Iterator[NumberedRow]:
    """The rows of a table one by one: their numbers, and their values by column."""
    for batch in read_batches(path, columns):
        values = {name: batch.values(name) for name in batch.columns}
        for i, number in enumerate(batch.rows):
            yield number, {name: column[i] for name, column in values.items()}


def first_row(path: Path) -> NumberedRow:
    """The first row, with exactly the columns that it has."""
    with _explained(path):
        read = ROW_READERS.get(table_suffix(path) or "", read_rows)
        row = next(read(path), None)
    if row is None:
        raise FileError(f"{path} has no rows.")
    return row


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Report the errors of readers in one sentence."""
    import pyarrow as pa

    try:
        yield
    except FileError:
        raise
    except UnicodeDecodeError:
        raise _not_utf8(path) from None
    except (pa.ArrowException, ValueError, OSError, EOFError, zlib.error) as e:
        if isinstance(e, OSError) and e.errno:
            raise FileError(f"Cannot read {path}: {e.strerror or e}.") from None
        reason = (str(e).splitlines() or [""])[0].rstrip(".")[:120]
        kind = "Parquet file" if path.suffix.lower() == ".parquet" else "table"
        raise FileError(f"{path} is not a readable {kind} ({reason}).") from None


def _delimited_batches(path: Path, columns: Sequence[str] | None) -> Iterator[TableBatch]:
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    header, delimiter = _header(path)
    parse = arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True, ignore_empty_lines=False)
    convert = arrow_csv.ConvertOptions(
        column_types=dict.fromkeys(header, pa.string()), include_columns=list(columns or header), null_values=[]
    )
    options = arrow_csv.ReadOptions(block_size=BYTES, use_threads=False)
    first = 2
    try:
        with arrow_csv.open_csv(path, options, parse, convert) as reader:
            for batch in reader:
                by_name = dict(zip(columns or header, batch.columns))
                yield _without_blank_rows(TableBatch(range(first, first + len(batch)), by_name))
                first += len(batch)
    except pa.ArrowInvalid as e:
        if match := re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+): (.*)", str(e), re.DOTALL):
            row, columns_of_header, fields, text = match.groups()
            hint = "; is a quotation mark not closed?" if text.count('"') % 2 else "."
            raise FileError(
                f"{path}, row {row}: {fields} fields, but the header has {columns_of_header} columns{hint}"
            ) from None
        if "UTF8" in str(e):
            raise _not_utf8(path) from None
        if "straddl" in str(e):
            limit = f"it is longer than {BYTES >> 20} MB"
            raise FileError(f"{path}, row {first} or later: {limit}; is a quotation mark not closed?") from None
        raise


def _without_blank_rows(batch: TableBatch) -> TableBatch:
    import pyarrow.compute as pc

    blank = None
    for column in batch.columns.values():
        empty = pc.equal(column, "")
        blank = empty if blank is None else pc.and_(blank, empty)
    if blank is None or not pc.any(blank).as_py():
        return batch
    keep = pc.invert(blank)
    rows = list(compress(batch.rows, keep.to_pylist()))
    return TableBatch(rows, {name: column.filter(keep) for name, column in batch.columns.items()})


def _header(path: Path) -> tuple[list[str], str]:
    """The column names of a delimited file, and the delimiter: a tab, a comma, or a semicolon."""
    with open_text(path) as f:
        line = f.readline(BYTES)
    semicolon = ";" in line and "," not in line
    delimiter = "\t" if (table_suffix(path) or "").startswith(".tsv") else ";" if semicolon else ","
    with open_text(path) as f:
        try:
            header = next(csv.reader(f, delimiter=delimiter), [])
        except csv.Error as e:
            raise FileError(f"{path}, row 1: not readable as a table ({e}).") from None
    if not any(name.strip() for name in header):
        raise FileError(f"{path} has no rows: its first line must name the columns.")
    if all(map(is_number, header)):
        raise FileError(f"{path} has no header: its first row must name the columns, and it holds numbers.")
    check_distinct(path, header)
    return header, delimiter


def _not_utf8(path: Path) -> FileError:
    with open(path, "rb") as f:
        if f.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            return FileError(f"{path} is in UTF-16: save it as UTF-8.")
    with open_text(path) as text:
        for number, line in enumerate(text.buffer, 1):
            try:
                line.decode("utf-8-sig")
            except UnicodeDecodeError as e:
                return FileError(f"{path}, line {number}: not UTF-8 (byte 0x{line[e.start]:02x}); save it as UTF-8.")
    return FileError(f"{path} is not UTF-8: save it as UTF-8.")
