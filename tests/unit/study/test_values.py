"""Valid specifications of studies, and errors that are reported before anything runs."""

import time
from dataclasses import dataclass

import numpy as np
import pytest

from imprint.aggregators.max import Max
from imprint.core.component import Component, param
from imprint.core.errors import FileError, ParameterError
from imprint.generators.mean import Mean
from imprint.method import Method
from imprint.study import Grid, Held, Packs, Study, plan
from imprint.study.grid import Methods
from imprint.study.plan import estimate

X = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)
Y = np.repeat([0, 1, 2], 20)
SOURCE = Held({("a", "one"): (X, Y, X[::2], Y[::2])})
WHERE = dict(backbones="a", datasets="one")


def test_grid_of_the_paper_has_864_configurations():
    grid = Grid(
        norm_pre=["none", "l2"],
        generator=["mean", "all", "kmeans", "kmedoids", "covmax", "random", "fps"],
        k=[1, 2, 3, 5, 10, 20],
        norm_post=["none", "l2", "quantile"],
        norm_inf=["none", "l2"],
    )
    study = Study(
        **WHERE, grid=grid, seeds=[17121997, 123987, 12412312], rules="matching_norms"
    )
    assert len(study.methods) * len(study.seeds) == 864


def test_order_is_fixed_and_doubles_count_once():
    study = Study(
        **WHERE,
        tasks=["even", "all", "even"],
        recipes=["qi2018", "l2 / mean / l2 / l2 / max"],
        grid=[Grid(generator=["mean", "mean"]), {"generator": "random", "k": [2, 1]}],
        seeds=[5, 1, 5],
    )
    assert [str(m.generator) for m in study.methods] == [
        "mean",
        "random(k=2)",
        "random(k=1)",
    ]
    assert [i.task for i in study.instances] == ["even", "all"]
    assert study.seeds == (5, 1)


def test_shots_cut_every_task():
    study = Study(**WHERE, tasks=["all", "even"], shots=[1, 5], recipes="qi2018")
    assert [i.task for i in study.instances] == [
        f"{t} | shots(n={n})" for t in ("all", "even") for n in (1, 5)
    ]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "a study needs at least one method"),
        ({"recipes": "qi2019"}, "Unknown recipe 'qi2019'. Did you mean 'qi2018'?"),
        ({"recipes": "l2 / mean / l2"}, "Cannot read 'l2 / mean / l2' as a method"),
        ({"recipes": "quantile / mean / l2 / l2 / max"}, "works only as norm_post"),
        (
            {"grid": {"generator": "kmeans", "k": 0}},
            r"Grid\(k=\[0\]\): k must be int >= 1",
        ),
        (
            {"grid": {"generators": "kmeans"}},
            "Unknown key of a grid 'generators'. Did you mean 'generator'?",
        ),
        ({"grid": {"generator": []}}, "generator must name at least one"),
        (
            {"grid": 3},
            r"Study\(grid=\[3\]\): grid must be a mapping of norm_pre, .*, aggregator, k, m\.$",
        ),
        (
            {"recipes": "qi2018", "seeds": -1},
            r"Study\(seeds=\[-1\]\): seeds must be int >= 0",
        ),
        ({"recipes": "qi2018", "seeds": []}, "seeds must name at least one"),
        ({"recipes": "qi2018", "shots": 0}, "shots must be int >= 1"),
        (
            {"recipes": "qi2018", "tasks": "evn"},
            "Unknown task 'evn'. Did you mean 'even'?",
        ),
        ({"recipes": "qi2018", "rules": "norms"}, "Unknown rule 'norms'"),
        (
            {"recipes": "l2 / mean / l2 / none / max", "rules": "matching_norms"},
            "the rules leave no method",
        ),
        (
            {"recipe": "qi2018"},
            "Unknown key of a study 'recipe'. Did you mean 'recipes'?",
        ),
    ],
)
def test_invalid_studies_are_refused_in_one_sentence(given, says):
    with pytest.raises(ParameterError, match=says) as e:
        _ = Study.of({**WHERE, **given}).methods
    assert "\n" not in str(e.value)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (
            {"recipes": "l2 / mean / l2 / l2 / nearest(m=5)"},
            "needs 5 proxies and there are 3",
        ),
        (
            {"recipes": "qi2018", "tasks": "classes(0, 7)"},
            "a, one, .*the data have no class 7",
        ),
        (
            {"recipes": "qi2018", "datasets": "two"},
            "Unknown pair of backbone and data set 'a-two'",
        ),
        (
            {"recipes": "l2 / random(k=9) / l2 / l2 / nearest(m=4)", "shots": 1},
            "there are 3",
        ),
    ],
)
def test_impossible_experiments_are_refused_before_anything_runs(given, says):
    with pytest.raises(ParameterError, match=says):
        plan(Study(**{**WHERE, **given}), SOURCE)


