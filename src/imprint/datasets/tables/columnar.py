"""Tables that are stored by column, Parquet and Feather, as Arrow batches of bounded size."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from imprint.core.errors import FileError
from imprint.datasets.tables.values import check_distinct

CELLS = 1 << 21  # values in a batch of Parquet
LISTS = 64  # rows in a batch of lists, whose lengths are not known before they are read
SMALL, EXPANSION = 1 << 28, 1000  # bytes; a file may unpack to SMALL, or to EXPANSION times its size


def parquet_batches(path: Path, columns: Sequence[str] | None) -> Iterator[Any]:
    """The batches of a Parquet file; texts stay in their dictionaries, so that equal ones are in memory once.

    One stored value may stand for millions: a file that unpacks to far more than its size is refused.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    limit, size = max(SMALL, EXPANSION * path.stat().st_size), 0
    with open(path, "rb") as f:
        schema = pq.read_schema(f)
        check_distinct(path, schema.names)
        texts = [field.name for field in schema if pa.types.is_string(field.type)]
        fields = [field for field in schema if columns is None or field.name in columns]
        rows = LISTS if any(field.type.num_fields for field in fields) else max(LISTS, CELLS // max(len(fields), 512))
        with pq.ParquetFile(f, pre_buffer=False, read_dictionary=texts) as table:
            if 8 * table.metadata.num_rows * len(fields) > limit:
                raise _too_large(path, limit)
            for batch in table.iter_batches(rows, columns=list(columns) if columns is not None else None):
                size += sum(getattr(column, "indices", column).nbytes for column in batch.columns)
                if size > limit:
                    raise _too_large(path, limit)
                yield batch


def _too_large(path: Path, limit: int) -> FileError:
    ratio = f"{EXPANSION:,} times its size" if limit > SMALL else "what so small a file may unpack to"
    return FileError(f"{path} unpacks to over {limit / 1e9:.1f} GB, {ratio}; it is not read.")


def feather_batches(path: Path, columns: Sequence[str] | None) -> Iterator[Any]:
    """The batches of an Arrow file, as large as they were written, and validated."""
    import pyarrow as pa

    with pa.memory_map(str(path)) as f, pa.ipc.open_file(f) as table:
        check_distinct(path, table.schema.names)
        for i in range(table.num_record_batches):
            batch = table.get_batch(i)
            batch.validate(full=True)
            yield batch.select(list(columns)) if columns is not None else batch
