"""Folders that hold `train` and `test` as tables."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from imprint.core.errors import FileError
from imprint.datasets.split import SPLITS, Split
from imprint.datasets.tables import SUFFIXES, load_table


def has_tables(folder: Path) -> bool:
    """Whether a folder holds a table called `train`."""
    return _table(folder, "train") is not None


def load_table_folder(folder: Path, split: str, **how: Any) -> Split:
    """One split of a folder that holds `train.csv` and `test.csv`, or the same as another kind of table."""
    path = _table(folder, split)
    if path is None:
        raise FileError(f"{folder} has no test split; put it there as test.csv or test.jsonl.")
    found = load_table(path, None, **how)
    parts = tuple(part for part in SPLITS if _table(folder, part) is not None)
    return replace(found, origin=folder.resolve().name, parts=parts)


def _table(folder: Path, split: str) -> Path | None:
    return next((p for s in SUFFIXES if (p := folder / f"{split}{s}").is_file()), None)
