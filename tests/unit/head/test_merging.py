"""Merging heads: any partition of the rows gives the model of one fit."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.contract.found import GENERATORS

from imprint import ImprintClassifier, generators
from imprint.core.errors import DataWarning, ParameterError
from imprint.generators._base import Generator
from imprint.head.decider import merge

NAMES = ["ant", "bee", "cat", "dog", "emu"]
EXACT = ["all", "mean", "least_squares", "random(k=400)"]


def data(rows=120, seed=0, width=6, dtype="float32", classes=5):
    rng = np.random.default_rng(seed)
    y = rng.integers(classes, size=rows)
    centres = 2 * rng.normal(size=(classes, width))
    X = centres[y] + rng.normal(size=(rows, width))
    return X.astype(dtype), np.array(NAMES)[y]


def classifier(generator="mean", **options):
    options.setdefault("aggregator", "max" if is_direction(generator) else "kernel")
    return ImprintClassifier(generator=generator, **options)


def is_direction(generator):
    return not generators.family.resolve(generator).points


def contents(clf, tmp_path, name="model"):
    path = tmp_path / f"{name}.imprint"
    clf.save(path)
    return path.read_bytes()


def fit_parts(parts, X, y, **options):
    return [classifier(**options).fit(X[part], y[part]) for part in parts]


def merged(models):
    first, *others = models
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return first.merge(*others) if others else first


BUILT_IN = generators.family.names()


@pytest.mark.parametrize("generator", BUILT_IN)
@pytest.mark.parametrize("calibrate", [False, True])
def test_disjoint_classes_are_one_fit_byte_for_byte(generator, calibrate, tmp_path):
    X, y = data()
    options = {"generator": generator, "calibrate": calibrate}
    whole = contents(classifier(**options).fit(X, y), tmp_path)
    parts = [np.isin(y, names) for names in (["dog", "bee"], ["ant", "emu"], ["cat"])]
    models = fit_parts(parts, X, y, **options)
    assert contents(models[0].merge(*models[1:]), tmp_path) == whole
    # also in two steps, and in another order
    one, two, three = fit_parts(parts, X, y, **options)
    assert contents(three.merge(two.merge(one)), tmp_path) == whole


@pytest.mark.parametrize("generator", BUILT_IN)
def test_shared_classes_whose_rows_are_stored_are_one_fit_byte_for_byte(
    generator, tmp_path
):
    """The parts hold all rows of their classes; the whole has more rows than are held."""
    X, y = data(rows=300, classes=2)
    parts = np.array_split(np.random.default_rng(1).permutation(300), 6)
    rows = np.concatenate(parts)
    options = {"generator": generator, "calibrate": True}
    whole = classifier(**options).fit(X[rows], y[rows])
    model = fit_parts(parts, X, y, **options)
    assert contents(merged(model), tmp_path) == contents(whole, tmp_path)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_partition_in_any_order_is_the_model_of_one_fit(draws):
    generator = draws.draw(st.sampled_from(EXACT))
    calibrate = draws.draw(st.booleans())
    count = draws.draw(st.integers(1, 20))
    X, y = data(rows=draws.draw(st.integers(20, 150)), dtype="float64")
    part_of = np.array(
        draws.draw(
            st.lists(st.integers(0, count - 1), min_size=len(y), max_size=len(y))
        )
    )
    order = [i for i in draws.draw(st.permutations(range(count))) if i in part_of]
    options = {"generator": generator, "calibrate": calibrate}
    models = fit_parts([part_of == i for i in order], X, y, **options)
    rows = np.concatenate([np.flatnonzero(part_of == i) for i in order])
    whole = classifier(**options).fit(X[rows], y[rows])
    while len(models) > 1:  # merge two of them, or several
        first = draws.draw(st.integers(0, len(models) - 2))
        size = draws.draw(st.integers(2, len(models) - first))
        models[first : first + size] = [merged(models[first : first + size])]
    one = models[0]
    assert one.classes_.tolist() == whole.classes_.tolist()
    scores = one.decision_function(X)
    np.testing.assert_allclose(scores, whole.decision_function(X), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(one.predict_proba(X), whole.predict_proba(X), atol=1e-7)
    if calibrate:
        assert one.expected_accuracy_ == whole.expected_accuracy_
        np.testing.assert_allclose(one.known(X), whole.known(X))


def test_accuracy_does_not_move_with_the_skew_of_the_partition():
    X, y = data(rows=600)
    test_X, test_y = data(rows=400, seed=0)
    for generator in ("mean", "least_squares"):
        whole = classifier(generator).fit(X, y)
        for concentration in (0.01, 0.1, 1.0):
            rng = np.random.default_rng(3)
            shares = rng.dirichlet([concentration] * 10, size=5)
            site = np.array([rng.choice(10, p=shares[NAMES.index(k)]) for k in y])
            models = fit_parts(
                [site == i for i in np.unique(site)], X, y, generator=generator
            )
            model = merged(models)
            assert model.score(test_X, test_y) == whole.score(test_X, test_y)


def test_held_rows_keep_their_folds_where_not_all_rows_are_held():
    """A fold model must never assess a row that it has seen."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 4))
    y = np.array(["a"] * 700 + ["b"] * 200)
    sizes = [(0, 230), (230, 377), (377, 700), (700, 900)]
    parts = [np.arange(*size) for size in sizes]
    models = fit_parts(parts, X, y, generator="all", calibrate=True)
    folds = merged(models).head_.folds
    held = folds.held["a"]
    assert len(held.rows) == 100
    assert not held.complete
    assert len(np.unique(held.digests)) == 700
    for f in range(5):
        fitted = folds.fitted["a"][f].summary["rows"]
        unit = held.rows[held.fold == f]
        unit = unit / np.linalg.norm(unit, axis=1, keepdims=True)
        seen = {row.tobytes() for row in np.round(fitted, 9) + 0.0}
        assert not any(row.tobytes() in seen for row in np.round(unit, 9) + 0.0)
        assert len(fitted) == pytest.approx(560, abs=12)
    # each part has its share: 33, 21 and 46 of 100
    shares = [np.isin(held.rows[:, 0], X[part, 0]).sum() for part in parts[:3]]
    assert shares == pytest.approx([33, 21, 46], abs=1)
    # and rows that arrive later compete on equal terms: 100 of 800 are an eighth
    later = rng.normal(size=(100, 4))
    grown = folds.learn(later, np.array(["a"] * 100)).held["a"]
    assert 4 <= np.isin(grown.rows[:, 0], later[:, 0]).sum() <= 25


