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
