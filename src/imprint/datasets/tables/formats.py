"""The formats of tables: CSV, Parquet and Feather in Arrow batches of bounded size,
JSON and Excel row by row.

pyarrow's JSON reader is not used: it infers one type per column, such as a date for the
label '2024-01-01', and refuses columns of mixed types without naming the value.
"""

import codecs
import csv
import io
import json
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import reduce
from itertools import chain, compress, islice
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeAlias

from imprint.core.errors import FileError, ParameterError, reporting_damage
from imprint.core.extras import missing
from imprint.core.files.unpacking import check_unpacked, open_binary, unpacked_limit
from imprint.core.memory import require_memory
from imprint.datasets.tables.values import check_distinct, is_number

BATCH_BYTES = 1 << 23  # of CSV; a row must fit
BATCH_ROWS = 1024  # of a table that is read row by row
BATCH_CELLS = 1 << 21  # of Parquet
# of Parquet with lists, whose lengths are not known before they are read
LIST_ROWS = 64
# With less, Arrow and the C library end the process where they start threads. Measured
# with files of 1 kB to 5 MB: they did with up to 8 MB, and could not start a thread
# with up to 80 MB.
ARROW_MEMORY = 1 << 27
MAX_ALLOCATION = 2**45  # bytes; no machine has 32 TiB of memory
VALUE_BYTES = 8  # of a number in memory; a text is an index into its dictionary
TEXT_FORMATS = (".csv", ".tsv", ".jsonl", ".json")
UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
QUOTED = re.compile(r'"[^"]*"')  # in a header
NumberedRow: TypeAlias = tuple[int, dict[str, Any]]


class TableBatch(NamedTuple):
    """Consecutive rows: their numbers in the file, and their values by column."""

    rows: Sequence[int]
    columns: dict[str, Any]  # Arrow arrays, or lists

    def column(self, name: str) -> Any:
        """An Arrow array, or a list; a column that the batch does not have is a list of
        None.
        """
        return self.columns.get(name, [None] * len(self.rows))

    def values(self, name: str) -> list[Any]:
        """The values of a column as Python objects."""
        array = self.column(name)
        if isinstance(array, list):
            return array
        if not hasattr(array, "dictionary"):
            return list(array.to_pylist())
        distinct = array.dictionary.to_pylist()  # equal values share one object
        return [None if i is None else distinct[i] for i in array.indices.to_pylist()]

    def select(self, selected: Sequence[bool]) -> "TableBatch":
        """The rows for which `selected` is true."""
        import pyarrow as pa

        if all(selected):
            return self
        mask = pa.array(selected)
        columns = {
            name: (
                list(compress(column, selected))
                if isinstance(column, list)
                else column.filter(mask)
            )
            for name, column in self.columns.items()
        }
        return TableBatch(list(compress(self.rows, selected)), columns)


def batches_of(
    path: Path, suffix: str, columns: Sequence[str] | None, encoding: str | None = None
) -> Iterator[TableBatch]:
    """The batches of a table of the format with this suffix; of a Parquet file, only
    the given `columns`. The encoding of a text file is UTF-8 by default.
    """
    if suffix in ROW_READERS:
        rows = ROW_READERS[suffix](path, encoding)
        size = 1  # `first_row` needs exactly the columns that the first row has
        while chunk := list(islice(rows, size)):
            names = dict.fromkeys(name for _, row in chunk for name in row)
            columns_by_name = {
                name: [row.get(name) for _, row in chunk] for name in names
            }
            yield TableBatch([number for number, _ in chunk], columns_by_name)
            size = BATCH_ROWS
        return
    require_memory(ARROW_MEMORY, f"Cannot read {path}")
    if suffix.startswith((".csv", ".tsv")):
        yield from _delimited_batches(path, encoding)
    else:
        first = 1
        for arrow in (
            _parquet_batches(path, columns)
            if suffix == ".parquet"
            else _feather_batches(path)
        ):
            # Arrow does not check the indices and offsets of a damaged file
            arrow.validate(full=True)
            yield TableBatch(
                range(first, first + len(arrow)),
                dict(zip(arrow.schema.names, arrow.columns)),
            )
            first += len(arrow)


def check_encoding(path: Path, suffix: str, encoding: str) -> None:
    """Refuse an encoding that does not exist, or that is not one of texts, and any for
    a table that is not a text file.
    """
    call = f"load({str(path)!r}, encoding={encoding!r})"
    if suffix.removesuffix(".gz") not in TEXT_FORMATS:
        formats = f"{', '.join(TEXT_FORMATS[:-1])} or {TEXT_FORMATS[-1]}"
        raise ParameterError(f"{call}: encodings go with a table in {formats}.")
    try:
        io.TextIOWrapper(io.BytesIO(), encoding)
    except LookupError:
        raise ParameterError(
            f"{call}: there is no such encoding of texts; use one of Python's, such as"
            " 'latin-1', 'cp1252' or 'utf-16'."
        ) from None


