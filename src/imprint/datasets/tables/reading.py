"""Tables in batches of bounded size: CSV, Parquet and Feather by pyarrow, JSON and Excel row by row (`formats`).

Rows are numbered as a spreadsheet shows them: in `.csv`, `.tsv` and `.xlsx` the header is row 1; in `.jsonl` a row is a
line; in other tables the first row is 1.
"""

import codecs
import csv
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from itertools import chain, compress, islice
from pathlib import Path
from typing import Any, NamedTuple

from imprint.core.errors import FileError
from imprint.datasets.tables.formats import ROW_READERS, NumberedRow, open_text
from imprint.datasets.tables.values import check_distinct, is_number

BATCH_BYTES = 1 << 23  # of CSV; a row must fit
BATCH_ROWS = 1024  # of a table that is read row by row
BATCH_CELLS = 1 << 21  # of Parquet
LIST_ROWS = 64  # of Parquet, if there are lists: their lengths are not known before they are read
SMALL, EXPANSION = 1 << 28, 1000  # bytes; a Parquet file may unpack to SMALL, or to EXPANSION times its size
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
        if suffix in ROW_READERS:
            rows = ROW_READERS[suffix](path)
            while batch := list(islice(rows, BATCH_ROWS)):
                names = dict.fromkeys(name for _, values in batch for name in values)
                yield TableBatch([n for n, _ in batch], {c: [v.get(c) for _, v in batch] for c in names})
        elif suffix in DELIMITED:
            yield from _delimited_batches(path, columns)
        else:
            first = 1
            for arrow in (_parquet_batches if suffix == ".parquet" else _feather_batches)(path, columns):
                arrow.validate(full=True)  # Arrow does not check the indices and offsets of a damaged file
                yield TableBatch(range(first, first + len(arrow)), dict(zip(arrow.schema.names, arrow.columns)))
                first += len(arrow)


def read_rows(path: Path) -> Iterator[NumberedRow]:
    """The rows of a table one by one: their numbers, and their values by column."""
    for batch in read_batches(path):
        values = {name: batch.values(name) for name in batch.columns}
        for i, number in enumerate(batch.rows):
            yield number, {name: column[i] for name, column in values.items()}


def first_row(path: Path) -> NumberedRow:
    """The first row, with exactly the columns that it has."""
    with _explained(path):
        row = next(ROW_READERS.get(table_suffix(path) or "", read_rows)(path), None)
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


def _delimited_batches(path: Path, columns: Sequence[str] | None) -> Iterator[TableBatch]:
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    header, delimiter = _header(path)
    parse = arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True, ignore_empty_lines=False)
    convert = arrow_csv.ConvertOptions(
        column_types=dict.fromkeys(header, pa.string()), include_columns=list(columns or header), null_values=[]
    )
    options = arrow_csv.ReadOptions(block_size=BATCH_BYTES, use_threads=False)
    first = 2
    try:
        with arrow_csv.open_csv(path, options, parse, convert) as reader:
            for batch in reader:
                yield _without_blank_rows(first, dict(zip(columns or header, batch.columns)))
                first += len(batch)
    except pa.ArrowInvalid as e:
        unclosed = "is a quotation mark not closed?"
        if match := re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+): (.*)", str(e), re.DOTALL):
            row, expected, fields, text = match.groups()
            hint = f"; {unclosed}" if text.count('"') % 2 else "."
            raise FileError(
                f"{path}, row {row}: {fields} fields, but the header has {expected} columns{hint}"
            ) from None
        if "UTF8" in str(e):
            raise _not_utf8(path) from None
        if "straddl" in str(e):
            raise FileError(
                f"{path}, row {first} or later: it is longer than {BATCH_BYTES >> 20} MB; {unclosed}"
            ) from None
        raise


def _without_blank_rows(first: int, columns: dict[str, Any]) -> TableBatch:
    import pyarrow.compute as pc

    filled = reduce(pc.or_, (pc.not_equal(column, "") for column in columns.values()))
    rows = list(compress(range(first, first + len(filled)), filled.to_pylist()))
    return TableBatch(rows, {name: column.filter(filled) for name, column in columns.items()})


def _header(path: Path) -> tuple[list[str], str]:
    """The column names of a delimited file, and the delimiter: a tab, a comma, or a semicolon."""
    with open_text(path) as f:
        line = f.readline(BATCH_BYTES)
        delimiter = ";" if ";" in line and "," not in line else ","
        delimiter = "\t" if (table_suffix(path) or "").startswith(".tsv") else delimiter
        try:
            header = next(csv.reader(chain([line], f), delimiter=delimiter), [])
        except csv.Error as e:
            raise FileError(f"{path}, row 1: not readable as a table ({e}).") from None
    if not any(name.strip() for name in header):
        raise FileError(f"{path} has no rows: its first line must name the columns.")
    if all(map(is_number, header)):
        raise FileError(f"{path} has no header: its first row must name the columns, and it holds numbers.")
    check_distinct(path, header)
    return header, delimiter


def _parquet_batches(path: Path, columns: Sequence[str] | None) -> Iterator[Any]:
    """Texts stay dictionary-encoded, so that equal ones are in memory once.

    One encoded value may stand for millions: a file that unpacks to far more than its size is refused.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    limit, size = max(SMALL, EXPANSION * path.stat().st_size), 0
    ratio = f"{EXPANSION:,} times its size" if limit > SMALL else "the limit for a small file"
    too_large = FileError(f"{path} unpacks to over {limit / 1e9:.1f} GB, {ratio}; it is not read.")
    with open(path, "rb") as f:
        schema = pq.read_schema(f)
        check_distinct(path, schema.names)
        texts = [field.name for field in schema if pa.types.is_string(field.type)]
        fields = [field for field in schema if columns is None or field.name in columns]
        rows = (
            LIST_ROWS
            if any(field.type.num_fields for field in fields)
            else max(LIST_ROWS, BATCH_CELLS // max(len(fields), 512))
        )
        with pq.ParquetFile(f, pre_buffer=False, read_dictionary=texts) as table:
            if 8 * table.metadata.num_rows * len(fields) > limit:
                raise too_large
            for batch in table.iter_batches(rows, columns=list(columns) if columns is not None else None):
                size += sum(getattr(column, "indices", column).nbytes for column in batch.columns)
                if size > limit:
                    raise too_large
                yield batch


def _feather_batches(path: Path, columns: Sequence[str] | None) -> Iterator[Any]:
    """The batches of an Arrow file, as large as they were written."""
    import pyarrow as pa

    with pa.memory_map(str(path)) as f, pa.ipc.open_file(f) as table:
        check_distinct(path, table.schema.names)
        for i in range(table.num_record_batches):
            batch = table.get_batch(i)
            yield batch.select(list(columns)) if columns is not None else batch
