"""Calibration: exact after every change, conservative with few rows, the same through every interface."""

import pickle
from dataclasses import dataclass, replace

import numpy as np
import pytest
from tests.contract.test_methods import DECIDE, OWN, data

from imprint import ImprintClassifier
from imprint.aggregators.max import Max
from imprint.calibration import calibration_error
from imprint.calibration.calibration import calibrate
from imprint.calibration.cross_validation import (
    MAX_ASSESSED_ROWS,
    CrossValidation,
    out_of_fold,
)
from imprint.calibration.estimates import Estimates, fit_conformal
from imprint.calibration.held import FOLDS, MAX_HELD_ROWS, HeldRows, near_copies
from imprint.core.component import param
from imprint.core.errors import (
    FileError,
    ImprintError,
    NotFittedError,
    ParameterError,
    TooFewProxiesError,
)
from imprint.export import export
from imprint.head import Head
from imprint.method import Method

KERNEL = dict(
    norm_pre="l2",
    generator="kmeans(k=4)",
    norm_post="none",
    norm_inf="l2",
    aggregator="kernel",
)
EXACT = [KERNEL | dict(generator=g) for g in ("all", "mean", "random(k=4)")] + [
    KERNEL | dict(generator="least_squares", aggregator="max")
]


def blobs(counts, d=8, apart=1.5, seed=0):
    """Rows of overlapping classes, and the same number of held-out rows."""
    rng = np.random.default_rng(seed)
    centres = apart * rng.normal(size=(len(counts), d))
    y = np.repeat([f"class {c}" for c in range(len(counts))], counts)
    codes = np.unique(y, return_inverse=True)[1]
    draw = lambda: (rng.normal(size=(len(y), d)) + centres[codes]).astype(np.float32)  # noqa: E731
    return draw(), y, draw()


def same(a, b, Q, tolerance=0.0):
    """Assert that two models have the same calibration, probabilities and p-values."""
    one, other = a.head_.calibration, b.head_.calibration
    for name in ("temperature", "floor", "expected_accuracy", "expected_interval"):
        np.testing.assert_allclose(
            getattr(one, name), getattr(other, name), rtol=tolerance, atol=tolerance
        )
    np.testing.assert_allclose(
        a.predict_proba(Q), b.predict_proba(Q), rtol=tolerance, atol=tolerance
    )
    np.testing.assert_allclose(a.known(Q), b.known(Q), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("parts", DECIDE)
def test_the_order_of_classes_does_not_matter_and_forgetting_is_exact(parts):
    X, y, Q = data()
    whole = ImprintClassifier(**parts, calibrate=True, random_state=7).fit(X, y)
    grown = ImprintClassifier(**parts, calibrate=True, random_state=7)
    order = (
        sorted(set(y))
        if parts["norm_post"] == "quantile"
        else ["emu", "cow", "ant", "bee", "dog"]
    )
    for label in order:
        grown.partial_fit(X[y == label], y[y == label])
    same(grown, whole, Q)
    for gone in ("ant", "emu"):
        never = ImprintClassifier(**parts, calibrate=True, random_state=7).fit(
            X[y != gone], y[y != gone]
        )
        same(ImprintClassifier.of_head(whole.head_).forget(gone), never, Q)


@pytest.mark.parametrize("parts", EXACT, ids=lambda parts: parts["generator"])
def test_rows_added_later_give_the_same_calibration(parts):
    """Includes a class that starts with one row, so that one fold model lacks the class."""
    X, y, Q = blobs([130, 40, 7])
    whole = ImprintClassifier(**parts, calibrate=True, random_state=1).fit(X, y)
    grown = ImprintClassifier(**parts, calibrate=True, random_state=1)
    for part in np.split(np.arange(len(y)), [50, 110, 171, 174]):
        grown.partial_fit(X[part], y[part])
    same(grown, whole, Q, tolerance=1e-4)
    for mine, theirs in zip(
        grown.head_.folds.held.values(), whole.head_.folds.held.values()
    ):
        assert all(
            np.array_equal(v, theirs.to_state()[name])
            for name, v in mine.to_state().items()
        )


@pytest.mark.parametrize("first", [1, 2, 3, 4, 5, 20])
def test_the_folds_of_a_large_class_include_rows_that_are_not_stored(first):
    method = Method.of(**KERNEL | dict(generator="mean", aggregator="max"))
    X, y = (
        np.random.default_rng(0).normal(size=(160, 4)).astype(np.float32),
        np.full(160, "a"),
    )
    empty = CrossValidation(Head(method, 0, "float32"))
    one, two = (
        empty.learn(X, y),
        empty.learn(X[:first], y[:first]).learn(X[first:], y[first:]),
    )
    for f in range(FOLDS):
        np.testing.assert_allclose(
            two.head_without(f).proxies.weights,
            one.head_without(f).proxies.weights,
            atol=1e-6,
        )


def test_duplicates_added_later_give_the_same_weights():
    X, y = (
        np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32),
        np.full(30, "a"),
    )
    empty = CrossValidation(Head(Method.of(**KERNEL), 0, "float32"))
    once = empty.learn(np.concatenate([X, X[:10]]), np.full(40, "a")).held["a"]
    later = empty.learn(X, y).learn(X[:10], y[:10]).held["a"]
    assert sorted(once.weight.tolist()) == [1.0] * 20 + [2.0] * 10
    for name in ("rows", "index", "weight", "fold", "digests", "total"):
        np.testing.assert_array_equal(
            getattr(later, name), getattr(once, name), err_msg=name
        )