def not_decodable(path: Path, encoding: str | None) -> FileError:
    """The error for another encoding than the stated one; it names the line and the
    byte.
    """
    name = encoding or "UTF-8"
    advice = _encoding_advice("latin-1") if encoding is None else ""
    # a compressed file may be damaged too
    with suppress(OSError, EOFError, zlib.error), open_binary(path) as content:
        for number, line in enumerate(content, 1):
            if number == 1 and encoding is None and line.startswith(UTF16_MARKS):
                return FileError(f"{path} is in UTF-16{_encoding_advice('utf-16')}.")
            try:
                line.decode(name)
            except UnicodeDecodeError as e:
                problem = f"not {name} (byte 0x{line[e.start]:02x}){advice}"
                return FileError(f"{path}, line {number}: {problem}.")
    return FileError(f"{path} is not {name}{advice}.")


def _encoding_advice(example: str) -> str:
    return (
        "; save it as UTF-8, or name its encoding, such as --encoding"
        f" {example}, encoding={example!r}"
    )


def _open_text(path: Path, encoding: str | None) -> Any:
    """A text file, decompressed if its name ends in `.gz`; in UTF-8, a mark of the byte
    order is skipped.
    """
    name = codecs.lookup(encoding or "utf-8").name
    return io.TextIOWrapper(
        open_binary(path),
        encoding="utf-8-sig" if name == "utf-8" else name,
        newline="",
    )


def _label_lines(path: Path, encoding: str | None) -> Iterator[NumberedRow]:
    """The lines of a text file, each a label."""
    with _open_text(path, encoding) as f:
        yield from ((number, {"label": line}) for number, line in enumerate(f, 1))


