"""Row and class weights: a row of weight 2 equals the same row given twice."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from imprint import ImprintClassifier, Imprinter
from imprint.core.errors import FileError, ParameterError
from imprint.core.files import container

X, Y = (part[:200] for part in load_digits(return_X_y=True))
TWICE = np.where(np.arange(200) % 3 == 0, 2.0, 1.0)


@pytest.mark.parametrize("generator", ["all", "mean"])
@pytest.mark.parametrize("aggregator", ["kernel", "max"])
def test_a_row_of_weight_two_equals_the_row_given_twice(generator, aggregator):
    parts = dict(generator=generator, aggregator=aggregator)
    weighted = ImprintClassifier(**parts).fit(X, Y, sample_weight=TWICE)
    repeated = ImprintClassifier(**parts).fit(
        np.repeat(X, TWICE.astype(int), axis=0), np.repeat(Y, TWICE.astype(int))
    )
    np.testing.assert_allclose(
        weighted.decision_function(X),
        repeated.decision_function(X),
        rtol=1e-6,
        atol=1e-9,
    )


@pytest.mark.parametrize("generator", ["all", "mean"])
def test_weights_of_rows_that_arrive_later_count_too(generator):
    first = np.arange(200) < 100
    repeats = TWICE.astype(int)
    model = ImprintClassifier(generator=generator).fit(
        X[first], Y[first], sample_weight=TWICE[first]
    )
    model.partial_fit(X[~first], Y[~first], sample_weight=TWICE[~first])
    repeated = ImprintClassifier(generator=generator).fit(
        np.repeat(X, repeats, axis=0), np.repeat(Y, repeats)
    )
    np.testing.assert_allclose(
        model.decision_function(X), repeated.decision_function(X), rtol=1e-6, atol=1e-9
    )


def test_copies_and_weights_calibrate_alike():
    copies = np.repeat(np.arange(200), TWICE.astype(int))
    weighted = ImprintClassifier(generator="all", calibrate=True).fit(
        X, Y, sample_weight=TWICE
    )
    repeated = ImprintClassifier(generator="all", calibrate=True).fit(
        X[copies], Y[copies]
    )
    assert weighted.expected_accuracy_ == pytest.approx(
        repeated.expected_accuracy_, abs=1e-9
    )
    np.testing.assert_allclose(weighted.known(X), repeated.known(X), rtol=1e-6)


@pytest.mark.parametrize("generator", ["all", "kmeans(k=50)"])
def test_rows_of_weight_zero_are_left_out(generator):
    some = (np.arange(200) % 4 > 0).astype(float)
    weighted = ImprintClassifier(generator=generator).fit(X, Y, sample_weight=some)
    fewer = ImprintClassifier(generator=generator).fit(X[some > 0], Y[some > 0])
    assert np.array_equal(weighted.proxies_.weights, fewer.proxies_.weights)
    assert np.array_equal(weighted.decision_function(X), fewer.decision_function(X))


def test_balanced_class_weights_give_every_class_the_same_mass():
    rows = np.flatnonzero((Y < 2) & ((Y == 0) | (np.arange(200) < 60)))
    balanced = ImprintClassifier(generator="all", class_weight="balanced").fit(
        X[rows], Y[rows]
    )
    mass = np.bincount(balanced.proxies_.labels, balanced.proxies_.mass)
    assert mass == pytest.approx(np.full(2, len(rows) / 2))
    by_hand = ImprintClassifier(generator="all", class_weight={0: 2.0, 1: 0.5}).fit(
        X[rows], Y[rows]
    )
    masses = np.bincount(by_hand.proxies_.labels, by_hand.proxies_.mass)
    assert masses == pytest.approx(
        [2.0 * (Y[rows] == 0).sum(), 0.5 * (Y[rows] == 1).sum()]
    )


@pytest.mark.parametrize(
    "weight",
    [
        -np.ones(200),
        np.zeros(200),
        np.full(200, np.inf),
        np.ones(3),
        np.full(200, 1e300),
    ],
)
def test_weights_that_make_no_sense_are_refused(weight):
    with pytest.raises(ParameterError, match=r"^fit\(X, y\): "):
        ImprintClassifier().fit(X, Y, sample_weight=weight)


@pytest.mark.parametrize("class_weight", [[1, 2], np.ones(2), "even", 2.0])
def test_class_weights_are_a_dict_or_balanced(class_weight):
    with pytest.raises(
        ParameterError,
        match=r"^fit\(X, y\): class_weight must be a dict, 'balanced' or None\.$",
    ):
        ImprintClassifier(class_weight=class_weight).fit(X, Y)


def test_a_negative_class_weight_is_refused():
    with pytest.raises(
        ParameterError,
        match=r"^fit\(X, y\): the weights of rows must be 0, or 1e-30 to 1e\+09",
    ):
        ImprintClassifier(class_weight={3: -1.0}).fit(X, Y)


def test_balanced_weights_need_all_classes_at_once():
    with pytest.raises(
        ParameterError,
        match="class_weight='balanced': the balance depends on all classes",
    ):
        ImprintClassifier(class_weight="balanced").partial_fit(X, Y)


@pytest.mark.parametrize("loaded", [False, True])
def test_a_class_of_a_balanced_model_cannot_be_forgotten_exactly(loaded, tmp_path):
    model = ImprintClassifier(class_weight="balanced").fit(X, Y)
    if loaded:
        model.save(tmp_path / "m.imprint")
        model = ImprintClassifier.load(tmp_path / "m.imprint")
    before = model.predict_proba(X[:5])
    with pytest.raises(
        ParameterError, match=r"^forget\(1\) with class_weight='balanced': "
    ):
        model.forget(1)
    np.testing.assert_array_equal(model.predict_proba(X[:5]), before)


@pytest.mark.parametrize("class_weight", [{3: 5}, {np.int64(3): np.float32(5), 0: 0.5}])
def test_class_weights_are_stored_with_the_model(class_weight, tmp_path):
    first = Y != 9
    options = dict(generator="all", class_weight=class_weight)
    expected = ImprintClassifier(**options).fit(X[first], Y[first])
    expected.save(tmp_path / "m")
    loaded = ImprintClassifier.load(tmp_path / "m")
    assert loaded.get_params()["class_weight"] == class_weight
    for clf in (expected, loaded):
        clf.partial_fit(X, Y)
    assert loaded.proxies_.mass.tolist() == expected.proxies_.mass.tolist()
    assert loaded.proxies_.mass[loaded.proxies_.labels == 3].min() == 5


def test_class_weights_of_text_labels_are_stored(tmp_path):
    y = np.array(["a", "b"])[Y % 2]
    ImprintClassifier(class_weight={"a": 5}).fit(X, y).save(tmp_path / "m")
    loaded = ImprintClassifier.load(tmp_path / "m").partial_fit(X, y)
    assert (
        loaded.proxies_.mass[loaded.proxies_.labels == 0].sum() == 10 * (y == "a").sum()
    )


@pytest.mark.parametrize(
    "stored", [[[0, -1]], [[0, "1"]], [[0]], {"0": 1}, [["a", 1]], [[0, 1], [0, 2]], 3]
)
def test_a_file_with_impossible_class_weights_is_refused(stored, tmp_path):
    ImprintClassifier(class_weight={0: 5}).fit(X, Y).save(tmp_path / "m")
    document, arrays = container.read(tmp_path / "m")
    container.write(tmp_path / "m", {**document, "class_weight": stored}, arrays)
    with pytest.raises(FileError, match="not an imprint model"):
        ImprintClassifier.load(tmp_path / "m")


@pytest.mark.parametrize("class_weight", [{0: 5}, "balanced"])
def test_an_imprinter_does_not_extend_a_model_with_class_weights(
    class_weight, tmp_path
):
    rows = X.astype(np.float32)
    ImprintClassifier(class_weight=class_weight).fit(rows, Y).save(tmp_path / "m")
    model = Imprinter.load(tmp_path / "m")
    with pytest.raises(ParameterError, match=r"add\(data\): .* class_weight"):
        model.add(rows, Y)
    model.save(tmp_path / "again")
    again = ImprintClassifier.load(tmp_path / "again")
    assert again.class_weight == model.classifier.class_weight == class_weight


def test_classes_without_a_class_weight_have_the_weight_one():
    clf = ImprintClassifier(generator="all", class_weight={0: 5}).fit(X[:50], Y[:50])
    clf.partial_fit(X[:50], Y[:50] + 100)
    assert clf.proxies_.mass[clf.proxies_.labels >= 10].max() == 1


@pytest.mark.parametrize("generator", ["all", "mean", "random(k=5)", "kmeans(k=2)"])
def test_weights_too_small_to_calculate_with_are_refused(generator, tmp_path):
    clf = ImprintClassifier(generator=generator, calibrate=True)
    with pytest.raises(ParameterError, match=r"must be 0, or 1e-30 to 1e\+09"):
        clf.fit(X, Y, sample_weight=np.full(200, 1e-308))
    clf.fit(X, Y, sample_weight=np.full(200, 1e-30)).save(tmp_path / "m")
    loaded = ImprintClassifier.load(tmp_path / "m")
    assert np.array_equal(loaded.predict(X), clf.predict(X))