def test_a_merged_calibrated_model_is_saved_and_read(tmp_path):
    X, y = data(rows=900, classes=2)
    models = fit_parts([slice(0, 450), slice(450, 900)], X, y, calibrate=True)
    model = merged(models)
    model.save(tmp_path / "m.imprint")
    again = ImprintClassifier.load(tmp_path / "m.imprint")
    assert again.expected_accuracy_ == model.expected_accuracy_
    assert again.expected_accuracy_ == pytest.approx(
        classifier(calibrate=True).fit(X, y).expected_accuracy_, abs=0.03
    )
    again.partial_fit(X[:3] + 1, y[:3])
    again.save(tmp_path / "m.imprint")
    assert ImprintClassifier.load(tmp_path / "m.imprint").known(X).min() > 0


@pytest.mark.parametrize(
    "generator", [g for g in GENERATORS if g == type(g)()], ids=str
)
def test_every_generator_merges_shared_classes_or_says_why_not(generator):
    X, y = data(rows=800, classes=2)
    models = fit_parts([slice(0, 300), slice(300, 800)], X, y, generator=generator)
    heads = [model.head_ for model in models]
    if type(generator).merge is Generator.merge:
        with pytest.raises(ParameterError, match="it does not merge the states"):
            merge(heads)
        return
    result = merge(heads)
    whole = classifier(generator).fit(X, y)
    assert result.head.rows_per_class.sum() == whole.head_.rows_per_class.sum()
    model = ImprintClassifier.of_head(result.head)
    assert model.score(X, y) >= whole.score(X, y) - 0.05
    if not result.approximate:
        np.testing.assert_allclose(
            model.decision_function(X), whole.decision_function(X), rtol=1e-3, atol=1e-4
        )


