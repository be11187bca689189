"""The choice of block weights and of the metric in the aggregator `kernel`."""

import numpy as np
import pytest

from imprint import ImprintClassifier
from imprint.core.arrays import Proxies
from imprint.core.blocks import column_slices
from imprint.core.errors import ParameterError
from imprint.gaussian_process import choice, metric, scale

WIDTHS = (5, 3, 4)


@pytest.fixture
def rng():
    return np.random.default_rng(3)


@pytest.fixture
def proxies(rng):
    labels = np.repeat(np.arange(3), 6)
    rows = rng.normal(size=(18, 12)) + np.repeat(rng.normal(size=(3, 12)), 6, axis=0)
    mass = rng.integers(1, 5, size=18).astype(float)
    return Proxies(rows, labels, mass, rng.uniform(0, 0.3, size=18), WIDTHS)


def noisy_block_task(rng, per_class=12):
    """The first block is noise, the second one tells the classes."""
    y = np.repeat(np.arange(4), per_class)
    centres = rng.normal(size=(4, 6))
    signal = centres[y] + 0.3 * rng.normal(size=(len(y), 6))
    noise = rng.normal(size=(len(y), 20))
    return np.hstack([noise, signal]).astype("float32"), y


def test_weights_that_separate_the_classes_are_chosen(rng):
    X, y = noisy_block_task(rng)
    clf = ImprintClassifier(generator="all", blocks=(20, 6)).fit(X, y)
    assert clf.head_.prepared.metric.weights == (0.0, 1.0)
    Q, t = noisy_block_task(np.random.default_rng(3), per_class=12)
    assert clf.score(Q, t) == 1.0


def test_fixed_weights_are_a_scaling_of_columns(proxies, rng):
    weights = (2.0, 1.0, 0.5)
    X = proxies.weights
    Q = rng.normal(size=(7, 12))
    settings = {"generator": "all", "norm_pre": "none", "norm_inf": "none"}
    aggregator = f"kernel(weights={weights}, shrinkage='none')"
    clf = ImprintClassifier(**settings, aggregator=aggregator, blocks=WIDTHS)
    scales = np.repeat(np.sqrt(np.array(weights) / 3.5), WIDTHS)
    plain = ImprintClassifier(**settings).fit(X * scales, proxies.labels)
    expected = plain.decision_function(Q * scales)
    clf.fit(X, proxies.labels)
    np.testing.assert_allclose(clf.decision_function(Q), expected, rtol=1e-9)


def test_distances_are_those_of_the_shrunk_within_class_covariance(proxies):
    weighted = metric.weigh_blocks(WIDTHS, (2.0, 1.0, 1.0))
    X, labels = proxies.weights, proxies.labels
    placed = metric.shrink_within_classes(weighted, X, labels, 0.5).apply(X)
    scaled = X * weighted.scales
    deviations = scaled - np.stack([scaled[labels == c].mean(0) for c in labels])
    within = deviations.T @ deviations / len(X)
    lam = 0.5 * np.trace(within) / len(X)
    inverse = np.linalg.inv(np.eye(12) + within / lam)
    for i, j in [(0, 1), (0, 17), (5, 9)]:
        difference = scaled[i] - scaled[j]
        expected = difference @ inverse @ difference
        distance = np.square(placed[i] - placed[j]).sum()
        assert distance == pytest.approx(expected, rel=1e-9)


def test_a_large_shrinkage_changes_nothing(proxies):
    weighted = metric.weigh_blocks(WIDTHS, (1.0, 1.0, 1.0))
    X = proxies.weights
    placed = metric.shrink_within_classes(weighted, X, proxies.labels, 1e12).apply(X)
    np.testing.assert_allclose(placed, weighted.apply(X), atol=1e-9)


def scores_without(sample, kept, queries, rows, spread):
    """The scores of queries, solved from scratch from the kept rows."""
    part = sample.part(kept)
    inner = rows[kept] @ rows[kept].T
    cross = rows[queries] @ rows[kept].T
    squares = np.square(rows[queries]).sum(axis=1)
    return choice._scores(inner, cross, squares, part, spread)


