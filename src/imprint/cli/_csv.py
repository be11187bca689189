"""The answers of `imprint predict` as CSV."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from imprint.cli import _terminal as terminal
from imprint.datasets.tables.reading import read_rows

COLUMNS = ["label", "probability", "known"]


def _columns(answers: Iterable[dict[str, Any]]) -> list[str]:
    return [*COLUMNS, "node"] if any("node" in answer for answer in answers) else COLUMNS


def _cells(answer: dict[str, Any]) -> list[Any]:
    """The label, probability and p-value of an answer, and the node of a rejected one; empty where there is none."""
    known = "" if answer["known"] is None else answer["known"]
    rejected = answer["label"] is None
    node = [answer["node"]["label"] if answer["node"] else ""] if "node" in answer else []
    probability = answer["probability"]
    if "labels" in answer:
        probability = "|".join(str(guess["probability"]) for guess in answer["labels"])
    return [*(["", ""] if rejected else [answer["label"], probability]), known, *node]


def write_answers(answers: Sequence[dict[str, Any]]) -> None:
    """One line for each input."""
    terminal.write_csv(["path", *_columns(answers)], [[a["path"], *_cells(a)] for a in answers])


def append_to_table(path: Path, answers: dict[int, dict[str, Any]]) -> None:
    """The user's table with the answers as further columns."""
    rows = [values for _, values in read_rows(path)]
    columns = list(dict.fromkeys(name for values in rows for name in values))
    added = [f"predicted_{name}" if name in columns else name for name in _columns(answers.values())]
    cells = {i: _cells(answer) for i, answer in answers.items()}
    unread = [""] * len(added)
    lines = [[*(values.get(c) for c in columns), *cells.get(i, unread)] for i, values in enumerate(rows)]
    terminal.write_csv([*columns, *added], lines)
