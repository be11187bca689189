"""The report of `imprint fit` on the expected accuracy."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest

from imprint import Imprinter
from imprint.core.errors import SmallSampleWarning
from imprint.evaluation.evaluation import _weaknesses, describe_expected


@pytest.fixture(autouse=True)
def small_samples_may_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SmallSampleWarning)
        yield


def described(X, y, **options):
    model = Imprinter(**options).fit(X, y)
    return describe_expected(model.state.head, "images"), model


def blobs(sizes, spread, seed=0):
    rng = np.random.default_rng(seed)
    X = [
        rng.normal(scale=spread, size=(n, 6)) + 2 * np.eye(6)[c]
        for c, n in enumerate(sizes)
    ]
    return np.concatenate(X), np.repeat(
        [f"class {c}" for c in range(len(sizes))], sizes
    )


def test_the_accuracy_the_confused_pair_and_the_weakest_class():
    X, y = blobs([60, 60, 12], 1.2)
    lines, model = described(X, y)
    low, high = (100 * end for end in model.expected_interval_)
    interval = f"(95 % interval {low:.1f}-{high:.1f} %)"
    accuracy = f"{100 * model.expected_accuracy_:.1f} %"
    assert (
        lines[0]
        == f"Expected accuracy: {accuracy}, extrapolated from cross-validation {interval}."
    )
    answers = model.state.head.folds.predictions
    recall = {c: answers.correct[answers.true == c].mean() for c in range(3)}
    worst = min(recall, key=recall.get)
    rows = [60, 60, 12][worst]
    assert lines[-1] == (
        f"To improve: add images of class {worst} ({rows} now, recall {100 * recall[worst]:.1f} %)."
    )
    pairs = {
        (a, b): np.mean(answers.winners[answers.true == a] == b)
        for a in range(3)
        for b in range(3)
        if a != b
    }
    a, b = max(pairs, key=pairs.get)
    assert (
        lines[-2]
        == f"Most confused: class {a} predicted as class {b} ({100 * pairs[a, b]:.1f} % of class {a})."
    )


def test_a_model_without_mistakes_has_no_weakness():
    lines, _ = described(*blobs([30, 30], 0.01))
    assert len(lines) == 1


def test_a_class_with_one_row_needs_more():
    X, y = blobs([20, 20, 1], 0.1)
    lines, _ = described(X, y)
    assert (
        lines[-1]
        == "To improve: add images of class 2 (1 now, too few to measure recall)."
    )


def test_the_smaller_of_two_classes_with_the_same_recall_needs_more():
    true, winners = (
        np.repeat([0, 1, 2], [4, 2, 6]),
        np.array([0, 0, 1, 2, 1, 0, *[2] * 6]),
    )
    answers = SimpleNamespace(
        classes=["a", "b", "c"],
        true=true,
        winners=winners,
        assessed=np.ones(12, bool),
        weight=np.ones(12),
    )
    assert (
        _weaknesses(answers, 0.75, "texts")[-1]
        == "To improve: add texts of b (2 now, recall 50.0 %)."
    )


def test_estimates_that_are_not_available_are_reported():
    one, _ = described(np.eye(3), ["a"] * 3)
    assert one == [
        "Expected accuracy: not available with one class; add a second class."
    ]
    two, _ = described(np.eye(3)[:2], ["a", "b"])
    assert two == [
        "Expected accuracy: not available; give at least two images of every class."
    ]
    assert described(*blobs([9, 9], 1), calibrate=False)[0] == []


def test_tags_have_average_precision_and_the_label_with_the_lowest_f1():
    rng = np.random.default_rng(0)
    Y = rng.random((80, 3)) < [0.5, 0.4, 0.1]
    X = Y @ rng.normal(size=(3, 8)) + rng.normal(size=(80, 8))
    lines, model = described(
        X, [[f"tag {c}" for c in np.flatnonzero(row)] for row in Y]
    )
    calibration = model.state.head.calibration
    assert lines[0] == (
        f"Expected (leave-one-out): mean average precision {100 * calibration.average_precision.mean():.1f} %, "
        f"macro F1 {100 * calibration.f1.mean():.1f} %."
    )
    worst = int(calibration.f1.argmin())
    share = f"{100 * calibration.f1[worst]:.1f} %"
    assert (
        lines[1]
        == f"To improve: add images of tag {worst} ({Y[:, worst].sum()} now, F1 {share})."
    )


def test_a_large_class_is_not_asked_for_more():
    X, y = blobs([400, 60, 60], 0.3)
    rng = np.random.default_rng(1)
    # rows of the large class that look like the others
    X[:120] = X[400:520] + rng.normal(size=(120, 6), scale=0.05)
    lines, model = described(X, y)
    answers = model.state.head.folds.predictions
    recall = 100 * answers.correct[answers.true == 0].mean()
    assert recall < 100 * answers.correct[answers.true > 0].mean()
    assert lines[-1].startswith("Lowest recall: class 0 (400 images, recall ")
    assert not any("add images of class 0" in line for line in lines)