def test_the_metric_is_converted_once_for_all_queries(proxies, rng):
    weighted = metric.weigh_blocks(WIDTHS, (2.0, 1.0, 1.0))
    one = metric.shrink_within_classes(weighted, proxies.weights, proxies.labels, 0.1)
    Q = rng.normal(size=(300, 12)).astype(np.float32)
    first, second = one._operands(Q), one._operands(Q[:1])
    assert all(a is b and a.dtype == np.float32 for a, b in zip(first, second))
    placed = one.apply(Q)
    assert placed.dtype == np.float32
    np.testing.assert_allclose(placed, one.apply(Q.astype(np.float64)), atol=1e-5)


def test_the_leave_one_out_loss_is_that_of_models_without_each_row(proxies):
    sample = choice.sample_proxies(proxies, noise=0.1)
    # The closed form keeps the scale of all rows, so the check must as well.
    inner = sample.rows @ sample.rows.T
    fixed = choice._scale(inner, sample.mass)
    rows = sample.rows / np.sqrt(fixed)
    n = len(rows)
    left_out = np.empty_like(sample.targets)
    for i in range(n):
        kept = np.delete(np.arange(n), i)
        squares = np.square(rows[kept][:, None] - rows[kept]).sum(axis=2)
        noise = sample.noise[kept] + 0.2 * sample.spread[kept] / fixed
        system = np.exp(-squares) + np.diag(noise)
        k = np.exp(-np.square(rows[i] - rows[kept]).sum(axis=1))
        left_out[i] = k @ np.linalg.solve(system, sample.targets[kept])
    assessed = np.ones(n, dtype=bool)
    expected = choice._log_loss(left_out, sample, assessed)
    loss = choice._leave_one_out_loss(inner, sample, 0.2, assessed)
    assert loss == pytest.approx(expected, rel=1e-9)


def test_scores_of_a_fold_are_those_in_the_metric_of_the_other_rows(proxies):
    sample = choice.sample_proxies(proxies, noise=0.1)
    held_out = np.arange(0, 18, 3)
    rest = np.setdiff1d(np.arange(18), held_out)
    products = sample.rows @ sample.rows.T
    plain, in_metric = choice._scores_of_fold(
        products, sample, rest, held_out, 0.2, [0.3]
    )
    identity = metric.share_blocks((12,), (1.0,))
    shrunk = metric.shrink_within_classes(
        identity, sample.rows[rest], sample.labels[rest], 0.3
    )
    expected = scores_without(sample, rest, held_out, sample.rows, 0.2)
    np.testing.assert_allclose(plain, expected, rtol=1e-9)
    rows = shrunk.apply(sample.rows)
    expected = scores_without(sample, rest, held_out, rows, 0.2)
    np.testing.assert_allclose(in_metric, expected, rtol=1e-9)


@pytest.mark.parametrize("generator", ["all", "kmeans(k=3)", "mean"])
def test_order_of_classes_does_not_change_the_choice(rng, generator):
    X, y = noisy_block_task(rng)
    settings = {"generator": generator, "blocks": (20, 6)}
    whole = ImprintClassifier(**settings).fit(X, y)
    grown = ImprintClassifier(**settings).fit(X[y > 1], y[y > 1])
    for label in (1, 0, 9):
        rows = X[y == label] if label < 9 else X[:5]
        grown.partial_fit(rows, np.full(len(rows), label))
    grown.forget(9)
    expected = whole.head_.prepared.metric
    chosen = grown.head_.prepared.metric
    assert chosen.weights == expected.weights
    assert chosen.removed.tobytes() == expected.removed.tobytes()
    assert grown.proxies_.weights.tobytes() == whole.proxies_.weights.tobytes()
    scores = grown.decision_function(X)
    assert scores.tobytes() == whole.decision_function(X).tobytes()


def test_large_systems_are_updated_while_the_weights_stay(rng, monkeypatch):
    monkeypatch.setattr(scale, "MAX_RESOLVED_PROXIES", 10)
    X, y = noisy_block_task(rng, per_class=20)
    # The first model must have the weights and the rounded scale of the last one.
    settings = {"generator": "all", "blocks": (20, 6)}
    first = ImprintClassifier(**settings).fit(X[y < 3], y[y < 3])
    assert not len(first.head_.prepared.metric.removed)
    before = first.head_.prepared
    grown = first.partial_fit(X[y == 3], y[y == 3])
    whole = ImprintClassifier(**settings).fit(X, y)
    after = grown.head_.prepared
    assert after.scale == before.scale  # else the test below compares two fresh fits
    assert after.system.factor is not before.system.factor
    assert after.metric is before.metric
    np.testing.assert_allclose(
        grown.decision_function(X), whole.decision_function(X), atol=2e-6
    )


