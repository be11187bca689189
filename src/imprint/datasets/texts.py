"""Texts with labels: CSV with a header, or JSON lines; columns `text` and `label` (or `category`)."""

import csv
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from imprint.core.errors import FileError
from imprint.datasets.split import Numbered, Split, classes_of, plain_labels

SUFFIXES = (".csv", ".jsonl")
LABEL_COLUMNS = ("label", "category")


def load_text_file(path: Path, split: str) -> Split:
    """One split of a file. Where rows have a column `split` it decides; otherwise all rows are `train`."""
    return text_split(*read_table(path, split), f"{path.stem}/{split}")


def has_tables(folder: Path) -> bool:
    """Whether a folder holds texts, as `train.csv` or `train.jsonl`."""
    return any((folder / f"train{s}").is_file() for s in SUFFIXES)


def load_text_folder(folder: Path, split: str) -> Split:
    """One split of a folder that holds `train.csv` and `test.csv`, or the same as `.jsonl`."""
    for suffix in SUFFIXES:
        if (folder / f"{split}{suffix}").is_file():
            return text_split(*read_table(folder / f"{split}{suffix}"), f"{folder.name}/{split}")
    raise FileError(f"{folder} has no test split; put it there as test.csv or test.jsonl.")


def read_table(path: Path, split: str | None = None) -> tuple[list[str], list[Any]]:
    """Texts and labels of a file, of all its rows or of those of one split."""
    texts: list[str] = []
    labels: list[Any] = []
    for line, row in _rows(path):
        text, label, part = _fields(path, line, row)
        if split is None or part == split:
            texts.append(text)
            labels.append(label)
    if not texts:
        raise FileError(f"{path} has no {split + ' ' if split else ''}rows.")
    return texts, labels


def text_split(texts: list[str], labels: list[Any], prefix: str) -> Split:
    """Texts and labels as a split; labels are integers if all of them are, otherwise strings."""
    values = plain_labels(labels)
    return Split(tuple(texts), values, Numbered(prefix, len(texts)), classes_of(values), "text")


def _fields(path: Path, line: int, row: Mapping[str, Any]) -> tuple[str, Any, str]:
    column = next((c for c in LABEL_COLUMNS if c in row), None)
    if "text" not in row or column is None:
        raise FileError(f"{path}, line {line}: columns text and label are needed, found: {', '.join(map(str, row))}.")
    text, label, part = row["text"], row[column], row.get("split", "train")
    if not isinstance(text, str) or isinstance(label, bool) or not isinstance(label, int | str) or label == "":
        raise FileError(f"{path}, line {line}: text must be a string and label an integer or a string.")
    return text, label, part


def _rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    try:
        with open(path, encoding="utf-8-sig", newline="") as f:
            if path.suffix.lower() == ".csv":
                reader = csv.DictReader(f, strict=True)
                yield from ((reader.line_num, row) for row in reader)
            else:
                yield from ((i, _object(path, i, line)) for i, line in enumerate(f, 1) if line.strip())
    except UnicodeDecodeError as e:
        raise FileError(f"{path} is not UTF-8: {e.reason} at byte {e.start}.") from None
    except csv.Error as e:
        raise FileError(f"{path} is not a readable CSV file: {e}.") from None
    except OSError as e:
        if isinstance(e, FileError):
            raise
        raise FileError(f"Cannot read {path}: {e.strerror}.") from None


def _object(path: Path, line: int, text: str) -> Mapping[str, Any]:
    try:
        row = json.loads(text)
    except (ValueError, RecursionError) as e:
        raise FileError(f"{path}, line {line}: not JSON ({e}).") from None
    if not isinstance(row, dict):
        raise FileError(f"{path}, line {line}: not a JSON object.")
    return row
