"""Impossible experiments are found by the plan, and a failing experiment fails alone."""

import json
from dataclasses import dataclass, replace

import numpy as np
import pytest
from tests.unit.study.test_study import check, plain

from imprint.core.component import param
from imprint.core.errors import ParameterError
from imprint.generators._base import Generator, PerClassGenerator
from imprint.report.study_report import page
from imprint.report.tables import tabulate
from imprint.study import Grid, Held, Study, plan, run
from imprint.study.store import Store

rng = np.random.default_rng(3)
Y = np.repeat(np.arange(4), 12)
X = (2 * rng.normal(size=(4, 6))[Y] + rng.normal(size=(48, 6))).astype(np.float32)
SOURCE = Held({("a", "one"): (X, Y, X[::3], Y[::3])})
M = (1, 3, 4, 5, 20)


@dataclass(frozen=True, kw_only=True)
class Centre(PerClassGenerator):
    """One proxy per class, of a package that the study knows nothing about."""

    def summarise(self, X, rng):
        return {"rows": X.mean(axis=0, keepdims=True)}

    def extend(self, state, X, rng):
        return state


@dataclass(frozen=True, kw_only=True)
class HalfOfRows(Generator):
    """Every second row, from states that are no proxies yet; as many proxies as the seed's
    rows give."""

    def summarise(self, X, rng):
        return {"all": X}

    def extend(self, state, X, rng):
        return state

    def proxies(self, states):
        return [state["all"][::2] for state in states]


@dataclass(frozen=True, kw_only=True)
class Picky(PerClassGenerator):
    """Fails for one value of its parameter, and for one class of another."""

    share: float = param(0.5, "of the rows", ge=0)

    def summarise(self, X, rng):
        if self.share == 0.25:
            raise ValueError("eigenvalues did not converge\n(details)")
        if self.share == 0.75 and X[0, 0] == NORMED_THREE:
            raise ParameterError("Picky: too few rows above the median.")
        return {"rows": X[:2]}

    def extend(self, state, X, rng):
        return state


NORMED_THREE = (X[Y == 3] / np.linalg.norm(X[Y == 3], axis=1, keepdims=True))[0, 0]


def study(generator, aggregators=tuple(f"nearest(m={m})" for m in M), **settings):
    settings = {"rules": "enough_proxies", "seeds": [1, 2], **settings}
    grid = Grid(generator=generator, aggregator=list(aggregators))
    return Study(backbones="a", datasets="one", grid=grid, **settings)


@pytest.mark.parametrize("generator", [Centre(), HalfOfRows()])
def test_the_plan_counts_the_proxies_of_generators_of_other_packages(
    generator, tmp_path
):
    shots = (
        {"tasks": "all", "shots": [1, 2, 5]}
        if isinstance(generator, HalfOfRows)
        else {}
    )
    counted = study(generator, **shots)
    made = plan(counted, SOURCE)
    # of 1, 2 and 5 rows, every second one
    available = [4, 4, 12] if shots else [4]
    possible = sum(m <= count for count in available for m in M) * 2
    assert made.to_do == made.experiments == possible
    assert made.left_out == len(available) * len(M) * 2 - possible
    summary = run(counted, tmp_path, source=SOURCE, workers=1)
    assert (summary.computed, summary.failed) == (possible, 0)


def test_impossible_experiments_of_other_packages_are_refused_without_the_rule():
    with pytest.raises(ParameterError) as error:
        plan(study(Centre(), rules=()), SOURCE)
    assert str(error.value) == (
        "a, one, all: l2 / Centre / l2 / l2 / nearest(m=5) needs 5 proxies and there"
        " are 4; change it, or leave out such combinations with the rule"
        " enough_proxies."
    )


def test_only_doubtful_proxies_are_counted_by_the_plan(monkeypatch):
    """The plan summarises no class where every aggregator is content with one proxy of each."""
    monkeypatch.setattr(Centre, "summarise", lambda *_: pytest.fail("not needed"))
    assert plan(study(Centre(), ["nearest(m=4)", "max"]), SOURCE).to_do == 4


@pytest.mark.parametrize("workers", [1, 2])
def test_a_failing_experiment_fails_alone(tmp_path, workers):
    generators = [Picky(share=share) for share in (0.0, 0.25, 0.5, 0.75)]
    picky = study(generators, ["max", "nearest(m=2)"], tasks=["all", "classes(0, 1)"])
    summary = run(picky, tmp_path, source=SOURCE, workers=workers)
    # 0.25 fails in both tasks, 0.75 only where class 3 takes part
    assert (summary.computed, summary.failed) == (32 - 12, 12)
    rows = picky.results(tmp_path).to_pylist()
    failed = {(row["generator"], row["task"]) for row in rows}
    assert ("Picky(share=0.75)", "classes(0, 1)") in failed
    assert ("Picky(share=0.75)", "all") not in failed
    for row in rows:
        check(row, plain_of(generators, row))
    notes = Store(tmp_path).failures()
    assert {note["reason"]: note["experiments"] for note in notes} == {
        "ValueError: eigenvalues did not converge": 8,
        "ParameterError: Picky: too few rows above the median.": 4,
    }
    (few,) = (note for note in notes if note["experiments"] == 4)
    assert few["failed"] == [
        f"all, l2 / Picky(share=0.75) / l2 / l2 / {aggregator}, seed {seed}"
        for aggregator in ("max", "nearest(m=2)")
        for seed in (1, 2)
    ]
    assert sorted(summary.failures) == [
        "a, one, l2 / Picky: ParameterError: Picky: too few rows above the median."
        " (4 of 32 experiments: all, l2 / Picky(share=0.75) / l2 / l2 / max, seed 1"
        " and 3 more)",
        "a, one, l2 / Picky: ValueError: eigenvalues did not converge"
        " (8 of 32 experiments: all, l2 / Picky(share=0.25) / l2 / l2 / max, seed 1"
        " and 7 more)",
    ]