def test_large_systems_are_solved_again_if_the_weights_change(rng, monkeypatch):
    monkeypatch.setattr(scale, "MAX_RESOLVED_PROXIES", 10)
    X, y = noisy_block_task(rng, per_class=20)
    swapped = np.hstack([X[:, 20:], X[:, 20:], X[:, :14]])  # now the first block tells
    settings = {"generator": "all", "blocks": (20, 6)}
    first = ImprintClassifier(**settings).fit(X, y)
    before = first.head_.prepared.metric.weights
    more = np.concatenate([y + 4, y + 8, y + 12])
    grown = first.partial_fit(np.vstack([swapped, 2 - swapped, -swapped]), more)
    whole = ImprintClassifier(**settings)
    whole.fit(np.vstack([X, swapped, 2 - swapped, -swapped]), np.concatenate([y, more]))
    assert grown.head_.prepared.metric.weights == whole.head_.prepared.metric.weights
    assert grown.head_.prepared.metric.weights != before
    np.testing.assert_allclose(
        grown.decision_function(X), whole.decision_function(X), atol=1e-9
    )


def test_one_row_per_class_takes_the_default_weights(rng):
    X = rng.normal(size=(3, 12))
    clf = ImprintClassifier(blocks=WIDTHS).fit(X, ["a", "b", "c"])
    assert clf.head_.prepared.metric.weights == (0.5, 0.25, 0.25)
    assert clf.predict(X).tolist() == ["a", "b", "c"]


def test_equal_rows_have_a_metric(rng):
    X = np.ones((6, 12))
    clf = ImprintClassifier(blocks=WIDTHS).fit(X, ["a", "a", "a", "b", "b", "b"])
    assert np.isfinite(clf.decision_function(X)).all()


def test_a_fixed_shrinkage_is_used_where_none_would_be_chosen(rng):
    y = np.repeat(np.arange(3), 20)
    X = 5 * rng.normal(size=(3, 12))[y] + rng.normal(size=(60, 12))
    metric_of = {}
    for shrinkage in ("'auto'", "'none'", "0.1"):
        aggregator = f"kernel(shrinkage={shrinkage})"
        clf = ImprintClassifier(
            generator="all", aggregator=aggregator, blocks=WIDTHS
        ).fit(X, y)
        metric_of[shrinkage] = clf.head_.prepared.metric
    assert not len(metric_of["'auto'"].removed)
    assert not len(metric_of["'none'"].removed)
    assert len(metric_of["0.1"].removed)


def test_very_many_classes_are_sampled(rng):
    labels = np.repeat(np.arange(900), 3)
    count = len(labels)
    many = Proxies(
        rng.normal(size=(count, 12)), labels, np.ones(count), np.zeros(count), WIDTHS
    )
    sample = choice.sample_proxies(many, 0.1)
    assert len(sample.rows) <= choice.MAX_PROXIES
    assert np.bincount(sample.labels).min() > 1


@pytest.mark.parametrize(
    ("aggregator", "problem"),
    [
        ("kernel(weights=(1, 2))", "2 weights, and the embeddings have 3 blocks"),
        ("kernel(weights=(0, 0, 0))", "weights must be 'auto' or numbers >= 0"),
        ("kernel(weights=(1, -1, 2))", "weights must be 'auto' or numbers >= 0"),
        ("kernel(weights='equal')", "weights must be 'auto' or numbers >= 0"),
        ("kernel(shrinkage=0)", "shrinkage must be 'auto', 'none' or a number > 0"),
        ("kernel(shrinkage='some')", "shrinkage must be 'auto', 'none' or a number"),
    ],
)
def test_weights_that_do_not_fit_are_refused(proxies, aggregator, problem):
    clf = ImprintClassifier(generator="all", aggregator=aggregator, blocks=WIDTHS)
    with pytest.raises(ParameterError, match=problem):
        clf.fit(proxies.weights, proxies.labels)


def test_weights_without_blocks_are_refused(proxies):
    clf = ImprintClassifier(aggregator="kernel(weights=(1, 2))")
    with pytest.raises(ParameterError, match="the embeddings have 1 block"):
        clf.fit(proxies.weights, proxies.labels)


def test_explanations_add_up_to_the_score(rng):
    X, y = noisy_block_task(rng)
    clf = ImprintClassifier(generator="all", blocks=(20, 6)).fit(X, y)
    contributions = clf.head_.evidence(X[0])
    scores = clf.head_.scores(X[:1])[0]
    assert contributions.sum() == pytest.approx(scores.max(), abs=1e-5)


