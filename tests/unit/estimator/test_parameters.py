"""`set_params`, grid search, and the method that a fitted model uses."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import imprint
from imprint import ImprintClassifier, Imprinter
from imprint.core.errors import ParameterError
from imprint.core.files import container
from imprint.export import export
from imprint.generators.kmeans import KMeans

RNG = np.random.default_rng(0)
X, Y = (
    RNG.normal(size=(60, 4)) + np.repeat(np.eye(3, 4) * 3, 20, axis=0),
    np.repeat(["a", "b", "c"], 20),
)


@pytest.mark.parametrize(
    "generator", ["kmeans(k=7)", KMeans(k=7)], ids=["text", "component"]
)
def test_a_grid_search_sets_parameters_of_components(generator):
    clf = ImprintClassifier(
        generator=generator, aggregator="nearest(m=1)", random_state=0
    )
    assert clf.get_params()["generator__k"] == 7
    search = GridSearchCV(
        clf, {"generator__k": [1, 3], "aggregator__m": [1, 2]}, cv=2
    ).fit(X, Y)
    assert search.best_params_.keys() == {"generator__k", "aggregator__m"}
    assert len(search.cv_results_["params"]) == 4
    best = search.best_estimator_
    assert type(best.generator) is type(generator)
    assert best.get_params()["generator__k"] == search.best_params_["generator__k"]
    assert np.bincount(best.proxies_.labels).tolist() == 3 * [
        search.best_params_["generator__k"]
    ]
    assert clf.generator == generator, "the given estimator does not change"
    assert clone(best).get_params() == best.get_params()


def test_a_part_and_its_parameter_may_change_together():
    clf = ImprintClassifier(generator="mean").set_params(
        generator__k=3, generator="kmeans"
    )
    assert clf.generator == "kmeans(k=3)"
    with pytest.raises(
        ParameterError, match=r"KMeans has no parameter 'q'\. It takes: k\."
    ):
        clf.set_params(generator__q=1)
    with pytest.raises(ParameterError, match=r"KMeans\(k=0\): k must be int >= 1\."):
        clf.set_params(generator__k=0)
    with pytest.raises(ParameterError, match=r"there is no part 'nothing'"):
        clf.set_params(nothing__k=0)
    with pytest.raises(ValueError, match="Invalid parameter 'nothing'"):
        clf.set_params(nothing=0)


def test_a_fitted_model_follows_the_method_it_was_fitted_with(tmp_path):
    clf = ImprintClassifier(
        generator="mean", norm_post="l2", aggregator="max", random_state=0
    ).fit(X, Y)
    before, text = clf.predict_proba(X), repr(clf)
    clf.save(tmp_path / "before")
    for change in (
        {"generator": "kmeans(k=5)", "aggregator": "nearest(m=3)"},
        {"generator": "no such thing"},
    ):
        clf.set_params(**change, norm_inf="none", random_state=9)
        assert np.array_equal(clf.predict_proba(X), before)
        assert str(clf.head_.method) == "l2 / mean / l2 / l2 / max"
        assert repr(clf).endswith("fitted as l2 / mean / l2 / l2 / max")
        clf.save(tmp_path / "after")
        assert (tmp_path / "after").read_bytes() == (tmp_path / "before").read_bytes()
        about = export(clf, tmp_path / "h.npz", "numpy").model.about
        assert (about["method"], about["proxies"]) == ("l2 / mean / l2 / l2 / max", 3)
        clf.partial_fit(X[:1], ["a"])
        clf.set_params(
            generator="mean",
            norm_post="l2",
            norm_inf="l2",
            aggregator="max",
            random_state=0,
        )
        clf.fit(X, Y)
        assert repr(clf) == text
    assert container.read(tmp_path / "after")[0]["parts"]["generator"] == "mean"


def test_an_imprinter_explains_by_the_method_it_was_fitted_with():
    model = Imprinter("embeddings", recipe="qi2018").fit((X, Y))
    assert model.measure == "similarity"
    assert "l2 / mean / l2 / l2 / max with 3 classes" in repr(model)
    model.classifier.set_params(aggregator="nearest(m=1)")
    assert model.measure == "similarity"
    assert max(r.value for r in model.why(X[0], 3)) <= 1 + 1e-9


def test_the_public_names_are_listed():
    assert dir(imprint) == ["ImprintClassifier", "Imprinter", "__version__", "recipe"]
    assert all(getattr(imprint, name) for name in dir(imprint))


def test_a_search_over_generators_and_their_parameters():
    rng = np.random.default_rng(1)
    # two clusters per class: one proxy is not enough
    centres = 4 * rng.normal(size=(6, 4))
    X = np.repeat(centres, 20, axis=0) + rng.normal(size=(120, 4))
    y = np.repeat([0, 1, 2, 0, 1, 2], 20)
    grid = {"generator": ["mean", "kmeans", "fps(k=3)"], "generator__k": [1, 5]}
    search = GridSearchCV(ImprintClassifier(), grid, cv=2, error_score="raise")
    search.fit(X, y)
    scores = dict(
        zip(
            [tuple(p.values()) for p in search.cv_results_["params"]],
            search.cv_results_["mean_test_score"],
        )
    )
    assert len(scores) == 6
    assert scores["mean", 1] == scores["mean", 5]
    assert scores["kmeans", 1] != scores["kmeans", 5]


def test_a_parameter_that_no_component_has_is_refused_in_any_case():
    model = ImprintClassifier()
    for params in ({"generator": "mean", "generator__kk": 5}, {"generator__kk": 5}):
        with pytest.raises(ParameterError, match="no parameter 'kk'"):
            model.set_params(**params)
    # alone, it is about the generator that there is
    with pytest.raises(ParameterError, match="no parameter 'k'"):
        ImprintClassifier(generator="mean").set_params(generator__k=5)