def test_rules_leave_out_impossible_experiments():
    grid = Grid(
        generator=["mean", "kmeans(k=4)"], aggregator=["max", "nearest"], m=[1, 3, 5]
    )
    study = Study(**WHERE, tasks=["all", "even"], grid=grid, rules="enough_proxies")
    todo = plan(study, SOURCE)
    assert (
        todo.experiments == 16 - todo.left_out == 13
    )  # mean: m=5 on both tasks and m=3 on the two even classes
    assert todo.to_do == 13


def test_estimate_counts_shared_computations():
    grid = Grid(
        norm_pre="none",
        generator="random",
        k=[1, 2],
        norm_post=["none", "l2"],
        norm_inf=["none", "l2"],
    )
    study = Study(**WHERE, tasks=["all", "even"], seeds=[1, 2], grid=grid)
    estimated = estimate([plan(study, SOURCE)])
    assert estimated["experiments"] == 2 * 2 * 8
    states = (
        3 * 2
    )  # per class and seed: the larger k serves the smaller one, and both tasks share it
    decisions = (
        2 * 2 * 2 * 2
    )  # task, seed, k, norm_post; max does not depend on norm_inf
    assert estimated["computations"] == states + decisions
    assert estimated["memory"] > X.nbytes


def test_yaml_and_python_files_give_the_same_study(tmp_path):
    (tmp_path / "a.yaml").write_text(
        "name: a\nembeddings: packs\nbackbones: [a]\ndatasets: one\nseeds: [1, 2]\n"
        "grid:\n  - {generator: [mean, kmeans], k: [1, 2]}\n"
    )
    (tmp_path / "a.py").write_text(
        "from imprint.study import Grid, Study\n"
        "study = Study(name='a', embeddings='packs', backbones='a', datasets='one', seeds=(1, 2),"
        " grid=Grid(generator=('mean', 'kmeans'), k=(1, 2)))\n"
    )
    first, second = Study.read(tmp_path / "a.yaml"), Study.read(tmp_path / "a.py")
    assert first == second == Study.of(first.to_json())
    assert hash(first) == hash(second)
    assert first.embeddings == str(tmp_path / "packs")


@pytest.mark.parametrize(
    ("name", "text", "error", "says"),
    [
        ("a.yaml", "name: [", FileError, r"not YAML \(line 1\)"),
        ("a.yaml", "- 3", ParameterError, "A study is a mapping"),
        ("a.yaml", "backbones: a", ParameterError, r"a\.yaml: Study\(datasets=\[\]\)"),
        ("a.py", "x = 3", ParameterError, "defines `study = Study"),
    ],
)
def test_bad_files_get_one_sentence(tmp_path, name, text, error, says):
    (tmp_path / name).write_text(text)
    with pytest.raises(error, match=says):
        Study.read(tmp_path / name)


def test_packs_are_unpacked_once_and_again_when_they_change(tmp_path):
    from imprint.embeddings import write_pack

    write_pack(tmp_path / "a-one.npz", X, Y, X[:6], Y[:6])
    source = Packs(str(tmp_path), str(tmp_path / "cache"))
    first = source.open("a", "one")
    assert np.array_equal(first.X, X)
    assert isinstance(first.X, np.memmap)
    assert len(list((tmp_path / "cache").iterdir())) == 1
    assert source.open("a", "one").fingerprint == first.fingerprint
    assert len(list((tmp_path / "cache").iterdir())) == 1
    write_pack(tmp_path / "a-one.npz", X * 2, Y, X[:6], Y[:6])
    assert source.open("a", "one").fingerprint != first.fingerprint
    with pytest.raises(
        ParameterError, match=r"Unknown pack 'a-two.npz'. Did you mean 'a-one.npz'\?"
    ):
        source.open("a", "two")


