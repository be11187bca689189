"""Tables whose rows or groups of rows are inputs of a modality, such as time series."""

from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from imprint.core.arrays import Array
from imprint.core.errors import FileError, ParameterError, first_names, printable
from imprint.datasets.columns import SPLIT_COLUMN, find_column, find_label_column
from imprint.datasets.split import NO_LABELS, SPLITS, Split, classes_of
from imprint.datasets.tables.formats import TableBatch
from imprint.datasets.tables.values import is_missing, quote_names, to_label_array
from imprint.modalities import Modality, TableInputs, builtin, modality

MAX_NAMED = 10  # inputs in one message


def kind_of_columns(
    names: Iterable[str], label_column: str | None, requested: str | None
) -> Modality | None:
    """The modality whose inputs the columns of a table hold; None for texts and
    embeddings.

    Parameters
    ----------
    names : iterable of str
        The names of the columns.
    label_column : str, optional
        The column of labels, if the user named it.
    requested : str, optional
        The modality that the user asked for.
    """
    all_names = list(names)
    roles = (label_column or find_label_column(all_names), _split_column(all_names))
    inputs = [name for name in all_names if name not in roles]
    kinds = builtin() if requested is None else [modality(requested)]
    for kind in kinds:
        if inputs and kind.reads_columns(inputs, requested is not None):
            return kind
    return None


def _split_column(names: Iterable[str]) -> Any:
    return find_column([SPLIT_COLUMN], names)


def load_composed(
    path: Path,
    batches: Sequence[TableBatch],
    kind: Modality,
    split: str | None,
    *,
    requested: bool,
    labelled: bool,
    label_column: str | None,
) -> Split:
    """One split of a table that holds inputs of a modality; see `load_table`."""
    rows = np.fromiter(chain.from_iterable(batch.rows for batch in batches), np.int64)
    columns = {name: _whole(name, batches) for name in _all_names(batches)}
    label = label_column or find_label_column(columns, labelled=labelled)
    if label is None and labelled:
        label = "label"
    if label is not None and label not in columns:
        present = quote_names(list(columns))
        raise FileError(f"{path} has no column {label!r}; it has: {present}.")
    labels = None if label is None else list(_values(columns.pop(label)))
    part_column = _split_column(columns)
    parts = None if part_column is None else list(_values(columns.pop(part_column)))
    try:
        inputs = kind.from_columns(columns, requested)
    except ParameterError as e:
        raise FileError(f"{path}: {e}") from None
    _, first_rows = np.unique(inputs.owner, return_index=True)
    for name, cells in ((label, labels), (part_column, parts)):
        if cells is not None:
            _check_constant(path, name, cells, inputs, rows, kind)
    part_of_input = [
        "train" if parts is None else str(parts[row]) for row in first_rows.tolist()
    ]
    known_parts = tuple(part for part in SPLITS if part in part_of_input)
    chosen = [i for i, part in enumerate(part_of_input) if split in (None, part)]
    if not chosen:
        present = " and ".join(sorted(set(part_of_input)))
        raise FileError(f"{path} has no {split} split; its rows are {present}.")
    input_names = _names(path, inputs, rows[first_rows])
    omissions: tuple[str, ...] = ()
    y = NO_LABELS
    if labels is not None and labelled:
        cells = [labels[first_rows[i]] for i in chosen]
        without = [i for i, cell in zip(chosen, cells) if is_missing(cell)]
        chosen = [i for i, cell in zip(chosen, cells) if not is_missing(cell)]
        if not chosen:
            raise FileError(f"{path}: no row has a label in the column {label!r}.")
        kept = [labels[first_rows[i]] for i in chosen]
        y = to_label_array(path, str(label), kept, rows[first_rows[chosen]].tolist())
        if without:
            left_out = first_names([input_names[i] for i in without], MAX_NAMED)
            total = kind.count(len(without))
            omissions = (f"Left out {total} without a label: {left_out}.",)
    return Split(
        _chosen(inputs.inputs, chosen),
        y,
        [input_names[i] for i in chosen],
        classes_of(y),
        kind.name,
        origin=path.name,
        parts=known_parts,
        omissions=omissions,
    )


def _all_names(batches: Sequence[TableBatch]) -> list[str]:
    return list(dict.fromkeys(name for batch in batches for name in batch.columns))


def _whole(name: str, batches: Sequence[TableBatch]) -> Any:
    """A column of all batches: numbers as an array if it holds nothing else."""
    import pyarrow as pa

    columns = [batch.column(name) for batch in batches]
    if any(isinstance(column, list) for column in columns):
        return list(chain.from_iterable(batch.values(name) for batch in batches))
    whole = pa.chunked_array(columns)
    is_number = pa.types.is_integer(whole.type) or pa.types.is_floating(whole.type)
    if is_number:
        return np.asarray(whole.cast(pa.float64()).to_numpy())
    return ArrowTexts(whole)


class ArrowTexts(Sequence[Any]):
    """A column of Arrow as a sequence; as an array, its texts are numbers."""

    def __init__(self, column: Any):
        self._column = column

    def __len__(self) -> int:
        return len(self._column)

    def __getitem__(self, i: Any) -> Any:
        return self._column[i].as_py()

    def __iter__(self) -> Any:
        return iter(self._column.to_pylist())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Numbers; empty texts are NaN. Raises ValueError for other texts."""
        import pyarrow as pa
        import pyarrow.compute as pc

        texts = self._column
        if not pa.types.is_string(texts.type):
            return np.asarray(self._column.to_pylist(), dtype=dtype)
        stated = pc.if_else(pc.equal(texts, ""), None, texts)
        numbers: Array = np.asarray(stated.cast(pa.float64()).to_numpy())
        return numbers if dtype is None else numbers.astype(dtype)


def _values(cells: Any) -> Iterable[Any]:
    return cells.tolist() if isinstance(cells, np.ndarray) else cells


def _check_constant(
    path: Path,
    column: Any,
    cells: Sequence[Any],
    inputs: TableInputs,
    rows: Array,
    kind: Modality,
) -> None:
    """Refuse an input whose rows differ in a column that states one value for all."""
    value_of_owner: dict[int, Any] = {}
    for row, owner, cell in zip(rows.tolist(), inputs.owner.tolist(), cells):
        first = value_of_owner.setdefault(owner, cell)
        if cell != first and not (is_missing(cell) and is_missing(first)):
            name = inputs.names[owner] if inputs.names else owner + 1
            both = f"{printable(first, 40)!r} and {printable(cell, 40)!r}"
            raise FileError(
                f"{path}, row {row}: the {kind.noun} {printable(name, 40)} has both"
                f" {both} in the column {column!r}; it must have one."
            )


def _names(path: Path, inputs: TableInputs, rows: Array) -> list[str]:
    if inputs.names is None:
        return [f"{path.name}, row {row}" for row in rows.tolist()]
    return [f"{path.name}, {printable(name, 200)}" for name in inputs.names]


def _chosen(inputs: Any, chosen: list[int]) -> Any:
    if isinstance(inputs, np.ndarray):
        part = inputs[chosen]
        part.flags.writeable = False
        return part
    return [inputs[i] for i in chosen]