def _json_lines(path: Path, encoding: str | None) -> Iterator[NumberedRow]:
    with _open_text(path, encoding) as f:
        for number, line in enumerate(f, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as e:
                reason = getattr(e, "msg", "it is nested too deeply")
                raise FileError(f"{path}, row {number}: not JSON ({reason}).") from None
            if not isinstance(row, dict):
                raise FileError(
                    f"{path}, row {number}: not a JSON object, such as {{'text': ...,"
                    " 'label': ...}."
                )
            yield number, row


def _json_array(path: Path, encoding: str | None) -> Iterator[NumberedRow]:
    """The objects of a JSON array, or the columns of one object."""
    with _open_text(path, encoding) as f:
        content = json.load(f)
    if (
        isinstance(content, dict)
        and content
        and all(isinstance(column, list) for column in content.values())
    ):
        if len({len(column) for column in content.values()}) > 1:
            raise FileError(f"{path}: its columns must be of one length.")
        content = [dict(zip(content, values)) for values in zip(*content.values())]
    if not isinstance(content, list) or not all(
        isinstance(row, dict) for row in content
    ):
        raise FileError(
            f"{path} must hold a list of objects, such as [{{'text': ..., 'label':"
            " ...}]."
        )
    yield from enumerate(content, 1)


def _excel_rows(path: Path, encoding: str | None) -> Iterator[NumberedRow]:
    """The rows of the first sheet of a workbook, whose first row names the columns. It
    states its encoding itself.
    """
    try:
        from openpyxl import load_workbook
    except ImportError:
        raise missing("excel", f"{path.name}: .xlsx files need openpyxl") from None
    with reporting_damage(path, "workbook"), open(path, "rb") as f:
        _check_workbook(path, f)
        rows = (
            load_workbook(f, read_only=True, data_only=True)
            .worksheets[0]
            .iter_rows(values_only=True)
        )
        header = ["" if name is None else str(name) for name in next(rows, ())]
        while header and not header[-1]:
            header.pop()
        check_distinct(path, header)
        for number, values in enumerate(rows, 2):
            if any(value is not None for value in values):
                yield number, dict(zip(header, values))


def _check_workbook(path: Path, file: IO[bytes]) -> None:
    """Refuse a workbook, which is a `.zip` file, that unpacks to far more than its
    size.
    """
    with zipfile.ZipFile(file) as archive:
        size = sum(entry.file_size for entry in archive.infolist())
    check_unpacked(path, size, unpacked_limit(path.stat().st_size))
    file.seek(0)


ROW_READERS: dict[str, Callable[[Path, str | None], Iterator[NumberedRow]]] = {
    ".jsonl": _json_lines,
    ".jsonl.gz": _json_lines,
    ".json": _json_array,
    ".xlsx": _excel_rows,
    ".txt": _label_lines,
}


def _delimited_batches(path: Path, encoding: str | None) -> Iterator[TableBatch]:
    """The batches of a delimited file, without rows in which every cell is empty."""
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import csv as arrow_csv

    header, delimiter = _header(path, encoding)
    parse = arrow_csv.ParseOptions(
        delimiter=delimiter, newlines_in_values=True, ignore_empty_lines=False
    )
    convert = arrow_csv.ConvertOptions(
        column_types=dict.fromkeys(header, pa.string()), null_values=[]
    )
    options = arrow_csv.ReadOptions(
        block_size=BATCH_BYTES, use_threads=False, encoding=encoding or "utf8"
    )
    first = 2
    # As a text, a lack of memory to convert it would be an error of its type.
    empty = pa.scalar("", pa.string())
    try:
        with (
            open_binary(path) as content,
            arrow_csv.open_csv(content, options, parse, convert) as reader,
        ):
            for arrow in reader:
                batch = TableBatch(
                    range(first, first + len(arrow)), dict(zip(header, arrow.columns))
                )
                filled = reduce(
                    pc.or_, (pc.not_equal(column, empty) for column in arrow.columns)
                )
                yield batch.select(filled.to_pylist())
                first += len(arrow)
    except pa.ArrowInvalid as e:
        unclosed = "is a quotation mark not closed?"
        if match := re.search(
            r"Row #(\d+): Expected (\d+) columns, got (\d+): (.*)", str(e), re.DOTALL
        ):
            row, width, fields, text = match.groups()
            hint = f"; {unclosed}" if text.count('"') % 2 else "."
            raise FileError(
                f"{path}, row {row}: {fields} fields, but the header has {width}"
                f" columns{hint}"
            ) from None
        if "straddl" in str(e):
            limit = f"{BATCH_BYTES >> 20} MB"
            raise FileError(
                f"{path}, row {first} or later: it is longer than {limit}; {unclosed}"
            ) from None
        raise


def _header(path: Path, encoding: str | None) -> tuple[list[str], str]:
    """The column names of a delimited file, and the delimiter: a tab, a comma, or a
    semicolon.

    In a `.csv` file, the first line tells the delimiter: a name outside quotation marks
    holds no tab, and no semicolon where there is no comma.
    """
    with _open_text(path, encoding) as f:
        line = f.readline(BATCH_BYTES)
        unquoted = QUOTED.sub("", line)
        is_tsv = path.name.lower().removesuffix(".gz").endswith(".tsv")
        if is_tsv or "\t" in unquoted:
            delimiter = "\t"
        else:
            delimiter = ";" if ";" in unquoted and "," not in unquoted else ","
        header = next(csv.reader(chain([line], f), delimiter=delimiter), [])
    if not any(name.strip() for name in header):
        raise FileError(f"{path} has no rows: its first line must name the columns.")
    if all(map(is_number, header)):
        raise FileError(
            f"{path} has no header: its first row must name the columns, and it holds"
            " numbers."
        )
    check_distinct(path, header)
    return header, delimiter


def _parquet_batches(path: Path, columns: Sequence[str] | None) -> Iterator[Any]:
    """Texts stay dictionary-encoded, so that equal ones are in memory once.

    One encoded value may stand for millions: a file that unpacks to far more than its
    size is refused, if possible before it is read.
    """
    import pyarrow.parquet as pq

    limit = unpacked_limit(path.stat().st_size)
    with open(path, "rb") as f:
        schema = pq.read_schema(f)
        check_distinct(path, schema.names)
        fields = [field for field in schema if columns is None or field.name in columns]
        has_lists = any(field.type.num_fields for field in fields)
        rows = (
            LIST_ROWS
            if has_lists
            else max(LIST_ROWS, BATCH_CELLS // max(len(fields), 512))
        )
        metadata = pq.read_metadata(f)
        check_unpacked(path, _unpacked_size(metadata, len(fields)), limit)
        texts = _text_columns(metadata.schema)
        size = 0
        with pq.ParquetFile(f, pre_buffer=False, read_dictionary=texts) as table:
            for batch in table.iter_batches(
                rows, columns=list(columns) if columns is not None else None
            ):
                size += sum(
                    getattr(column, "indices", column).nbytes
                    for column in batch.columns
                )
                check_unpacked(path, size, limit)
                yield batch


def _text_columns(schema: Any) -> list[str]:
    """The paths of the columns of texts, also in lists, that Arrow can leave
    dictionary-encoded.
    """
    columns = map(schema.column, range(len(schema)))
    return [
        column.path
        for column in columns
        if column.physical_type == "BYTE_ARRAY"
        and column.logical_type.type in ("STRING", "NONE")
    ]


def _unpacked_size(metadata: Any, columns: int) -> int:
    """The bytes that a Parquet file states: those of all its pages, and those of so
    many columns once they are decoded.

    Arrow ends the process if the metadata of a single column are damaged, so these are
    not read.
    """
    groups = map(metadata.row_group, range(metadata.num_row_groups))
    pages = sum(group.total_byte_size for group in groups)
    return pages + VALUE_BYTES * metadata.num_rows * columns


def _feather_batches(path: Path) -> Iterator[Any]:
    """The batches of an Arrow file, as large as they were written."""
    import pyarrow as pa

    with pa.memory_map(str(path)) as f, pa.ipc.open_file(f) as table:
        check_distinct(path, table.schema.names)
        for number in range(table.num_record_batches):
            try:
                batch = table.get_batch(number)
            except pa.lib.ArrowMemoryError as e:
                # Damaged lengths can ask for more memory than any machine has. That is
                # an error of the file; a lack of memory is one of the machine.
                size = re.search(r"size (\d+)", str(e))
                if size and int(size[1]) > MAX_ALLOCATION:
                    raise pa.lib.ArrowInvalid(str(e)) from None
                raise
            yield batch
