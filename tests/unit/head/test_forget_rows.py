"""Forgetting rows: the model, and its file, of a fit that never saw them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.contract.found import GENERATORS
from tests.unit.head.test_merging import BUILT_IN, classifier, contents, data

from imprint import ImprintClassifier, Imprinter, generators
from imprint.core.errors import ParameterError
from imprint.generators._base import Generator


@pytest.mark.parametrize("generator", BUILT_IN)
@pytest.mark.parametrize("keep_rows", [False, True])
def test_the_file_is_that_of_a_model_that_never_saw_the_rows(
    generator, keep_rows, tmp_path
):
    X, y = data(rows=700 if keep_rows else 300)
    options = {"generator": generator, "calibrate": True, "keep_rows": keep_rows}
    gone = np.zeros(len(y), dtype=bool)
    gone[[3, 20, 21, 150]] = True
    model = classifier(**options).fit(X, y).forget_rows(X[gone], y[gone])
    expected = classifier(**options).fit(X[~gone], y[~gone])
    assert contents(model, tmp_path) == contents(expected, tmp_path)
    # also from a file, and without the classes of the rows
    whole = classifier(**options).fit(X, y)
    whole.save(tmp_path / "whole.imprint")
    again = ImprintClassifier.load(tmp_path / "whole.imprint").forget_rows(X[gone])
    assert contents(again, tmp_path) == contents(expected, tmp_path)


def test_all_rows_need_no_calibration(tmp_path):
    X, y = data(rows=400)
    model = classifier("all").fit(X, y).forget_rows(X[[5, 9]])
    expected = classifier("all").fit(np.delete(X, [5, 9], 0), np.delete(y, [5, 9]))
    assert contents(model, tmp_path) == contents(expected, tmp_path)


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_any_rows_are_forgotten_in_any_order(draws):
    generator = draws.draw(
        st.sampled_from(["all", "mean", "least_squares", "kmeans(k=3)"])
    )
    X, y = data(rows=draws.draw(st.integers(30, 90)), dtype="float64")
    gone = draws.draw(
        st.lists(st.integers(0, len(y) - 1), min_size=1, max_size=12, unique=True)
    )
    options = {"generator": generator, "calibrate": True}
    model = classifier(**options).fit(X, y)
    for i in gone:
        model.forget_rows(X[[i]])
    rest = np.delete(np.arange(len(y)), gone)
    expected = classifier(**options).fit(X[rest], y[rest])
    assert model.classes_.tolist() == expected.classes_.tolist()
    assert np.array_equal(model.decision_function(X), expected.decision_function(X))
    assert model.expected_accuracy_ == expected.expected_accuracy_


@pytest.mark.parametrize("generator", ["mean", "least_squares", "all"])
@pytest.mark.parametrize("calibrate", [False, True])
@pytest.mark.parametrize("norm_inf", ["l2", "none"])
def test_large_classes_are_exact_up_to_rounding_where_the_state_allows_it(
    generator, calibrate, norm_inf
):
    X, y = data(rows=900, classes=2, dtype="float64")
    gone = np.arange(0, 900, 7)
    options = {"generator": generator, "calibrate": calibrate, "norm_inf": norm_inf}
    model = classifier(**options).fit(X, y).forget_rows(X[gone], y[gone])
    expected = classifier(**options).fit(np.delete(X, gone, 0), np.delete(y, gone))
    np.testing.assert_allclose(
        model.decision_function(X), expected.decision_function(X), rtol=1e-7, atol=1e-9
    )
    if calibrate:
        assert model.expected_accuracy_ == pytest.approx(
            expected.expected_accuracy_, abs=0.1
        )
        folds = model.head_.folds
        for label, held in folds.held.items():
            assert not held.contains(X[gone][y[gone] == label]).any()
            assert len(held.digests) == (np.delete(y, gone) == label).sum()
            for f in range(5):
                # no fold model has learnt a row that it assesses
                state = folds.fitted[label][f]
                count = state.sums["rows"][0]
                assert count == pytest.approx(0.8 * len(held.digests), abs=8)
    if generator == "all" and calibrate:
        rows = folds.fitted["ant"][0].summary["rows"]
        held = folds.held["ant"]
        unit = held.rows[held.fold == 0]
        unit = unit / np.linalg.norm(unit, axis=1, keepdims=True)
        fitted = {row.tobytes() for row in np.round(rows, 9)}
        assert not any(row.tobytes() in fitted for row in np.round(unit, 9))


@pytest.mark.parametrize("g", [g for g in GENERATORS if g == type(g)()], ids=str)
def test_other_generators_say_what_to_keep(g):
    X, y = data(rows=700, classes=2)
    model = classifier(g).fit(X, y)
    is_refused = type(g).remove is Generator.remove
    if not is_refused or g.all_rows(model.head_.states[0].summary) is not None:
        model.forget_rows(X[:2], y[:2])
        return
    before = model.head_
    with pytest.raises(ParameterError, match=r"keep_rows=True, --keep-rows"):
        model.forget_rows(X[:2], y[:2])
    assert model.head_ is before


def test_rows_by_number_and_digest(tmp_path):
    X, y = data(rows=100)
    cats = X[y == "cat"]
    expected = classifier("kmeans(k=4)", calibrate=True)
    rest = ~((cats[2] == X).all(axis=1) | (cats[5] == X).all(axis=1))
    expected = contents(expected.fit(X[rest], y[rest]), tmp_path)

    def model():
        return classifier("kmeans(k=4)", calibrate=True).fit(X, y)

    digests = model().row_digests_["cat"]
    assert len(digests) == len(cats)
    by_number = model().forget_rows(numbers=[2, 5], y="cat")
    by_digest = model().forget_rows(digests=[digests[2], digests[5]])
    assert contents(by_number, tmp_path) == expected
    assert contents(by_digest, tmp_path) == expected


def test_copies_of_a_row_are_forgotten_together():
    X, y = data(rows=60)
    X, y = np.concatenate([X, X[:2], X[:1]]), np.concatenate([y, y[:2], y[:1]])
    model = classifier(calibrate=True).fit(X, y).forget_rows(X[:1])
    assert model.proxies_.mass.sum() == 60
    assert model.head_.folds.held[y[0]].count_copies(X[:1]) == 0


def test_a_class_without_rows_is_forgotten(tmp_path):
    X, y = data(rows=60)
    options = {"generator": "kmeans(k=3)", "calibrate": True}
    emus = y == "emu"
    model = classifier(**options).fit(X, y).forget_rows(X[emus])
    expected = classifier(**options).fit(X[~emus], y[~emus])
    assert contents(model, tmp_path) == contents(expected, tmp_path)
    only = classifier(**options).fit(X[emus], y[emus])
    with pytest.raises(ParameterError, match="only class"):
        only.forget_rows(X[emus])


def test_rows_that_the_model_does_not_have_are_refused():
    X, y = data(rows=60)
    model = classifier(calibrate=True).fit(X, y)
    before = model.head_
    cat = X[y == "cat"][:1]
    refused = {
        "1 of 2 rows are not training rows of the model": lambda: model.forget_rows(
            np.concatenate([cat, cat + 1])
        ),
        "are not training rows of the class 'dog'": lambda: model.forget_rows(
            cat, "dog"
        ),
        "Unknown class 'yak'": lambda: model.forget_rows(cat, "yak"),
        "1 rows and 2 labels": lambda: model.forget_rows(cat, ["cat", "dog"]),
        "give one of X, numbers and digests": lambda: model.forget_rows(),
        "has the rows 0 to": lambda: model.forget_rows(numbers=[999], y="cat"),
        "name the class of the rows": lambda: model.forget_rows(numbers=[0]),
        "does not hold all of these": lambda: model.forget_rows(digests=["00"]),
    }
    for message, call in refused.items():
        with pytest.raises(ParameterError, match=message):
            call()
    assert model.head_ is before
    plain = classifier().fit(X, y)
    with pytest.raises(ParameterError, match="does not store which rows it has"):
        plain.forget_rows(cat)
    with pytest.raises(
        ParameterError, match="the rows to remove are not of this class"
    ):
        plain.forget_rows(-cat, "cat")
    with pytest.raises(ParameterError, match="needs calibrate=True"):
        classifier(keep_rows=True).fit(X, y)


def test_tags_forget_rows():
    X, y = data(rows=100)
    sets = [{a, b} for a, b in zip(y, np.roll(y, 1))]
    sets[7] = {"rare"}

    def fitted(rows):
        model = ImprintClassifier(generator="all", aggregator="kernel(noise=1)")
        return model.fit(X[rows], [sets[i] for i in rows])

    model = fitted(range(100)).forget_rows(X[[7, 8]])
    expected = fitted([i for i in range(100) if i not in (7, 8)])
    assert model.classes_.tolist() == expected.classes_.tolist()
    np.testing.assert_allclose(
        model.decision_function(X), expected.decision_function(X), atol=1e-6
    )


def test_a_kept_model_learns_on_and_stays_kept(tmp_path):
    X, y = data(rows=600, classes=2)
    model = classifier("kmeans(k=5)", calibrate=True, keep_rows=True)
    model.fit(X[:500], y[:500]).save(tmp_path / "m.imprint")
    again = ImprintClassifier.load(tmp_path / "m.imprint")
    assert again.keep_rows
    again.partial_fit(X[500:], y[500:])
    assert all(held.complete for held in again.head_.folds.held.values())
    again.forget_rows(X[:3])
    assert sum(len(held.rows) for held in again.head_.folds.held.values()) == 597
    # models that keep rows merge exactly, with every generator
    parts = [slice(0, 250), slice(250, 600)]
    options = {"generator": "kmeans(k=5)", "calibrate": True, "keep_rows": True}
    one, two = (classifier(**options).fit(X[part], y[part]) for part in parts)
    whole = contents(classifier(**options).fit(X, y), tmp_path)
    assert contents(one.merge(two), tmp_path) == whole


@pytest.mark.parametrize("keep_rows", [False, True])
def test_the_file_of_an_imprinter_never_saw_the_input(tmp_path, keep_rows):
    """Also its exemplars, where the names of all inputs are kept."""
    X, y = data(rows=400 if keep_rows else 80)
    names = [f"input {i}" for i in range(len(y))]
    gone = [4, 30]

    def saved(model):
        model.save(tmp_path / "m.imprint")
        return (tmp_path / "m.imprint").read_bytes()

    def rows(index):
        model = Imprinter(keep_rows=keep_rows, generator="kmeans(k=50)")
        embedded = model.embed(X[index], y[index])
        return model.fit(embedded._replace(names=[names[i] for i in index]))

    everything = np.arange(len(y))
    model = rows(everything).forget_rows(X[gone])
    content = saved(model)
    assert content == saved(rows(np.delete(everything, gone)))
    for i in gone:
        assert f'"input {i}"'.encode() not in content.replace(b"\\", b"")
        assert X[i].tobytes() not in content


def test_exemplars_of_inputs_that_are_forgotten_go():
    X, y = data(rows=300, classes=2)
    model = Imprinter(generator="mean").fit(X, y)
    exemplars = model.state.exemplars["ant"]
    assert len(exemplars.names) == 1
    model.forget_rows(exemplars.X, "ant")
    assert "ant" not in model.state.exemplars
    assert (
        generators.family.resolve("mean") == model.state.head.imprinted.method.generator
    )
