"""Time series from arrays, frames and files become (channels, length), or are refused by name."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from imprint import Imprinter
from imprint.core.errors import FileError, ParameterError, UnreadableInput
from imprint.datasets import load
from imprint.modalities import modality

N, CHANNELS, LENGTH = 12, 2, 30
LABELS = np.array(["slow", "fast"] * (N // 2))


@pytest.fixture
def series() -> np.ndarray:
    """Sines of two frequencies in two channels, (N, CHANNELS, LENGTH)."""
    draw, time = np.random.default_rng(0), np.linspace(0, 1, LENGTH)
    rate = np.where(LABELS == "slow", 1.0, 4.0)[:, None, None]
    phase = draw.uniform(size=(N, CHANNELS, 1))
    return np.sin(2 * np.pi * (rate * time + phase)).astype(np.float32)


def long_table(series: np.ndarray) -> pd.DataFrame:
    frames = [
        pd.DataFrame(
            {
                "series": f"s{i}",
                "time": range(LENGTH),
                "x": one[0],
                "y z": one[1],
                "label": label,
            }
        )
        for i, (one, label) in enumerate(zip(series, LABELS))
    ]
    return pd.concat(frames)


def wide_table(series: np.ndarray) -> pd.DataFrame:
    columns = {
        f"{name}:{t}": series[:, c, t]
        for c, name in enumerate("xy")
        for t in range(LENGTH)
    }
    return pd.DataFrame({"label": LABELS, **columns})


def read_back(split) -> np.ndarray:
    return np.stack([split.kind.convert(split.inputs[i]) for i in range(len(split))])


def test_every_kind_of_file_gives_the_same_series(series, tmp_path):
    np.savez(tmp_path / "a.npz", series=series, labels=LABELS)
    long_table(series).to_csv(tmp_path / "long.csv", index=False)
    wide_table(series).to_csv(tmp_path / "wide.csv", index=False)
    wide_table(series).to_parquet(tmp_path / "wide.parquet")
    melted = long_table(series).melt(
        ["series", "time", "label"], ["x", "y z"], var_name="channel"
    )
    melted.to_csv(tmp_path / "melted.csv", index=False)
    lines = [
        ":".join([*(",".join(map(str, row)) for row in one), label])
        for one, label in zip(series, LABELS)
    ]
    header = "# a comment\n@problemName p\n@timestamps false\n@classLabel true slow fast\n@data\n"
    (tmp_path / "p.ts").write_text(header + "\n".join(lines))
    for name in ("a.npz", "long.csv", "wide.csv", "wide.parquet", "melted.csv", "p.ts"):
        split = load(tmp_path / name)
        assert split.modality == "series", name
        assert split.labels.tolist() == LABELS.tolist(), name
        np.testing.assert_allclose(read_back(split), series, rtol=1e-6, err_msg=name)
    assert load(tmp_path / "a.npz").found == "12 series of 2 classes (a.npz)"
    assert load(tmp_path / "long.csv").names[1] == "long.csv, s1"
    assert load(tmp_path / "wide.csv").names[0] == "wide.csv, row 2"


def test_a_folder_of_csv_files_is_read_file_by_file(series, tmp_path):
    for i, (one, label) in enumerate(zip(series, LABELS)):
        (tmp_path / label).mkdir(exist_ok=True)
        pd.DataFrame({"time": range(LENGTH), "x": one[0], "y": one[1]}).to_csv(
            tmp_path / label / f"{i:02}.csv", index=False
        )
    (tmp_path / "slow" / "notes.txt").write_text("on Tuesday")
    split = load(tmp_path)
    assert (split.modality, len(split)) == ("series", N)
    np.testing.assert_allclose(split.inputs[0], series[1], rtol=1e-5)
    model = Imprinter(cache=False).fit(tmp_path)
    assert model.predict([str(tmp_path / "slow" / "00.csv")]).tolist() == ["slow"]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("header", ["", "x{0}y\n"])
def test_a_csv_file_is_one_series(delimiter, header):
    raw = header.format(delimiter) + f"1{delimiter}2.5\n3{delimiter}-4e1\n"
    np.testing.assert_array_equal(
        modality("series").read(raw.encode()), [[1, 3], [2.5, -40]]
    )


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "the file is empty"),
        (b"x,y\n1,2\n,3\n4,5\n", "1 missing value, the first in channel x at sample 2"),
        (b"x,y\n1,2\n3,abc\n", "the column 'y' holds 'abc', which is not a number"),
        (b"1\n2\n", None),
        (b"\xff\xfe1", "it is not UTF-8"),
        (b"x,y\n1,2,3\n", "not a CSV file"),
        (b"time\n1\n2\n", "it has no column of values"),
        (b"x\n", "it has no samples"),
        (b"x\n1\ninf\n", "1 infinite value, the first in channel x at sample 2"),
    ],
)
def test_a_csv_file_that_is_no_series_is_refused_by_name(raw, reason):
    if reason is None:
        assert modality("series").read(raw).shape == (1, 2)
        return
    with pytest.raises(UnreadableInput) as error:
        modality("series").read(raw)
    assert error.value.reason.startswith(reason)


def test_missing_values_at_the_end_of_all_channels_end_the_series(series):
    kind, cut = modality("series"), series[0].copy()
    cut[:, 20:] = np.nan
    np.testing.assert_array_equal(kind.convert(cut), series[0, :, :20])
    cut[1, 5] = np.nan
    with pytest.raises(
        UnreadableInput, match="1 missing value, the first in channel 2 at sample 6"
    ):
        kind.convert(cut)


def test_packs_of_unequal_lengths_state_them(series, tmp_path):
    lengths = np.arange(10, 10 + N)
    np.savez(
        tmp_path / "a.npz",
        train_series=series,
        train_lengths=lengths,
        train_labels=LABELS,
    )
    split = load(tmp_path / "a.npz")
    assert [one.shape[1] for one in split.inputs] == lengths.tolist()
    np.savez(tmp_path / "b.npz", series=series, lengths=lengths[:3], labels=LABELS)
    with pytest.raises(
        FileError, match="lengths must be one integer per row of series"
    ):
        load(tmp_path / "b.npz")


def test_frames_of_pandas_and_polars_and_the_containers_of_sktime(series):
    wide, long = wide_table(series), long_table(series)
    nested = pd.DataFrame(
        {
            "x": [pd.Series(one[0]) for one in series],
            "y": [pd.Series(one[1]) for one in series],
        }
    )
    levels = long.set_index(["series", "time"])[["x", "y z"]]
    frames = [pd.DataFrame(one.T) for one in series]
    expected = Imprinter(cache=False).fit(series, LABELS).predict(series).tolist()
    for data in (wide, long, pl.from_pandas(wide), pl.from_pandas(long)):
        assert Imprinter(cache=False).fit(data).predict(series).tolist() == expected
    for data in (nested, levels, frames, list(series)):
        model = Imprinter(cache=False).fit(data, LABELS)
        assert model.embedder.spec == "minirocket:2"
        assert model.predict(series).tolist() == expected


def test_a_series_has_one_label(series, tmp_path):
    table = long_table(series)
    table.iloc[3, -1] = "fast"
    table.to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(
        FileError,
        match="row 5: the series s0 has both 'slow' and 'fast' in the column 'label'",
    ):
        load(tmp_path / "a.csv")


def test_columns_of_numbers_are_samples_only_if_series_are_asked_for(series, tmp_path):
    table = pd.DataFrame(series[:, 0], columns=[f"f{i}" for i in range(LENGTH)]).assign(
        label=LABELS
    )
    table.to_csv(tmp_path / "a.csv", index=False)
    assert load(tmp_path / "a.csv").modality == "embedding"
    assert load(tmp_path / "a.csv", modality="series").modality == "series"
    model = Imprinter(backbone="minirocket", cache=False).fit(tmp_path / "a.csv")
    assert model.embedder.spec == "minirocket:1"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("@data\n1,2,a:x\n", "line 2: '1,2,a' is not a row of numbers"),
        ("@timestamps true\n@data\n(1,2)\n", "it has time stamps"),
        ("@data\n", "it has no series"),
        ("1,2\n", "line 1 is before @data"),
    ],
)
def test_damaged_ts_files_are_refused(tmp_path, text, reason):
    (tmp_path / "a.ts").write_text(
        "@classLabel true x\n" + text if "x" in text else text
    )
    with pytest.raises(FileError) as error:
        load(tmp_path / "a.ts")
    assert reason.replace("line 2", "line 3") in str(error.value) or reason in str(
        error.value
    )


def test_values_that_are_no_series_are_refused():
    with pytest.raises(ParameterError, match="A series must be an array"):
        modality("series").convert("abc")
    with pytest.raises(ParameterError, match="A series must be an array"):
        modality("series").convert(np.zeros((2, 3, 4)))


def test_the_plot_shows_each_channel_in_its_colour(series):
    image = modality("series").show(series[0])
    assert (image.dtype, image.ndim) == (np.uint8, 3)
    colours = {tuple(colour) for colour in image.reshape(-1, 3).tolist()}
    assert len(colours) == 1 + CHANNELS
    flat = modality("series").show(np.ones((1, 5)))
    assert (flat != 255).any(axis=2).sum() == flat.shape[1]