def test_random_draws_of_parts_that_dropped_rows_are_said_to_be_approximate():
    X, y = data(rows=200, classes=1)
    parts = [np.arange(0, 90), np.arange(90, 180), np.arange(180, 200)]
    models = [m.head_ for m in fit_parts(parts, X, y, generator="random(k=30)")]
    whole = classifier("random(k=30)").fit(X[[*parts[0], *parts[2]]], y[:110])
    exact = merge([models[2], models[0]])
    assert exact.approximate == ()
    assert np.array_equal(exact.head.proxies.weights, whole.proxies_.weights)
    assert merge(models).approximate == ("ant",)


def test_copies_of_rows_are_reported_and_counted_twice():
    X, y = data(rows=60)
    one, two = fit_parts([slice(0, 40), slice(30, 60)], X, y, calibrate=True)
    other = classifier(calibrate=True).fit(X[:5], ["emu"] * 5)
    conflicts = int((y[:5] != "emu").sum())
    with pytest.warns(DataWarning) as notices:
        one.merge(two, other)
    assert one.proxies_.mass.sum() == 75
    texts = [str(notice.message) for notice in notices]
    assert texts[0].startswith(f"{10 + 5 - conflicts} rows of a class are in several")
    assert texts[1].startswith(f"{conflicts} rows have one class in one model")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"random_state": 1}, "model 2 has random_state 1 and this model has 0"),
        (
            {"generator": "kmeans(k=3)"},
            "model 2 has generator kmeans(k=3) and this model",
        ),
        ({"norm_pre": "none"}, "model 2 has norm_pre none and this model has l2"),
        ({"tree": True}, "model 2 has tree True and this model has False"),
        ({"class_weight": {"ant": 2.0}}, "class_weight={'ant': 2.0}"),
        ({"class_weight": "balanced"}, "class_weight="),
    ],
)
def test_models_with_other_settings_are_refused(options, message):
    X, y = data()
    model = classifier().fit(X, y)
    before = model.head_
    with pytest.raises(ParameterError) as e:
        model.merge(classifier(**options).fit(X, y))
    assert message in str(e.value)
    assert "\n" not in str(e.value)
    assert model.head_ is before


def test_models_of_other_rows_and_labels_are_refused():
    X, y = data()
    model = classifier().fit(X, y)
    others = {
        "model 2 has the precision float64": classifier().fit(X.astype("float64"), y),
        "model 2 has the width 5": classifier().fit(X[:, :5], y),
        "model 2 has labels of the kind integer": classifier().fit(
            X, np.arange(len(y)) % 3
        ),
        "the classes of model 2 are tags": ImprintClassifier(
            generator="all", aggregator="kernel(noise=1)"
        ).fit(X, [{label} for label in y]),
        "model 2 is a copy of this model": classifier().fit(X, y),
    }
    for message, other in others.items():
        with pytest.raises(ParameterError, match=message):
            model.merge(other)
    with pytest.raises(ParameterError, match="at least two models"):
        model.merge()
    with pytest.raises(TypeError, match=r"ImprintClassifier\.load"):
        model.merge("model.imprint")


def test_a_model_without_calibration_makes_the_merged_one_uncalibrated():
    X, y = data()
    model = classifier(calibrate=True).fit(X[:60], y[:60])
    with pytest.warns(DataWarning, match="not calibrated"):
        model.merge(classifier().fit(X[60:], y[60:]))
    assert not model.head_.calibrated


def test_tags_merge():
    X, y = data(rows=80)
    sets = [{a, b} for a, b in zip(y, np.roll(y, 1))]
    options = {"generator": "all", "aggregator": "kernel(noise=1)"}

    def fitted(rows):
        return ImprintClassifier(**options).fit(X[rows], sets[rows])

    whole, parts = fitted(slice(0, 80)), [fitted(slice(0, 30)), fitted(slice(30, 80))]
    model = parts[0].merge(parts[1])
    assert model.classes_.tolist() == whole.classes_.tolist()
    np.testing.assert_allclose(
        model.decision_function(X), whole.decision_function(X), atol=1e-5
    )
    assert np.array_equal(model.predict(X), whole.predict(X))
