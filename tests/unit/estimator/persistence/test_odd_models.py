"""`load` accepts everything that `save` writes: small, unusual and extreme models."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from imprint import ImprintClassifier
from imprint.core.errors import FileError, ImprintError
from imprint.core.files import container

METHODS = [
    {},
    {"generator": "all"},
    {"generator": "mean", "aggregator": "max", "norm_post": "l2"},
    {"generator": "all", "aggregator": "nearest(m=1)"},
    {"norm_pre": "none", "norm_inf": "none"},
    {"generator": "least_squares", "aggregator": "max"},
]


def rows(rng, n, d, kind):
    X = rng.normal(size=(n, d))
    scale = {"plain": 1.0, "huge": 1e15, "tiny": 1e-15, "equal": 0.0, "far": 1.0}[kind]
    return X * scale + (1e6 if kind == "far" else kind == "equal")


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 7), min_size=1, max_size=6),
    width=st.integers(1, 5),
    kind=st.sampled_from(["plain", "huge", "tiny", "equal", "far"]),
    dtype=st.sampled_from(["float32", "float64"]),
    method=st.sampled_from(METHODS),
    weighted=st.booleans(),
    seed=st.integers(0, 9),
)
def test_what_is_saved_can_be_loaded(
    tmp_path_factory, sizes, width, kind, dtype, method, weighted, seed
):
    rng, path = np.random.default_rng(seed), tmp_path_factory.mktemp("odd") / "m"
    y = np.repeat([f"class {c}" for c in range(len(sizes))], sizes)
    X = rows(rng, len(y), width, kind).astype(dtype)
    weight = rng.choice([1e-3, 1.0, 7.0, 1e6], size=len(y)) if weighted else None
    model = ImprintClassifier(**method, calibrate=True)
    try:
        model.fit(X, y, sample_weight=weight)
        P, known = model.predict_proba(X), model.known(X)
    except ImprintError:
        return  # refused in one sentence
    model.save(path)
    back = ImprintClassifier.load(path)
    assert np.array_equal(back.predict_proba(X), P)
    assert np.array_equal(back.known(X), known)
    assert back.expected_interval_ == model.expected_interval_


def test_unequal_classes_that_are_all_recognised(tmp_path):
    y = np.repeat(list("abcde"), [5, 5, 1, 1, 1])
    X = (
        np.eye(5)[np.unique(y, return_inverse=True)[1]]
        + np.random.default_rng(0).normal(size=(13, 5)) / 50
    )
    model = ImprintClassifier(calibrate=True).fit(X, y)
    model.save(tmp_path / "m")
    assert (
        ImprintClassifier.load(tmp_path / "m").expected_accuracy_
        == model.expected_accuracy_
        == 1
    )


def test_two_hundred_classes_of_one_row(tmp_path):
    X = np.random.default_rng(0).normal(size=(200, 6)).astype(np.float32)
    model = ImprintClassifier(calibrate=True).fit(X, np.arange(200))
    model.save(tmp_path / "m")
    assert np.array_equal(
        ImprintClassifier.load(tmp_path / "m").predict(X), np.arange(200)
    )


def test_a_model_that_could_not_be_loaded_does_not_replace_the_old_file(
    tmp_path, monkeypatch
):
    X, y = np.random.default_rng(0).normal(size=(20, 4)), np.arange(20) % 2
    ImprintClassifier().fit(X, y).save(tmp_path / "m")
    before = (tmp_path / "m").read_bytes()
    good = container.save
    monkeypatch.setattr(
        container, "save", lambda *args: good(*args).replace(b'"F64"', b'"G64"')
    )
    with pytest.raises(
        FileError, match=r"^Cannot write .*: it could not be read again"
    ):
        ImprintClassifier().fit(X, y + 1).save(tmp_path / "m")
    assert (tmp_path / "m").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


@pytest.mark.parametrize(
    "change",
    [{"temperature": 1e-320}, {"score_spread": 1e-300}, {"doubt_spread": 5e-324}],
)
def test_numbers_too_small_to_divide_by_are_refused(tmp_path, change):
    X, y = np.random.default_rng(0).normal(size=(40, 4)), np.arange(40) % 2
    ImprintClassifier(calibrate=True).fit(X, y).save(tmp_path / "m")
    document, arrays = container.read(tmp_path / "m")
    document["calibration"] |= change
    container.write(tmp_path / "m", document, arrays)
    with pytest.raises(FileError, match="not an imprint model"):
        ImprintClassifier.load(tmp_path / "m")


def test_one_long_label_does_not_allocate_memory_for_all_labels(tmp_path):
    """2,000 labels that would take 37 GiB as an array are refused before the array is created."""
    X, y = np.random.default_rng(0).normal(size=(4, 2)), np.arange(4) % 2
    ImprintClassifier(generator="mean").fit(X, y.astype(str)).save(tmp_path / "m")
    document, arrays = container.read(tmp_path / "m")
    document["labels"] = [
        "0",
        *(str(i) for i in range(1, 2000)),
        "x" * 5_000_000,
    ]
    container.write(tmp_path / "m", document, arrays)
    with pytest.raises(FileError, match="not an imprint model"):
        ImprintClassifier.load(tmp_path / "m")


@pytest.mark.parametrize("count", [12, 300])
def test_a_file_in_which_two_rows_have_one_digest_is_refused(tmp_path, count):
    """Rows that arrive later are compared with the digests of those before."""
    X, y = np.random.default_rng(0).normal(size=(count, 2)), np.arange(count) % 2
    clf = ImprintClassifier(generator="mean", calibrate=True).fit(X, y)
    clf.save(tmp_path / "m")
    document, arrays = container.read(tmp_path / "m")
    arrays["held/digests/values"] = np.zeros_like(arrays["held/digests/values"])
    container.write(tmp_path / "m", document, arrays)
    with pytest.raises(FileError, match="not an imprint model"):
        ImprintClassifier.load(tmp_path / "m")
