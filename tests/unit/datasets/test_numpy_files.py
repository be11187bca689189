"""Embeddings in `.npy` and `.npz` files."""

import numpy as np
import pytest

from imprint.core.errors import FileError, ParameterError
from imprint.datasets import load
from imprint.modalities import embedding

X = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
Y = np.array([1, 0, 1, 2, 0])


@pytest.fixture
def matrix(tmp_path):
    np.save(tmp_path / "x.npy", X)
    return tmp_path / "x.npy"


LABELS = {
    "y.npy": lambda p: np.save(p, Y),
    "y.txt": lambda p: p.write_text("1\n0\n1\n2\n0\n"),
    "windows.txt": lambda p: p.write_bytes(b"\xef\xbb\xbf1\r\n0\r\n1\r\n2\r\n0\r\n"),
    "y.csv": lambda p: p.write_text("class\n1\n0\n1\n2\n0\n"),
    "more.csv": lambda p: p.write_text("note,label\na,1\nb,0\nc,1\nd,2\ne,0\n"),
    "y.jsonl": lambda p: p.write_text("".join(f'{{"label": {y}}}\n' for y in Y)),
}


@pytest.mark.parametrize("name", LABELS)
def test_labels_are_in_a_separate_file(matrix, tmp_path, name):
    LABELS[name](tmp_path / name)
    split = load(matrix, labels=tmp_path / name)
    np.testing.assert_array_equal(split.inputs, X)
    assert split.labels.tolist() == Y.tolist()
    assert split.labels.dtype == np.int64
    assert split.found == "5 embeddings of 3 classes, 3 wide (x.npy)"
    assert list(split.names) == [f"x.npy, row {i}" for i in (1, 2, 3, 4, 5)]


@pytest.mark.parametrize("kind", [np.float64, np.float16, np.int8])
def test_numbers_become_float32(matrix, kind):
    given = (X * 10).astype(kind)
    np.save(matrix, given)
    split = load(str(matrix), labelled=False)
    assert split.inputs.dtype == np.float32
    np.testing.assert_array_equal(split.inputs, given.astype(np.float32))
    assert len(split.labels) == 0


@pytest.mark.parametrize(
    ("name", "content", "rule"),
    [
        (
            "y.txt",
            "1\n0\n",
            r"y\.txt has 2 labels for 5 rows; there must be one per row\.$",
        ),
        ("y.txt", "1\n\n1\n2\n0\n", r"row 2, column 'label': there is no label\.$"),
        ("y.csv", "a,b\n1,2\n", r"y\.csv has no column 'label'; it has: 'a', 'b'\.$"),
        ("y.csv", "label\n", r"y\.csv has no rows\.$"),
        ("y.doc", "1\n", r"give a \.npy, \.txt or \.csv file with one per row\.$"),
        ("missing.txt", None, r"Cannot read .*missing\.txt: No such file"),
    ],
)
def test_labels_that_do_not_fit_are_refused(matrix, tmp_path, name, content, rule):
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(FileError, match=rule):
        load(matrix, labels=tmp_path / name)


def test_labels_must_be_given_where_they_belong(matrix, tmp_path):
    with pytest.raises(
        ParameterError,
        match=r"a \.npy file has no labels; give a file with one per row as labels",
    ):
        load(matrix)
    with pytest.raises(ParameterError, match=r"labels go with a \.npy file"):
        load(tmp_path, labels="y.txt")
    with pytest.raises(
        ParameterError,
        match=r"load\('digits', labels='y\.txt'\): labels go with a \.npy file",
    ):
        load("digits", labels="y.txt")
    with pytest.raises(FileError, match="has no test split"):
        load(matrix, "test", labelled=False)


@pytest.mark.parametrize(
    ("content", "rule"),
    [
        (
            np.where(np.arange(15).reshape(5, 3) == 7, np.nan, X),
            r": embeddings, row 3, column 2: nan is not a finite float32 number\.$",
        ),
        (
            np.full((2, 2), 1e300),
            r"row 1, column 1: 1e\+300 is not a finite float32 number\.$",
        ),
        (X[0], r": embeddings must be rows of numbers, not float32 of shape \(3,\)\.$"),
        (np.array([["a"]]), r"must be rows of numbers, not <U1 of shape \(1, 1\)\.$"),
        (np.array([[1j]]), r"must be rows of numbers, not complex128"),
        (X[:0], r"must be rows of numbers, not float32 of shape \(0, 3\)\.$"),
    ],
)
def test_arrays_that_are_not_a_matrix_of_numbers_are_refused(tmp_path, content, rule):
    np.save(tmp_path / "x.npy", content)
    with pytest.raises(FileError, match=rule):
        load(tmp_path / "x.npy", labelled=False)
    np.savez(tmp_path / "x.npz", train=content)
    with pytest.raises(FileError, match=r"row|must be"):
        load(tmp_path / "x.npz", labelled=False)