def test_folds_are_even_and_depend_on_the_class_alone():
    X, y, _ = blobs([33, 20, 1])
    method = Method.of(**KERNEL)
    answers, alone = (
        out_of_fold(method, 3, X, y),
        out_of_fold(method, 3, X[y == "class 1"], y[y == "class 1"]),
    )
    assert np.array_equal(answers.fold[y == "class 1"], alone.fold)
    for c, n in enumerate((33, 20, 1)):
        counts = np.bincount(answers.fold[answers.true == c], minlength=FOLDS)
        assert counts.max() - counts.min() <= 1
        assert counts.sum() == n
    assert not np.array_equal(answers.fold[:20], answers.fold[33:53])
    assert answers.assessed.sum() == 53


@pytest.mark.parametrize("size", [2, 3, 4])
def test_every_fold_lacks_one_row_of_a_small_class(size):
    X, y = (
        np.random.default_rng(0).normal(size=(size + 6, 4)).astype(np.float32),
        ["a"] * size + ["b"] * 5 + ["c"],
    )
    folds = CrossValidation(
        Head(Method.of(**KERNEL | dict(generator="all")), 0, "float32")
    ).learn(X, np.array(y))
    rows = [
        dict(zip(head.classes.tolist(), head.rows_per_class.tolist()))
        for head in folds.heads
    ]
    assert [of_fold["a"] for of_fold in rows] == [size - 1] * FOLDS
    assert [of_fold["b"] for of_fold in rows] == [4] * FOLDS
    assert [of_fold.get("c") for of_fold in rows] == [None, 1, 1, 1, 1]


def test_near_copies_are_those_in_another_fold():
    rows = np.array([[0, 0], [0.01, 0], [5, 0], [5.01, 0], [0, 9]], dtype=np.float32)
    index, fold = np.arange(5), np.array([0, 0, 1, 2, 3])
    held = HeldRows(rows, index, np.ones(5), fold, index.astype(np.uint64), 5.0)
    assert near_copies([held], [index], lambda X: X).tolist() == [
        False,
        False,
        True,
        True,
        False,
    ]


