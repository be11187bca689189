"""The default generator: every row of small classes, clusters of large ones."""

import numpy as np
import pytest

from imprint import ImprintClassifier, recipe
from imprint.generators import kmeans
from imprint.generators.kmeans import CENTRES, KEPT_ROWS


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b"], 30)
    X = rng.normal(size=(60, 8)).astype("float32")
    X[30:] += 2
    return X, y


def test_the_default_is_kmeans_without_k_everywhere(rows):
    X, y = rows
    bare = ImprintClassifier(generator="kmeans").fit(X, y)
    for other in (ImprintClassifier(), recipe("kernel")):
        scores = other.fit(X, y).decision_function(X)
        assert scores.tobytes() == bare.decision_function(X).tobytes()


def test_small_classes_keep_every_row_and_large_ones_are_condensed(monkeypatch):
    monkeypatch.setattr(kmeans, "KEPT_ROWS", 40)
    monkeypatch.setattr(kmeans, "CENTRES", 16)
    rng = np.random.default_rng(1)
    X = rng.normal(size=(140, 4))
    y = np.repeat(["few", "many"], [40, 100])
    clf = ImprintClassifier().fit(X, y)
    assert np.bincount(clf.proxies_.labels).tolist() == [40, 16]
    mass_of_many = clf.proxies_.mass[clf.proxies_.labels == 1]
    assert mass_of_many.sum() == 100
    clf.partial_fit(X[:1], ["few"])
    # the row is a copy of one that is there, so that nothing is condensed
    assert np.bincount(clf.proxies_.labels).tolist() == [16, 16]


def test_limits_are_those_of_the_documentation():
    assert (KEPT_ROWS, CENTRES) == (1280, 512)
    assert kmeans.KMeans().limit(1280) == 1280
    assert kmeans.KMeans().limit(1281) == 512
    assert kmeans.KMeans(k=20).limit(1281) == 20


@pytest.mark.parametrize("calibrate", [False, True])
def test_rows_of_the_default_are_forgotten_exactly(rows, calibrate, tmp_path):
    X, y = rows
    forgetful = ImprintClassifier(calibrate=calibrate).fit(X, y)
    forgetful.forget_rows(X[3:5], y[3:5]).save(tmp_path / "a.imprint")
    others = np.delete(np.arange(60), [3, 4])
    never = ImprintClassifier(calibrate=calibrate).fit(X[others], y[others])
    never.save(tmp_path / "b.imprint")
    content = [(tmp_path / name).read_bytes() for name in ("a.imprint", "b.imprint")]
    assert content[0] == content[1]


def test_parts_of_classes_merge_to_the_model_of_all_rows(rows):
    X, y = rows
    merged = ImprintClassifier().fit(X[::2], y[::2])
    merged.merge(ImprintClassifier().fit(X[1::2], y[1::2]))
    order = np.concatenate([np.arange(0, 60, 2), np.arange(1, 60, 2)])
    whole = ImprintClassifier().fit(X[order], y[order])
    expected = whole.decision_function(X)
    assert merged.decision_function(X).tobytes() == expected.tobytes()


def test_a_calibrated_file_holds_every_row_once(tmp_path):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(600, 128)).astype("float32")
    y = np.repeat(["a", "b"], 300)
    clf = ImprintClassifier(calibrate=True).fit(X, y)
    clf.save(tmp_path / "m.imprint")
    assert not clf.head_.imprinted.folds.fitted
    assert (tmp_path / "m.imprint").stat().st_size < 1.3 * X.nbytes
    loaded = ImprintClassifier.load(tmp_path / "m.imprint")
    assert loaded.known(X[:9]).tobytes() == clf.known(X[:9]).tobytes()
    again = loaded.partial_fit(X[:3] + 1, ["b"] * 3)
    whole = ImprintClassifier(calibrate=True)
    whole.fit(np.vstack([X, X[:3] + 1]), np.append(y, ["b"] * 3))
    assert again.expected_accuracy_ == whole.expected_accuracy_
