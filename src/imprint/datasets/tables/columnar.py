"""Tables that are stored by column, Parquet and Feather, as Arrow batches of bounded size."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from imprint.core.errors import FileError
from imprint.datasets.tables.values import check_distinct

CELLS = 1 << 21  # values in a batch of Parquet
SMALL, EXPANSION = 1 << 28, 1000  # bytes; a file may unpack to SMALL, or to EXPANSION times its size


def parquet_batches(path: Path, columns: Sequence[str] | None) -> Iterator[Any]:
    """The batches of a Parquet file; texts stay in their dictionaries, so that equal ones are in memory once."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with open(path, "rb") as f:
        schema = pq.read_schema(f)
        texts = [field.name for field in schema if pa.types.is_string(field.type)]
        check_distinct(path, schema.names)
        with pq.ParquetFile(f, pre_buffer=False, read_dictionary=texts) as table:
            _check_size(path, table.metadata, columns)
            rows = max(64, CELLS // max(len(columns or schema.names), 512))
            yield from table.iter_batches(rows, columns=list(columns) if columns is not None else None)


def _check_size(path: Path, metadata: Any, columns: Sequence[str] | None) -> None:
    """Refuse a Parquet file that unpacks to far more than its size: one stored value may stand for millions."""
    size = 0
    for g in range(metadata.num_row_groups):
        chunks = [metadata.row_group(g).column(c) for c in range(metadata.row_group(g).num_columns)]
        for chunk in chunks:
            if columns is None or chunk.path_in_schema.split(".")[0] in columns:
                size += 8 * chunk.num_values + chunk.total_uncompressed_size
    limit = max(SMALL, EXPANSION * path.stat().st_size)
    if size > limit:
        raise FileError(f"{path} unpacks to {size / 1e9:.1f} GB, over {EXPANSION:,} times its size: it is not read.")


def feather_batches(path: Path, columns: Sequence[str] | None) -> Iterator[Any]:
    """The batches of an Arrow file, as large as they were written, and validated."""
    import pyarrow as pa

    with pa.memory_map(str(path)) as f, pa.ipc.open_file(f) as table:
        check_distinct(path, table.schema.names)
        for i in range(table.num_record_batches):
            batch = table.get_batch(i)
            batch.validate(full=True)
            yield batch.select(list(columns)) if columns is not None else batch