def test_blocks_of_tags(rng):
    X, y = noisy_block_task(rng, per_class=5)
    tags = np.stack([y % 2, y // 2], axis=1)
    settings = {"generator": "all", "aggregator": "kernel(noise=1)"}
    clf = ImprintClassifier(**settings, blocks=(20, 6)).fit(X, tags)
    plain = ImprintClassifier(**settings).fit(X, tags)
    Q, t = noisy_block_task(np.random.default_rng(3), per_class=100)
    truth = np.stack([t % 2, t // 2], axis=1)
    assert (clf.predict(Q) == truth).mean() > (plain.predict(Q) == truth).mean()


def test_exported_graphs_and_arrays_answer_like_the_model(rng, tmp_path):
    import onnxruntime
    from safetensors.numpy import load_file

    from imprint.export import export

    X, y = noisy_block_task(rng)
    clf = ImprintClassifier(generator="kmeans(k=4)", blocks=(20, 6), calibrate=True)
    clf.fit(X, y)
    assert len(clf.head_.prepared.metric.weights) == 2
    export(clf, tmp_path / "m.onnx", to="onnx")
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    feed = {session.get_inputs()[0].name: X}
    scores, probabilities, known = session.run(
        ["scores", "probabilities", "known"], feed
    )
    np.testing.assert_allclose(scores, clf.head_.scores(X), atol=1e-5)
    np.testing.assert_allclose(probabilities, clf.predict_proba(X), atol=1e-5)
    np.testing.assert_allclose(known, clf.known(X), atol=1e-9)
    export(clf, tmp_path / "m.safetensors", to="torch")
    arrays = load_file(tmp_path / "m.safetensors")
    blocks = [
        X[:, columns] / np.linalg.norm(X[:, columns], axis=1, keepdims=True)
        for columns in column_slices((20, 6))
    ]
    q = np.hstack(blocks) * arrays["scales"]
    along = (q @ arrays["directions"].T) * arrays["removed"]
    q = q - along @ arrays["directions"]
    rate = clf.head_.aggregator.gamma / clf.head_.prepared.scale
    distances = np.square(q[:, None] - arrays["weight"]).sum(axis=2)
    by_hand = np.exp(-rate * distances) @ arrays["coefficients"]
    np.testing.assert_allclose(by_hand, clf.head_.scores(X), atol=1e-5)


@pytest.mark.parametrize("aggregator", ["max", "nearest(m=3)"])
def test_max_and_nearest_take_fixed_weights(rng, aggregator):
    X, y = noisy_block_task(rng)
    name = aggregator.partition("(")[0]
    inner = aggregator.removeprefix(name).strip("()")
    settings = ", ".join(part for part in (inner, "weights=(0, 1)") if part)
    weighted = ImprintClassifier(
        generator="all", aggregator=f"{name}({settings})", blocks=(20, 6)
    ).fit(X, y)
    alone = ImprintClassifier(generator="all", aggregator=aggregator)
    alone.fit(X[:, 20:], y)
    Q, _ = noisy_block_task(np.random.default_rng(3))
    assert weighted.predict(Q).tolist() == alone.predict(Q[:, 20:]).tolist()
    equal = f"{name}({settings.replace('(0, 1)', '(2, 2)')})"
    same = ImprintClassifier(generator="all", aggregator=equal, blocks=(20, 6))
    plain = ImprintClassifier(generator="all", aggregator=aggregator, blocks=(20, 6))
    expected = plain.fit(X, y).decision_function(Q)
    np.testing.assert_allclose(same.fit(X, y).decision_function(Q), expected, rtol=1e-6)


@pytest.mark.parametrize("aggregator", ["max", "nearest"])
def test_fixed_weights_that_do_not_fit_are_refused(proxies, aggregator):
    X, y = proxies.weights, proxies.labels
    short = ImprintClassifier(aggregator=f"{aggregator}(weights=(1, 2))", blocks=WIDTHS)
    with pytest.raises(ParameterError, match="2 weights, and the embeddings have 3"):
        short.set_params(generator="all").fit(X, y)
    auto = ImprintClassifier(aggregator=f"{aggregator}(weights='auto')", blocks=WIDTHS)
    with pytest.raises(ParameterError, match="'equal' or numbers >= 0"):
        auto.fit(X, y)
