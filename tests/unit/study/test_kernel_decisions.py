"""Predictions by `kernel` with shared distances, compared with a new classifier for every experiment."""

import numpy as np
import pytest

from imprint import ImprintClassifier, tasks
from imprint.core.component import PARTS
from imprint.core.errors import ImprintError
from imprint.study import Grid, Held, Study, evaluate, kernel_decisions, run
from imprint.study.evaluate import MEASUREMENTS

KERNELS = (
    "kernel",
    "kernel(gamma=3.0)",
    "kernel(noise=0.02, spread=0.5)",
    "kernel(balance=0.0)",
)


def source(dtype=np.float32):
    """Classes of unequal size around distinct centres, with a common offset."""
    rng = np.random.default_rng(5)
    y = np.repeat(np.arange(6), [40, 12, 30, 25, 9, 33])
    centres = 3 + rng.normal(size=(6, 10))
    X, X_test = (centres[y] + 1.1 * rng.normal(size=(len(y), 10)) for _ in range(2))
    return Held({("a", "one"): (X.astype(dtype), y, X_test.astype(dtype), y)})


def study(**grid):
    where = {
        "tasks": ["all", "even", "odd", "classes(5, 2, 0)", "all | shots(n=7)"],
        "seeds": [3, 4],
    }
    return Study(
        backbones="a", datasets="one", grid=Grid(aggregator=KERNELS, **grid), **where
    )


def accuracy(row, data):
    task = tasks.resolve(row["task"])
    train, test = (
        task.select(data.y, row["seed"]),
        task.queries().select(data.y_test, row["seed"]),
    )
    clf = ImprintClassifier(
        **{part: row[part] for part in PARTS}, random_state=row["seed"]
    )
    return clf.fit(data.X[train.rows], train.labels).score(
        data.X_test[test.rows], test.labels
    ), len(clf.proxies_.labels)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_experiment_is_that_of_a_fresh_classifier(tmp_path, monkeypatch, dtype):
    def forbidden(*_):
        raise AssertionError("the plain path decided")

    monkeypatch.setattr(evaluate, "_decide_by_head", forbidden)
    monkeypatch.setattr(
        kernel_decisions, "MAX_DISTANCES", 1
    )  # a few test rows at a time
    monkeypatch.setattr(kernel_decisions, "BLOCK_ROWS", 5)  # and a few proxies
    norms = {
        "norm_pre": ["l2", "none"],
        "norm_post": ["none", "l2", "quantile"],
        "norm_inf": ["l2", "none"],
    }
    every = study(
        generator=[
            "kmeans(k=3)",
            "random(k=4)",
            "random(k=2)",
            "covmax(k=30)",
            "covmax(k=3)",
            "all",
        ],
        **norms,
    )
    assert run(every, tmp_path, source=source(dtype), workers=1).failures == ()
    table, data = every.results(tmp_path).to_pylist(), source(dtype).open("a", "one")
    chosen = np.random.default_rng(0).choice(len(table), 200, replace=False)
    for row in (table[i] for i in chosen):
        expected, proxies = accuracy(row, data)
        assert row["proxies"] == proxies
        assert (
            abs(row["accuracy"] - expected) * row["test_rows"]
            <= row["near_ties"] + 1e-9
        ), row


def test_a_large_system_is_left_to_the_head(tmp_path, monkeypatch):
    every = study(generator=["all", "kmeans(k=2)"])
    run(every, tmp_path / "shared", source=source(), workers=1)
    monkeypatch.setattr(kernel_decisions, "MAX_PROXIES", 20)
    run(every, tmp_path / "plain", source=source(), workers=1)
    shared, plain = (every.results(tmp_path / name) for name in ("shared", "plain"))
    assert shared["accuracy"].to_pylist() == plain["accuracy"].to_pylist()


