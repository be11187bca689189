"""The paper's studies on made-up packs: discovery, runs, tables, claims, pages."""

import json
import re
import shutil
from dataclasses import asdict
from itertools import product

import numpy as np
import pytest
from reproduction.tests.packs import write_pack

from imprint.core.errors import FileError, ParameterError
from imprint.report.text_table import TextTable
from imprint.study import Instance
from imprint_reproduction import ARTEFACTS, artefacts_named, listing
from imprint_reproduction.artefact import Finding, Results, Scores, elapsed
from imprint_reproduction.modes import PUBLISHED_CURVES, peaks
from imprint_reproduction.page import read_runs, sections, write_page
from imprint_reproduction.run import batches, planned_batches, run
from imprint_reproduction.sections import Verdict
from imprint_reproduction.setting import MAX, Setting, discover, role_study
from imprint_reproduction.table_result import compare_rows


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("packs")
    patch = pytest.MonkeyPatch()
    patch.setenv("IMPRINT_HOME", str(tmp_path_factory.mktemp("home")))
    for i, backbone in enumerate(("one", "two")):
        for j, dataset in enumerate(("mnist", "cifar10")):
            write_pack(place / f"{backbone}-{dataset}.npz", 10, 22, 10 * i + j)
    write_pack(place / "one-combidigits.npz", 10, 16, 7)
    write_pack(place / "one-hundred.npz", 100, 3, 8)
    np.savez(place / "sources-combidigits.npz", train=np.zeros(160))
    yield place
    patch.undo()


@pytest.fixture(scope="module")
def table1(folder, tmp_path_factory):
    out = tmp_path_factory.mktemp("out")
    run("paper/table1", discover(folder), out, workers=1)
    return out


def test_packs_are_found_by_role(folder):
    setting = discover(folder)
    assert setting.benchmark.backbones == ("one", "two")
    assert setting.benchmark.datasets == ("mnist", "cifar10")
    assert setting.combined.backbones == ("one",)
    assert setting.many.datasets == ("hundred",)
    assert setting.smallest == 22
    assert not setting.published
    assert Setting.of(json.loads(json.dumps(asdict(setting)))) == setting


def test_packs_can_be_chosen(folder):
    setting = discover(folder, ["two"], ["mnist"])
    assert (setting.benchmark.backbones, setting.benchmark.datasets) == (
        ("two",),
        ("mnist",),
    )
    assert not setting.many
    twice = discover(folder, ["two", "one", "two"], ["mnist"]).benchmark
    assert twice.backbones == ("one", "two"), (
        "a name that is given twice is counted once"
    )
    with pytest.raises(ParameterError, match="Did you mean 'two'"):
        discover(folder, ["twoo"])
    with pytest.raises(FileError, match="no folder"):
        discover(folder / "nowhere")
    with pytest.raises(FileError, match="has no packs"):
        discover(folder.parent)


def test_a_damaged_pack_is_named(tmp_path):
    path = tmp_path / "one-mnist.npz"
    np.savez_compressed(
        path, train_labels=np.arange(1000) % 10, train=np.zeros((1000, 2))
    )
    data = bytearray(path.read_bytes())
    start = (
        30
        + int.from_bytes(data[26:28], "little")
        + int.from_bytes(data[28:30], "little")
    )  # of the labels
    data[start] = 0xFF  # an invalid type of block
    path.write_bytes(data)
    with pytest.raises(FileError, match=r"one-mnist\.npz is not a readable pack"):
        discover(tmp_path)


def test_damaged_measurements_are_named(folder, tmp_path):
    run("paper/memory", discover(folder), tmp_path, workers=1)
    (tmp_path / "memory.json").write_text('{"one": ')
    with pytest.raises(
        FileError,
        match=r"memory\.json is not a readable file of measurements .*; delete it",
    ):
        sections(tmp_path, ["memory"])


def test_every_artefact_is_listed_once_in_the_order_of_the_paper():
    names = [o["name"] for o in listing()]
    assert names[0] == "paper/all"
    assert names[1] == "paper/table1"
    assert len(names) == len(set(names)) == len(ARTEFACTS) + 1
    with pytest.raises(ParameterError, match="Did you mean 'table1'"):
        artefacts_named("paper/table")