def test_a_p_value_is_the_share_of_held_out_rows_that_do_not_score_higher():
    S = np.array([[0.9, 0.1], [0.8, 0.2], [0.3, 0.6]])
    estimates = Estimates(None, 0.0, 1.0, **fit_conformal(S, None, np.ones(3)))
    assert estimates.p_values(np.array([[0.85, 0.0], [0.0, 0.1]]), None).tolist() == [
        0.75,
        0.25,
    ]
    assert estimates.p_values(S, None).tolist() == [
        1,
        0.75,
        0.5,
    ]  # a row with an equal score counts


@pytest.mark.parametrize("doubt", [None, np.empty(0)])
def test_without_held_out_rows_every_p_value_is_one(doubt):
    estimates = Estimates(
        None,
        0.0,
        1.0,
        **fit_conformal(np.empty((0, 2)), doubt, np.empty(0)),
    )
    assert (
        estimates.score_spread,
        estimates.doubt_spread,
        estimates.below.tolist(),
    ) == (1, 1, [0])
    assert estimates.p_values(
        np.eye(2), None if doubt is None else np.ones(2)
    ).tolist() == [1, 1]


def test_the_calibration_error_is_the_gap_between_confidence_and_accuracy():
    assert (
        calibration_error(np.array([[0.9, 0.1], [0.9, 0.1]]), np.array([0, 1])) == 0.4
    )


@pytest.mark.parametrize("doubt", [None, np.array([0.1, 0.5, 0.3])])
def test_reference_scores_are_raised_by_the_gain(doubt):
    S = np.array([[0.9, 0.1], [0.8, 0.2], [0.3, 0.6]])
    raised = fit_conformal(S, doubt, np.ones(3), 0.25)
    plain = fit_conformal(S, doubt, np.ones(3))
    np.testing.assert_allclose(raised["reference"] - plain["reference"], 0.25)


