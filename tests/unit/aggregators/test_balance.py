"""`kernel(balance=...)`: classes with few rows next to classes with many rows."""

import numpy as np
import pytest

from imprint import ImprintClassifier
from imprint.aggregators.kernel import class_weights
from imprint.core.arrays import Proxies
from imprint.estimator.persistence import head_from_parts, head_to_parts
from imprint.head import Head
from imprint.method import Method

PARTS = dict(norm_pre="l2", generator="kmeans(k=50)", norm_post="none", norm_inf="l2")
SETTINGS = [
    (5, 1, 300),
    (5, 3, 300),
    (20, 1, 300),
    (20, 3, 300),
    (5, 3, 50),
    (2, 3, 50),
    (1, 3, 20),
]
"""Rows and number of the small classes, rows of the others."""


def rows_of(sizes, width=6, seed=0):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(len(sizes)), sizes)
    return rng.normal(size=(len(sizes), width))[y] + rng.normal(size=(len(y), width)), y


@pytest.mark.parametrize("generator", ["all", "mean", "kmeans(k=3)", "random(k=3)"])
def test_classes_of_equal_size_change_by_no_bit(generator):
    X, y = rows_of([12, 12, 12])
    models = [
        ImprintClassifier(
            generator=generator, aggregator=f"kernel(balance={b})", random_state=0
        )
        for b in (0, 2)
    ]
    assert np.array_equal(*(m.fit(X, y).decision_function(X) for m in models))


def test_scores_are_multiplied_by_a_power_of_the_share_also_after_changes():
    X, y = rows_of([40, 5, 20, 3])
    plain, balanced = (
        ImprintClassifier(aggregator=f"kernel(balance={b})", random_state=0)
        for b in (0, 0.5)
    )
    for model in (plain, balanced):
        model.fit(X[y < 3], y[y < 3]).partial_fit(X[y == 3], y[y == 3]).forget(2)
    rows = np.array([40, 5, 3])
    expected = plain.decision_function(X) * (rows.mean() / rows) ** 0.5
    np.testing.assert_allclose(balanced.decision_function(X), expected, rtol=1e-9)


def test_a_file_written_before_balance_answers_as_it_did():
    """The aggregator in such files has no balance; it is then 0, not the current default."""
    X, y = rows_of([40, 5, 20])
    head = Head(Method.of(**PARTS, aggregator="kernel(balance=0)"), 0, "float64").learn(
        X, y
    )
    document, arrays = head_to_parts(head)
    assert (
        document["parts"]["aggregator"]
        == "kernel(gamma=1.0, noise=0.1, spread=0.2, balance=0.0)"
    )
    document["parts"]["aggregator"] = "kernel(gamma=1.0, noise=0.1, spread=0.2)"
    old = head_from_parts(document, arrays, "old.imprint")
    assert old.method.aggregator.balance == 0
    assert np.array_equal(old.scores(X), head.scores(X))
    assert Method.of(**PARTS, aggregator="kernel").aggregator.balance == 0.35


@pytest.mark.shared
def test_recall_on_real_embeddings(shared_folder):
    """Means over six packs and two draws; without balance the mean of the seven settings is 72.5 %."""
    means = []
    for name in ("tinynet", "deit_tiny"):
        for data in ("mnist", "fashionmnist", "cifar10"):
            pack = np.load(
                shared_folder / "embeddings" / "subset" / f"{name}-{data}.npz"
            )
            offset = pack["offset"] if "offset" in pack.files else 0
            X, Q = (
                pack[part].astype(np.float32) * pack["scale"] + offset
                for part in ("train", "test")
            )
            y, t = pack["train_labels"].astype(int), pack["test_labels"].astype(int)
            for setting in SETTINGS:
                means += [mean_recall(X, y, Q, t, *setting, seed) for seed in (0, 1)]
    assert np.mean(means) >= 77.5


def mean_recall(X, y, Q, t, few, small, many, seed):
    rng = np.random.default_rng(seed)
    sizes = np.where(np.isin(np.arange(10), rng.permutation(10)[:small]), few, many)
    rows = np.concatenate(
        [rng.permutation(np.flatnonzero(y == c))[:n] for c, n in enumerate(sizes)]
    )
    head = Head(Method.of(**PARTS, aggregator="kernel"), seed, "float32").learn(
        X[rows], y[rows]
    )
    return 100 * (np.bincount(t, head.winners(Q) == t) / np.bincount(t)).mean()


def test_rows_beyond_four_times_the_largest_number_of_proxies_do_not_count():
    proxies = Proxies(
        np.zeros((3, 2)), np.array([0, 0, 1]), np.array([60.0, 40.0, 2.0]), np.zeros(3)
    )
    np.testing.assert_allclose(
        class_weights(proxies, 0.5), [(5 / 8) ** 0.5, (5 / 2) ** 0.5]
    )
