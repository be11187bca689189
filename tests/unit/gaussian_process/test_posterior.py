"""The posterior of `kernel` equals a full Gaussian process, also after classes are added and removed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from threadpoolctl import threadpool_limits

from imprint import ImprintClassifier
from imprint.gaussian_process import nystroem
from imprint.gaussian_process.local import solve_locally
from imprint.gaussian_process.nystroem import solve_by_centres
from imprint.gaussian_process.posterior import add_classes, remove_classes, solve
from imprint.gaussian_process.scale import (
    MAX_RESOLVED_PROXIES,
    merge_moments,
    moments,
    rounded_scale,
    scale,
    scale_for,
)

RATE = 0.04


def drawn(classes, per_class, width=12, seed=0):
    """Random proxies with labels and noise, and random queries."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(classes, 1, width))
    W = (centres + rng.normal(size=(classes, per_class, width))).reshape(-1, width)
    labels = np.repeat(np.arange(classes), per_class)
    return W, labels, rng.uniform(0.01, 0.3, len(W)), rng.normal(size=(150, width))


def whole(W, labels, noise):
    """scikit-learn's Gaussian process on one-hot labels."""
    process = GaussianProcessRegressor(
        RBF(np.sqrt(0.5 / RATE)), alpha=noise, optimizer=None
    )
    return process.fit(W.astype(float), np.eye(labels.max() + 1)[labels])


def agree(system, W, labels, noise, Q):
    scores, doubts = whole(W, labels, noise).predict(Q, return_std=True)
    np.testing.assert_allclose(system.scores(Q), scores.reshape(len(Q), -1), atol=1e-9)
    np.testing.assert_allclose(
        system.doubt(Q), doubts.reshape(len(Q), -1)[:, 0], atol=1e-9
    )


@pytest.mark.parametrize(("classes", "per_class"), [(1, 1), (3, 1), (7, 20), (60, 20)])
def test_equals_a_gaussian_process(classes, per_class):
    W, labels, noise, Q = drawn(classes, per_class)
    agree(solve(W, labels, noise, RATE), W, labels, noise, Q)


@settings(max_examples=20)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 99)), min_size=1, max_size=8))
def test_classes_are_added_and_removed_exactly(steps):
    W, labels, noise, Q = drawn(70, 8)
    present = list(range(0, 70, 2))

    def rows(classes):
        return np.isin(labels, classes)

    def places(classes):
        return np.searchsorted(present, labels[rows(classes)])

    system = solve(W[rows(present)], places(present), noise[rows(present)], RATE)
    for comes, draw in steps:
        absent = sorted(set(range(70)) - set(present))
        if comes:
            new = [absent[draw % len(absent)], absent[-1]]
            present = sorted({*present, *new})
            system = add_classes(system, W[rows(new)], places(new), noise[rows(new)])
        else:
            place = draw % len(present)
            del present[place]
            system = remove_classes(system, [place])
    agree(system, W[rows(present)], places(present), noise[rows(present)], Q)
    fresh = solve(W[rows(present)], places(present), noise[rows(present)], RATE)
    np.testing.assert_allclose(system.coefficients, fresh.coefficients, atol=1e-9)
    np.testing.assert_allclose(
        system.contributions(Q, np.arange(150) % 5),
        fresh.contributions(Q, np.arange(150) % 5),
    )


def test_an_update_does_not_change_the_old_system_and_shares_its_factor():
    W, labels, noise, Q = drawn(60, 20)
    first = solve(W, labels, noise, RATE)
    scores, blocks = first.scores(Q), [block.copy() for block in first.factor.left]
    more = remove_classes(
        add_classes(first, W[:5] + 0.1, np.full(5, 30), noise[:5]), [3, 4]
    )
    assert more.factor.left[0] is first.factor.left[0]
    assert more.factor.left[1] is first.factor.left[1]
    assert all(np.array_equal(a, b) for a, b in zip(blocks, first.factor.left))
    assert np.array_equal(scores, first.scores(Q))


def test_a_system_is_factored_again_after_many_removals():
    W, labels, noise, _ = drawn(40, 5)
    system = solve(W, labels, noise, RATE)
    sizes = []
    for _ in range(7):
        system = remove_classes(system, [0])
        sizes.append(len(system.factor))
    assert sizes == [200, 200, 200, 200, 200, 170, 170]


