"""Packs: round trips, quantisation by the documented rule, and refused files."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from imprint.core.errors import FileError, ParameterError
from imprint.datasets.numpy_files import to_embeddings
from imprint.embeddings import read_pack, write_pack
from imprint.embeddings.pack import _as_bytes

ROWS = np.random.default_rng(0).normal(size=(12, 5)).astype(np.float32)
LABELS = np.arange(12) % 3
GOOD = dict(train=ROWS, train_labels=LABELS, test=ROWS[:4], test_labels=LABELS[:4])
BYTES = GOOD | dict(train=np.uint8(ROWS * 9 + 90), test=np.uint8(ROWS[:4] * 9 + 90))


def test_floats_come_back_exactly(tmp_path):
    write_pack(
        tmp_path / "a.npz", ROWS, LABELS, ROWS[:4], np.array(["a", "b", "c", "d"])
    )
    pack = read_pack(tmp_path / "a.npz")
    np.testing.assert_array_equal(pack.X, ROWS)
    np.testing.assert_array_equal(pack.y, LABELS)
    np.testing.assert_array_equal(pack.X_test, ROWS[:4])
    assert pack.y_test.tolist() == ["a", "b", "c", "d"]


@pytest.mark.parametrize("scale", [np.float64(0.3), np.float32(0.3), np.full(5, 0.3)])
@pytest.mark.parametrize("offset", [None, np.float32(-1), np.arange(5.0)])
def test_bytes_follow_the_rule_in_float32(tmp_path, scale, offset):
    extra = {} if offset is None else {"offset": offset}
    np.savez(tmp_path / "a.npz", scale=scale, **BYTES, **extra)
    pack = read_pack(tmp_path / "a.npz")
    assert pack.X.dtype == np.float32
    expected = BYTES["train"] * np.float32(scale) + np.float32(
        0 if offset is None else offset
    )
    np.testing.assert_array_equal(pack.X, expected)


@given(arrays(np.float32, (6, 3), elements=st.floats(-1e6, 1e6, width=32)))
def test_bytes_are_off_by_half_a_step_at_most(X):
    stored = _as_bytes(X, X[:2])
    off = np.abs(to_embeddings("train", stored["train"], stored).astype(float) - X)
    assert (off <= 0.5001 * stored["scale"] + 1e-6 * np.abs(X).max()).all()


def test_fingerprint_is_of_the_content(tmp_path):
    np.savez(tmp_path / "a.npz", **GOOD)
    np.savez_compressed(tmp_path / "b.npz", **dict(reversed(GOOD.items())))
    np.savez(tmp_path / "c.npz", **GOOD | dict(test_labels=LABELS[1:5]))
    a, b, c = (read_pack(tmp_path / f"{n}.npz").fingerprint for n in "abc")
    assert a == b != c


def test_two_writes_give_the_same_bytes(tmp_path):
    for name in "ab":
        write_pack(tmp_path / name, ROWS, LABELS, ROWS[:4], LABELS[:4], as_bytes=True)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (dict(test=None), "is not a pack of embeddings: it has no test"),
        (dict(train=ROWS[0]), "must be rows of numbers"),
        (dict(test=ROWS[:4, :3]), "the same width, not 5 and 3"),
        (dict(train=ROWS[:0], train_labels=LABELS[:0]), "must be rows of numbers"),
        (
            dict(train_labels=LABELS[:3]),
            "train has 12 rows and train_labels has 3 labels",
        ),
        (dict(test_labels=LABELS[:4] / 2), "test_labels: labels must be"),
        (
            dict(test_labels=np.ones((4, 3))),
            "test_labels of two axes must hold 0 and 1",
        ),
        (dict(scale=np.float32(1)), "floating point, or unsigned bytes with a scale"),
        (dict(BYTES), "floating point, or unsigned bytes with a scale"),
        (dict(BYTES, scale=np.ones(4)), "one number or one per column"),
        (dict(BYTES, scale=np.float32(np.nan)), "nan is not a finite"),
        (
            dict(train=np.full_like(ROWS, np.inf)),
            "row 1, column 1: inf is not a finite",
        ),
    ],
)
def test_other_arrays_are_refused(tmp_path, change, rule):
    np.savez(
        tmp_path / "a.npz",
        **{k: v for k, v in (GOOD | change).items() if v is not None},
    )
    with pytest.raises(FileError, match=rf"a\.npz.*{rule}"):
        read_pack(tmp_path / "a.npz")


def test_damaged_and_foreign_files_are_refused(tmp_path):
    np.savez_compressed(tmp_path / "good.npz", **GOOD)
    raw = (tmp_path / "good.npz").read_bytes()
    np.save(tmp_path / "rows", ROWS)
    objects = dict(GOOD, train_labels=np.array([{}] * 12, object))
    np.savez(tmp_path / "objects.npz", **objects)
    wrong = [
        b"",
        b"PK",
        raw[: len(raw) // 2],
        raw[:100] + b"x" * 20 + raw[120:],
        b"text",
    ]
    wrong += [
        (tmp_path / "rows.npy").read_bytes(),
        (tmp_path / "objects.npz").read_bytes(),
    ]
    for content in wrong:
        (tmp_path / "bad.npz").write_bytes(content)
        with pytest.raises(FileError, match=r"bad\.npz is not a (readable )?pack"):
            read_pack(tmp_path / "bad.npz")
    with pytest.raises(FileError, match=r"Cannot read .*nowhere.npz: No such file"):
        read_pack(tmp_path / "nowhere.npz")


def test_invalid_arguments_are_refused_before_writing(tmp_path):
    with pytest.raises(
        ParameterError,
        match=r"write_pack: .*train has 12 rows and train_labels has 3 labels",
    ):
        write_pack(tmp_path / "a.npz", ROWS, LABELS[:3], ROWS, LABELS)
    with pytest.raises(
        ParameterError, match=r"write_pack: .*row 1, column 1: nan is not a finite"
    ):
        write_pack(tmp_path / "a.npz", ROWS * np.float32(np.nan), LABELS, ROWS, LABELS)
    assert not list(tmp_path.iterdir())


@pytest.mark.shared
@pytest.mark.parametrize(
    "name", ["full/mobilenet_v1_0.25_128-mnist", "subset/tinynet-cifar10"]
)
def test_real_packs_are_read(shared_folder, name):
    path = shared_folder / "embeddings" / f"{name}.npz"
    pack = read_pack(path)
    with np.load(path) as d:
        offset = d["offset"] if "offset" in d.files else np.float32(0)
        np.testing.assert_array_equal(
            pack.X, d["train"] * np.float32(d["scale"]) + offset
        )
        np.testing.assert_array_equal(pack.y_test, d["test_labels"])
