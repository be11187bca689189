"""The tests of the paper's claims about its tables, on results whose verdicts are known."""

import numpy as np
import pytest

from imprint.stats import compare
from imprint_reproduction import ARTEFACTS
from imprint_reproduction.artefact import Finding
from imprint_reproduction.claims import TABLE_CLAIMS
from imprint_reproduction.sections import Verdict
from imprint_reproduction.table_result import TableResult

HOLDS, FAILS, UNTESTABLE = Verdict.HOLDS, Verdict.FAILS, Verdict.UNTESTABLE


def result(means, instances=12, noise=0.0, chosen=None):
    """Rows with the given means; noise per instance reverses the order of close rows."""
    signs = np.where(np.arange(instances) % 2, 1, -1)[:, None] * np.linspace(
        -1, 1, len(means)
    )
    scores = (
        np.array(list(means.values()))
        + np.arange(instances)[:, None] / 10
        + noise * signs
    )
    comparison = compare(scores, list(means))
    return TableResult(
        dict(zip(means, chosen or means)),
        dict(means),
        dict.fromkeys(means, 1.0),
        comparison,
    )


CLEAR = result({"a": 90.0, "b": 85.0, "c": 80.0})
CLOSE = result({"a": 90.2, "b": 90.0}, instances=13, noise=5.0)


def test_ahead_needs_rank_significance_and_the_margin():
    assert CLEAR.ahead(["a"], ["b", "c"]).holds == HOLDS
    assert CLEAR.ahead(["a", "b"], ["c"]).holds == HOLDS
    assert CLEAR.ahead(["a", "c"], ["b"]).holds == FAILS
    assert CLEAR.ahead(["a"], ["b"], by=4).holds == HOLDS
    assert CLEAR.ahead(["a"], ["b"], by=6).holds == FAILS
    assert CLOSE.comparison.rank("a") < CLOSE.comparison.rank("b")
    assert CLOSE.ahead(["a"], ["b"]).holds == FAILS, (
        "it ranks before the other, but the difference is not significant"
    )
    assert (
        result({"a": 90.0, "b": 80.0}, instances=4).ahead(["a"], ["b"]).holds
        == UNTESTABLE
    )
    six = result({"a": 90.0, "b": 85.0, "c": 80.0}, instances=6)
    assert six.ahead(["a"], ["b"]).holds == UNTESTABLE, (
        "the smallest p-value of three pairs is 3 / 32"
    )


def test_leads_are_over_the_best_other():
    assert CLEAR.ahead(["a"], ["b", "c"]).figures.startswith(
        "+5.00 points, largest adjusted p "
    )
    assert CLEAR.points(["b"], ["a", "c"]).figures == "-5.00 points"
    assert CLEAR.points(["b", "c"], ["a"]).figures == "b -5.00; c -10.00 points"


@pytest.mark.parametrize(
    ("limits", "holds"),
    [
        ({"at_least": 5}, True),
        ({"at_least": 5.1}, False),
        ({"below": 5.1}, True),
        ({"below": 5}, False),
        ({"at_least": 4, "below": 6}, True),
    ],
)
def test_points_are_in_a_range(limits, holds):
    assert CLEAR.points(["a"], ["b"], **limits).holds is holds
    few = result({"a": 90.0, "b": 85.0}, instances=4)
    assert few.points(["a"], ["b"], **limits).holds is holds, (
        "a difference of means needs no significance"
    )
    assert few.points(["a"], ["b"], **limits, needs_instances=True).holds == UNTESTABLE


def test_rows_are_alike_if_no_two_differ():
    assert CLOSE.alike(["a", "b"]).holds == HOLDS
    assert CLOSE.alike(["a", "b"]).figures.startswith(
        "means within 0.20 points, smallest adjusted p "
    )
    assert CLEAR.alike(["a", "b"]).holds == FAILS
    assert (
        result({"a": 90.0, "b": 90.0}, instances=4).alike(["a", "b"]).holds
        == UNTESTABLE
    )


def test_first_equal_and_half_of_a_gap():
    assert CLEAR.first("a") == Finding(True, "a has the best average rank")
    assert not CLEAR.first("b").holds
    assert result({"a": 90.0, "b": 90.0}).equal(["a", "b"]) == Finding(
        True, "90.00 and 90.00"
    )
    assert not CLEAR.equal(["a", "b"]).holds
    assert CLEAR.closes_half("b", "c", "a") == Finding(True, "50 % of 10.00 points")
    assert (
        not result({"a": 90.0, "b": 84.0, "c": 80.0}).closes_half("b", "c", "a").holds
    )


def test_the_largest_number_of_proxies_must_be_best_for_every_row():
    both = result({"x": 1.0, "y": 2.0}, chosen=["kmeans(k=20)", "fps(k=20)"])
    assert both.largest_k(["x", "y"], 20) == Finding(True, "k = 20 is best for x, y")
    one = result({"x": 1.0, "y": 2.0}, chosen=["kmeans(k=20)", "fps(k=2)"])
    assert one.largest_k(["x", "y"], 20) == Finding(False, "k = 20 is best for x")


def test_every_claim_about_a_table_is_a_function_of_rows_that_exist():
    tables = [artefact for artefact in ARTEFACTS.values() if hasattr(artefact, "rows")]
    assert len(tables) == 11
    assert set(TABLE_CLAIMS) <= {table.name for table in tables}
    for table in tables:
        checks = TABLE_CLAIMS.get(table.name, {})
        assert set(checks) == set(table.claims)
        labels = [label for label, *_ in table.rows]
        rows = result({label: 90.0 - i for i, label in enumerate(labels)})
        for claim, check in checks.items():
            assert check.__name__ == f"{table.name}_{claim}"
            assert isinstance(check(rows), Finding)
