"""The study engine against the plain path: a fresh classifier for every cell."""

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score

from imprint import ImprintClassifier, aggregators, generators, normalisers, tasks
from imprint.classifier import PARTS
from imprint.kernels import estimates
from imprint.study import Grid, Held, Study, best, run


def embeddings(seed=0, classes=6, rows=40, width=12, apart=1.2):
    """Clusters that overlap; a zero row, doubles and a class that is smaller than the others."""
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
    return Held({("a", "one"): embeddings(0), ("a", "two"): embeddings(1), ("b", "one"): embeddings(2)})


def plain(source, row):
    """One cell by itself, as a user would compute it."""
    data, task = source.open(row["backbone"], row["dataset"]), tasks.resolve(row["task"])
    classes = np.unique(data.y)
    train = task.select(data.y, row["seed"], classes)
    test = task.queries().select(data.y_test, row["seed"], classes)
    clf = ImprintClassifier(**{part: row[part] for part in PARTS}, random_state=row["seed"])
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
    """Equal, but for near ties."""
    if row["near_ties"]:
        assert abs(row["accuracy"] - expected["accuracy"]) <= row["near_ties"] / row["test_rows"]
    else:
        assert {name: pytest.approx(v, abs=1e-12) for name, v in expected.items()} == {n: row[n] for n in expected}


def every_method():
    """All components of all families: what no list in the engine can have forgotten."""
    inner = [n for n in normalisers.family.names() if "pre" in normalisers.family.load(n).positions]
    return Grid(
        norm_pre=inner,
        generator=generators.family.names(),
        k=(1, 7),
        norm_post=normalisers.family.names(),
        norm_inf=inner,
        aggregator=[*aggregators.family.names(), "nearest(metric='cosine', weighting='uniform')"],
        m=(1, 11),
    )


@pytest.mark.parametrize("shots", [(), (3, 8)])
def test_every_cell_equals_the_plain_path(source, tmp_path, shots):
    study = Study(
        backbones="a",
        datasets=["one"],
        tasks=["all", "even", "classes(5, 2, 0)"],
        shots=shots,
        seeds=[3, 4],
        grid=[every_method()],
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
    assert near < 0.02  # a zero row and doubles on purpose; real embeddings have far fewer


@pytest.mark.parametrize(("rows", "faint"), [(1, 1e9), (1, 0.2), (9, 0.15)])
def test_estimated_decisions_are_those_of_the_plain_path(tmp_path, monkeypatch, rows, faint):
    pytest.importorskip("numba")
    monkeypatch.setattr(best, "WORTH", rows)
    monkeypatch.setattr(best, "FAINT", faint)
    settled, settle = [], estimates.settle

    def noted(*args):
        settled.append(args[2].edges.shape)
        settle(*args)

    monkeypatch.setattr(estimates, "settle", noted)
    X, y, X_test, y_test = embeddings(5, classes=7, rows=100, width=30, apart=0.2)
    X += 0.3 * y[:, None].astype(np.float32)  # so that it matters which class comes first
    source = Held({("a", "one"): (X, y, X_test, y_test)})
    grid = Grid(
        norm_pre=("none", "l2"),
        generator=("all", "random", "kmeans"),
        k=(2, 20),
        norm_post=("none", "l2", "quantile"),
        aggregator=("max", "nearest"),
        m=1,
    )
    study = Study(backbones="a", datasets="one", tasks=["all", "even", "classes(5, 2, 1)"], seeds=[3], grid=grid)
    run(study, tmp_path, source=source, workers=1)
    assert {classes for _, classes in settled} == {7, 4, 3}
    for row in study.results(tmp_path).to_pylist():
        check(row, plain(source, row))
