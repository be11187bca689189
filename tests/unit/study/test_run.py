"""Running, stopping, resuming, failing: the content of the folder afterwards."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

from imprint.core.errors import FileError, ParameterError
from imprint.generators.kmeans import KMeans
from imprint.generators.mean import Mean
from imprint.kernels.cpu import cores
from imprint.study import Grid, Held, Study, plan, run, sharing
from imprint.study.evaluate import MEASUREMENTS, UnitResults, evaluate
from imprint.study.run import _Tally
from imprint.study.store import Store

rng = np.random.default_rng(1)
Y = np.repeat(np.arange(4), 15)
X = (rng.normal(size=(4, 5))[Y] + rng.normal(size=(60, 5))).astype(np.float32)
SOURCE = Held(
    {(b, "one"): (X * (1 + i), Y, X[::3], Y[::3]) for i, b in enumerate("ab")}
)
GRID = Grid(generator=["mean", "random", "kmeans"], k=[1, 3], norm_post=["none", "l2"])
STUDY = Study(
    name="small",
    backbones=["a", "b"],
    datasets="one",
    tasks=["all", "even"],
    seeds=[1, 2],
    grid=GRID,
)


def repeatable(table):
    return table.drop_columns(list(MEASUREMENTS))


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    run(STUDY, folder, source=SOURCE, workers=2)
    return repeatable(STUDY.results(folder))


def test_table_is_in_the_order_of_the_study(undisturbed):
    rows = undisturbed.to_pylist()
    assert len(rows) == len(STUDY.instances) * len(STUDY.methods) * len(STUDY.seeds)
    places = [(r["backbone"], r["dataset"], r["task"]) for r in rows]
    assert list(dict.fromkeys(places)) == [tuple(i) for i in STUDY.instances]
    assert [r["seed"] for r in rows[:4]] == [1, 2, 1, 2]
    assert len(set(undisturbed["key"].to_pylist())) == len(rows)


def test_names_of_any_script_are_read_back(tmp_path):
    X, y = np.eye(4, dtype=np.float32), np.array(["é", "é", "日本", "日本"])
    study = Study(
        backbones="größe",
        datasets="дата",
        tasks=["all", "classes('日本', 'é')"],
        recipes="qi2018",
    )
    run(study, tmp_path, source=Held({("größe", "дата"): (X, y, X, y)}), workers=1)
    rows = study.results(tmp_path).to_pylist()
    assert [
        tuple(row[name] for name in ("backbone", "dataset", "task")) for row in rows
    ] == [*study.instances]


def test_a_second_run_does_nothing(tmp_path, undisturbed):
    seen = []
    first = run(STUDY, tmp_path, source=SOURCE, workers=1, progress=seen.append)
    assert first.computed == first.experiments == seen[-1].done == seen[-1].total
    assert seen[0].done == 0
    before = {p: p.read_bytes() for p in tmp_path.rglob("*.parquet")}
    second = run(STUDY, tmp_path, source=SOURCE, workers=1)
    assert (second.computed, second.experiments) == (0, first.experiments)
    assert before == {p: p.read_bytes() for p in tmp_path.rglob("*.parquet")}
    assert repeatable(STUDY.results(tmp_path)).equals(undisturbed)


def test_a_lost_shard_is_computed_again(tmp_path, undisturbed):
    run(STUDY, tmp_path, source=SOURCE, workers=1)
    shard = Store(tmp_path).shards()[1]
    shard.unlink()
    (tmp_path / "shards" / f".{shard.name}.x.imprint-partial").write_bytes(
        b"what a kill leaves"
    )
    assert len(STUDY.results(tmp_path)) < len(undisturbed)
    assert (
        0 < run(STUDY, tmp_path, source=SOURCE, workers=1).computed < len(undisturbed)
    )
    assert repeatable(STUDY.results(tmp_path)).equals(undisturbed)
    assert not list((tmp_path / "shards").glob(".*"))


def test_a_larger_study_computes_only_what_is_new(tmp_path):
    small = Study(backbones="a", datasets="one", tasks="all", seeds=1, grid=GRID)
    assert run(small, tmp_path, source=SOURCE, workers=1).computed == 10
    assert (
        run(STUDY, tmp_path, source=SOURCE, workers=1).computed
        == len(STUDY.instances) * 20 - 10
    )
    assert len(small.results(tmp_path)) == 10
    assert len(STUDY.results(tmp_path)) == len(STUDY.instances) * 20


def test_other_embeddings_are_separate_experiments(tmp_path):
    run(STUDY, tmp_path, source=SOURCE, workers=1)
    changed = Held({**SOURCE.arrays, ("a", "one"): (X + 1, Y, X[::3], Y[::3])})
    assert (
        run(STUDY, tmp_path, source=changed, workers=1).computed
        == len(STUDY.instances) * 10
    )
    table = STUDY.results(tmp_path)
    assert len(table) == len(STUDY.instances) * 20
    assert set(table["fingerprint"].to_pylist()) == {
        changed.open(b, "one").fingerprint for b in "ab"
    }


@dataclass(frozen=True)
class Spoilt:
    """A source whose second backbone cannot be read by workers, or kills the worker."""

    parent: int
    deadly: bool = False

    def open(self, backbone, dataset):
        if backbone == "b" and os.getpid() != self.parent:
            if self.deadly:
                os.kill(os.getpid(), signal.SIGKILL)
            raise OSError("the disk is gone")
        return SOURCE.open(backbone, dataset)


@pytest.mark.parametrize("deadly", [False, True])
def test_a_failing_unit_is_recorded_and_the_rest_goes_on(tmp_path, deadly, undisturbed):
    summary = run(STUDY, tmp_path, source=Spoilt(os.getpid(), deadly), workers=2)
    half = len(undisturbed) // 2
    assert (summary.computed, summary.failed) == (half, half)
    reasons = {f["reason"] for f in Store(tmp_path).failures()}
    expected = (
        "its process was killed, perhaps because memory ran out"
        if deadly
        else "OSError: the disk is gone"
    )
    assert reasons == {expected}
    assert sum(f["experiments"] for f in Store(tmp_path).failures()) == half
    assert all("b, one, l2 / " in line for line in summary.failures)
    again = run(STUDY, tmp_path, source=SOURCE, workers=1)
    assert (again.computed, again.failed) == (half, 0)
    assert Store(tmp_path).failures() == []
    assert repeatable(STUDY.results(tmp_path)).equals(undisturbed)


def test_a_failing_generator_does_not_affect_others(tmp_path, monkeypatch, undisturbed):
    def fail(rows, problems):
        raise ArithmeticError("no centres today")

    with monkeypatch.context() as patch:
        patch.setattr(sharing, "kmeans_many", fail)
        summary = run(STUDY, tmp_path, source=SOURCE, workers=1)
    assert summary.failures == tuple(
        f"{b}, one, l2 / KMeans: ArithmeticError: no centres today" for b in "ab"
    )
    assert {f["reason"] for f in Store(tmp_path).failures()} == {
        "ArithmeticError: no centres today"
    }
    others = [
        row for row in undisturbed.to_pylist() if "kmeans" not in row["generator"]
    ]
    assert repeatable(STUDY.results(tmp_path)).to_pylist() == others
    assert (
        summary.computed
        == len(others)
        < len(undisturbed)
        == summary.computed + summary.failed
    )
    assert run(STUDY, tmp_path, source=SOURCE, workers=1).computed == summary.failed
    assert Store(tmp_path).failures() == []
    assert repeatable(STUDY.results(tmp_path)).equals(undisturbed)


def test_a_unit_is_evaluated_on_one_core_wherever_it_runs(monkeypatch):
    threads = []

    class Watched:
        def open(self, backbone, dataset):
            threads.append(cores())
            return SOURCE.open(backbone, dataset)

    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    before = cores()
    evaluate(plan(STUDY, Watched()).units[0])
    assert threads[-1] == 1
    assert cores() == before
    assert "OMP_NUM_THREADS" not in os.environ


def test_two_runs_on_one_folder_exclude_each_other(tmp_path):
    with (
        Store(tmp_path).locked(),
        pytest.raises(FileError, match="another run is at work"),
    ):
        run(STUDY, tmp_path, source=SOURCE)


def test_manifest_says_what_ran(tmp_path):
    run(STUDY, tmp_path, source=SOURCE, workers=1)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert Study.of(manifest["study"]) == STUDY
    assert manifest["embeddings"] == {
        f"{b}-one": SOURCE.open(b, "one").fingerprint for b in "ab"
    }
    assert {"numpy", "scikit-learn", "pyarrow"} <= set(manifest["libraries"])


def test_the_remaining_time_follows_from_measured_units():
    """The planned work is comparable for one type of generator only."""
    units = []
    for generator, work in ((Mean(), 10.0), (KMeans(k=2), 1.0)) * 3:
        methods = [SimpleNamespace(generator=generator)]
        units.append(SimpleNamespace(methods=methods, work=work, experiments=[0]))
    todo = SimpleNamespace(units=units, to_do=len(units), experiments=len(units))
    tally = _Tally(todo)
    assert tally.progress().seconds_left == float("inf")
    # k-means takes a hundred times as long for the same work
    seconds = {"Mean": 2.0, "KMeans": 20.0}
    for i, unit in enumerate(units[:3]):
        name = type(unit.methods[0].generator).__name__
        half = np.array([seconds[name] / 2])
        columns = {"seconds_generation": half, "seconds_evaluation": half}
        tally.add(unit, UnitResults(columns, {}))
        if i == 0:  # the time of k-means is not known yet
            assert tally.pace.seconds_left(4.0) == pytest.approx(4.0 * 23 / 10)
    # 24 s were measured, in half of that time, on two cores
    left = 2.0 + 2 * 20.0
    assert tally.pace.seconds_left(12.0) == pytest.approx(left / 2)
    tally.add(units[3], "OSError: the disk is gone")
    assert tally.pace.seconds_left(12.0) == pytest.approx((left - 20) / 2)
    for unit in units[4:]:
        tally.add(unit, UnitResults(columns, {}))
    assert tally.progress().seconds_left == 0


def test_shared_costs_are_divided(tmp_path):
    run(STUDY, tmp_path, source=SOURCE, workers=1)
    table = STUDY.results(tmp_path)
    for name in ("seconds_generation", "seconds_evaluation"):
        seconds = np.array(table[name].to_pylist())
        assert (seconds >= 0).all()
        assert 0 < seconds.sum() < 60
    assert min(table["peak_memory"].to_pylist()) > 1e6


@pytest.mark.parametrize(
    "aggregator", ["nearest(m=3)", "nearest(m=3, metric='manhattan')", "kernel"]
)
def test_the_costs_of_experiments_add_up_to_most_of_the_run(tmp_path, aggregator):
    """For votes, heads and kernels: costs must cover the time, and count work shared by seeds only once."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(4), 800)
    rows = rng.normal(size=(4, 400))[y] + rng.normal(size=(3200, 400))
    source = Held({("a", "one"): (rows[::2], y[::2], rows[1::2], y[1::2])})
    study = Study(
        backbones="a",
        datasets="one",
        grid=Grid(generator="all", aggregator=aggregator),
        seeds=[1, 2, 3],
    )
    shares = []
    for name in (
        "warm",
        "first",
        "second",
        "third",
    ):  # the first run imports and compiles; others may collect garbage
        start = time.process_time()
        run(study, tmp_path / name, source=source, workers=1)
        spent = time.process_time() - start
        table = study.results(tmp_path / name)
        charged = sum(
            sum(table[f"seconds_{part}"].to_pylist())
            for part in ("generation", "evaluation")
        )
        shares.append(charged / spent)
    assert 0.4 < max(shares[1:]) <= 1


