"""The studies of the paper with another aggregator (`--beside`)."""

from dataclasses import asdict

import numpy as np
import pytest
from reproduction.tests.packs import write_pack

from imprint import ImprintClassifier
from imprint.core.errors import ParameterError
from imprint.study import Instance
from imprint.tasks import resolve
from imprint_reproduction import ARTEFACTS
from imprint_reproduction.artefact import Results, Scores
from imprint_reproduction.page import markdown_pages, read_runs, sections
from imprint_reproduction.run import planned_batches, run
from imprint_reproduction.sections import Claims, Verdict, sections_by_artefact
from imprint_reproduction.setting import (
    MAX,
    Setting,
    discover,
    method_text,
    with_aggregator,
)
from imprint_reproduction.table_result import compare_rows


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place, patch = tmp_path_factory.mktemp("packs"), pytest.MonkeyPatch()
    patch.setenv("IMPRINT_HOME", str(tmp_path_factory.mktemp("home")))
    write_pack(place / "one-mnist.npz", 10, 22, 1, distance=1.5)
    write_pack(place / "resnet50_keras-mnist.npz", 10, 16, 2, distance=1.5)
    yield place
    patch.undo()


@pytest.fixture(scope="module")
def asked(folder, tmp_path_factory):
    out = tmp_path_factory.mktemp("out")
    for name in ("norm_pre_inf", "table1"):
        run(f"paper/{name}", discover(folder, beside="kernel"), out, workers=1)
    return out


def test_the_other_aggregator_replaces_only_max():
    assert (
        with_aggregator("none / mean / l2 / none / max", "kernel")
        == "none / mean / l2 / none / kernel"
    )
    assert (
        with_aggregator("l2 / all / l2 / l2 / nearest(m=5)", "kernel")
        == "l2 / all / l2 / l2 / nearest(m=5)"
    )


def test_only_studies_with_max_run_with_another_aggregator(folder):
    setting = discover(folder, beside="kernel")
    assert Setting.of(asdict(setting)) == setting
    assert [one.aggregator for one in setting.by_aggregator] == [MAX, "kernel"]

    def deciding(name, setting):
        return {
            type(m.aggregator).__name__
            for batch in planned_batches(name, setting)
            for s in batch
            for m in s.methods
        }

    assert deciding("paper/norms_20", setting) == {"Max", "Kernel"}
    assert deciding("paper/norms_20", discover(folder)) == {"Max"}
    assert deciding("paper/table1", setting) == {"Max", "Nearest"}
    with pytest.raises(
        ParameterError, match=r"Unknown aggregator 'kernle'\. Did you mean 'kernel'"
    ):
        discover(folder, beside="kernle")


def test_the_table_of_another_aggregator_equals_the_classifier(folder, asked):
    (section,) = sections(asked, ["norm_pre_inf"], "kernel")
    cells, _ = section.parts
    assert cells.head[1:5] == ("max, %", "kernel, %", "difference", "rank with kernel")
    (row,) = (r for r in cells.rows if r[0] == "pre none, inf none")
    accuracies = {}
    for aggregator in ("max", "kernel"):
        accuracies[aggregator] = []
        for backbone in ("one", "resnet50_keras"):
            d = np.load(folder / f"{backbone}-mnist.npz")
            for task in map(resolve, ("all", "even", "odd", "short")):
                a, b = task.select(d["train_labels"]), task.select(d["test_labels"])
                norms = {"norm_pre": "none", "norm_post": "l2", "norm_inf": "none"}
                clf = ImprintClassifier(
                    generator="mean", aggregator=aggregator, **norms
                )
                clf.fit(d["train"][a.rows], a.labels)
                accuracies[aggregator].append(
                    100 * clf.score(d["test"][b.rows], b.labels)
                )
    assert np.mean(accuracies["max"]) != np.mean(accuracies["kernel"])
    shown = [f"{np.mean(v):.2f} ± {np.std(v, ddof=1):.2f}" for v in accuracies.values()]
    assert list(row[1:3]) == shown
    assert row[5] == "none / mean / l2 / none / kernel"


