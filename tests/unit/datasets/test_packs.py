import pickle

import numpy as np
import pytest

from imprint.core.errors import FileError
from imprint.datasets import Split, UnreadableInput, load
from imprint.datasets.split import Joined
from imprint.embeddings import write_pack

IMAGES = np.random.default_rng(0).integers(0, 256, (6, 4, 5, 3), dtype=np.uint8)
LABELS = np.array([2, 0, 1, 1, 2, 0], dtype=np.uint8)


def write(path, **changes):
    arrays = {
        "train_images": IMAGES,
        "train_labels": LABELS,
        "test_images": IMAGES[:2, :, :, 0],
        "test_labels": np.array(["dog", "cat"]),
    }
    np.savez_compressed(
        path, **{k: v for k, v in (arrays | changes).items() if v is not None}
    )
    return path


def test_a_pack_has_two_splits(tmp_path):
    path = write(tmp_path / "mine.npz")
    train, test = load(path), load(str(path), "test")
    np.testing.assert_array_equal(train.inputs, IMAGES)
    assert train.labels.tolist() == LABELS.tolist()
    assert train.labels.dtype == np.int64
    assert train.classes == (0, 1, 2)
    assert train.names[-1] == "mine.npz (train), row 6"
    assert test.inputs[1].shape == (4, 5)
    assert test.classes == ("cat", "dog")
    with pytest.raises(ValueError, match="read-only"):
        train.inputs[0][0, 0, 0] = 1


def test_the_fingerprint_is_of_images_and_labels(tmp_path):
    first = load(write(tmp_path / "a.npz")).fingerprint
    assert load(write(tmp_path / "b.npz", test_images=None)).fingerprint == first
    assert (
        load(
            write(tmp_path / "c.npz", train_labels=LABELS.astype(np.int32))
        ).fingerprint
        == first
    )
    assert (
        load(write(tmp_path / "d.npz", train_labels=LABELS[::-1])).fingerprint != first
    )
    assert load(write(tmp_path / "e.npz", train_images=IMAGES ^ 1)).fingerprint != first
    # must be the same on other machines
    small = write(
        tmp_path / "f.npz",
        train_images=np.zeros((2, 1, 1), np.uint8),
        train_labels=np.array([0, 1]),
    )
    assert (
        load(small).fingerprint
        == "b2957731056290eec3eaec3e0c307f37029cc075c32a3a32c715f08289cfbb38"
    )


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        (
            {"train_images": None},
            r"has no train or train_images or .*; it holds: train_labels",
        ),
        (
            {"train_images": IMAGES.astype(float)},
            r"must be uint8 of shape .* not float64",
        ),
        ({"train_images": IMAGES[:, :, :, :2]}, r"must be uint8 of shape"),
        ({"train_images": IMAGES[:, 0, 0]}, r"must be uint8 of shape"),
        (
            {"train_labels": LABELS[:4]},
            r"6 rows and train_labels has 4 labels; the numbers must be equal",
        ),
        (
            {"train_images": IMAGES[:0], "train_labels": LABELS[:0]},
            r"0 rows and train_labels has 0 labels; .* above 0",
        ),
        (
            {"train_labels": np.array(["x" * 1001] * 6)},
            r": labels must have at most 1,000 characters, .* 1,001",
        ),
        (
            {"train_labels": LABELS.astype(float)},
            r"train_labels: labels must be a list of integers or strings",
        ),
        ({"train_labels": LABELS.astype(object)}, r"not a readable pack"),
    ],
)
def test_an_invalid_pack_is_refused(tmp_path, changes, rule):
    with pytest.raises(FileError, match=rule) as caught:
        load(write(tmp_path / "bad.npz", **changes))
    assert "bad.npz" in str(caught.value)


@pytest.mark.parametrize("share", [0, 0.1, 0.5, 0.98])
def test_a_cut_pack_is_refused(tmp_path, share):
    path = write(tmp_path / "cut.npz")
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(FileError, match=r"cut\.npz is not a readable pack"):
        load(path)