def test_a_run_of_no_study_is_refused(tmp_path):
    with pytest.raises(
        ParameterError, match=r"^run\(study\): give one study or more\.$"
    ):
        run([], tmp_path / "out", source=SOURCE)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"workers": 0}, "workers must be int >= 1"),
        ({"engine": "dask"}, "Unknown engine 'dask'"),
        ({"source": None}, "name the folder of the embeddings"),
    ],
)
def test_bad_calls_are_refused(tmp_path, given, says):
    with pytest.raises(ParameterError, match=says):
        run(STUDY, tmp_path, **{"source": SOURCE, **given})


def test_results_of_nothing_are_refused(tmp_path):
    with pytest.raises(FileError, match="no study has been run"):
        STUDY.results(tmp_path)
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(FileError, match="damaged"):
        STUDY.results(tmp_path)


def test_a_damaged_shard_is_named(tmp_path):
    run(STUDY, tmp_path, source=SOURCE, workers=1)
    shard = Store(tmp_path).shards()[0]
    shard.write_bytes(shard.read_bytes()[:-20])
    with pytest.raises(FileError, match=f"{shard.name}: this shard is damaged"):
        STUDY.results(tmp_path)


def test_a_run_and_its_results_do_not_import_pandas(tmp_path):
    """Importing pandas takes a quarter of a second; `pa.array` does it wherever pandas is installed."""
    program = (
        "import sys, numpy as np\n"
        "from imprint.study import Held, Study, run\n"
        "X, y = np.eye(4, dtype=np.float32), np.array([0, 0, 1, 1])\n"
        "study = Study(backbones='a', datasets='one', recipes='qi2018')\n"
        "run(study, sys.argv[1], source=Held({('a', 'one'): (X, y, X, y)}), workers=1)\n"
        "assert len(study.results(sys.argv[1])) == 1\n"
        "assert 'pandas' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True)
