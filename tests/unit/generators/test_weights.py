"""Row weights: a row of weight 2 counts as two equal rows."""

import numpy as np
import pytest

from imprint import aggregators, generators
from imprint.core.arrays import Proxies
from imprint.gaussian_process.scale import moments

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 5))
TIMES = RNG.integers(1, 4, 40)
REPEATED = np.repeat(X, TIMES, axis=0)


def rng():
    return np.random.default_rng(1)


def both(generator, split=None):
    """States of weighted rows and of repeated rows, computed at once or extended after `split` rows."""
    weight = TIMES.astype(float)
    if split is None:
        return generator.summarise(X, rng(), weight), generator.summarise(
            REPEATED, rng()
        )
    cut = TIMES[:split].sum()
    weighted = generator.extend(
        generator.summarise(X[:split], rng(), weight[:split]),
        X[split:],
        rng(),
        weight[split:],
    )
    return weighted, generator.extend(
        generator.summarise(REPEATED[:cut], rng()), REPEATED[cut:], rng()
    )


@pytest.mark.parametrize("split", [None, 15])
@pytest.mark.parametrize(
    "text",
    ["mean", "kmeans(k=1)", "kmeans(k=200)", "least_squares", "k_least_squares(k=1)"],
)
def test_weighted_rows_are_repeated_rows(text, split):
    generator = generators.family.resolve(text)
    weighted, repeated = both(generator, split)
    np.testing.assert_allclose(weighted["mass"], repeated["mass"])
    W, V = (generator.proxies([state])[0] for state in (weighted, repeated))
    np.testing.assert_allclose(W, V, atol=1e-12)
    if "spread" in weighted:
        np.testing.assert_allclose(weighted["spread"], repeated["spread"], atol=1e-12)


@pytest.mark.parametrize("split", [None, 15])
def test_kernel_sees_repeated_rows_of_all_as_their_mass(split):
    a = aggregators.family.resolve("kernel")
    weighted, repeated = both(generators.family.resolve("all"), split)
    other = X[:7] + 1  # a class without weights

    def scores(state, sums):
        rows = np.concatenate([state["rows"], other])
        mass = np.concatenate(
            [state.get("mass", np.ones(len(state["rows"]))), np.ones(7)]
        )
        labels = np.repeat([0, 1], [len(rows) - 7, 7])
        prepared = a.prepare(
            Proxies(rows, labels, mass, np.zeros(len(rows))),
            a.merge([sums, moments(other)]),
        )
        return a.scores(X, prepared)

    weight = TIMES.astype(float)
    np.testing.assert_allclose(
        scores(weighted, a.sums(X, X, weight)),
        scores(repeated, a.sums(REPEATED, REPEATED)),
        atol=1e-9,
    )


def test_a_class_without_weights_may_get_weighted_rows():
    generator = generators.family.resolve("all")
    state = generator.extend(
        generator.summarise(X[:3], rng()), X[3:5], rng(), np.array([2.0, 0.5])
    )
    assert state["mass"].tolist() == [1, 1, 1, 2, 0.5]
    assert generator.extend(state, X[5:6], rng())["mass"].tolist() == [
        1,
        1,
        1,
        2,
        0.5,
        1,
    ]


def test_medoids_and_covariances_count_weights():
    rows, weight = (
        np.array([[0.0, 1.0], [1.0, 1.0], [9.0, 1.0]]),
        np.array([1.0, 1.0, 50.0]),
    )
    for text in ("kmedoids(k=1)", "kmedoids(k=1, method='alternate')"):
        assert generators.family.resolve(text).summarise(rows, rng(), weight)[
            "rows"
        ].tolist() == [[9.0, 1.0]]
    total = generators.family.resolve("covmax(k=1)").summarise(rows, rng(), weight)[
        "total"
    ]
    np.testing.assert_allclose(total, weight @ rows)


def test_heavy_rows_are_drawn_more_often():
    generator = generators.family.resolve("random(k=1)")
    rows, weight = np.arange(4.0)[:, None], np.array([1.0, 1.0, 1.0, 9.0])
    drawn = [
        generator.summarise(rows, np.random.default_rng(seed), weight)["rows"][0, 0]
        for seed in range(400)
    ]
    assert 0.68 < np.mean(np.array(drawn) == 3) < 0.82


@pytest.mark.parametrize("name", generators.family.builtin())
def test_every_built_in_generator_takes_weights_of_one(name):
    cls = generators.family.load(name)
    assert cls().takes_weights
    plain, weighted = (
        cls().summarise(X, rng()),
        cls().summarise(X, rng(), np.ones(len(X))),
    )
    for key in plain:
        np.testing.assert_allclose(weighted[key], plain[key], atol=1e-12)


def test_max_and_kernel_count_weights_in_their_sums():
    for text in ("max", "kernel"):
        a = aggregators.family.resolve(text)
        weighted, repeated = (
            a.sums(X, X, TIMES.astype(float)),
            a.sums(REPEATED, REPEATED),
        )
        for name in repeated:
            np.testing.assert_allclose(weighted[name], repeated[name], rtol=1e-9)