def test_proxies_too_close_for_the_noise_are_one_sentence(tmp_path):
    X = np.ones((20, 4), dtype=np.float32)
    y = np.repeat([0, 1], 10)
    same = Held({("a", "one"): (X, y, X, y)})
    near = Study(
        backbones="a",
        datasets="one",
        grid=Grid(generator="all", aggregator="kernel(noise=1e-300, spread=0.0)"),
    )
    (failure,) = run(near, tmp_path, source=same, workers=1).failures
    assert "proxies lie too close together for this noise; use a larger one." in failure
    with pytest.raises(ImprintError, match="too close together for this noise"):
        ImprintClassifier(
            generator="all", aggregator="kernel(noise=1e-300, spread=0.0)"
        ).fit(X, y).predict(X)


def test_each_distinct_system_is_solved_once(tmp_path, monkeypatch):
    solved, solve = [], kernel_decisions._solve_in_place
    monkeypatch.setattr(
        kernel_decisions,
        "_solve_in_place",
        lambda K, *rest: solved.append(len(K)) or solve(K, *rest),
    )
    norms = {"norm_post": ["none", "quantile"], "norm_inf": ["none", "l2"]}
    every = study(generator=["kmeans(k=3)", "random(k=4)"], **norms)
    assert run(every, tmp_path, source=source(), workers=1).failures == ()
    tasks_and_seeds = 5 * 2  # k-means and random proxies depend on the seed
    assert len(solved) == 2 * tasks_and_seeds * len(norms["norm_post"]) * len(KERNELS)


def test_studies_that_run_together_give_what_each_gives_alone(tmp_path):
    one = study(generator=["kmeans(k=3)", "all"])
    where = {
        "backbones": "a",
        "datasets": "one",
        "tasks": ["all", "even"],
        "seeds": [4, 9],
    }
    other = Study(
        **where,
        grid=Grid(
            generator=["kmeans(k=3)", "kmeans(k=2)", "mean"],
            aggregator=["kernel", "max"],
        ),
    )
    together = run([one, other], tmp_path / "together", source=source(), workers=1)
    alone = [
        run(s, tmp_path / "alone", source=source(), workers=1) for s in (one, other)
    ]
    assert together.computed == sum(summary.computed for summary in alone)
    assert together.experiments == sum(summary.experiments for summary in alone)
    for s in (one, other):
        here, there = (
            s.results(tmp_path / name).drop_columns([*MEASUREMENTS])
            for name in ("together", "alone")
        )
        assert here.to_pylist() == there.to_pylist()
    assert (
        run([one, other], tmp_path / "alone", source=source(), workers=1).computed == 0
    )


@pytest.mark.parametrize("largest", [8192, 0])  # with shared distances, and by the head
def test_near_ties_allow_for_the_rounding_of_kernels(tmp_path, monkeypatch, largest):
    monkeypatch.setattr(kernel_decisions, "MAX_PROXIES", largest)
    none = {
        "norm_pre": "none",
        "norm_post": "none",
        "norm_inf": "none",
        "generator": "all",
        "aggregator": "kernel",
    }
    X, y = np.array([[-1.0, 1], [1, 1]]), np.array([0, 1])
    head = ImprintClassifier(**none).fit(X, y).head_
    first, second = head.scores(np.array([[1e-3, 1.0]]))[0]
    slope = (
        (second - first) / second / 1e-3
    )  # of the relative gap between the two scores
    queries = np.array(
        [[gap / slope, 1] for gap in (1e-9, 1e-5, 1e-3)]
    )  # within float32, within kernels, clear
    data = Held(
        {
            ("a", "one"): (
                *(a.astype(np.float32) if a.ndim > 1 else a for a in (X, y, queries)),
                np.ones(3, int),
            )
        }
    )
    near = Study(backbones="a", datasets="one", grid=Grid(**none))
    assert run(near, tmp_path, source=data, workers=1).failures == ()
    assert near.results(tmp_path)["near_ties"].to_pylist() == [2]