def test_every_row_is_predicted_by_a_model_that_was_fitted_without_it():
    """Random labels cannot be predicted on held-out rows; a model fitted on the rows would memorise them."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 8)), rng.integers(0, 4, 400)
    clf = ImprintClassifier(
        generator="all", aggregator="nearest(m=1)", calibrate=True, random_state=0
    ).fit(X, y)
    assert clf.score(X, y) == 1
    assert clf.expected_accuracy_ == pytest.approx(0.25, abs=0.06)
    assert clf.predict_proba(X).max() < 0.45
    assert out_of_fold(clf.head_.method, 0, X, y).correct.mean() == pytest.approx(
        clf.expected_accuracy_, abs=0.06
    )


@pytest.mark.parametrize("aggregator", ["kernel", "max", "nearest(m=5)"])
def test_estimates_agree_with_measurements(aggregator):
    X, y, Q = blobs([150] * 6, apart=0.8)
    clf = ImprintClassifier(
        **KERNEL | dict(aggregator=aggregator), calibrate=True, random_state=0
    ).fit(X, y)
    plain = ImprintClassifier(
        **KERNEL | dict(aggregator=aggregator), random_state=0
    ).fit(X, y)
    truth, codes = clf.score(Q, y), np.unique(y, return_inverse=True)[1]
    low, high = clf.expected_interval_
    assert low < clf.expected_accuracy_ < high
    error = 1 / len(y) ** 0.5  # two standard errors of the measurement, at most
    assert low - error < truth < high + error
    assert calibration_error(clf.predict_proba(Q), codes) < min(
        0.06, calibration_error(plain.predict_proba(Q), codes)
    )
    assert np.array_equal(clf.predict(Q), plain.predict(Q))
    p = clf.known(Q)
    assert p.min() > 0
    assert p.max() <= 1
    assert 0.02 < (p <= 0.05).mean() < 0.08
    far = np.random.default_rng(1).normal(size=(200, 8)) * 6
    assert (clf.known(far) <= 0.05).mean() > 2 * (p <= 0.05).mean()


def test_few_rows_do_not_make_probabilities_too_confident():
    X, y, Q = blobs([1, 1, 1])
    single = ImprintClassifier(calibrate=True, random_state=0).fit(X, y)
    assert np.isnan(single.expected_accuracy_)
    assert single.expected_interval_ == (0, 1)
    assert single.known(Q).tolist() == [1, 1, 1]
    assert single.predict_proba(X).max() < 0.7
    one = ImprintClassifier(calibrate=True, random_state=0).fit(
        X[:1].repeat(9, axis=0) + np.arange(9)[:, None] / 9, ["a"] * 9
    )
    assert np.isnan(one.expected_accuracy_)
    assert one.predict_proba(Q).tolist() == [[1], [1], [1]]
    assert one.known(np.full((1, 8), -9.0)) <= 0.2
    X, y, Q = blobs([2, 2])
    two = ImprintClassifier(calibrate=True, random_state=0).fit(X, y)
    assert two.expected_interval_[1] - two.expected_interval_[0] > 0.4
    plain = ImprintClassifier(random_state=0).fit(X, y)
    assert two.predict_proba(Q).max() <= plain.predict_proba(Q).max() + 0.01
    assert two.known(Q).min() >= 1 / 5
    few = ImprintClassifier(
        generator="all", aggregator="nearest(m=3)", calibrate=True
    ).fit(X[:3], y[:3])
    assert np.isnan(few.expected_accuracy_)  # no fold has three proxies
    assert few.known(Q).tolist() == [1] * 4


def test_a_class_of_one_row_among_large_ones_only_widens_the_interval():
    X, y, Q = blobs([60, 60, 1])
    with_it, without = (
        ImprintClassifier(calibrate=True, random_state=0).fit(X[:n], y[:n])
        for n in (121, 120)
    )
    assert with_it.expected_accuracy_ == pytest.approx(
        without.expected_accuracy_, abs=0.03
    )
    assert not with_it.head_.folds.predictions.assessed[-1]
    assert with_it.forget("class 2").expected_interval_ == without.expected_interval_
    assert len(with_it.known(Q)) == 121


@dataclass(frozen=True, kw_only=True)
class Demanding(Max):
    """Refuses models of fewer than 40 rows."""

    expected: bool = param(False, "whether the error is the expected one")

    def prepare(self, proxies, sums):
        if proxies.mass.sum() < 40:
            error = TooFewProxiesError if self.expected else ParameterError
            raise error("at least 40 rows, please.")
        return super().prepare(proxies, sums)


@pytest.mark.parametrize("expected", [True, False])
def test_only_the_expected_error_of_a_fold_model_means_that_rows_are_not_assessed(
    expected,
):
    X, y, Q = blobs([20, 20])
    aggregator = Demanding(expected=expected)
    clf = ImprintClassifier(generator="all", aggregator=aggregator, calibrate=True)
    if expected:
        assert np.isnan(clf.fit(X, y).expected_accuracy_)
        return
    with pytest.raises(ParameterError, match="at least 40 rows, please"):
        clf.fit(X, y).known(Q)


def test_large_classes_are_weighted_by_all_their_rows():
    X, y, _ = blobs([2000, 50], apart=0.6)
    answers = (
        ImprintClassifier(calibrate=True, random_state=0)
        .fit(X, y)
        .head_.folds.predictions
    )
    assert np.bincount(answers.true).tolist() == [MAX_HELD_ROWS, 50]
    assert np.bincount(answers.true, answers.weight).tolist() == [2000, 50]
    assert MAX_HELD_ROWS * 10 <= MAX_ASSESSED_ROWS


def test_without_folds_one_sentence_says_what_to_do(tmp_path):
    X, y, Q = blobs([9, 9])
    clf = ImprintClassifier(random_state=0).fit(X, y)
    assert clf.head_.folds is None
    for ask in (
        lambda: clf.known(Q),
        lambda: clf.expected_accuracy_,
        lambda: clf.expected_interval_,
    ):
        with pytest.raises(
            NotFittedError,
            match=r"^This model was not calibrated: fit it with calibrate=True\.$",
        ):
            ask()
    assert not hasattr(clf, "expected_accuracy_")
    with pytest.raises(ParameterError, match="calibrate must be True or False"):
        ImprintClassifier(calibrate="yes").fit(X, y)
    with pytest.raises(ImprintError, match="known"):
        ImprintClassifier(calibrate=True).fit(X, y).known(Q[:, :3])


@pytest.mark.parametrize("parts", [case for case in DECIDE if case is not OWN])
def test_a_saved_model_keeps_its_calibration(parts, tmp_path):
    X, y, Q = data()
    clf = ImprintClassifier(**parts, calibrate=True, random_state=7).fit(X, y)
    clf.save(tmp_path / "m")
    back = ImprintClassifier.load(tmp_path / "m")
    assert back.calibrate
    assert (
        "predictions" not in back.head_.folds.derived
    )  # the stored calibration needs no predictions
    again = replace(back.head_.folds).calibration
    assert again.temperature == back.head_.calibration.temperature
    for c in (clf, back, pickle.loads(pickle.dumps(clf))):
        same(c, clf, Q)
    for c in (clf, back):
        c.partial_fit(Q[:3], ["fox"] * 3).partial_fit(Q[5:9], ["bee"] * 4).forget("cow")
    same(back, clf, Q)
    clf.save(tmp_path / "a")
    back.save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize(
    "change",
    [
        lambda arrays: arrays.pop("fold3/classes"),
        lambda arrays: arrays.update({"fold1/classes": np.array([0, 0])}),
        lambda arrays: arrays.update({"fold1/classes": np.array([0, 7])}),
        lambda arrays: arrays["held/index/values"].__setitem__(0, 10**6),
        lambda arrays: arrays["held/index/values"].__setitem__(
            0, arrays["held/index/values"][1]
        ),
        lambda arrays: arrays["held/digests/values"].fill(0),
        lambda arrays: arrays["held/total/values"].__setitem__(0, -1),
        lambda arrays: arrays["held/weight/values"].__setitem__(0, 0),
        lambda arrays: arrays["shared/index/values"].__setitem__(0, 10**6),
        lambda arrays: arrays["shared/index/values"].__setitem__(
            0, arrays["shared/index/values"][1]
        ),
        lambda arrays: arrays["shared/length/values"].__setitem__(0, 0),
        lambda arrays: arrays["held/rows/values"].__setitem__(0, np.nan),
        lambda arrays: (
            arrays["held/index/values"][:2].sort()
            or arrays["held/index/values"][1::-1].sort()
        ),
        lambda arrays: arrays["fold0/state/mass/values"].__setitem__(0, -1),
        lambda arrays: (
            arrays["calibration/reference"].sort()
            or arrays["calibration/reference"][::-1].sort()
        ),
        lambda arrays: arrays["calibration/below"].__setitem__(0, -1),
        lambda arrays: [
            arrays.pop(name) for name in list(arrays) if name.startswith("held")
        ],
    ],
)
def test_hostile_folds_are_refused(change, tmp_path):
    from imprint.core.files import container

    X, y, _ = blobs([9, 120])
    # the default would hold all rows, and no states of folds
    clf = ImprintClassifier(generator="kmeans(k=50)", calibrate=True)
    clf.fit(X, y).save(tmp_path / "m")
    document, arrays = container.read(tmp_path / "m")
    arrays = {name: array.copy() for name, array in arrays.items()}
    change(arrays)
    container.write(tmp_path / "m", document, arrays)
    with pytest.raises(FileError, match="not an imprint model"):
        ImprintClassifier.load(tmp_path / "m")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", 0.0),
        ("floor", 1.5),
        ("expected", "all"),
        ("expected", 0),
        ("expected", False),
        ("high", float("inf")),
        ("low", 1),
        ("low", None),
        ("reference", 0.5),
        ("more", 0.5),
    ],
)
def test_invalid_stored_calibration_is_refused(name, value, tmp_path):
    from imprint.core.files import container

    X, y, _ = blobs([9, 120])
    ImprintClassifier(calibrate=True, random_state=0).fit(X, y).save(tmp_path / "m")
    document, arrays = container.read(tmp_path / "m")
    document["calibration"][name] = value
    container.write(tmp_path / "m", document, arrays)
    with pytest.raises(FileError, match="not an imprint model"):
        ImprintClassifier.load(tmp_path / "m")


@pytest.mark.parametrize(
    "aggregator", ["kernel", "max", "nearest(m=3)", "nearest(m=3, weighting='uniform')"]
)
def test_an_exported_model_gives_the_same_probabilities(aggregator, tmp_path):
    import onnxruntime

    pytest.importorskip("onnx")
    X, y, Q = blobs([20, 20, 20], apart=0.7)
    clf = ImprintClassifier(
        **KERNEL | dict(aggregator=aggregator), calibrate=True, random_state=0
    ).fit(X, y)
    plain = ImprintClassifier(
        **KERNEL | dict(aggregator=aggregator), random_state=0
    ).fit(X, y)
    export(clf, tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    found = session.run(["probabilities"], {"embeddings": Q})[0]
    np.testing.assert_allclose(found, clf.predict_proba(Q), atol=2e-6)
    assert np.abs(found - plain.predict_proba(Q)).max() > 0.01
    about = export(clf, tmp_path / "m.npz", "numpy").model.about
    P = plain.predict_proba(Q).astype(np.float64) ** about["calibration"]["power"]
    floor = about["calibration"]["floor"]
    by_hand = (1 - floor) * P / P.sum(axis=1, keepdims=True) + floor / 3
    np.testing.assert_allclose(by_hand, clf.predict_proba(Q), atol=1e-5)
    assert repr(floor / 3) in about["use"]


def test_temperature_and_floor_have_the_largest_posterior():
    """Compared with a grid search over temperature and floor."""
    X, y, _ = blobs([200] * 4, apart=0.5)
    answers = out_of_fold(Method.of(**KERNEL), 0, X, y)
    fitted = calibrate(answers)

    def loss(temperature, floor):
        P = answers.shares ** (1 / temperature)
        P = (1 - floor) * P / P.sum(axis=1, keepdims=True) + floor / 4
        log_prior = 0.1 * np.log(floor) + 20 * np.log(1 - floor)
        log_prior -= (np.log(temperature) / answers.deviation) ** 2 / 2
        return -np.log(P[np.arange(len(P)), answers.true]).sum() - log_prior

    best = min(
        loss(t, f)
        for t in np.geomspace(0.2, 5, 60)
        for f in np.linspace(0.001, 0.5, 60)
    )
    assert loss(fitted.temperature, fitted.floor) <= best + 1e-3


def test_folds_never_change():
    X, y, Q = blobs([20, 20, 20])
    method = Method.of(**KERNEL)
    head = Head(
        method, 0, X.dtype, folds=CrossValidation(Head(method, 0, X.dtype))
    ).learn(X[:40], y[:40])
    before = head.known(Q), head.calibration.temperature
    later = head.learn(X[40:], y[40:]), head.forget("class 0"), head.learn(Q[:9], y[:9])
    assert [len(h.folds.held) for h in later] == [3, 1, 2]
    assert later[2].folds.held["class 0"].total == 29
    fresh = Head(
        method, 0, X.dtype, folds=CrossValidation(Head(method, 0, X.dtype))
    ).learn(X[:40], y[:40])
    for again in (head, fresh):
        assert np.array_equal(again.known(Q), before[0])
        assert again.calibration.temperature == before[1]
