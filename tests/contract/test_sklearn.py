"""scikit-learn's estimator checks for every aggregator and kind of generator, and a count of the checks that ran."""

import pytest
from sklearn.utils.estimator_checks import (
    estimator_checks_generator,
    parametrize_with_checks,
)

from imprint import ImprintClassifier, recipes
from imprint.core.component import PARTS
from imprint.method import Method

PLAIN = dict(norm_pre="none", norm_post="none", norm_inf="none")
ESTIMATORS = [
    ImprintClassifier(random_state=0),
    recipes.recipe("kernel", random_state=0),
    recipes.recipe("qi2018", random_state=0),
    recipes.recipe("hosoda2024", random_state=0),
    recipes.recipe("oracle", random_state=0),
    ImprintClassifier(
        **PLAIN, generator="all", aggregator="nearest(m=1)", random_state=0
    ),
    recipes.recipe("kernel", random_state=0, calibrate=True),
    ImprintClassifier(
        **PLAIN,
        generator="all",
        aggregator="nearest(m=1)",
        random_state=0,
        calibrate=True,
    ),
]
AT_LEAST = 50  # checks; scikit-learn 1.6 has more


def expected_failures(estimator):
    """Checks that contradict the definition of a method, with the reason."""
    failures = {}
    if (
        not str(estimator.aggregator).startswith("kernel")
        and estimator.norm_post != "quantile"
    ):
        why = "a class is decided by its best proxies, however many rows they represent"
        failures["check_class_weight_classifiers"] = why
    if estimator.calibrate:
        why = "the fold of a row follows from its position in its class, and the check shuffles the rows"
        failures["check_sample_weight_equivalence_on_dense_data"] = why
    return failures


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_sklearn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_the_checks_of_scikit_learn_ran(estimator):
    assert sum(1 for _ in estimator_checks_generator(estimator)) >= AT_LEAST


def test_the_checks_of_scikit_learn_cover_every_aggregator_and_kind_of_generator():
    methods = [
        Method.of(**{part: getattr(e, part) for part in PARTS}) for e in ESTIMATORS
    ]
    assert len(methods) >= 5
    assert {type(m.aggregator).__name__ for m in methods} == {
        "Kernel",
        "Max",
        "Nearest",
    }
    assert (
        {m.per_class for m in methods}
        == {m.norm_post.uses_reference for m in methods}
        == {True, False}
    )