def test_small_systems_are_solved_again_bit_for_bit():
    W, labels, _, Q = drawn(9, 20)
    rest = labels != 4
    parts = dict(generator="all", aggregator="kernel", random_state=0)
    model = ImprintClassifier(**parts).fit(W, labels)
    model.decision_function(Q)
    fresh = ImprintClassifier(**parts).fit(W[rest], labels[rest])
    assert np.array_equal(
        model.forget(4).decision_function(Q), fresh.decision_function(Q)
    )
    unseen = (
        ImprintClassifier(**parts)
        .fit(W[rest], labels[rest])
        .partial_fit(W[~rest], labels[~rest])
    )
    model.partial_fit(W[~rest], labels[~rest])
    assert np.array_equal(model.decision_function(Q), unseen.decision_function(Q))


def test_contributions_sum_to_the_score():
    W, labels, noise, Q = drawn(5, 4)
    system = solve(W, labels, noise, RATE)
    parts = system.contributions(Q, np.full(len(Q), 2))
    assert parts.shape == (len(Q), len(W))
    np.testing.assert_allclose(parts.sum(axis=1), system.scores(Q)[:, 2])


def test_close_rows_far_from_the_origin():
    rng = np.random.default_rng(0)
    W = 1000 + rng.normal(size=(40, 30))
    W[1::2] = W[::2] + 1e-5 * rng.normal(size=(20, 30))
    labels, noise = np.arange(40) % 2, np.full(40, 1e-9)
    Q = W + 1e-5
    kernel = np.exp(-RATE * ((Q[:, None] - W) ** 2).sum(axis=2))
    M = np.exp(-RATE * ((W[:, None] - W) ** 2).sum(axis=2)) + np.diag(noise)
    expected = kernel @ np.linalg.solve(M, np.eye(2)[labels])
    np.testing.assert_allclose(
        solve(W, labels, noise, RATE).scores(Q), expected, atol=1e-4
    )


@pytest.mark.parametrize("classes", [3, 20])
def test_centres_that_are_all_proxies_change_nothing(classes):
    W, labels, noise, Q = drawn(classes, 10)
    through = solve_by_centres(W, labels, noise, RATE, len(W))
    assert np.array_equal(through.rows, np.arange(len(W)))
    scores, doubts = whole(W, labels, noise).predict(Q, return_std=True)
    np.testing.assert_allclose(through.scores(Q), scores, atol=2e-4)
    np.testing.assert_allclose(through.doubt(Q), doubts[:, 0], atol=2e-3)
    parts = through.contributions(Q, np.zeros(150, dtype=int))
    np.testing.assert_allclose(parts.sum(axis=1), through.scores(Q)[:, 0], atol=1e-5)


@pytest.mark.parametrize("held", [2**28, 0])
def test_some_centres_fit_all_proxies(held, monkeypatch):
    """By conjugate gradients, with kernels stored or computed again in every step."""
    monkeypatch.setattr(nystroem, "MAX_STORED_KERNELS", held)
    W, labels, noise, Q = drawn(6, 100, width=3)
    through = solve_by_centres(W, labels, noise, RATE, 120)
    assert np.array_equal(np.bincount(labels[through.rows]), np.full(6, 20))
    np.testing.assert_allclose(
        through.scores(Q), solve(W, labels, noise, RATE).scores(Q), atol=2e-2
    )


def test_the_doubt_of_centres_is_that_of_all_proxies():
    W, labels, noise, Q = drawn(6, 100)
    through, exact = (
        solve_by_centres(W, labels, noise, RATE, 300),
        solve(W, labels, noise, RATE),
    )
    assert np.corrcoef(through.doubt(Q), exact.doubt(Q))[0, 1] > 0.95


def test_nearest_classes_decide_among_many(monkeypatch):
    W, labels, noise, Q = drawn(90, 4)
    exact = solve(W, labels, noise, RATE)
    local = solve_locally(W, labels, noise, RATE)  # the proxies of 64 of 90 classes
    assert (
        np.mean(local.scores(Q).argmax(axis=1) == exact.scores(Q).argmax(axis=1)) > 0.9
    )
    np.testing.assert_allclose(local.doubt(Q), exact.doubt(Q), atol=0.05)
    parts = local.contributions(Q, np.full(len(Q), 7))
    np.testing.assert_allclose(parts.sum(axis=1), local.scores(Q)[:, 7], atol=1e-12)
    monkeypatch.setattr("imprint.gaussian_process.local.SYSTEM_PROXIES", 1000)
    np.testing.assert_allclose(
        solve_locally(W, labels, noise, RATE).scores(Q), exact.scores(Q), atol=1e-9
    )


