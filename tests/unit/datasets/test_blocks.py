"""Files of embeddings keep their blocks: packs, Parquet and other tables, data frames."""

import json
from pathlib import Path

import numpy as np
import pytest

from imprint import ImprintClassifier, Imprinter, datasets
from imprint.cli import main
from imprint.core.errors import FileError, ParameterError
from imprint.embeddings import read_pack, write_pack
from imprint.embeddings.pack import open_unpacked

WIDTHS = (3, 2, 4)


@pytest.fixture(autouse=True)
def temporary_home(tmp_path, monkeypatch):
    monkeypatch.setenv("IMPRINT_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


def rows(n=20, seed=0):
    """The second block tells the classes apart, and the third one is large."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 9)).astype(np.float32)
    X[:, 5:] *= 1000
    y = np.repeat(["a", "b"], n // 2)
    X[: n // 2, 3] += 6
    return X, y


def as_blocks(X):
    return np.split(X, np.cumsum(WIDTHS)[:-1], axis=1)


def expected():
    X, y = rows()
    model = Imprinter(cache=False, calibrate=False).fit(X, y)
    assert model.state.head.method.blocks == ()
    parts = model.state.head.method
    classifier = ImprintClassifier(
        generator=parts.generator, aggregator=parts.aggregator, blocks=WIDTHS
    )
    return classifier.fit(X, y).predict_proba(rows(seed=1)[0])


def check(data):
    """A model of the data has the blocks, and the probabilities that they give."""
    model = Imprinter(cache=False, calibrate=False).fit(data)
    assert model.state.head.method.blocks == WIDTHS
    P = model.predict_proba(rows(seed=1)[0])
    np.testing.assert_allclose(P, expected(), rtol=1e-5, atol=1e-6)
    return model


def test_a_pack_keeps_its_blocks(tmp_path):
    X, y = rows()
    blocks = dict(zip(["last", "middle", "early"], WIDTHS))
    write_pack("p.npz", X, y, X, y, blocks=blocks)
    assert read_pack("p.npz").blocks == WIDTHS
    for _ in range(2):  # unpacked, and found
        assert open_unpacked(tmp_path / "p.npz", tmp_path / "cache").blocks == WIDTHS
    assert datasets.load("p.npz").blocks == WIDTHS
    assert datasets.load("p.npz", "test").blocks == WIDTHS
    check("p.npz")
    write_pack("q.npz", X, y, X, y)
    assert read_pack("q.npz").blocks == ()
    assert read_pack("q.npz").fingerprint != read_pack("p.npz").fingerprint


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        ([3, 2], "the blocks have 5 columns together, and the rows have 9"),
        ([3, 2, 0, 4], "blocks: .*must be 1 to 64 positive"),
        ([[3, 2, 4]], "must be 1 to 64 positive"),
        ([3.0, 6.0], "must be 1 to 64 positive"),
    ],
    ids=str,
)
def test_a_pack_with_wrong_blocks_is_refused(blocks, message):
    X, y = rows()
    np.savez("p.npz", train=X, train_labels=y, blocks=np.array(blocks))
    with pytest.raises(FileError, match=message):
        datasets.load("p.npz")


@pytest.mark.parametrize("suffix", ["parquet", "jsonl"])
def test_columns_of_lists_are_blocks(suffix):
    X, y = rows()
    columns = dict(zip(["last", "middle", "early"], as_blocks(X)))
    if suffix == "parquet":
        pa = pytest.importorskip("pyarrow")
        import pyarrow.parquet as pq

        lists = {name: pa.array(part.tolist()) for name, part in columns.items()}
        pq.write_table(pa.table({**lists, "label": y}), "t.parquet")
    else:
        lines = [
            {name: part[i].tolist() for name, part in columns.items()}
            | {"label": str(y[i])}
            for i in range(len(X))
        ]
        with open("t.jsonl", "w") as f:
            f.writelines(json.dumps(line) + "\n" for line in lines)
    split = datasets.load(f"t.{suffix}")
    assert split.blocks == WIDTHS
    np.testing.assert_array_equal(split.inputs, X)
    check(f"t.{suffix}")


def test_a_row_whose_block_is_longer_is_named():
    lines = [
        {"a": [1, 2], "b": [3], "label": "x"},
        {"a": [1], "b": [3, 4], "label": "y"},
    ]
    with open("t.jsonl", "w") as f:
        f.writelines(json.dumps(line) + "\n" for line in lines)
    with pytest.raises(FileError, match="row 2, column 'a': a list of 1 numbers, but"):
        datasets.load("t.jsonl")


def test_columns_of_embeddings_in_a_data_frame_are_blocks():
    pd = pytest.importorskip("pandas")
    X, y = rows()
    names = ["last", "middle", "early"]
    columns = {name: list(part) for name, part in zip(names, as_blocks(X))}
    check(pd.DataFrame({**columns, "label": y}))


@pytest.mark.parametrize("groups", ["prefixes", "names"])
def test_named_groups_of_columns_are_blocks(groups):
    pd = pytest.importorskip("pandas")
    X, y = rows()
    names = [
        f"{block}_{i}"
        for block, width in zip(["last", "middle", "early"], WIDTHS)
        for i in range(width)
    ]
    ends = np.cumsum((0, *WIDTHS))
    blocks = {"one": "last_", "two": "middle_", "three": "early_"}
    if groups == "names":
        blocks = {str(b): names[ends[b] : ends[b + 1]] for b in range(3)}
    method = Imprinter(calibrate=False).fit(X, y).state.head.method
    parts = {"generator": method.generator, "aggregator": method.aggregator}
    classifier = ImprintClassifier(**parts, blocks=blocks)
    repr(classifier)
    classifier.fit(pd.DataFrame(X, columns=names), y)
    repr(classifier)
    new = pd.DataFrame(rows(seed=1)[0], columns=names)
    np.testing.assert_allclose(
        classifier.predict_proba(new), expected(), rtol=1e-5, atol=1e-6
    )
    classifier.save("m.imprint")
    again = ImprintClassifier.load("m.imprint")
    assert again.blocks == WIDTHS
    assert np.array_equal(again.predict_proba(new), classifier.predict_proba(new))


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        ({"a": "x", "b": "y"}, "column 3 of the table is 'z0', and of the blocks None"),
        ({"a": ["y0"], "b": ["x0", "z0"]}, "column 1 of the table is 'x0', and of the"),
        ({"a": "x", "b": "w"}, "the block 'b' has no columns"),
    ],
    ids=str,
)
def test_groups_that_are_not_the_columns_are_refused(blocks, message):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(rows()[0][:, :3], columns=["x0", "y0", "z0"])
    with pytest.raises(ParameterError, match=message):
        ImprintClassifier(blocks=blocks).fit(frame, rows()[1])
    with pytest.raises(ParameterError, match="blocks by name need a table"):
        ImprintClassifier(blocks=blocks).fit(*rows())


def test_other_blocks_are_refused_when_classes_are_added():
    X, y = rows()
    write_pack("p.npz", X, y, X, y, blocks={"a": 3, "b": 2, "c": 4})
    write_pack("q.npz", X, y, X, y, blocks={"a": 5, "b": 4})
    model = Imprinter(cache=False).fit("p.npz")
    with pytest.raises(ParameterError, match="blocks of 5, 4 columns, and the model"):
        model.add("q.npz")


@pytest.mark.parametrize("suffix", ["npz", "parquet"])
def test_imprint_embed_writes_blocks(suffix, capsys):
    """The model of the file is that of the images."""
    rng = np.random.default_rng(0)
    images = rng.integers(0, 120, (12, 32, 32, 3), dtype=np.uint8)
    images[6:, ::2] += 100
    y = np.repeat(["noise", "stripes"], 6)
    np.savez(
        "images.npz",
        train_images=images,
        train_labels=y,
        test_images=images[::2],
        test_labels=y[::2],
    )
    path = f"e.{suffix}"
    words = ["embed", "images.npz", "-o", path, "--backbone", "tinynet"]
    for _ in range(2):  # it replaces its own file
        assert main(words) == 0
    split = datasets.load(path)
    assert split.blocks == (512,) * 5
    assert len(datasets.load(path, "test")) == 6
    if suffix == "npz":
        names = np.load(path)["block_names"].tolist()
    else:
        import pyarrow.parquet as pq

        names = pq.read_schema(path).names[3:]
    assert names[:2] == ["last", "relu56 quadrants"]
    of_images = Imprinter("tinynet").fit("images.npz")
    of_file = Imprinter().fit(path)
    assert of_file.state.head.method == of_images.state.head.method
    assert np.array_equal(
        of_file.state.head.proxies.weights, of_images.state.head.proxies.weights
    )
    assert main(["embed", path, "-o", "again.npz"]) == 0
    assert datasets.load("again.npz").blocks == (512,) * 5
    capsys.readouterr()
    Path("mine.parquet").write_bytes(b"PAR1")
    assert main(["embed", "images.npz", "-o", "mine.parquet"]) == 2
    assert "imprint embed did not write it" in capsys.readouterr().err
