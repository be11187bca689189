"""Row and class weights: a row of weight 2 equals the same row given twice."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from imprint import ImprintClassifier
from imprint.core.errors import ParameterError

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
        ParameterError, match=r"^fit\(X, y\): the weights of rows must be 0 to 1e\+09"
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