@pytest.mark.parametrize("classes", [3, 60])
def test_float32_queries_of_few_and_many_classes(classes):
    W, labels, noise, Q = drawn(classes, 20)
    system = solve(W.astype(np.float32), labels, noise + 1, RATE)
    Q = Q.astype(np.float32)
    assert system.scores(Q).dtype == np.float32
    np.testing.assert_allclose(
        system.scores(Q), system.scores(Q.astype(np.float64)), rtol=0, atol=5e-6
    )


@pytest.mark.parametrize(("noise", "is_shared"), [(0.1, True), (1e-9, False)])
def test_scores_and_doubt_of_float32_queries_share_kernels_where_precise(
    noise, is_shared
):
    W, labels, _, Q = drawn(6, 20)
    variances = np.full(len(W), noise)
    system = solve(W.astype(np.float32), labels, variances, RATE)
    narrow = Q.astype(np.float32)
    assert system._has_shared_kernels(narrow) is is_shared
    scores, doubt = system.scores_and_doubt(narrow)
    assert scores.dtype == doubt.dtype == np.float32
    np.testing.assert_allclose(scores, system.scores(narrow), rtol=0, atol=1e-6)
    assert np.array_equal(doubt, system.doubt(narrow))
    # the proxies in float64, twice as large, are kept only where they are needed
    assert ("lifted" in system.__dict__) is not is_shared
    exact = system.doubt(narrow.astype(np.float64))
    np.testing.assert_allclose(doubt, exact, rtol=0, atol=1e-5)


def test_too_little_noise_is_an_error():
    with pytest.raises(np.linalg.LinAlgError):
        solve(np.ones((3, 2)), np.arange(3), np.full(3, -1e-9), RATE)


def test_threads_change_no_bit():
    W, labels, noise, Q = drawn(80, 20)
    results = []
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"):
            system = solve(W, labels, noise, RATE)
            results.append(np.c_[system.scores(Q), system.doubt(Q)])
    assert np.array_equal(*results)


def test_scales():
    X = np.random.default_rng(0).normal(size=(50, 3)) + 5
    s = scale(merge_moments([moments(X[:20]), moments(X[20:])]))
    assert s == pytest.approx(2 * X.var(axis=0).sum())
    older = {
        "total": X.sum(axis=0),
        "square": np.array([(X * X).sum()]),
        "rows": np.array([50.0]),
    }
    assert scale(older) == pytest.approx(s)
    assert scale(merge_moments([older, moments(X)])) == pytest.approx(s)
    assert scale(moments(np.full((7, 1), 0.1))) == 1.0
    assert all(
        rounded_scale(2 ** (step / 4 + d)) == pytest.approx(2 ** (step / 4))
        for step in (-9, 0, 5)
        for d in (-0.12, 0.12)
    )


def test_only_the_scale_of_systems_that_are_updated_is_rounded():
    sums = moments(np.random.default_rng(0).normal(size=(50, 3)))
    assert scale_for(sums, MAX_RESOLVED_PROXIES) == scale(sums)
    assert (
        scale_for(sums, MAX_RESOLVED_PROXIES + 1)
        == rounded_scale(scale(sums))
        != scale(sums)
    )


@pytest.mark.shared
def test_real_rows_in_float32_and_as_restated(shared_folder, monkeypatch):
    monkeypatch.syspath_prepend(shared_folder / "kernel")
    import restated

    X, y, Q, _ = restated.read(
        shared_folder / "embeddings" / "subset" / "deit_tiny-mnist.npz"
    )
    model = restated.Kernel(X, y)
    noise = (model.factor**2).sum(axis=1) - 1
    system = solve(model.centres, model.owners, noise, 1 / model.scale)
    scores, doubts = model.scores(Q)
    np.testing.assert_allclose(system.scores(Q), scores, atol=1e-9)
    np.testing.assert_allclose(system.doubt(Q), doubts, atol=1e-9)
    Q = Q.astype(np.float32)
    for rows in (slice(None, None, 30), slice(None)):
        system = solve(
            X[rows].astype(np.float32),
            y[rows],
            np.full(len(X[rows]), 0.1),
            1 / model.scale,
        )
        np.testing.assert_allclose(
            system.scores(Q), system.scores(Q.astype(np.float64)), atol=1e-5
        )
