"""scikit-learn's own battery for every generator and every aggregator, and a count that it ran."""

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

from imprint import ImprintClassifier, aggregators, generators, recipes

PLAIN = dict(norm_pre="none", norm_post="none", norm_inf="none", aggregator="nearest(m=1)")
ESTIMATORS = [
    *(recipes.recipe(name) for name in recipes.names()),
    *(ImprintClassifier(**PLAIN, generator=name) for name in generators.family.names()),
    *(ImprintClassifier(generator="all", aggregator=name) for name in aggregators.family.names()),
    ImprintClassifier(norm_pre="none", norm_post="quantile", norm_inf="none", generator="kmedoids(k=2)"),
    ImprintClassifier(
        **PLAIN | dict(aggregator="nearest(m=1, metric='manhattan', weighting='uniform')"), generator="kmeans(k=5)"
    ),
]


@parametrize_with_checks(ESTIMATORS)
def test_sklearn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_the_battery_really_ran(estimator):
    assert sum(1 for _ in estimator_checks_generator(estimator)) >= 50


def test_the_battery_covers_everything():
    assert len(ESTIMATORS) >= 8
    assert {generators.family.resolve(e.generator) for e in ESTIMATORS} >= {c() for c in generators.family}
    assert {aggregators.family.resolve(e.aggregator) for e in ESTIMATORS} >= {c() for c in aggregators.family}