@pytest.mark.parametrize("beside", ["", "kernel"])
def test_all_names_every_cell_of_every_artefact_once(folder, beside):
    setting = discover(folder, beside=beside)

    def cells(studies):
        every = (
            product([s.name], s.instances, map(str, s.methods), s.seeds)
            for s in studies
        )
        return set().union(*every)

    whole = [
        w
        for s in setting.by_aggregator
        for a in ARTEFACTS.values()
        if a.can_run(s)
        for w in a.studies(s)
    ]
    planned = planned_batches("paper/all", setting)
    assert cells(study for batch in planned for study in batch) == cells(whole)
    assert batches([*whole, *whole]) == planned
    for batch in planned:
        assert sum(len(study.tasks) for study in batch) <= 20
        assert len({(study.name, study.seeds, study.shots) for study in batch}) == 1


def test_weight_decay_follows_the_backbone(folder):
    setting = Setting.of(
        {
            **asdict(discover(folder)),
            "benchmark": {"backbones": ["resnet18", "vit_b_16"], "datasets": ["mnist"]},
        }
    )
    (one,) = role_study(
        setting, "benchmark", ["none / least_squares(reg={reg}) / none / none / max"]
    )
    assert [str(m.generator) for m in one.methods] == [
        "least_squares(reg=0.0001)",
        "least_squares(reg=0.1)",
    ]
    instances = (
        Instance("resnet18", "mnist", "all"),
        Instance("vit_b_16", "mnist", "all"),
    )
    scores = Scores(
        instances,
        tuple(map(str, one.methods)),
        np.array([[[1.0], [2.0]], [[3.0], [4.0]]]),
    )
    assert scores.of("none / least_squares(reg={reg}) / none / none / max")[
        :, 0
    ].tolist() == [1.0, 4.0]


def test_table_equals_the_classifier(folder, table1):
    from imprint import recipe
    from imprint.tasks import resolve

    (section,) = sections(table1, ["table1"])
    cells = next(p for p in section.parts if isinstance(p, TextTable))
    row = next(r for r in cells.rows if r[0] == "Qi et al.")
    accuracies = []
    for backbone in ("one", "two"):
        for dataset in ("mnist", "cifar10"):
            d = np.load(folder / f"{backbone}-{dataset}.npz")
            for task in map(resolve, ("all", "even", "odd", "short")):
                a, b = task.select(d["train_labels"]), task.select(d["test_labels"])
                clf = recipe("qi2018").fit(d["train"][a.rows], a.labels)
                accuracies.append(100 * clf.score(d["test"][b.rows], b.labels))
    assert row[2] == f"{np.mean(accuracies):.2f} ± {np.std(accuracies, ddof=1):.2f}"
    assert row[1] == "86.79 ± 7.83"
    assert len(section.claims) == 4


def test_the_published_backbones_are_compared_value_by_value(table1):
    import dataclasses

    artefact, results = ARTEFACTS["table1"], Results(table1)
    rows = compare_rows(artefact.methods(MAX), artefact.scores(results))
    cells = artefact.cells(rows, results)
    assert cells.head[3] == "difference"
    assert float(cells.rows[3][3]) == pytest.approx(
        rows.means["Ours"] - 91.06, abs=0.006
    )
    assert [cells.right_aligned(j) for j in range(len(cells.head))] == [
        False,
        True,
        True,
        True,
        True,
        False,
    ]
    four = dataclasses.replace(
        results.setting.benchmark,
        backbones=("swin_b", "resnet18", "vit_b_16", "resnet50"),
    )
    assert dataclasses.replace(results.setting, benchmark=four).published


def test_a_second_run_computes_nothing_and_a_wider_one_only_what_is_new(
    folder, table1, tmp_path
):
    out = shutil.copytree(table1, tmp_path / "out")
    assert run("paper/table1", discover(folder), out, workers=1).computed == 0
    wider = run("paper/aggregators_20", discover(folder), out, workers=1)
    assert (
        wider.computed == wider.experiments - 16 * 3
    )  # k-means with 20 proxies and max was computed before
    assert sections(out, ["table1"])[0].parts


def test_missing_results_are_shown_with_the_command_to_run(table1):
    (section,) = sections(table1, ["generators_over_k"])
    assert section.text == "Not run yet: imprint study run paper/generators_over_k"
    assert not section.parts


