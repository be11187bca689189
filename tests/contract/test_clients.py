"""Libraries that work with any scikit-learn classifier work with `ImprintClassifier`.

Each test checks an answer, not only that nothing fails. A library that is not installed is
skipped; continuous integration installs all of them (the extra `dev`).
"""

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris
from sklearn.feature_selection import SequentialFeatureSelector
from sklearn.inspection import permutation_importance
from sklearn.metrics import accuracy_score
from sklearn.model_selection import cross_val_predict, train_test_split
from sklearn.semi_supervised import SelfTrainingClassifier

from imprint import ImprintClassifier

# other libraries warn of what they will change
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def iris():
    return train_test_split(
        *load_iris(return_X_y=True), random_state=0, stratify=load_iris().target
    )


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return train_test_split(X, y, random_state=0, stratify=y, train_size=600)


@pytest.fixture
def noisy(iris):
    """Iris with two columns of noise appended."""
    X, X_test, y, y_test = iris
    noise = np.random.default_rng(0).normal(size=(len(X) + len(X_test), 2))
    return (
        np.hstack([X, noise[: len(X)]]),
        np.hstack([X_test, noise[len(X) :]]),
        y,
        y_test,
    )


def without_l2(**parts):
    """A classifier that sees the length of rows too, for data of few columns."""
    return ImprintClassifier(norm_pre="none", norm_inf="none", **parts)


# scikit-learn itself


def test_permutation_importance_finds_the_columns_that_matter(noisy):
    X, X_test, y, y_test = noisy
    model = without_l2().fit(X, y)
    importance = permutation_importance(
        model, X_test, y_test, n_repeats=5, random_state=0
    ).importances_mean
    assert importance[2:4].min() > 0.03
    assert np.abs(importance[4:]).max() < importance[2:4].min()


def test_sequential_selection_leaves_the_noise_out(noisy):
    X, _, y, _ = noisy
    selector = SequentialFeatureSelector(
        without_l2(generator="mean"), n_features_to_select=2, cv=3
    )
    chosen = selector.fit(X, y).get_support(indices=True)
    assert set(chosen) <= {0, 1, 2, 3}
    assert {2, 3} & set(chosen)


def test_self_training_labels_the_rest(digits):
    X, X_test, y, y_test = digits
    partly = np.where(np.arange(len(y)) % 5 == 0, y, -1)
    few = ImprintClassifier().fit(X[partly >= 0], y[partly >= 0])
    model = SelfTrainingClassifier(ImprintClassifier(calibrate=True), threshold=0.9)
    model.fit(X, partly)
    newly = (model.labeled_iter_ > 0) & (partly < 0)
    assert newly.sum() > 50
    assert accuracy_score(y[newly], model.transduction_[newly]) > 0.85
    assert model.score(X_test, y_test) >= few.score(X_test, y_test) - 0.02


# other libraries


@pytest.mark.parametrize("options", [{}, {"calibrate": True}])
def test_skops_stores_and_loads(options, digits):
    skops = pytest.importorskip("skops.io", reason="skops is not installed")
    X, X_test, y, _ = digits
    model = ImprintClassifier(**options).fit(X, y)
    raw = skops.dumps(model)
    types = skops.get_untrusted_types(data=raw)
    assert all(name.startswith("imprint.") or name == "numpy.dtype" for name in types)
    loaded = skops.loads(raw, trusted=types)
    np.testing.assert_array_equal(
        loaded.predict_proba(X_test), model.predict_proba(X_test)
    )
    assert loaded.get_params() == model.get_params()
    if options:
        assert loaded.expected_accuracy_ == model.expected_accuracy_
        np.testing.assert_array_equal(loaded.known(X_test), model.known(X_test))
    # a loaded model can be extended
    loaded.partial_fit(X_test[:5] + 50, ["new"] * 0 + [10] * 5)
    assert loaded.classes_.tolist() == list(range(11))
    with pytest.raises(Exception, match=r"(?i)untrusted"):
        skops.loads(raw, trusted=[])


