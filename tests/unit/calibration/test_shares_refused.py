"""The share of inputs that belong to a class and have a p-value below 0.05."""

import numpy as np
import pytest

from imprint import ImprintClassifier

DRAWS = 24
NEW_ROWS = 1_000


def refused(classes, rows, width, draw, apart=0.0):
    """The share of new rows of isotropic classes that are refused at 0.05."""
    rng = np.random.default_rng(draw)
    centres = apart * rng.normal(size=(classes, width))
    y = np.repeat(np.arange(classes), rows)
    truth = rng.integers(0, classes, NEW_ROWS)
    X = (centres[y] + rng.normal(size=(len(y), width))).astype(np.float32)
    Q = (centres[truth] + rng.normal(size=(NEW_ROWS, width))).astype(np.float32)
    model = ImprintClassifier(calibrate=True, random_state=draw).fit(X, y)
    return (model.known(Q) < 0.05).mean()


@pytest.mark.parametrize(
    ("classes", "rows", "width", "apart"),
    [(10, 20, 256, 0), (10, 20, 64, 0), (3, 100, 8, 0), (10, 20, 64, 1)],
)
def test_about_five_per_cent_of_new_rows_of_known_classes_are_refused(
    classes, rows, width, apart
):
    """Models with more rows score new rows higher, in 256 dimensions much higher."""
    shares = [refused(classes, rows, width, draw, apart) for draw in range(DRAWS)]
    # 3.5 to 6 %; the mean of these draws has a standard error of half a point
    assert 0.03 <= np.mean(shares) <= 0.065


WIDTHS = (48, 24, 24)


def blocks_of(rng, centres, directions, y):
    """Rows whose classes differ in all blocks, and vary along a few directions."""
    rows = 0.6 * centres[y] + rng.normal(size=(len(y), sum(WIDTHS)))
    along = rng.normal(size=(len(y), len(directions)))
    return (rows + 0.4 * along @ directions).astype(np.float32)


def model_of_blocks(draw):
    """A model of blocks, and new rows."""
    rng = np.random.default_rng(draw)
    centres = rng.normal(size=(7, sum(WIDTHS)))
    directions = rng.normal(size=(4, sum(WIDTHS)))
    y = np.repeat(np.arange(7), 20)
    X = blocks_of(rng, centres, directions, y)
    Q = blocks_of(rng, centres, directions, rng.integers(0, 7, NEW_ROWS))
    model = ImprintClassifier(blocks=WIDTHS, calibrate=True, random_state=draw)
    return model.fit(X, y), Q


def test_about_five_per_cent_are_refused_where_weights_of_blocks_are_chosen():
    """Models of folds that chose otherwise than the model would refuse up to 39 %."""
    shares = []
    for draw in range(DRAWS):
        model, Q = model_of_blocks(draw)
        shares.append((model.known(Q) < 0.05).mean())
    assert 0.03 <= np.mean(shares) <= 0.065
    assert np.std(shares) < 0.04  # 0.06 with such models of folds


def test_models_of_folds_take_over_the_choices_of_the_model():
    choices = set()
    for draw in range(DRAWS):
        model, _ = model_of_blocks(draw)
        chosen = model.head_.prepared.metric
        for head in model.head_.folds.heads:
            metric = head.prepared.metric
            assert metric.weights == pytest.approx(chosen.weights)
            assert bool(len(metric.removed)) == bool(len(chosen.removed))
        choices.add((chosen.weights, bool(len(chosen.removed))))
    assert len(choices) > 1


def test_the_calibration_of_blocks_is_that_of_a_model_that_never_saw_a_class(tmp_path):
    """The choices that models of folds take over are those of the remaining classes."""
    rng = np.random.default_rng(1)
    y = np.repeat(np.arange(5), 20)
    centres = 0.7 * rng.normal(size=(5, sum(WIDTHS)))
    X = (centres[y] + rng.normal(size=(len(y), sum(WIDTHS)))).astype(np.float32)
    Q = X + rng.normal(size=X.shape).astype(np.float32)
    settings = {"blocks": WIDTHS, "calibrate": True, "random_state": 0}
    forgot = ImprintClassifier(**settings).fit(X, y).forget(3)
    never = ImprintClassifier(**settings).fit(X[y != 3], y[y != 3])
    assert np.array_equal(forgot.known(Q), never.known(Q))
    assert forgot.expected_accuracy_ == never.expected_accuracy_
    forgot.save(tmp_path / "forgot")
    never.save(tmp_path / "never")
    assert (tmp_path / "forgot").read_bytes() == (tmp_path / "never").read_bytes()
    again = ImprintClassifier.load(tmp_path / "forgot")
    again.partial_fit(X[y == 3], y[y == 3])
    whole = ImprintClassifier(**settings).fit(X, y)
    assert np.array_equal(again.known(Q), whole.known(Q))