def test_a_flipped_byte_is_noticed(tmp_path):
    path = write(tmp_path / "flip.npz")
    data = bytearray(path.read_bytes())
    data[data.find(b"train_images.npy") + 100] ^= 255
    path.write_bytes(bytes(data))
    with pytest.raises(FileError, match="not a readable pack"):
        load(path)


def pack_of_bytes(path):
    X = np.random.default_rng(0).normal(size=(24, 6)).astype(np.float32)
    write_pack(path, X, np.arange(24) % 3, X[:6], np.arange(6) % 3, as_bytes=True)


def pack_with_names(path):
    rows = {
        "train": np.eye(6, dtype=np.float32),
        "train_labels": np.array(list("abcabc")),
    }
    np.savez(path, **rows, train_names=np.array([f"n{i}" for i in range(6)]))


@pytest.mark.parametrize("make", [write, pack_of_bytes, pack_with_names])
def test_600_flipped_bits_are_noticed_or_have_no_effect(tmp_path, make):
    """300 anywhere, and 300 in the central directory at the end, where an optional array could be lost."""
    path = tmp_path / "a.npz"
    make(path)

    def read():
        split = load(path)
        return (
            np.asarray(split.inputs).tobytes(),
            split.labels.tolist(),
            list(split.names),
            split.parts,
        )

    whole, content, draw, messages = (
        read(),
        path.read_bytes(),
        np.random.default_rng(0),
        [],
    )
    listed = content.index(b"PK\1\2")
    for first in (0, listed):
        for bit in draw.integers(8 * first, 8 * len(content), size=300).tolist():
            damaged = bytearray(content)
            damaged[bit // 8] ^= 1 << bit % 8
            path.write_bytes(damaged)
            try:
                assert read() == whole, bit
            except FileError as e:
                messages.append(str(e))
    assert len(messages) > 200
    assert not any("\n" in sentence for sentence in messages)


def test_other_files_are_refused(tmp_path):
    with open(tmp_path / "array.npz", "wb") as f:
        np.save(f, IMAGES)
    with pytest.raises(
        FileError, match=r"array\.npz is not a pack: it holds one array"
    ):
        load(tmp_path / "array.npz")
    (tmp_path / "a.txt").write_text("hello")
    with pytest.raises(
        FileError,
        match=r"give a folder per class, a table \(\.csv, \.tsv, \.jsonl, \.parquet, .*\), a \.npz",
    ):
        load(tmp_path / "a.txt")


def test_sequences_behave_as_lists_do():
    names = ["x/0", "x/1", "x/2", "x/3"]
    both = Joined([names, [], ["z/0", "z/1"]])
    assert list(both) == [*names, "z/0", "z/1"]
    assert both[-1] == "z/1"
    assert both[3:] == ["x/3", "z/0", "z/1"]
    assert both.fingerprint() != Joined([names, ["z/0", "z/1", "z/2"]]).fingerprint()
    with pytest.raises(IndexError):
        both[len(both)]


def test_the_width_of_integers_has_no_effect():
    splits = [
        Split(IMAGES, LABELS.astype(kind), list("abcdef"), (0, 1, 2), "image")
        for kind in ("u1", ">i4", "<i8")
    ]
    assert len({s.fingerprint for s in splits}) == 1
    assert repr(splits[0]) == "Split(6 images, 3 classes)"
    assert (
        repr(Split(IMAGES[:1], LABELS[:1], ["a"], (0,), "image"))
        == "Split(1 image, 1 class)"
    )


def test_the_error_of_an_input_can_be_pickled():
    error = pickle.loads(pickle.dumps(UnreadableInput("a/b.jpg", "it is empty")))
    assert (error.name, error.reason, str(error)) == (
        "a/b.jpg",
        "it is empty",
        "Cannot read a/b.jpg: it is empty.",
    )


def test_a_split_of_unequal_parts_is_refused():
    with pytest.raises(ValueError, match="must be of one length"):
        Split(("a", "b"), np.array([1]), ("x", "y"), (1,), "text")