def test_skops_stores_models_of_tables_of_tags_and_of_trees():
    pd = pytest.importorskip("pandas")
    skops = pytest.importorskip("skops.io", reason="skops is not installed")
    X = np.random.default_rng(0).normal(size=(30, 4))
    table = pd.DataFrame(X, columns=list("abcd"))
    tags = (X[:, :2] > 0).astype(int)
    cases = [
        (ImprintClassifier(), table, (X[:, 0] > 0).astype(int)),
        (ImprintClassifier(), X, tags),
        (ImprintClassifier(tree=True), X, np.repeat(["a/x", "a/y", "b"], 10)),
    ]
    for model, rows, y in cases:
        model.fit(rows, y)
        raw = skops.dumps(model)
        loaded = skops.loads(raw, trusted=skops.get_untrusted_types(data=raw))
        np.testing.assert_array_equal(
            loaded.predict_proba(rows), model.predict_proba(rows)
        )
    assert cases[0][0].feature_names_in_.tolist() == list("abcd")


@pytest.mark.parametrize("calibrate", [False, True])
def test_mapie_covers_as_often_as_it_says(calibrate, digits):
    mapie = pytest.importorskip("mapie.classification", reason="mapie is not installed")
    X, X_test, y, y_test = digits
    X_conformal, X_test, y_conformal, y_test = train_test_split(
        X_test, y_test, random_state=0
    )
    model = ImprintClassifier(calibrate=calibrate).fit(X, y)
    split = mapie.SplitConformalClassifier(model, confidence_level=0.9, prefit=True)
    split.conformalize(X_conformal, y_conformal)
    _, sets = split.predict_set(X_test)
    covered = sets[np.arange(len(y_test)), y_test, 0].mean()
    assert 0.85 < covered < 0.97
    assert sets[:, :, 0].sum(axis=1).mean() < 2


def test_mapie_cross_conformal_sets_cover(digits):
    mapie = pytest.importorskip("mapie.classification", reason="mapie is not installed")
    X, X_test, y, y_test = digits
    cross = mapie.CrossConformalClassifier(
        ImprintClassifier(), confidence_level=0.9, cv=5
    )
    cross.fit_conformalize(X, y)
    _, sets = cross.predict_set(X_test)
    assert 0.85 < sets[np.arange(len(y_test)), y_test, 0].mean() < 0.98


def test_scikit_activeml_asks_for_uncertain_rows(digits):
    pytest.importorskip("skactiveml", reason="scikit-activeml is not installed")
    from skactiveml.classifier import SklearnClassifier
    from skactiveml.pool import UncertaintySampling

    X, X_test, y, y_test = digits
    known = np.full(len(y), np.nan)
    known[:30] = y[:30]
    model = SklearnClassifier(
        ImprintClassifier(), classes=np.arange(10), missing_label=np.nan, random_state=0
    )
    first = model.fit(X, known).score(X_test, y_test)
    strategy = UncertaintySampling(method="margin_sampling", random_state=0)
    for _ in range(6):
        rows = strategy.query(X, known, model, batch_size=10)
        margins = np.sort(model.predict_proba(X), axis=1)
        margins = margins[:, -1] - margins[:, -2]
        unknown = np.isnan(known)
        assert margins[rows].max() < np.median(margins[unknown])
        known[rows] = y[rows]
        model.fit(X, known)
    assert model.score(X_test, y_test) > first + 0.05


def test_imbalanced_learn_pipelines_resample(digits):
    pytest.importorskip("imblearn", reason="imbalanced-learn is not installed")
    from imblearn.ensemble import BalancedBaggingClassifier
    from imblearn.over_sampling import RandomOverSampler
    from imblearn.pipeline import make_pipeline

    X, X_test, y, y_test = digits
    rare = (y != 3) | (np.cumsum(y == 3) <= 5)
    pipeline = make_pipeline(RandomOverSampler(random_state=0), ImprintClassifier())
    pipeline.fit(X[rare], y[rare])
    assert pipeline[-1].proxies_.mass.sum() == 10 * np.bincount(y[rare]).max()
    assert pipeline.score(X_test, y_test) > 0.9
    bagging = BalancedBaggingClassifier(
        ImprintClassifier(generator="mean"), n_estimators=3, random_state=0
    )
    assert bagging.fit(X[rare], y[rare]).score(X_test, y_test) > 0.8


