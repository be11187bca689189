"""Duplicates, small samples, and the cost of calibration."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_digits

from imprint import ImprintClassifier, Imprinter, recipe
from imprint.calibration import calibration_error, out_of_fold
from imprint.calibration.estimates import missing_rows
from imprint.core.component import DEFAULT_METHOD
from imprint.core.errors import SmallSampleWarning
from imprint.method import Method

X, Y = load_digits(return_X_y=True)


def test_duplicates_are_in_the_same_fold():
    rows = np.repeat(np.arange(60), 3)
    answers = out_of_fold(Method.of(**DEFAULT_METHOD), 0, X[rows], Y[rows])
    for row in range(60):
        assert len(set(answers.fold[rows == row])) == 1


def test_rows_that_are_added_again_do_not_raise_the_expected_accuracy():
    model = ImprintClassifier(calibrate=True).fit(X[:300], Y[:300])
    before, held = model.expected_accuracy_, model.head_.folds
    assert held.count_known(X[:300], Y[:300]) == 300
    assert held.count_known(X[300:400], Y[300:400]) == 0
    again = model.partial_fit(X[:300], Y[:300])
    assert again.expected_accuracy_ <= before + 0.005
    assert all(
        len(rows.digests) == len(held.held[label].digests)
        for label, rows in again.head_.folds.held.items()
    )


def test_duplicates_are_recognised_in_classes_with_more_rows_than_are_stored():
    many = X[Y == 3]
    model = ImprintClassifier(calibrate=True).fit(many, np.zeros(len(many), int))
    assert len(many) > 150
    assert model.head_.folds.count_known(many, np.zeros(len(many), int)) == len(many)


def sentences(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [
        str(w.message) for w in caught if issubclass(w.category, SmallSampleWarning)
    ]


def test_too_few_rows_give_a_warning_with_advice():
    nine = np.flatnonzero(Y < 2)[:9]
    model = ImprintClassifier(calibrate=True)
    first, *_ = sentences(lambda: model.fit(X[nine], Y[nine]))
    assert first == (
        "known cannot tell yet what to refuse below 0.05: needs 11 more rows (the"
        " smallest p-value is 0.10), or refuse below 0.11."
    )
    assert sentences(lambda: model.known(X[:1])) == [first]
    assert not sentences(lambda: ImprintClassifier().fit(X[nine], Y[nine]))
    assert not sentences(
        lambda: ImprintClassifier(calibrate=True).fit(X[:300], Y[:300]).known(X[:1])
    )


def test_models_with_a_backbone_warn_in_the_words_of_their_inputs():
    images = list(np.random.default_rng(0).integers(0, 256, (9, 8, 8), dtype=np.uint8))
    model = Imprinter("raw")
    first, *_ = sentences(lambda: model.fit(images, ["a"] * 5 + ["b"] * 4))
    assert "cannot tell yet" in first
    assert "needs 11 more images" in first
    assert sentences(lambda: model.known(images[:1])) == [first]


@pytest.mark.parametrize(
    ("rows", "labels", "says"),
    [
        (
            range(30),
            [0] * 30,
            "With one class the accuracy cannot be estimated: add a second class.",
        ),
        (
            range(30),
            range(30),
            "Too few rows: with one per class, the accuracy cannot be estimated; add rows.",
        ),
        (
            range(30),
            [0] * 15 + [1] * 14 + [2],
            "Too few rows: 2 has only one and cannot be assessed; add rows.",
        ),
        (
            range(30),
            [0] * 15 + [1] * 12 + [2] * 3,
            "2 has 3 rows, and folds leave out up to half of them",
        ),
    ],
)
def test_each_kind_of_small_sample_has_its_own_warning(rows, labels, says):
    warned = sentences(
        lambda: ImprintClassifier(calibrate=True).fit(X[list(rows)], list(labels))
    )
    assert any(says in sentence for sentence in warned)


def test_few_rows_are_assessed_without_bias():
    """Two rows per class, so that folds leave out half of a class; 30 draws of digits."""
    gaps, covered = [], []
    for draw in range(30):
        rng = np.random.default_rng(draw)
        taken = np.concatenate(
            [rng.permutation(np.flatnonzero(c == Y))[:2] for c in range(10)]
        )
        model = ImprintClassifier(calibrate=True).fit(X[taken], Y[taken])
        true = model.score(X[::7], Y[::7])
        low, high = model.expected_interval_
        gaps.append(model.expected_accuracy_ - true)
        covered.append(low <= true <= high)
    assert abs(np.mean(gaps)) < 0.08
    assert np.mean(covered) >= 0.95


@pytest.mark.parametrize("rows", [2, 5])
def test_few_rows_do_not_make_probabilities_worse(rows):
    errors = []
    for draw in range(8):
        rng = np.random.default_rng(draw)
        taken = np.concatenate(
            [rng.permutation(np.flatnonzero(c == Y))[:rows] for c in range(10)]
        )
        models = (
            ImprintClassifier(calibrate=calibrate).fit(X[taken], Y[taken])
            for calibrate in (True, False)
        )
        errors.append(
            [calibration_error(model.predict_proba(X[::7]), Y[::7]) for model in models]
        )
    calibrated, plain = np.mean(errors, axis=0)
    assert calibrated <= plain + 0.005


def test_near_copies_do_not_make_p_values_of_new_rows_small():
    """Every second training row has a near duplicate, new rows have none."""
    refused = []
    for draw in range(6):
        rng = np.random.default_rng(draw)
        y = np.repeat(np.arange(5), 60)
        centres = rng.normal(size=(5, 8))
        single, new = (centres[y] + rng.normal(size=(300, 8)) for _ in range(2))
        copies = np.concatenate([single[:150], single[:150] + 1e-3, single[150:]])
        model = ImprintClassifier(calibrate=True).fit(
            copies, np.concatenate([y[:150], y[:150], y[150:]])
        )
        answers = model.head_.folds.predictions
        assert 0.4 < answers.near_copy.mean() < 0.7
        assert len(model.head_.calibration.reference) == (~answers.near_copy).sum()
        refused.append((model.known(new) < 0.05).mean())
    assert 0.02 < np.mean(refused) < 0.08


def test_a_file_holds_every_row_once(tmp_path):
    """Rows are stored once, as proxies, and folds as indices: the size of the rows plus some bytes for each."""
    rng = np.random.default_rng(0)
    rows, y = rng.normal(size=(880, 256)).astype(np.float32), np.arange(880) % 22
    recipe("kernel", calibrate=True).fit(rows, y).save(tmp_path / "m")
    assert (tmp_path / "m").stat().st_size < 1.3 * rows.nbytes


def test_with_many_proxies_only_one_fold_is_evaluated(monkeypatch):
    from imprint.calibration import cross_validation

    monkeypatch.setattr(cross_validation, "MAX_ASSESSED_ROWS", 60)
    monkeypatch.setattr(cross_validation, "MAX_PROXIES_OF_ALL_FOLDS", 9)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(600, 4)), np.arange(600) % 10
    model = ImprintClassifier(generator="mean", calibrate=True).fit(X, y)
    answers, outcomes = model.head_.folds.results
    assert set(answers.fold.tolist()) == {0}
    assert np.bincount(answers.true).tolist() == [6] * 10
    assert answers.weight.sum() == pytest.approx(600)
    # the accuracy is that of every row of the fold, which are independent
    assert np.bincount(outcomes.true).tolist() == [12] * 10
    low, high = model.expected_interval_
    share = model.expected_accuracy_
    assert (high - low) / 2 == pytest.approx(
        1.96 * (share * (1 - share) / 120) ** 0.5, rel=0.1
    )


def test_the_expected_accuracy_is_that_of_all_rows():
    """The half-width of the interval is at most 1.5 times that of as many independent
    rows, although 100 rows of each class are held.
    """
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(3), [700, 400, 60])
    X = (rng.normal(size=(3, 6))[y] * 0.6 + rng.normal(size=(len(y), 6))).astype("f4")
    model = ImprintClassifier(calibrate=True).fit(X, y)
    outcomes = model.head_.folds.results[1]
    assert np.bincount(outcomes.true).tolist() == [700, 400, 60]
    assert outcomes.weight.tolist() == [1.0] * len(y)
    share = model.expected_accuracy_
    low, high = model.expected_interval_
    binomial = 1.96 * (share * (1 - share) / len(y)) ** 0.5
    assert binomial < (high - low) / 2 < 1.5 * binomial


def test_further_rows_are_in_half_precision_and_survive_a_file(tmp_path):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(1300, 5)) * 10.0 ** rng.integers(-30, 30, (1300, 1))
    rows = rows.astype(np.float32)
    model = ImprintClassifier(calibrate=True, norm_pre="none")
    model.fit(rows, np.zeros(1300, int))
    further = model.head_.folds.held[0].further
    assert len(further.number) == 900
    np.testing.assert_allclose(
        further.rows(np.float32),
        rows[further.number],
        rtol=2**-11,
        atol=2**-24 * np.abs(rows[further.number]).max(axis=1).min(),
    )
    model.save(tmp_path / "m")
    again = ImprintClassifier.load(tmp_path / "m").head_.folds.held[0].further
    for mine, theirs in zip(further, again):
        np.testing.assert_array_equal(mine, theirs)
    in_parts = ImprintClassifier(calibrate=True, norm_pre="none")
    for part in np.split(rows, [40, 120, 900]):
        in_parts.partial_fit(part, np.zeros(len(part), int))
    for mine, theirs in zip(further, in_parts.head_.folds.held[0].further):
        np.testing.assert_array_equal(mine, theirs)


def test_with_one_row_per_class_nothing_is_rejected():
    with pytest.warns(
        SmallSampleWarning,
        match="known cannot tell yet what to refuse below 0.05: needs 20 more rows",
    ):
        model = ImprintClassifier(calibrate=True).fit(X[:3], Y[:3])
    with pytest.warns(SmallSampleWarning, match="cannot tell yet"):
        assert model.known(X[3:6]).tolist() == [1, 1, 1]


@pytest.mark.parametrize("level", [0.05, 0.01, 0.2])
def test_the_missing_rows_are_just_enough(level):
    """With as many more rows as are missing, a p-value can be below the level."""
    for total in range(60):
        missing = missing_rows(total, 1.0, level)
        assert (1 / (total + missing + 1) < level) == (level > 0)
        if missing:
            assert not 1 / (total + missing - 1 + 1) < level
    assert missing_rows(0, 1.0, 0.0) == 0


def test_a_calibration_counts_the_rows_that_it_misses():
    rows = np.flatnonzero(Y < 2)[:16]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SmallSampleWarning)
        few = ImprintClassifier(calibrate=True).fit(X[rows], Y[rows])
        weighted = ImprintClassifier(calibrate=True)
        weighted.fit(X[:40], Y[:40] % 2, sample_weight=np.repeat([5.0, 1.0], [1, 39]))
    calibration = few.head_.calibration
    assert calibration.missing_rows(0.05) == 4
    assert calibration.missing_rows(0.06) == 0
    far = few.known(1e3 * np.random.default_rng(0).normal(size=(5, X.shape[1])))
    assert far.min() >= 1 / 17
    # one row that counts five times is five rows that an input may look like
    assert weighted.head_.calibration.missing_rows(0.05) == 5 * 19 - 44 + 1
