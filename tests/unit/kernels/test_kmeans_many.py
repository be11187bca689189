"""Many k-means problems on the same few rows: each result equals that of a single `kmeans`, bit for bit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from imprint.core.errors import ParameterError
from imprint.kernels import cpu
from imprint.kernels import kmeans as kernel
from imprint.kernels.compiled import kmeans as compiled
from imprint.kernels.compiled.kmeans import CompiledRows, GramRows
from imprint.kernels.kmeans import Problem, kmeans, kmeans_many

SEEDS = (3, (17, 5))


@pytest.fixture(autouse=True)
def always_compiled(monkeypatch):
    monkeypatch.setattr(cpu, "MIN_COMPILED_WORK", 0)


@pytest.fixture
def calls(monkeypatch):
    """Counts of seedings and iterations by the Gram matrix, and of those left to sketches."""
    seen = {"choose": 0, "lloyd": 0, "sketched": 0}

    def record(name, method):
        def recorded(self, *args):
            seen[name] += isinstance(self, GramRows)
            return method(self, *args)

        return recorded

    for name in ("choose", "lloyd"):
        monkeypatch.setattr(GramRows, name, record(name, getattr(GramRows, name)))
    sketched = record("sketched", lambda self: CompiledRows(self.X, self.weight))
    monkeypatch.setattr(CompiledRows, "sketched", property(sketched))
    return seen


def by_sketches(X, k, rng, **options):
    """The clusters without a Gram matrix."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel, "MAX_GRAM_ROWS", 0)
        return kmeans(X, k, rng, **options)


def assert_each_as_alone(X, ks=(2, 3, 5, 10, 20), mass=None, **options):
    problems = [Problem(0, k, seed) for k in ks for seed in SEEDS]
    for (_, k, seed), result in zip(
        problems, kmeans_many([X], problems, [mass], **options), strict=True
    ):
        alone = by_sketches(X, k, np.random.default_rng(seed), mass=mass, **options)
        for name, ours, theirs in zip(result._fields, result, alone, strict=True):
            assert np.array_equal(ours, theirs), (name, k, seed)
            assert np.asarray(ours).dtype == np.asarray(theirs).dtype, name


