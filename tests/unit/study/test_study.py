"""Studies compared with a new classifier for every experiment."""

from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score
from tests.contract.minimal import Closest, Corners, Halve

from imprint import ImprintClassifier, aggregators, generators, normalisers, tasks
from imprint.core.component import PARTS
from imprint.core.errors import ParameterError
from imprint.kernels import cpu
from imprint.normalisers._base import Normaliser
from imprint.study import Grid, Held, Study, evaluate, plan, run
from imprint.study.proxies import UnitProxies
from imprint.study.work_graph import build


@dataclass(frozen=True, kw_only=True)
class Reverse(Normaliser):
    """Reverses the columns: unlike `l2`, it changes the direction of rows."""

    def apply(self, X, reference=None):
        return X[:, ::-1].copy()


OWN = {
    str(component): component
    for component in (Halve(), Reverse(), Corners(), Closest())
}
"""Components that no list in the library can know."""


def embeddings(seed=0, classes=6, rows=40, width=12, apart=1.2):
    """Overlapping clusters, with a zero row, duplicates and a small class."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(classes, width)) * apart + 1
    y = np.repeat(np.arange(classes), rows)
    X, X_test = (centres[y] + rng.normal(size=(len(y), width)) for _ in range(2))
    X[1] = 0
    X[5] = X[6] = X[7]
    keep = np.ones(len(y), dtype=bool)
    keep[-rows + 9 :] = False
    return X[keep].astype(np.float32), y[keep], X_test.astype(np.float32), y


@pytest.fixture(scope="module")
def source():
    return Held(
        {
            ("a", "one"): embeddings(0),
            ("a", "two"): embeddings(1),
            ("b", "one"): embeddings(2),
        }
    )


def plain(source, row):
    """One experiment as a user would compute it, with a new classifier."""
    data, task = (
        source.open(row["backbone"], row["dataset"]),
        tasks.resolve(row["task"]),
    )
    classes = np.unique(data.y)
    train = task.select(data.y, row["seed"], classes)
    test = task.queries().select(data.y_test, row["seed"], classes)
    parts = {part: OWN.get(row[part], row[part]) for part in PARTS}
    clf = ImprintClassifier(**parts, random_state=row["seed"])
    clf.fit(data.X[train.rows], train.labels)
    predicted = clf.predict(data.X_test[test.rows])
    return {
        "accuracy": accuracy_score(test.labels, predicted),
        "macro_f1": f1_score(test.labels, predicted, average="macro"),
        "weighted_f1": f1_score(test.labels, predicted, average="weighted"),
        "proxies": len(clf.proxies_.labels),
        "test_rows": len(predicted),
    }


def check(row, expected):
    """Assert that results are equal except for near ties."""
    if row["near_ties"]:
        assert (
            abs(row["accuracy"] - expected["accuracy"])
            <= row["near_ties"] / row["test_rows"]
        )
    else:
        assert {name: pytest.approx(v, abs=1e-12) for name, v in expected.items()} == {
            n: row[n] for n in expected
        }


def every_method():
    """Grids of all components of all families, found by discovery."""
    inner = [
        n
        for n in normalisers.family.names()
        if "pre" in normalisers.family.load(n).positions
    ]
    deciding = [
        *aggregators.family.names(),
        "nearest(metric='cosine', weighting='uniform')",
    ]
    for points in (True, False):
        yield Grid(
            norm_pre=inner,
            generator=[
                n
                for n in generators.family.names()
                if generators.family.load(n).points == points
            ],
            k=(1, 7),
            norm_post=normalisers.family.names(),
            norm_inf=inner,
            aggregator=[
                a
                for a in deciding
                if points or not aggregators.family.resolve(a).needs_points
            ],
            m=(1, 11),
        )


@pytest.mark.parametrize("shots", [(), (3, 8)])
def test_every_experiment_equals_a_new_classifier(source, tmp_path, shots):
    study = Study(
        backbones="a",
        datasets=["one"],
        tasks=["all", "even", "classes(5, 2, 0)"],
        shots=shots,
        seeds=[3, 4],
        grid=[*every_method()],
        rules=["enough_proxies"],
    )
    summary = run(study, tmp_path, source=source, workers=1)
    assert summary.failures == ()
    table = study.results(tmp_path)
    assert len(table) == summary.experiments == summary.computed
    rows = table.to_pylist()
    for i in np.random.default_rng(len(shots)).choice(len(rows), 200, replace=False):
        check(rows[i], plain(source, rows[i]))
    near = sum(r["near_ties"] for r in rows) / sum(r["test_rows"] for r in rows)
    assert (
        near < 0.02
    )  # the data have a zero row and duplicates; real embeddings have far fewer


def test_shared_proxies_are_those_of_a_head(source):
    grid = [*every_method()]
    study = Study(
        backbones="a",
        datasets="one",
        tasks=["all", "even", "odd", "classes(5, 2, 0)"],
        seeds=[3],
        grid=grid,
        rules="enough_proxies",
    )
    known = 0
    for unit in plan(study, source).units:
        data = source.open("a", "one")
        graph = build(unit, data.y, data.y_test)
        proxies = UnitProxies(graph, data.X)
        shareable = [d for d in graph.decisions if d.is_shareable]
        for d in {(d.spec, d.split, d.norm_post): d for d in shareable}.values():
            shared = np.concatenate(
                [part.rows for part in proxies.parts(d.spec, d.split, d.norm_post)]
            )
            np.testing.assert_allclose(
                shared, proxies.head(d).proxies.weights, rtol=1e-5, atol=1e-7
            )
            known += 1
    assert known > 300


def test_components_from_outside_run_without_sharing(source, tmp_path):
    grid = Grid(
        norm_pre=["l2", Halve()],
        generator=["kmeans(k=3)", Corners()],
        norm_post=["none", "quantile", Halve()],
        norm_inf=["l2", Reverse()],
        aggregator=["max", "nearest(m=2)", Closest()],
    )
    study = Study(
        backbones="a", datasets="one", tasks=["all", "odd"], seeds=[3, 4], grid=grid
    )
    assert run(study, tmp_path, source=source, workers=1).failures == ()
    rows = study.results(tmp_path).to_pylist()
    assert len(rows) == 2 * 2 * 2 * 2 * 3 * 2 * 3
    for row in rows:
        check(row, plain(source, row))


@pytest.mark.parametrize("compiled", [0, float("inf")], ids=["compiled", "numpy"])
@pytest.mark.parametrize("held", [1, 2**25], ids=["little memory", "much memory"])
def test_engines_and_memory_change_nothing(
    source, tmp_path, monkeypatch, compiled, held
):
    monkeypatch.setattr(cpu, "MIN_COMPILED_WORK", compiled)
    monkeypatch.setattr(evaluate, "MAX_PROXY_VALUES", held)
    monkeypatch.setattr(evaluate, "MAX_SCORES", 2000 if held == 1 else 2**22)
    grid = Grid(
        norm_pre=["none", "l2"],
        generator=["all", "kmeans", "fps"],
        k=[1, 9],
        norm_post=["none", "l2", "quantile"],
        norm_inf=["none", "l2"],
        aggregator=[
            "max",
            "nearest",
            "nearest(metric='cosine')",
            "nearest(weighting='uniform')",
        ],
        m=[1, 3, 12],
    )
    tasks = ["all", "even", "classes(5, 2, 0)", "classes(1, 0)"]
    study = Study(
        backbones="a",
        datasets="two",
        tasks=tasks,
        seeds=[3, 4],
        grid=grid,
        rules="enough_proxies",
    )
    run(study, tmp_path, source=source, workers=1)
    rows = study.results(tmp_path).to_pylist()
    for i in np.random.default_rng(0).choice(len(rows), 60, replace=False):
        check(rows[i], plain(source, rows[i]))


def test_extreme_rows_are_predicted_without_sharing(tmp_path):
    X, y, X_test, y_test = embeddings(4)
    X, X_test = X.astype(np.float64), X_test.astype(np.float64)
    X[3], X_test[5] = X[3] * 1e-35, X_test[5] * 1e-36
    source = Held({("a", "one"): (X, y, X_test, y_test)})
    study = Study(
        backbones="a",
        datasets="one",
        seeds=3,
        grid=Grid(
            norm_pre=["none", "l2"],
            generator=["all", "random(k=9)"],
            norm_post=["none", "l2"],
            norm_inf="l2",
        ),
    )
    run(study, tmp_path, source=source, workers=1)
    for row in study.results(tmp_path).to_pylist():
        check(row, plain(source, row))


def test_parts_that_do_not_go_together_are_left_out_by_a_rule():
    grid = dict(
        generator=["mean", "k_least_squares(k=2)"], aggregator=["max", "kernel"]
    )
    common = dict(backbones=["a"], datasets=["b"], grid=[grid])
    with pytest.raises(
        ParameterError,
        match=r"k_least_squares.* with kernel.*not points.*with the rule consistent_parts\.$",
    ):
        Study(**common)
    study = Study(**common, rules=["consistent_parts"])
    pairs = [(str(m.generator)[:6], str(m.aggregator)[:6]) for m in study.methods]
    assert pairs == [("mean", "max"), ("mean", "kernel"), ("k_leas", "max")]
    only_clashing = {"generator": "k_least_squares", "aggregator": "kernel"}
    impossible = Study(
        **{**common, "grid": [only_clashing]}, rules=["consistent_parts"]
    )
    with pytest.raises(ParameterError, match="the rules leave no method"):
        len(impossible.methods)


def test_a_norm_is_refused_where_its_grid_is_made():
    with pytest.raises(ParameterError, match="norm_pre='quantile'"):
        Grid(norm_pre="quantile", generator="k_least_squares", aggregator="kernel")
