"""Tables of texts or of embeddings: `.csv`, `.tsv`, `.jsonl`, `.parquet`."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from imprint.core.errors import FileError
from imprint.datasets.growing import GrowingRows
from imprint.datasets.split import NO_LABELS, SPLITS, RowsOf, Split, classes_of
from imprint.datasets.tables.blocks import Block, Doubt, careful_blocks, fast_blocks
from imprint.datasets.tables.layout import Layout, choose_layout
from imprint.datasets.tables.rows import SUFFIXES as SUFFIXES
from imprint.datasets.tables.rows import read_rows
from imprint.datasets.tables.values import LabelColumn


def load_table(
    path: Path,
    split: str | None,
    *,
    labelled: bool = True,
    label_column: str | None = None,
    text_column: str | None = None,
) -> Split:
    """One split of a table, or with `split=None` all rows.

    Where the table has a column `split` that decides; otherwise all rows are `train`.
    """
    first = next(read_rows(path), None)
    if first is None:
        raise FileError(f"{path} has no rows.")
    layout = choose_layout(path, first, labelled=labelled, label_column=label_column, text_column=text_column)
    try:
        table = _Table(path, layout, split, fast_blocks(path, layout))
    except Doubt:
        table = _Table(path, layout, split, careful_blocks(path, layout))
    if not len(table.inputs):
        raise FileError(f"{path} has no {split} split; its rows are {' and '.join(sorted(table.parts))}.")
    return table.as_split()


class _Table:
    """The rows of one split, gathered from blocks."""

    def __init__(self, path: Path, layout: Layout, wanted: str | None, blocks: Iterable[Block]):
        self.path, self.layout, self.wanted = path, layout, wanted
        self.labels = LabelColumn(path, layout.label) if layout.label is not None else None
        self.names: list[str] = []
        self.rows: list[int] = []
        self.parts: set[str] = set()
        texts: list[str] = []
        rows = GrowingRows()
        for block in blocks:
            inputs = self._take(block)
            if layout.kind == "text":
                texts += inputs
            else:
                rows.add(inputs)
        self.inputs: Any = tuple(texts) if layout.kind == "text" else rows.array()

    def _take(self, block: Block) -> Any:
        """The inputs of the rows that are wanted; their labels and names are kept."""
        if self.layout.split is not None:
            parts = [str(part) for part in block.beside[self.layout.split]]
            self.parts.update(parts)
            block = block.only([self.wanted in (None, part) for part in parts])
        else:
            self.parts.add("train")
            block = block.only([self.wanted in (None, "train")] * len(block.rows))
        if self.labels is not None:
            self.labels.extend(block.beside[self.labels.column], block.rows)
        if self.layout.name is not None:
            self.names += map(str, block.beside[self.layout.name])
        else:
            self.rows += block.rows
        return block.inputs

    def as_split(self) -> Split:
        """The finished rows."""
        labels = self.labels.array() if self.labels is not None else NO_LABELS
        names: Sequence[str] = tuple(self.names) or RowsOf(self.path.name, self.rows)
        modality = "text" if self.layout.kind == "text" else "embedding"
        parts = tuple(part for part in SPLITS if part in self.parts)
        return Split(self.inputs, labels, names, classes_of(labels), modality, origin=self.path.name, parts=parts)