def plain_of(generators, row):
    """An experiment by a new classifier; `plain` looks components up by their text."""
    from tests.unit.study import test_study

    texts = {str(generator): generator for generator in generators}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(test_study, "OWN", {**test_study.OWN, **texts})
        return plain(SOURCE, row)


def test_failed_experiments_are_tried_again_and_their_notes_go(tmp_path, monkeypatch):
    picky = study([Picky(share=0.25), Picky()], ["max", "nearest(m=2)"])
    assert run(picky, tmp_path, source=SOURCE, workers=1).failed == 4
    # a larger study, whose unit has other experiments
    larger = replace(picky, seeds=(1, 2, 3))
    monkeypatch.setattr(Picky, "summarise", Centre.summarise)
    summary = run(larger, tmp_path, source=SOURCE, workers=1)
    assert (summary.computed, summary.failed) == (4 + 4, 0)
    assert Store(tmp_path).failures() == []


def test_the_report_names_the_failed_experiments(tmp_path):
    picky = study([Picky(share=0.25), Picky()], ["max", "nearest(m=2)"])
    run(picky, tmp_path, source=SOURCE, workers=1)
    store = Store(tmp_path)
    tables = tabulate(picky.results(tmp_path), "accuracy", 10, picky.recipes)
    text = page(tables, store.manifest(), store.failures())
    assert (
        "<li>a, one, l2 / Picky (4 experiments: all, l2 / Picky(share=0.25) / l2 / l2 /"
        " max, seed 1 and 3 more): ValueError: eigenvalues did not converge</li>"
    ) in text


def test_a_step_that_many_decisions_share_fails_for_one_of_them_only(
    tmp_path, monkeypatch
):
    """Where a shared step fails, each decision is computed by a `Head`."""
    from imprint.study import evaluate

    shared = study(["mean", "random(k=3)"], ["max", "nearest(m=2)", "kernel"])
    run(shared, tmp_path / "undisturbed", source=SOURCE, workers=1)

    def fail(*_):
        raise ParameterError("the scores overflow.")

    monkeypatch.setattr(evaluate, "_by_best_score", fail)
    monkeypatch.setattr(evaluate.KernelDecisions, "decide", fail)
    summary = run(shared, tmp_path / "alone", source=SOURCE, workers=1)
    assert summary.failures == ()
    alone, undisturbed = (
        shared.results(tmp_path / name).to_pylist() for name in ("alone", "undisturbed")
    )
    for row, expected in zip(alone, undisturbed):
        assert row["accuracy"] == expected["accuracy"]
        assert row["key"] == expected["key"]


@pytest.mark.parametrize("generator", ["kmeans(k=5)", "k_least_squares(k=5)"])
def test_copies_of_rows_leave_too_few_proxies_and_are_no_result(tmp_path, generator):
    """Four classes of one distinct row each have four proxies, whatever k is."""
    copies = np.repeat(np.eye(4, dtype=np.float32), 10, axis=0)
    y = np.repeat(np.arange(4), 10)
    source = Held({("a", "one"): (copies, y, copies, y)})
    aggregators = ["nearest(m=4, metric='cosine')", "nearest(m=7, metric='cosine')"]
    few = study(generator, aggregators, seeds=1)
    few = replace(few, rules=("enough_proxies", "consistent_parts"))
    summary = run(few, tmp_path, source=source, workers=1)
    (failure,) = summary.failures
    assert "m must not exceed the 4 proxies." in failure
    (row,) = few.results(tmp_path).to_pylist()
    assert (row["proxies"], row["accuracy"]) == (4, 1.0)


def test_a_note_of_an_earlier_version_is_read(tmp_path):
    picky = study([Picky(share=0.25), Picky()], ["max"])
    run(picky, tmp_path, source=SOURCE, workers=1)
    from imprint.core.files.atomic import write_checked

    (note,) = (tmp_path / "failures").iterdir()
    assert set(json.loads(note.read_text())) >= {"unit", "experiments", "reason"}
    write_checked(note, {"unit": "a", "experiments": 2, "reason": "gone"})
    (read,) = Store(tmp_path).failures()
    assert read["failed"] == []
