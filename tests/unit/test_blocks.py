"""Embeddings of several blocks: each is normalised by itself, and files keep them."""

import numpy as np
import pytest

from imprint import ImprintClassifier
from imprint.core.blocks import column_slices, read_blocks
from imprint.core.errors import FileError, ParameterError
from imprint.kernels.rows import unit_rows

WIDTHS = (5, 3, 4)


@pytest.fixture
def rows(rng):
    y = np.repeat(["a", "b", "c"], 8)
    X = rng.normal(size=(24, 12)) + np.repeat(rng.normal(size=(3, 12)), 8, axis=0)
    return X.astype("float32"), y


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def unit_blocks(X):
    return np.hstack([unit_rows(X[:, columns]) for columns in column_slices(WIDTHS)])


def test_every_block_of_a_proxy_has_length_one(rows):
    X, y = rows
    X[:, :5] *= 1000  # a block of large numbers must not hide the others
    clf = ImprintClassifier(generator="all", blocks=WIDTHS).fit(X, y)
    for columns in column_slices(WIDTHS):
        lengths = np.linalg.norm(clf.proxies_.weights[:, columns], axis=1)
        np.testing.assert_allclose(lengths, 1, rtol=1e-6)


@pytest.mark.parametrize("aggregator", ["max", "nearest(m=3)"])
def test_rows_are_scaled_like_those_that_are_scaled_by_hand(rows, aggregator):
    X, y = rows
    settings = {"generator": "mean", "aggregator": aggregator}
    with_blocks = ImprintClassifier(**settings, blocks=WIDTHS).fit(X, y)
    by_hand = ImprintClassifier(**settings, norm_pre="none", norm_inf="none")
    by_hand.fit(unit_blocks(X), y)
    Q = X[::2] + 0.3
    expected = by_hand.decision_function(unit_blocks(Q))
    np.testing.assert_allclose(with_blocks.decision_function(Q), expected, rtol=2e-6)


def test_one_block_is_no_block_bit_for_bit(rows):
    X, y = rows
    whole = ImprintClassifier().fit(X, y)
    one = ImprintClassifier(blocks=(12,)).fit(X, y)
    assert one.decision_function(X).tobytes() == whole.decision_function(X).tobytes()


def test_a_file_keeps_the_blocks(rows, tmp_path):
    X, y = rows
    clf = ImprintClassifier(blocks=WIDTHS, calibrate=True).fit(X, y)
    clf.save(tmp_path / "m.imprint")
    loaded = ImprintClassifier.load(tmp_path / "m.imprint")
    assert loaded.blocks == WIDTHS
    assert loaded.predict_proba(X).tobytes() == clf.predict_proba(X).tobytes()
    assert loaded.known(X).tobytes() == clf.known(X).tobytes()


def test_classes_added_one_by_one_equal_one_fit(rows):
    X, y = rows
    whole = ImprintClassifier(blocks=WIDTHS).fit(X, y)
    grown = ImprintClassifier(blocks=WIDTHS).fit(X[y != "b"], y[y != "b"])
    grown.partial_fit(X[y == "b"], y[y == "b"])
    assert grown.proxies_.weights.tobytes() == whole.proxies_.weights.tobytes()
    np.testing.assert_allclose(
        grown.decision_function(X), whole.decision_function(X), rtol=1e-6
    )


@pytest.mark.parametrize(
    "blocks", [(), (0, 12), (3.5, 8.5), "5, 7", (True, 11), (1,) * 65, 12]
)
def test_blocks_that_are_no_widths_are_refused(rows, blocks):
    with pytest.raises(ParameterError, match="positive numbers of columns"):
        ImprintClassifier(blocks=blocks).fit(*rows)


def test_blocks_of_another_width_are_refused(rows):
    with pytest.raises(ParameterError, match="9 columns, and X has 12"):
        ImprintClassifier(blocks=(4, 5)).fit(*rows)


def test_a_file_with_other_blocks_is_refused(rows, tmp_path):
    from imprint.core.files import container

    clf = ImprintClassifier(blocks=WIDTHS).fit(*rows)
    clf.save(tmp_path / "m.imprint")
    document, arrays = container.read(tmp_path / "m.imprint")
    for damaged in ([5, 3], [12], "5, 7", [5, 3, -4, 8], [True, 11]):
        changed = {**document, "blocks": damaged}
        container.write(tmp_path / "d.imprint", changed, arrays, lambda d, a: None)
        with pytest.raises(FileError, match=r"d\.imprint"):
            ImprintClassifier.load(tmp_path / "d.imprint")


def test_read_blocks_takes_sequences_of_whole_numbers():
    assert read_blocks(np.array([2, 3]).tolist()) == (2, 3)
    assert read_blocks((np.int64(2), 3)) == (2, 3)
