"""Suggestions and checks of embeddings of several blocks."""

import numpy as np
import pytest

from imprint import ImprintClassifier
from imprint.active import suggest
from imprint.active.suggestions import PreparedPool
from imprint.evaluation.inspection import duplicates, inspect_rows, outliers
from imprint.kernels.rows import unit_blocks

WIDTHS = (4, 3)


def rows(n=60, seed=0):
    """Groups in the first block; the second one has a million times longer rows."""
    rng = np.random.default_rng(seed)
    groups = np.arange(n) % 3
    X = np.empty((n, 7), np.float32)
    X[:, :4] = 4 * np.eye(4)[groups] + rng.normal(0, 0.3, (n, 4))
    X[:, 4:] = 1e7 * (1 + rng.normal(0, 0.02, (n, 3)))
    return X, groups


def test_every_block_has_the_same_length():
    U = unit_blocks(rows()[0].astype(np.float64), WIDTHS)
    for block in (U[:, :4], U[:, 4:]):
        np.testing.assert_allclose(np.linalg.norm(block, axis=1), np.sqrt(0.5))
    X = rows()[0]
    X[0, :4] = 0
    np.testing.assert_allclose(np.linalg.norm(unit_blocks(X, WIDTHS), axis=1), 1, 1e-6)


def test_suggestions_come_from_all_groups():
    X, groups = rows()
    # as one whole, the long block alone decides
    assert len(set(groups[suggest(X, 3, blocks=WIDTHS)])) == 3
    pool = PreparedPool(X, blocks=WIDTHS)
    assert pool.kernel[0, 3] > 0.8 > 0.6 > pool.kernel[0, 1]
    whole = PreparedPool(X)
    assert whole.kernel.min() < 0.2  # scaled to the long block


def test_suggestions_for_a_model_take_its_blocks():
    X, groups = rows()
    model = ImprintClassifier(blocks=WIDTHS, calibrate=True)
    model.fit(X[groups < 2], groups[groups < 2])
    chosen = model.suggest(X, 4)
    assert (groups[chosen] == 2).any()
    assert chosen.tolist() == suggest(X, 4, head=model._learnt.head).tolist()
    near = suggest(X[groups == 0], 3, head=model._learnt.head)
    assert len(near) < 3  # they are labelled already


def test_a_wrong_label_in_a_short_block_is_found():
    X, y = rows(90)
    names = [str(i) for i in range(len(X))]
    wrong = y.copy()
    wrong[[4, 30]] = (y[[4, 30]] + 1) % 3
    result = inspect_rows(X, wrong, names, blocks=WIDTHS)
    assert {suspect.path for suspect in result.mislabelled} == {"4", "30"}
    whole = inspect_rows(X, wrong, names)
    assert {suspect.path for suspect in whole.mislabelled} != {"4", "30"}


def test_duplicates_and_outliers_are_those_of_unit_blocks():
    X, _ = rows(90)
    X[5] = X[50] * np.float32(1.00001)
    X[7, :4] = [0, 0, 0, -4]
    assert duplicates(X, WIDTHS) == [[5, 50]]
    assert outliers(X, WIDTHS)[0] == 7
    assert 7 not in outliers(X)


@pytest.mark.parametrize("blocks", [(), WIDTHS])
def test_blocks_of_one_width_change_nothing_else(blocks):
    X, _ = rows(12)
    assert len(suggest(X, 5, blocks=blocks)) <= 5