def test_cleanlab_finds_wrong_labels(digits):
    pytest.importorskip("cleanlab", reason="cleanlab is not installed")
    from cleanlab.classification import CleanLearning
    from cleanlab.filter import find_label_issues

    X, X_test, y, y_test = digits
    rng = np.random.default_rng(0)
    wrong = rng.choice(len(y), 20, replace=False)
    given = y.copy()
    given[wrong] = (y[wrong] + 1 + rng.integers(0, 9, 20)) % 10
    model = ImprintClassifier(calibrate=True)
    P = cross_val_predict(model, X, given, cv=5, method="predict_proba")
    found = find_label_issues(given, P)
    # ten times as often among wrong labels as among right ones
    assert found[wrong].mean() > 0.6
    assert found[~np.isin(np.arange(len(y)), wrong)].mean() < 0.06
    learner = CleanLearning(model, cv_n_folds=3, seed=0)
    assert learner.fit(X, given).score(X_test, y_test) > 0.9


def test_optuna_searches_parameters_of_components(digits):
    optuna = pytest.importorskip("optuna", reason="optuna is not installed")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    X, X_test, y, y_test = digits

    def accuracy(trial):
        model = ImprintClassifier().set_params(
            generator__k=trial.suggest_int("k", 1, 20),
            aggregator__gamma=trial.suggest_float("gamma", 1e-6, 10, log=True),
        )
        return model.fit(X[::2], y[::2]).score(X[1::2], y[1::2])

    sampler = optuna.samplers.TPESampler(seed=0)
    search = optuna.create_study(direction="maximize", sampler=sampler)
    search.optimize(accuracy, n_trials=12)
    values = [trial.value for trial in search.trials]
    assert search.best_value == max(values) > min(values)
    best = search.best_params
    again = ImprintClassifier().set_params(
        generator__k=best["k"], aggregator__gamma=best["gamma"]
    )
    assert again.fit(X, y).score(X_test, y_test) > 0.9


def test_mlxtend_votes_stacks_and_selects(noisy):
    pytest.importorskip("mlxtend", reason="mlxtend is not installed")
    from mlxtend.classifier import EnsembleVoteClassifier, StackingCVClassifier
    from mlxtend.feature_selection import SequentialFeatureSelector as Sequential

    X, X_test, y, y_test = noisy
    models = [without_l2(), without_l2(generator="mean", aggregator="max")]
    vote = EnsembleVoteClassifier(models, voting="soft").fit(X, y)
    mean = np.mean([model.fit(X, y).predict_proba(X_test) for model in models], axis=0)
    np.testing.assert_array_equal(vote.predict(X_test), mean.argmax(axis=1))
    stacked = StackingCVClassifier(models, without_l2(), use_probas=True, cv=3)
    assert stacked.fit(X, y).score(X_test, y_test) > 0.85
    selector = Sequential(without_l2(generator="mean"), k_features=2, cv=3)
    assert set(selector.fit(X, y).k_feature_idx_) <= {0, 1, 2, 3}


def test_venn_abers_calibrates(digits):
    venn_abers = pytest.importorskip("venn_abers", reason="venn-abers is not installed")
    X, X_test, y, y_test = digits
    is_odd, is_odd_test = y % 2, y_test % 2
    calibrator = venn_abers.VennAbersCalibrator(
        estimator=ImprintClassifier(), inductive=True, cal_size=0.3, random_state=0
    )
    calibrator.fit(X, is_odd)
    P = calibrator.predict_proba(X_test)
    np.testing.assert_allclose(P.sum(axis=1), 1)
    right = P.argmax(axis=1) == is_odd_test
    assert right.mean() > 0.9
    assert abs(P.max(axis=1).mean() - right.mean()) < 0.06


def test_crepes_p_values_are_uniform(digits):
    crepes = pytest.importorskip("crepes", reason="crepes is not installed")
    X, X_test, y, y_test = digits
    X_conformal, X_test, y_conformal, y_test = train_test_split(
        X_test, y_test, random_state=0
    )
    wrapped = crepes.WrapClassifier(ImprintClassifier())
    wrapped.fit(X, y)
    wrapped.calibrate(X_conformal, y_conformal)
    p = np.asarray(wrapped.predict_p(X_test))[np.arange(len(y_test)), y_test]
    assert 0.03 < (p < 0.1).mean() < 0.17
    assert 0.4 < (p < 0.5).mean() < 0.6
    sets = wrapped.predict_set(X_test, confidence=0.9)
    covered = [label in labels for label, labels in zip(y_test, sets)]
    assert 0.83 < np.mean(covered) < 0.97