def test_missing_packs_are_named(folder, tmp_path):
    run("paper/table1", discover(folder, ["two"]), tmp_path, workers=1)
    (section,) = sections(tmp_path, ["modes_l2"])
    assert "no packs of a data set of 100 classes or more" in section.text


def test_studies_without_packs_are_not_computed(folder, tmp_path):
    setting = discover(folder, ["two"])
    assert not planned_batches("paper/modes_l2", setting)
    studies = [
        study for batch in planned_batches("paper/all", setting) for study in batch
    ]
    methods = {str(m.generator) for study in studies for m in study.methods}
    assert "kmeans(k=20)" in methods
    assert "kmeans(k=4)" not in methods  # only the curves of "d in 1" need them
    assert run("paper/gain", setting, tmp_path, workers=1).experiments == 0
    assert not (tmp_path / "collapse.json").exists()


def test_progress_is_that_of_all_studies(folder, tmp_path):
    setting, seen = discover(folder, ["two"], ["mnist"]), []
    run("paper/table1", setting, tmp_path, workers=1)
    assert len(planned_batches("paper/all", setting)) > 1
    summary = run("paper/all", setting, tmp_path, workers=1, progress=seen.append)
    assert [p.done for p in seen] == sorted(p.done for p in seen)
    assert [p.total for p in seen] == sorted(
        (p.total for p in seen), reverse=True
    )  # it falls if some exist already
    assert seen[-1].done == seen[-1].total == summary.computed > 0
    assert seen[0].total == summary.computed, (
        "studies that are planned together know their total from the start"
    )
    assert seen[-1].seconds_left == 0


@pytest.mark.parametrize(
    "content", ["[]", '"mine"', "{}", '{"format": 99}', "not JSON"]
)
def test_a_record_that_imprint_did_not_write_is_refused_and_kept(
    folder, tmp_path, content
):
    (tmp_path / "paper.json").write_text(content)
    for action in (
        lambda: run("paper/table1", discover(folder), tmp_path, workers=1),
        lambda: read_runs([tmp_path]),
    ):
        with pytest.raises(FileError):
            action()
    assert (tmp_path / "paper.json").read_text() == content


def test_time_adds_up_over_calls(folder, tmp_path):
    setting = discover(folder, ["two"], ["mnist"])
    run("paper/table1", setting, tmp_path, workers=1)
    note = tmp_path / "paper.json"
    known_before = json.loads(note.read_text())
    note.write_text(json.dumps({**known_before, "seconds": 100.0}))
    run("paper/table1", setting, tmp_path, workers=1)
    assert 100 <= elapsed(tmp_path) < 130
    assert read_runs([tmp_path])[0].elapsed == elapsed(tmp_path)


def test_runs_are_named_by_their_packs(folder, table1, tmp_path):
    run("paper/table1", discover(folder, ["two"]), tmp_path, workers=1)
    assert [r.name for r in read_runs([table1])] == ["here"]
    first, second = read_runs([table1, tmp_path])
    assert "no packs" not in first.scope
    assert (first.name, second.name) == (folder.name, f"{folder.name} 2")
    files = write_page([first, second], tmp_path / "page")
    assert {f.name for f in files} >= {
        "table1.svg",
        f"table1-{second.name.replace(' ', '-')}.svg",
    }


def test_a_row_has_the_results_of_its_best_candidate():
    values = np.array(
        [[[3.0], [2.0], [1.0]], [[3.0], [9.0], [1.0]], [[5.0], [4.0], [1.0]]]
    )
    methods = (
        "l2 / mean / l2 / l2 / max",
        "none / mean / l2 / l2 / max",
        "none / mean / none / none / max",
    )
    scores = Scores(
        tuple(Instance("a", "b", str(i)) for i in range(3)), methods, values
    )
    three = compare_rows({"means": methods[:2], "bare": methods[2:]}, scores)
    assert three.chosen == {"means": methods[0], "bare": methods[2]}
    assert three.means == {"means": pytest.approx(11 / 3), "bare": 1.0}
    assert three.first("means") == Finding(True, "means has the best average rank")
    assert (
        three.ahead(["means"], ["bare"]).holds == Verdict.UNTESTABLE
    )  # three instances can never be significant
    many = Scores(scores.instances * 3, methods, np.tile(values, (3, 1, 1)))
    nine = compare_rows({"means": methods[:2], "bare": methods[2:]}, many)
    assert nine.ahead(["means"], ["bare"]).holds == Verdict.HOLDS
    assert nine.ahead(["means"], ["bare"], by=3).holds == Verdict.FAILS
    assert nine.ahead(["bare"], ["means"]).holds == Verdict.FAILS