def test_a_damaged_matrix_and_pickles_are_refused(matrix):
    whole = matrix.read_bytes()
    for cut in (0, 5, 100, len(whole) - 1):
        matrix.write_bytes(whole[:cut])
        with pytest.raises(FileError, match=r"x\.npy"):
            load(matrix, labelled=False)
    np.save(matrix, np.array([{}]), allow_pickle=True)
    with pytest.raises(FileError, match=r"not a readable \.npy file"):
        load(matrix, labelled=False)


def test_a_pack_as_embed_writes_it(tmp_path):
    names = np.array([f"cat/{i}.jpg" for i in range(5)])
    np.savez(
        tmp_path / "e.npz",
        train=X,
        train_labels=Y,
        train_names=names,
        test=X[:2],
        test_labels=Y[:2],
    )
    split = load(tmp_path / "e.npz")
    np.testing.assert_array_equal(split.inputs, X)
    assert (split.names[4], split.parts, split.modality) == (
        "cat/4.jpg",
        ("train", "test"),
        "embedding",
    )
    assert load(tmp_path / "e.npz", "test").names[1] == "e.npz (test), row 2"
    np.savez(
        tmp_path / "b.npz",
        train=np.uint8([[0, 255]]),
        train_labels=[3],
        scale=np.float32(0.5),
        offset=np.ones(2),
    )
    assert load(tmp_path / "b.npz").inputs.tolist() == [[1.0, 128.5]]
    with pytest.raises(
        FileError,
        match=r"has no test or test_images or X_test or x_test or test_series; it holds: train, train_labels, scale, offset\.$",
    ):
        load(tmp_path / "b.npz", "test")
    np.savez(tmp_path / "c.npz", train=np.uint8([[0, 255]]), train_labels=[3])
    with pytest.raises(
        FileError, match=r"must be floating point, or unsigned bytes with a scale"
    ):
        load(tmp_path / "c.npz")


def test_an_indicator_matrix_with_label_names_is_tags(tmp_path):
    Y = np.array([[1, 0, 1], [0, 0, 0]])
    np.savez(tmp_path / "t.npz", X=X[:2], y=Y, label_names=["sky", "sea", "boat"])
    split = load(tmp_path / "t.npz")
    assert (split.tags, split.classes, split.labels.tolist()) == (
        True,
        ("boat", "sea", "sky"),
        ["boat|sky", ""],
    )
    assert not load(tmp_path / "t.npz", labelled=False).tags


@pytest.mark.parametrize(
    "change",
    [
        {"label_names": ["a", "b"]},
        {"label_names": ["a", "a", "b"]},
        {"y": np.array([[2, 0, 1], [0, 0, 0]])},
    ],
)
def test_an_indicator_matrix_without_a_name_per_column_is_refused(tmp_path, change):
    arrays = (
        dict(
            X=X[:2],
            y=np.array([[1, 0, 1], [0, 0, 0]]),
            label_names=["sky", "sea", "boat"],
        )
        | change
    )
    np.savez(tmp_path / "t.npz", **arrays)
    with pytest.raises(
        FileError,
        match=r"t\.npz: y of two axes must hold 0 and 1, with a name per column in label_n",
    ):
        load(tmp_path / "t.npz")
    del arrays["label_names"]
    np.savez(tmp_path / "t.npz", **arrays)
    with pytest.raises(FileError, match=r"with a name per column in label_names\.$"):
        load(tmp_path / "t.npz")


def test_an_option_that_does_not_exist_is_refused_for_every_kind_of_file(matrix):
    with pytest.raises(
        TypeError, match=r"load\(\) got an unexpected keyword argument 'label_colum'"
    ):
        load(matrix, labelled=False, label_colum="y")


def test_the_row_of_a_value_is_counted_over_all_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(embedding, "BLOCK_VALUES", 6)
    rows = np.zeros((7, 3), np.float32)
    rows[5, 1] = np.inf
    np.save(tmp_path / "a.npy", rows)
    with pytest.raises(
        FileError, match="row 6, column 2: inf is not a finite float32 number"
    ):
        load(tmp_path / "a.npy", labelled=False)
