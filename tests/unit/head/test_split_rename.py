"""Splitting and renaming: exact, also for calibration, tags and files."""

import numpy as np
import pytest
from tests.unit.head.test_merging import BUILT_IN, classifier, contents, data

from imprint import ImprintClassifier, Imprinter, generators
from imprint.core.errors import ParameterError


@pytest.mark.parametrize("generator", BUILT_IN)
@pytest.mark.parametrize("calibrate", [False, True])
def test_a_part_is_a_model_that_never_saw_the_others(generator, calibrate, tmp_path):
    X, y = data(rows=200)
    options = {"generator": generator, "calibrate": calibrate}
    model = classifier(**options).fit(X, y)
    whole = contents(model, tmp_path)
    names = ["emu", "bee"]
    part = model.split(names)
    rows = np.isin(y, names)
    expected = classifier(**options).fit(X[rows], y[rows])
    assert contents(part, tmp_path) == contents(expected, tmp_path)
    assert contents(model, tmp_path) == whole
    rest = model.split(["ant", "cat", "dog"])
    assert contents(part.merge(rest), tmp_path) == whole


@pytest.mark.parametrize("generator", [*BUILT_IN, "random(k=5)"])
@pytest.mark.parametrize("calibrate", [False, True])
def test_a_renamed_class_keeps_its_predictions(generator, calibrate, tmp_path):
    """Also where the order of the classes changes, and classes have more rows than are held."""
    X, y = data(rows=700)
    is_direction = not generators.family.resolve(generator).points
    names = {"bee": "wasp", "cat": "aardvark"}
    model = classifier(generator, calibrate=calibrate).fit(X, y)
    before = dict(zip(model.classes_.tolist(), model.predict_proba(X).T))
    known = model.known(X) if calibrate else None
    accuracy = model.expected_accuracy_ if calibrate else None
    for old, new in names.items():
        model.rename(old, new)
    model.save(tmp_path / "m.imprint")
    for one in (model, ImprintClassifier.load(tmp_path / "m.imprint")):
        assert one.classes_.tolist() == ["aardvark", "ant", "dog", "emu", "wasp"]
        P = dict(zip(one.classes_.tolist(), one.predict_proba(X).T))
        for label, column in before.items():
            tolerance = 1e-3 if is_direction else 1e-5
            np.testing.assert_allclose(
                P[names.get(label, label)], column, atol=tolerance
            )
        if calibrate:
            np.testing.assert_allclose(one.known(X), known, atol=0.01)
            assert one.expected_accuracy_ == accuracy
    # it learns on, as a class of its new name
    one.partial_fit(X[:40] + 0.1, np.repeat(["wasp", "aardvark"], 20))
    assert one.score(X, np.vectorize(lambda k: names.get(k, k))(y)) > 0.5
    if calibrate:
        assert 0.5 < one.expected_accuracy_ <= 1


def test_rows_of_a_renamed_large_class_stay_in_their_folds():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(333, 4))
    model = classifier("all", calibrate=True).fit(X, ["a"] * 333).rename("a", "z")
    folds = model.head_.folds
    held = folds.held["z"]
    assert len(held.rows) == 100
    for f in range(5):
        fitted = {
            row.tobytes() for row in np.round(folds.fitted["z"][f].summary["rows"], 9)
        }
        rows = held.rows[held.fold == f]
        unit = np.round(rows / np.linalg.norm(rows, axis=1, keepdims=True), 9)
        assert not any(row.tobytes() in fitted for row in unit)


def test_a_small_class_has_the_calibration_of_a_fit_under_its_new_name(tmp_path):
    """If the generator draws no random numbers, the model is that fit once more rows have arrived."""
    X, y = data(rows=60)
    model = classifier("mean", calibrate=True).fit(X[:50], y[:50]).rename("cat", "lynx")
    model.partial_fit(X[50:], np.where(y == "cat", "lynx", y)[50:])
    renamed = np.where(y == "cat", "lynx", y)
    expected = classifier("mean", calibrate=True).fit(X[:50], renamed[:50])
    expected.partial_fit(X[50:], renamed[50:])
    assert model.expected_accuracy_ == expected.expected_accuracy_


def test_tags_are_split_and_renamed():
    X, y = data(rows=150)
    sets = [{a, b} for a, b in zip(y, np.roll(y, 1))]
    model = ImprintClassifier(generator="all", aggregator="kernel(noise=1)").fit(
        X, sets
    )
    P = dict(zip(model.classes_.tolist(), model.predict_proba(X).T))
    predicted = dict(zip(model.classes_.tolist(), model.predict(X).T))
    model.rename("ant", "yak")
    assert model.classes_.tolist() == ["bee", "cat", "dog", "emu", "yak"]
    for label, column in zip(model.classes_.tolist(), model.predict_proba(X).T):
        np.testing.assert_allclose(
            column, P[{"yak": "ant"}.get(label, label)], atol=1e-5
        )
    for label, column in zip(model.classes_.tolist(), model.predict(X).T):
        assert np.array_equal(column, predicted[{"yak": "ant"}.get(label, label)])
    part = model.split(["yak", "bee"])
    expected = model
    for other in ("cat", "dog", "emu"):
        expected = expected.forget(other)
    assert np.array_equal(part.predict(X), expected.predict(X))


def test_trees_are_split_by_node():
    X, y = data()
    tree = np.char.add(np.where(y < "c", "insect/", "other/"), y)
    model = ImprintClassifier(tree=True).fit(X, tree)
    assert model.split(["insect/"]).classes_.tolist() == ["insect/ant", "insect/bee"]
    assert model.rename("insect/ant", "ant").classes_.tolist()[0] == "ant"


def test_what_cannot_be_split_or_renamed_is_one_sentence():
    X, y = data()
    model = classifier().fit(X, y)
    refused = {
        "Unknown class 'zebra'": lambda: model.split(["ant", "zebra"]),
        "give a list of classes": lambda: model.split("ant"),
        "at least one class": lambda: model.split([]),
        "Unknown class 'rabbit'": lambda: model.rename("rabbit", "hare"),
        "has a class 'bee' already": lambda: model.rename("ant", "bee"),
        "the new name is among integer labels": lambda: model.rename("ant", 3),
        "must not end with the character NUL": lambda: model.rename("ant", "a\0"),
    }
    for message, call in refused.items():
        with pytest.raises(ParameterError, match=message):
            call()
    balanced = classifier(class_weight="balanced").fit(X, y)
    with pytest.raises(ParameterError, match="balance"):
        balanced.split(["ant"])
    weighted = classifier(class_weight={"ant": 2.0}).fit(X, y).rename("ant", "fly")
    assert weighted.class_weight == {"fly": 2.0}


def test_exemplars_and_names_of_an_imprinter_follow(tmp_path):
    X, y = data()
    model = Imprinter(random_state=3).fit(X, y)
    reason = model.why(X[y == "cat"][0], 1)[0]
    model.rename("cat", "lynx").save(tmp_path / "m.imprint")
    again = Imprinter.load(tmp_path / "m.imprint")
    same = again.why(X[y == "cat"][0], 1)[0]
    assert same[:2] == ("lynx", pytest.approx(reason.value))
    assert same.image == reason.image
    part = again.split(["lynx", "ant"])
    assert part.classes_.tolist() == ["ant", "lynx"]
    rows_of_cat = [f"row {i + 1}" for i in np.flatnonzero(y == "cat")]
    assert part.why(X[y == "cat"][0], 1)[0].image in rows_of_cat
    assert again.classes_.tolist() == ["ant", "bee", "dog", "emu", "lynx"]