@pytest.mark.parametrize("name", ["norms_20", "norm_pre_inf"])
def test_few_instances_cannot_show_that_methods_are_alike(folder, tmp_path, name):
    run(f"paper/{name}", discover(folder, ["two"], ["mnist"]), tmp_path, workers=1)
    (section,) = sections(tmp_path, [name])
    assert {c.verdict for c in section.claims} == {Verdict.UNTESTABLE}  # four instances


def test_published_results_can_contradict_a_claim():
    artefact = ARTEFACTS["norms_20"]
    claims = artefact.judge_claims(
        {name: Finding(True, "here") for name in artefact.claims}
    )
    assert [(c.verdict, c.published) for c in claims] == [
        (Verdict.HOLDS, Verdict.HOLDS),
        (Verdict.HOLDS, Verdict.HOLDS),
        (Verdict.HOLDS, Verdict.FAILS),
    ]
    assert claims[2].published_figures == "-17.53 points"
    (computed,) = artefact.judge_claims(
        {"best": Finding(False, "here", published=Finding(False, "there"))}
    )
    assert (computed.published, computed.published_figures) == (Verdict.FAILS, "there")
    unpublished = ARTEFACTS["kernel"].judge_claims({"five": Finding(True, "here")})
    assert unpublished[0].published is None


def test_curves_are_medians_over_seeds_and_means_over_label_maps():
    from imprint_reproduction.modes import curve_means

    values = np.zeros((10, 2, 15, 3))  # (d, map, k, seed)
    values[0, :, 0] = [[1, 2, 9], [4, 4, 100]]
    assert curve_means(values)[0, :2].tolist() == [3, 0]


def test_peaks_of_the_published_curves_are_those_read_off():
    by_backbone = {b: peaks(v) for b, v in PUBLISHED_CURVES.items()}
    assert by_backbone["swin_b"] == list(range(1, 11))
    assert by_backbone["vit_b_16"] == list(range(2, 11))
    assert by_backbone["resnet50"] == list(range(1, 10))
    assert by_backbone["resnet18"] == [1, 2, 3, 4]


def test_published_gains_have_the_published_correlation():
    from imprint.collapse import gain_fit
    from imprint_reproduction.collapse import published_gain_points

    points = published_gain_points()
    fit = gain_fit([p.x for p in points], [p.y for p in points])
    assert len(points) == 56
    assert fit.spearman == pytest.approx(0.8179, abs=0.02)
    assert fit.r2 == pytest.approx(0.3559, abs=0.02)
    large = [p for p in points if p.x > 1]
    assert abs(gain_fit([p.x for p in large], [p.y for p in large]).spearman) < 0.15


def test_gains_are_fitted_by_region():
    from imprint.report.figures import Point
    from imprint_reproduction.collapse import fits_by_region

    spots = [(filled, x) for filled in (True, False) for x in np.geomspace(0.1, 20, 20)]
    points = [Point("one", filled, x, x + filled) for filled, x in spots]
    counts = {region: fit.n for region, fit in fits_by_region(points).items() if fit}
    large = sum(x > 1 for _, x in spots)
    assert counts == {
        "all": 40, "d in 1": 20, "NC1 < 1": 40 - large, "NC1 > 1": large, "NC1 > 1, d in 1": large // 2,
    }  # fmt: skip
    assert fits_by_region(points[:7]) == dict.fromkeys(counts), (
        "seven points are too few"
    )


@pytest.mark.parametrize("gains", [range(7), [0.0] * 40])
def test_a_gain_over_few_points_or_none_at_all_cannot_be_tested(gains):
    from imprint.report.figures import Point
    from imprint_reproduction.collapse import (
        check_gain,
        fits_by_region,
        published_gain_points,
    )

    ours = fits_by_region(
        [Point("one", True, 1.5 + i, gain) for i, gain in enumerate(gains)]
    )
    findings = check_gain(ours, fits_by_region(published_gain_points()))
    assert [finding.holds for finding in findings.values()] == [Verdict.UNTESTABLE] * 2
    assert [finding.published.holds for finding in findings.values()] == [True, False]


