"""Time series: of one or more channels, of any length."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from imprint.core.arrays import Array
from imprint.modalities import _series_files as files
from imprint.modalities._base import (
    Collection,
    InputParts,
    Modality,
    TableInputs,
    time_parts,
)
from imprint.modalities._series_arrays import (
    is_nested,
    is_unlike_embeddings,
    one_series,
    several_series,
)
from imprint.modalities._series_plot import plot

SAMPLE_LENGTH = 500  # of artificial series, to measure speed


@dataclass(frozen=True, kw_only=True)
class TimeSeries(Modality):
    """Time series: arrays (channels, length), or files with one column per channel.

    A series of one channel may be an array (length,). Missing values are refused;
    those at the end of all channels end the series.
    """

    noun: ClassVar[str] = "series"
    backbone: ClassVar[str | None] = "minirocket"
    has_windows: ClassVar[bool] = True
    array_name: ClassVar[str | None] = "series"
    collection_suffixes: ClassVar[frozenset[str]] = frozenset({".ts"})
    # a CSV file next to images is a list of labels more often than a series
    rank: ClassVar[int] = 1

    @property
    def plural(self) -> str:
        return "series"

    def suffixes(self) -> frozenset[str]:
        return frozenset({".csv"})

    def read(self, raw: bytes) -> Array:
        return files.read_series(raw)

    def convert(self, value: Any) -> Array:
        return one_series(value)

    def recognises(self, value: Any) -> bool:
        if isinstance(value, np.ndarray):
            return value.ndim == 2 and value.dtype.kind == "f"
        return hasattr(value, "columns") and hasattr(value, "to_numpy")

    def recognises_all(self, values: Any, requested: bool) -> bool:
        if isinstance(values, np.ndarray):
            return values.ndim == 3 and values.dtype.kind == "f"
        return is_nested(values) and (requested or is_unlike_embeddings(values))

    def listed(self, values: Any) -> Sequence[Any]:
        several: Sequence[Any] = several_series(values)
        return several

    def stacked(self, array: Array, lengths: Array | None = None) -> Any:
        return several_series(array, lengths)

    def collection(self, raw: bytes) -> Collection:
        return files.read_ts(raw)

    def reads_columns(self, names: Sequence[str], requested: bool) -> bool:
        return files.reads_columns(names, requested)

    def from_columns(self, columns: Mapping[str, Any], requested: bool) -> TableInputs:
        return files.from_columns(columns, requested)

    def backbone_for(self, name: str, read: Callable[[], Any]) -> str:
        # Series of other numbers of channels are not comparable.
        bare = name.removesuffix(":last")
        if bare != self.backbone:
            return name
        return f"{bare}:{len(one_series(read()))}{name.removeprefix(bare)}"

    def show(self, item: Any) -> Array:
        return plot(one_series(item))

    def parts(self, item: Any) -> InputParts:
        """Equal times, each of which can be a straight line."""
        series = one_series(item)

        def straight(time: slice) -> Array:
            without = series.copy()
            ends = [series[:, time.start, None], series[:, time.stop - 1, None]]
            steps = np.linspace(0, 1, time.stop - time.start)
            without[:, time] = ends[0] + steps * (ends[1] - ends[0])
            return without

        return time_parts(series, None, straight)

    def sample(self, size: int) -> list[Any]:
        """Series of one channel and 500 samples."""
        rng = np.random.default_rng(0)
        steps = rng.normal(size=(size, 1, SAMPLE_LENGTH))
        walks = steps.cumsum(axis=2)
        return list(walks.astype(np.float32))