def test_the_size_is_known_before_methods_are_created():
    grid = Grid(
        generator="kmeans", k=[*range(1, 101)], aggregator="nearest", m=[*range(1, 101)]
    )
    study = Study(**WHERE, seeds=[*range(10_200)], grid=grid)
    assert study.points == 102_000_000
    start = time.process_time()
    with pytest.raises(
        ParameterError,
        match="it names 102,000,000 experiments and the limit is 2,000,000",
    ):
        plan(study, SOURCE)
    assert time.process_time() - start < 0.5
    small = Study(**WHERE, seeds=[*range(5)], grid=Grid(generator="random", k=[1, 2]))
    with pytest.raises(
        ParameterError, match="it names 10 experiments and the limit is 9"
    ):
        plan(small, SOURCE, limit=9)
    assert plan(small, SOURCE, limit=None).to_do == 10


def test_a_million_experiments_are_planned_in_seconds():
    study = Study(
        **WHERE,
        tasks=["all", "even"],
        seeds=[*range(5000)],
        grid=Grid(generator="random", k=[*range(1, 101)]),
    )
    start = time.process_time()
    assert plan(study, SOURCE).to_do == 1_000_000
    assert time.process_time() - start < 3


def test_distinct_methods_are_planned_without_creating_them(monkeypatch):
    """A study of 40,000 methods is planned from the few components of which they consist."""
    grid = Grid(
        norm_pre=["none", "l2"],
        generator="random",
        k=[*range(1, 201)],
        aggregator="nearest",
        m=[*range(1, 101)],
    )
    study, created = Study(**WHERE, grid=grid, rules="enough_proxies"), []
    honest = Method.__post_init__
    monkeypatch.setattr(
        Method, "__post_init__", lambda self: created.append(1) or honest(self)
    )
    todo = plan(study, SOURCE)
    assert len(study.methods) == todo.experiments + todo.left_out == 40_000
    assert (
        estimate([todo])["to_do"]
        == todo.to_do
        == 2 * (3 * sum(range(1, 20)) + 181 * 60)
    )  # m <= 3 min(k, 20)
    assert len(created) < 10


def test_texts_of_methods_are_joined_from_those_of_components(monkeypatch):
    """The text of a method is joined from those of its components, each formatted once."""
    grid = Grid(
        norm_pre=["none", "l2"],
        generator="random",
        k=[*range(1, 51)],
        aggregator="nearest",
        m=[*range(1, 51)],
    )
    study, formatted = (
        Study(**WHERE, grid=grid, rules=["matching_norms", "enough_proxies"]),
        [],
    )
    honest = Component.__str__
    monkeypatch.setattr(
        Component, "__str__", lambda self: formatted.append(1) or honest(self)
    )
    assert plan(study, SOURCE).experiments == 4_216  # m <= 3 k, for three classes
    assert len(formatted) <= 50 + 50 + 2 + 1 + 1 + 10
    assert str(study.methods[-1]) == "l2 / random(k=50) / l2 / l2 / nearest(m=50)"
    assert study.methods.encoded()[-1].decode() == (
        "l2() / random(k=50) / l2() / l2() / "
        "nearest(m=50, metric='euclidean', weighting='distance', weights='equal')"
    )


def test_a_changed_default_of_a_detail_changes_the_keys_of_experiments():
    """Otherwise, results of the earlier default would be used again."""

    def own(default):
        @dataclass(frozen=True, kw_only=True)
        class Own(Max):
            detail: int = param(default, "a detail", detail=True)

        return Own()

    before, after = own(1), own(2)
    assert str(before) == str(after)
    texts = [Methods.product([[c]] * 5).encoded() for c in (before, after)]
    assert texts[0] != texts[1]
    assert b"detail=1" in texts[0][0]


def test_a_component_with_the_name_of_another_is_refused():
    @dataclass(frozen=True, kw_only=True)
    class mean(Mean):  # noqa: N801
        pass

    mean.__qualname__ = "mean"
    with pytest.raises(
        ParameterError, match="this class has the name of another generator"
    ):
        Grid(generator=mean())