def test_the_claim_on_lowest_collapse_needs_cifar10():
    from imprint_reproduction.collapse import check_collapse

    sets = {"one": {"mnist": 3.0, "cifar10": 2.0}, "two": {"combidigits": 1.0}}
    findings = check_collapse({}, sets, sets)
    assert (findings["lowest"].holds, findings["lowest"].figures) == (
        True,
        "lowest: one cifar10",
    )
    sets["one"]["mnist"] = 1.0
    assert not check_collapse({}, sets, sets)["lowest"].holds
    alone = {"one": {"cifar10": 2.0}, "two": {"mnist": 3.0, "fashionmnist": 4.0}}
    assert "lowest" not in check_collapse({}, alone, alone), (
        "a single set has nothing to compare"
    )


def test_few_rows_are_shown_for_no_more_proxies_than_rows(
    folder, tmp_path, monkeypatch
):
    from imprint_reproduction import budgets

    drawings = []
    monkeypatch.setattr(
        budgets, "draw", lambda panels, *_, **__: drawings.append(panels) or b""
    )
    run("paper/shots", discover(folder), tmp_path, workers=1)
    sections(tmp_path, ["shots", "shots_small"])
    mean, of_each = drawings
    assert [p.title for p in mean] == [
        "mean of the backbones, mnist",
        "mean of the backbones, cifar10",
    ]
    assert [p.title for p in of_each] == [
        "one, mnist",
        "one, cifar10",
        "two, mnist",
        "two, cifar10",
    ]
    assert {s.label: list(s.x) for s in mean[0].lines} == {
        "k = 1 (mean)": [1, 2, 5, 10, 20], "k = 2": [2, 5, 10, 20], "k = 5": [5, 10, 20], "k = 10": [10, 20],
        "k = 20": [20], "k = n (all)": [1, 2, 5, 10, 20],
    }  # fmt: skip
    assert {tuple(s.x) for s in of_each[0].lines} == {(10, 20), (20,)}, "from ten rows"
    one, two = (panel.lines[0].y for panel in of_each[::2])
    assert mean[0].lines[0].y[3:] == pytest.approx((one + two) / 2)