def test_results_of_both_aggregators_for_a_claim_share_a_row(asked):
    runs = read_runs([asked])
    assert [r.name for r in runs] == ["here", "here, kernel"]
    assert [s.name for s in runs[1].sections] == [
        "norm_pre_inf"
    ]  # Table 1 compares published methods
    verdicts = Claims.of(sections_by_artefact(runs), runs).verdicts
    (sources,) = (
        v
        for (_, text), v in verdicts.items()
        if "norm_pre and norm_inf make no" in text
    )
    assert set(sources) == {"here", "here, kernel", "published results"}
    text = markdown_pages(runs)["results.md"]
    assert text.count("--out RESULTS --beside kernel\n") == 2  # once per artefact
    assert "here, kernel: the same studies with kernel instead of max.\n" in text


def test_the_benchmark_uses_sets_of_a_hundred_classes_if_the_papers_sets_are_missing(
    tmp_path,
):
    write_pack(tmp_path / "words-many.npz", 100, 3, 1, distance=1.5)
    write_pack(tmp_path / "words-few.npz", 6, 5, 1, distance=1.5)
    setting = discover(tmp_path)
    assert setting.benchmark.datasets == ("few", "many")
    assert setting.many.datasets == ("many",)
    write_pack(tmp_path / "words-mnist.npz", 10, 5, 1, distance=1.5)
    assert discover(tmp_path).benchmark.datasets == ("mnist", "few")


def test_a_role_has_the_backbones_with_all_of_its_data_sets(tmp_path):
    for backbone, dataset in (
        ("full", "mnist"),
        ("full", "cifar10"),
        ("half", "mnist"),
    ):
        write_pack(tmp_path / f"{backbone}-{dataset}.npz", 10, 5, 1)
    assert discover(tmp_path).benchmark.backbones == ("full",)
    assert discover(tmp_path, datasets=["mnist"]).benchmark.backbones == (
        "full",
        "half",
    )


def test_the_table_of_kernel_is_computed_on_request(folder, tmp_path):
    assert not planned_batches("paper/kernel", discover(folder))
    assert not planned_batches("paper/kernel", discover(folder, beside="nearest(m=1)"))
    run("paper/kernel", discover(folder, beside="kernel"), tmp_path, workers=1)
    (section,) = sections(tmp_path, ["kernel"])
    assert len(section.claims) == 5
    run("paper/table1", discover(folder), tmp_path, workers=1)
    assert "--beside kernel" in sections(tmp_path, ["kernel"])[0].text


def made_up(means):
    """Scores of the rows of the kernel table, alike on twelve instances."""
    methods = [
        method_text(first, "b")
        for first, *_ in ARTEFACTS["kernel"].methods(MAX).values()
    ]
    noise = np.random.default_rng(0).normal(size=(12, 1, 1))
    values = np.array(means)[None, :, None] + noise
    return Scores(
        tuple(Instance("b", "d", str(i)) for i in range(12)), tuple(methods), values
    )


@pytest.mark.parametrize(
    ("means", "hold"),
    [
        ((80, 85, 90, 82, 86, 91), [True, True, True, True, True]),
        ((80, 85, 90, 79, 84, 89), [True, False, False, False, False]),
        ((80, 85, 90, 79, 79.5, 89), [False] * 5),
    ],
)
def test_claims_about_kernel_can_fail(means, hold):
    artefact = ARTEFACTS["kernel"]
    claims = artefact.judge_claims(
        artefact.check(compare_rows(artefact.methods(MAX), made_up(means)))
    )
    assert [c.verdict == Verdict.HOLDS for c in claims] == hold
    assert Verdict.UNTESTABLE not in {c.verdict for c in claims}


def test_half_of_no_gap_is_not_testable():
    rows = compare_rows(
        ARTEFACTS["kernel"].methods(MAX), made_up((80, 85, 79, 82, 86, 91))
    )
    assert rows.closes_half("kernel, k = 20", "max, k = 20", "oracle")[:2] == (
        Verdict.UNTESTABLE,
        "there is no gap: oracle is 1.00 points below max, k = 20",
    )


def test_results_of_two_aggregators_stay_apart(asked):
    work = ARTEFACTS["norm_pre_inf"].studies(Results(asked, "kernel").setting)
    assert all("/ kernel(" in text for text in work[0].recipes)
    ours, theirs = (
        ARTEFACTS["norm_pre_inf"].scores(Results(asked, a)) for a in ("kernel", "max")
    )
    method = "none / mean / l2 / none / max"
    assert not np.array_equal(ours.of(method), theirs.of(method))
