"""Tables that are read row by row: JSON Lines, JSON and Excel.

pyarrow's JSON reader infers one type per column, such as a date for the label '2024-01-01', and refuses columns of
mixed types without naming the value; here each line is parsed alone.
"""

import gzip
import json
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

from imprint.core.errors import FileError
from imprint.core.extras import missing
from imprint.datasets.tables.values import check_distinct

NumberedRow: TypeAlias = tuple[int, dict[str, Any]]


def open_text(path: Path) -> Any:
    """A text file, decompressed if its name ends in `.gz`."""
    opener: Any = gzip.open if path.suffix.lower() == ".gz" else open
    return opener(path, "rt", encoding="utf-8-sig", newline="")


def _json_rows(path: Path) -> Iterator[NumberedRow]:
    with open_text(path) as f:
        for number, line in enumerate(f, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as e:
                reason = getattr(e, "msg", "it is nested too deeply")
                raise FileError(f"{path}, row {number}: not JSON ({reason}).") from None
            if not isinstance(row, dict):
                raise FileError(f"{path}, row {number}: not a JSON object, such as {{'text': ..., 'label': ...}}.")
            yield number, row


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