def test_a_figure_that_begins_with_more_rows_than_a_class_has_is_left_out(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("IMPRINT_HOME", str(tmp_path / "home"))
    write_pack(tmp_path / "one-mnist.npz", 10, 7, 1)
    run("paper/shots", discover(tmp_path), tmp_path / "out", workers=1)
    from_one, from_ten = sections(tmp_path / "out", ["shots", "shots_small"])
    assert from_one.parts
    assert (
        from_ten.text
        == "The smallest class has 7 rows; the figure begins with 10 rows per class."
    )
    assert [section.name for section in read_runs([tmp_path / "out"])[0].sections] == [
        "shots"
    ]


def test_a_crossing_needs_more_rows_than_proxies():
    from imprint_reproduction.budgets import SHOT_K, crossing

    means = np.zeros((len(SHOT_K), 2))  # (k, shots)
    means[0], means[1] = 5, 6
    assert crossing(means, np.array([2, 5])) == 5, (
        "with k = 2, two rows per class are all rows"
    )


def test_data_sets_without_a_crossing_are_named():
    from imprint_reproduction.budgets import check_shots

    findings = check_shots({"mnist": 20, "fashionmnist": None, "cifar10": 200}, 600)
    assert findings["overtakes"].figures.endswith(
        "(mnist: 20, fashionmnist: not up to 600, cifar10: 200)"
    )
    assert findings["fifty"] == Finding(
        False, "mnist from 20, fashionmnist not up to 600"
    )
    assert findings["two_hundred"] == Finding(True, "cifar10 from 200")


def test_collapse_is_measured_once_and_both_ways(folder, tmp_path):
    from imprint.collapse import nc1
    from imprint_reproduction.collapse import measured_nc1

    setting = discover(folder)
    run("paper/table1", setting, tmp_path, workers=1)
    ARTEFACTS["nc1"].measure(setting, tmp_path, lambda *_: None)
    before = (tmp_path / "collapse.json").read_bytes()
    ARTEFACTS["nc1"].measure(setting, tmp_path, lambda *_: None)
    assert (tmp_path / "collapse.json").read_bytes() == before
    results = Results(tmp_path)
    d = np.load(folder / "two-cifar10.npz")
    unit = d["train"] / np.linalg.norm(d["train"], axis=1, keepdims=True)
    assert measured_nc1(results)[0]["two"]["cifar10"] == pytest.approx(
        nc1(unit, d["train_labels"]), rel=1e-5
    )
    assert (
        measured_nc1(results, "published")[0]["two"]["cifar10"]
        > measured_nc1(results)[0]["two"]["cifar10"]
    )
    assert [len(v) for v in measured_nc1(results)[1]["one"]] == [10] * 10


def test_collapse_of_a_changed_pack_is_measured_again(tmp_path, monkeypatch):
    from imprint_reproduction.collapse import measured_nc1

    monkeypatch.setenv("IMPRINT_HOME", str(tmp_path / "home"))
    values = []
    for seed in (1, 2):
        write_pack(tmp_path / "one-mnist.npz", 10, 22, seed)
        run("paper/nc1", discover(tmp_path), tmp_path / "out", workers=1)
        values.append(measured_nc1(Results(tmp_path / "out"))[0]["one"]["mnist"])
    assert values[0] != values[1]


def test_a_measurement_that_was_killed_is_shown_as_far_as_it_is_complete(
    folder, tmp_path
):
    from imprint_reproduction.collapse import measured_nc1

    setting = discover(folder)
    run("paper/table1", setting, tmp_path, workers=1)
    ARTEFACTS["nc1"].measure(setting, tmp_path, lambda *_: None)
    whole = json.loads((tmp_path / "collapse.json").read_text())
    unmeasured = [key for key in whole if "d_in_1" in key][-3:]
    (tmp_path / "collapse.json").write_text(
        json.dumps({k: v for k, v in whole.items() if k not in unmeasured})
    )
    cut = unmeasured[0].split(" / ")[0]
    assert cut not in measured_nc1(Results(tmp_path))[1]
    (section,) = sections(tmp_path, ["nc1"])
    assert section.parts
    assert len(section.claims) == len(ARTEFACTS["nc1"].claims)


def test_a_backbone_with_combidigits_alone_has_nothing_to_compare(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("IMPRINT_HOME", str(tmp_path / "home"))
    write_pack(tmp_path / "one-mnist.npz", 10, 22, 1)
    write_pack(tmp_path / "two-combidigits.npz", 10, 16, 7)
    run("paper/nc1", discover(tmp_path), tmp_path / "out", workers=1)
    (section,) = sections(tmp_path / "out", ["nc1"])
    (highest,) = (
        c for c in section.claims if c.text.startswith("CombiDigits has the highest")
    )
    assert highest.verdict == Verdict.UNTESTABLE


def test_the_page_needs_no_other_files(table1, tmp_path):
    files = write_page(read_runs([table1]), tmp_path)
    page = (tmp_path / "results.html").read_text()
    assert {f.name for f in files} >= {"results.html", "results.md", "table1.svg"}
    assert not re.search(r'(?:src|href)="(?!#|data:)', page)
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert [name for name in ARTEFACTS if f"paper/{name}" in page] == ["table1"]
    text = (tmp_path / "results.md").read_text()
    assert all(
        (tmp_path / link).is_file()
        for link in re.findall(r"\]\((results/[^)]+)\)", text)
    )
    assert str(table1) not in page + text
    assert {str(v) for v in Verdict} >= set(
        re.findall(r'<span class="\w+">. ([a-z ]+)</span>', page)
    )


def test_a_memory_of_outer_products_is_the_head():
    from imprint_reproduction.measurements import compare_with_head

    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b", "c"], 9)
    X = (rng.normal(size=(3, 5)).repeat(9, axis=0) + rng.normal(size=(27, 5))).astype(
        np.float32
    )
    differences = compare_with_head(X, y, X[::2])
    assert differences["agree"] == differences["rows"] == 14
    assert differences["difference"] < 1e-6


def test_run_times_are_those_of_the_rows_of_the_task(tmp_path, monkeypatch):
    from imprint_reproduction import measurements

    classes = []

    class Recorder:
        def fit(self, X, y):
            classes.append(len(np.unique(y)))

    monkeypatch.setenv("IMPRINT_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(measurements, "recipe", lambda *_, **__: Recorder())
    write_pack(tmp_path / "one-mnist.npz", 10, 8, 1)
    run("paper/runtime", discover(tmp_path), tmp_path / "out", workers=1)
    per_task = 3 * len(ARTEFACTS["runtime"].generators)  # three seeds
    assert classes == [n for n in (10, 5, 5, 3) for _ in range(per_task)]


def test_run_times_are_measured_once_for_every_generator(tmp_path, monkeypatch):
    monkeypatch.setenv("IMPRINT_HOME", str(tmp_path / "home"))
    write_pack(tmp_path / "one-mnist.npz", 10, 8, 1)
    for _ in range(2):
        run("paper/runtime", discover(tmp_path), tmp_path / "out", workers=1)
    times = Results(tmp_path / "out").measured("runtime")
    assert list(times) == [
        f"one / mnist / {task}" for task in ("all", "even", "odd", "short")
    ]
    labels = list(ARTEFACTS["runtime"].generators)
    assert all(sorted(of_task) == sorted(labels) for of_task in times.values())
    assert all(
        len(seeds) == 3 and min(seeds) > 0
        for of_task in times.values()
        for seeds in of_task.values()
    )
    (section,) = sections(tmp_path / "out", ["runtime"])
    (cells,) = section.parts
    assert [row[:2] for row in cells.rows[:2]] == [
        ("mean", "0.0029"),
        ("k-means, k = 5", "1.2249"),
    ]
    medians = [np.median(of_task["mean"]) for of_task in times.values()]
    assert cells.rows[0][2:4] == (
        f"{np.mean(medians):.4f}",
        f"{np.median(medians):.4f}",
    )


def digits(place):
    for i, name in enumerate(("mnist", "mnistm", "svhn", "usps")):
        images = np.full((12, 8, 8, 3)[: 3 + i % 2], 60 * i, dtype=np.uint8)
        np.savez(
            place / f"{name}.npz",
            train_images=images,
            train_labels=np.repeat([6, 1], 6),
        )


@pytest.mark.parametrize("beside", [True, False])
def test_samples_of_digits_are_next_to_the_embeddings_or_among_downloads(
    tmp_path, monkeypatch, beside
):
    packs, home = tmp_path / "packs", tmp_path / "home"
    for place in (packs, home / "data"):
        place.mkdir(parents=True)
    monkeypatch.setenv("IMPRINT_HOME", str(home))
    write_pack(packs / "one-mnist.npz", 10, 22, 1)
    write_pack(packs / "one-combidigits.npz", 10, 16, 7)
    run("paper/combidigits", discover(packs), tmp_path / "out", workers=1)
    (before,) = sections(tmp_path / "out", ["combidigits"])
    assert "sources-combidigits.npz" in before.text
    assert not before.parts
    digits(packs if beside else home / "data")
    run("paper/combidigits", discover(packs), tmp_path / "out", workers=1)
    shown = np.load(tmp_path / "out" / "combidigits.npy")
    assert shown.shape == (4, 5, 32, 32, 3)
    assert shown.reshape(4, -1)[:, 0].tolist() == [0, 60, 120, 180]
    (after,) = sections(tmp_path / "out", ["combidigits"])
    assert [p.name for p in after.parts] == ["combidigits"]


def test_sources_of_digits_are_drawn_from_their_embeddings(tmp_path, monkeypatch):
    monkeypatch.setenv("IMPRINT_HOME", str(tmp_path / "home"))
    write_pack(tmp_path / "one-mnist.npz", 10, 22, 1)
    write_pack(tmp_path / "one-combidigits.npz", 10, 16, 7)
    setting, out = discover(tmp_path), tmp_path / "out"
    np.savez(
        tmp_path / "sources-combidigits.npz", train=np.tile(np.repeat(range(4), 4), 10)
    )
    run("paper/combidigits", setting, out, workers=1)
    (section,) = sections(out, ["combidigits"])
    assert [p.name for p in section.parts] == ["combidigits_embeddings"]
    measured = Results(out).measured("combidigits")["one"]
    d = np.load(tmp_path / "one-combidigits.npz")
    rows = d["train"][d["train_labels"] == 6]
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    spread = np.linalg.svd(unit - unit.mean(axis=0))[1]
    flat = np.concatenate(
        [measured[s] for s in ("mnist", "mnistm", "svhn", "usps")], axis=1
    )  # (2, 16)
    assert np.linalg.norm(flat, axis=1) == pytest.approx(spread[:2], rel=1e-3)
    np.savez(tmp_path / "sources-combidigits.npz", train=np.zeros(3))
    with pytest.raises(FileError, match="has 3 rows, the embeddings have 160"):
        run("paper/combidigits", setting, out, workers=1)
    np.savez(tmp_path / "sources-combidigits.npz", other=np.zeros(3))
    with pytest.raises(FileError, match="must hold `train`"):
        run("paper/combidigits", setting, out, workers=1)


def test_classes_of_several_modes_from_studies_to_claims(folder, tmp_path):
    setting = discover(folder, ["one"], maps=1)
    for name in ("gain", "against_k_least_squares"):
        run(f"paper/{name}", setting, tmp_path, workers=1)
    curves, gain, against = sections(
        tmp_path, ["modes_l2", "gain", "against_k_least_squares"]
    )
    best = next(p for p in curves.parts if isinstance(p, TextTable))
    assert len(best.rows[0]) == 11
    assert {c.verdict for c in curves.claims} <= {Verdict.HOLDS, Verdict.FAILS}
    assert [c.published for c in curves.claims] == [
        Verdict.FAILS,
        Verdict.FAILS,
        Verdict.HOLDS,
    ]
    fits = next(p for p in gain.parts if isinstance(p, TextTable))
    ours = dict((row[0], row[1]) for row in fits.rows)
    assert ours["published, all"] == "56"
    assert ours["here, all"] == str(
        10 + 2 + 1
    )  # d = 1 to 10, two ten-class sets, CombiDigits
    assert len(against.claims) == 2
    assert not sections(tmp_path, ["modes_pre_none"])[0].parts


def test_curves_of_published_backbones_are_compared_value_by_value(
    tmp_path, monkeypatch
):
    from imprint import recipe
    from imprint_reproduction.modes import KMEANS_OVER_K, value_line

    monkeypatch.setenv("IMPRINT_HOME", str(tmp_path / "home"))
    write_pack(tmp_path / "resnet18-mnist.npz", 10, 16, 1)
    write_pack(tmp_path / "resnet18-imagenet.npz", 100, 3, 8)
    run("paper/modes_l2", discover(tmp_path, maps=1), tmp_path / "out", workers=1)
    (section,) = sections(tmp_path / "out", ["modes_l2"])
    *_, cells = (p for p in section.parts if isinstance(p, TextTable))
    assert [row[0] for row in cells.rows] == [
        "resnet18, mnist",
        *(f"resnet18, {d}_in_1" for d in range(1, 11)),
    ]
    d = np.load(tmp_path / "resnet18-mnist.npz")
    ours = 100 * recipe("qi2018").fit(d["train"], d["train_labels"]).score(
        d["test"], d["test_labels"]
    )
    assert cells.rows[0][1:3] == ("84.64", f"{ours:.2f}")
    assert cells.rows[10][1] == f"{KMEANS_OVER_K['resnet18', '10_in_1'][0]:.2f}"
    theirs, ours_moved = np.full(15, 50.0), np.full(15, 51.0)
    ours_moved[2] = 47.0
    line = value_line("resnet18", "mnist", ours_moved, theirs)
    assert line == (
        "resnet18, mnist",
        "50.00",
        "51.00",
        "50.00",
        "51.00",
        "50.00",
        "51.00",
        "-3.00 at k = 3",
    )


def test_a_gain_is_that_of_five_proxies(folder, tmp_path):
    from imprint import ImprintClassifier
    from imprint_reproduction.collapse import gain_points, measured_nc1

    setting = discover(folder, ["one"], maps=1)
    run("paper/gain", setting, tmp_path, workers=1)
    points = gain_points(Results(tmp_path))
    on_mnist = next(p for p in points if not p.filled)
    assert [p.x for p in points if p.filled] == measured_nc1(Results(tmp_path))[1][
        "one"
    ][:, 0].tolist(), "of the one map run"
    d = np.load(folder / "one-mnist.npz")
    medians = []
    for k in (5, 1):
        fitted = (
            ImprintClassifier(
                generator=f"kmeans(k={k})",
                norm_post="l2",
                aggregator="max",
                random_state=s,
            )
            for s in (17121997, 123987, 12412312)
        )
        scores = [
            100
            * c.fit(d["train"], d["train_labels"]).score(d["test"], d["test_labels"])
            for c in fitted
        ]
        medians.append(np.median(scores))
    assert on_mnist.y == pytest.approx(medians[0] - medians[1])