def normal(n, d, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def whole_numbers(n, d):
    return np.random.default_rng(n).integers(-2, 3, size=(n, d)).astype(np.float64)


ROWS = {
    "normal": normal(300, 40),
    "far from the origin": normal(200, 30) * 0.01 + 100,
    "clipped": np.maximum(normal(300, 64) - 0.5, 0),
    "low rank": normal(250, 3) @ normal(3, 50),
    "whole numbers": whole_numbers(200, 12),
    "grid": whole_numbers(150, 2),
    "duplicates": normal(30, 20)[np.arange(200) % 30],
    "mirrored": np.vstack([normal(80, 9), -normal(80, 9)]),
    "skewed": np.exp(normal(200, 5) * 3),
    "few": normal(6, 4),
    "small": normal(100, 8) * 1e-9,
}


@pytest.mark.parametrize("tol", [1e-4, 0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ROWS)
def test_each_problem_equals_a_single_run(kind, dtype, tol, calls):
    assert_each_as_alone(ROWS[kind].astype(dtype), tol=tol)
    assert calls["lloyd"] > calls["sketched"]


@pytest.mark.parametrize("kind", ROWS)
def test_each_as_alone_with_masses(kind, calls):
    rng = np.random.default_rng(8)
    for mass in (
        rng.uniform(0.1, 3, size=len(ROWS[kind])),
        rng.integers(0, 3, size=len(ROWS[kind])) + 1e-6,
    ):
        assert_each_as_alone(ROWS[kind].astype(np.float32), mass=mass)
    assert calls["lloyd"] > calls["sketched"]


@pytest.mark.parametrize(
    ("k", "max_iter", "rule"),
    [(0, 9, r"k=0\): k must"), (2, 0, r"max_iter=0\): max_iter must")],
)
def test_each_problem_is_checked(k, max_iter, rule):
    with pytest.raises(ParameterError, match=rule):
        kmeans_many([ROWS["few"]], [Problem(0, k, 0)], max_iter=max_iter)


@given(
    st.integers(0, 2**32),
    st.integers(2, 40),
    st.integers(1, 4),
    st.integers(1, 3),
    st.booleans(),
)
@settings(max_examples=100)
def test_each_problem_equals_a_single_run_with_ties(seed, n, d, largest, halves):
    X = (
        np.random.default_rng(seed)
        .integers(-largest, largest + 1, size=(n, d))
        .astype(np.float32)
    )
    assert_each_as_alone(X / np.float32(10) if halves else X, ks=(2, 3, 7), tol=0)


@pytest.mark.parametrize("max_iter", [1, 2, 3])
def test_each_problem_equals_a_single_run_with_few_iterations(max_iter, calls):
    assert_each_as_alone(ROWS["normal"].astype(np.float32), max_iter=max_iter)
    assert not calls["sketched"]


def test_the_gram_matrix_seeds_distinct_rows(calls):
    assert_each_as_alone(ROWS["clipped"].astype(np.float32))
    assert calls["choose"]
    assert not calls["sketched"]


def test_equal_rows_are_left_to_sketches(calls):
    X = np.tile(normal(1, 30), (60, 1)).astype(np.float32)
    assert_each_as_alone(X)
    assert_each_as_alone(np.vstack([X, X + 1]))
    assert calls["sketched"] >= calls["choose"] > 0


def test_a_generator_seeds_as_it_does_alone(calls):
    """Also with equally good seeds, which the Gram matrix cannot decide, so that sketches are used."""
    X = ROWS["duplicates"].astype(np.float32)
    many = kmeans_many(
        [X], [Problem(0, 20, np.random.default_rng(seed)) for seed in range(5)]
    )
    for seed, result in enumerate(many):
        assert np.array_equal(
            result.centres, by_sketches(X, 20, np.random.default_rng(seed)).centres
        )
    assert calls["sketched"]


@pytest.mark.parametrize(
    ("target", "sure"),
    [(4.99, True), (5, False), (5.01, True), (0, False), (14, False)],
)
def test_a_draw_between_two_rows_is_in_doubt(target, sure):
    rows = GramRows(np.array([[0.0], [1], [2], [3]]), np.ones(4))
    chosen = np.zeros(
        2, dtype=np.int64
    )  # squared distances to the first row: 0, 1, 4, 9
    uniform = np.array([[target / 14]])
    assert (
        compiled.choose(
            rows.products, rows.arrays.norms, rows.weight, uniform, 1e-12, chosen
        )
        == sure
    )
    assert not sure or chosen.tolist() == [0, 2 if target < 5 else 3]


def test_doubtful_rows_are_compared_exactly(monkeypatch):
    """With wider error bounds, nearly every row is compared exactly."""
    wide = rows_with_wide_bounds(GramRows.arrays.func)
    monkeypatch.setattr(GramRows, "arrays", property(wide))
    assert_each_as_alone(ROWS["normal"].astype(np.float32), tol=0)


def rows_with_wide_bounds(arrays):
    def wide(self):
        rows = arrays(self)
        return rows._replace(blurs=rows.blurs * 1e4)

    return wide


def test_an_empty_cluster_is_left_to_sketches(calls):
    X = ROWS["clipped"][:100].astype(np.float32)
    chosen = np.array([4, 9, 4, 7])
    products, sketches = (
        kind(X, np.ones(100)).lloyd(chosen, 0.0, 300)
        for kind in (GramRows, CompiledRows)
    )
    assert calls["sketched"] == 1
    assert all(np.array_equal(a, b) for a, b in zip(products, sketches, strict=True))
    assert len(np.unique(products[1])) == 4


def test_the_gram_matrix_is_used_only_if_it_is_faster(calls):
    X = ROWS["normal"].astype(np.float32)
    kmeans_many([X], [Problem(0, 2, 0)])
    kmeans_many(
        [np.tile(X, (8, 1)) + normal(2400, 1).astype(np.float32)],
        [Problem(0, 50, s) for s in range(3)],
    )
    assert not calls["choose"]
    assert not calls["lloyd"]
    kmeans(X, 20, np.random.default_rng(0))
    assert calls["lloyd"] == 1


def test_products_are_freed_with_the_last_problem(monkeypatch):
    alive, most = set(), []

    class Counted(GramRows):
        def __init__(self, *args):
            super().__init__(*args)
            alive.add(id(self))
            most.append(len(alive))

        def __del__(self):
            alive.discard(id(self))

    monkeypatch.setattr(compiled, "GramRows", Counted)
    monkeypatch.setattr(cpu, "cores", lambda: 1)
    rows = [normal(60, 9, seed).astype(np.float32) for seed in range(5)]
    kmeans_many(
        rows, [Problem(i, k, s) for k in (2, 5, 9) for s in range(3) for i in range(5)]
    )
    assert most == [1] * 5
