"""The report of a study compared with values computed by hand."""

import csv
import io
import json
import re

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pytest

from imprint.cli import main
from imprint.core.errors import ParameterError
from imprint.embeddings import write_pack
from imprint.report.study_report import (
    as_csv,
    as_json,
    as_latex,
    as_text,
    breakdowns_csv,
    page,
    pairs_csv,
)
from imprint.report.tables import tabulate

GOOD, POOR, PART = (
    ("l2", "mean", "l2", "l2", "max"),
    ("none", "mean", "none", "l2", "max"),
    ("l2", "fps(k=2)") * 2,
)
SCORES = {
    ("x", GOOD): [0.9, 0.1, 0.8],
    ("y", GOOD): [0.6, 0.7],
    ("x", POOR): [0.5, 0.4, 0.6],
    ("y", POOR): [0.2, 0.3],
    ("x", (*PART, "max")): [0.99],
}
MANIFEST = {
    "study": {"name": "<s>"},
    "experiments": 12,
    "libraries": {"numpy": "2"},
    "imprint": "1",
    "python": "3",
}


@pytest.fixture
def table():
    rows = []
    for (dataset, method), scores in SCORES.items():
        names = dict(
            zip(
                ("norm_pre", "generator", "norm_post", "norm_inf", "aggregator"), method
            )
        )
        for seed, score in enumerate(scores):
            costs = {
                "seconds_generation": 0.25,
                "seconds_evaluation": 0.5,
                "near_ties": 1,
                "test_rows": 1000,
            }
            rows.append(
                {
                    "backbone": "b",
                    "dataset": dataset,
                    "task": "all",
                    **names,
                    "seed": seed,
                    **costs,
                }
            )
            rows[-1]["accuracy"] = score
    return pa.Table.from_pylist(rows)


def test_medians_over_seeds_then_mean_and_std_over_instances(table):
    good, poor, part = tabulate(table).lines
    assert (good.method, poor.method) == (" / ".join(GOOD), " / ".join(POOR))
    assert (good.mean, good.std) == pytest.approx((0.725, np.std([0.8, 0.65], ddof=1)))
    assert (poor.mean, poor.std) == pytest.approx((0.375, np.std([0.5, 0.25], ddof=1)))
    assert (good.rank, poor.rank, good.instances, good.seconds) == (1, 2, 2, 0.75)
    assert (part.mean, part.instances) == (0.99, 1)
    assert np.isnan([part.rank, part.std]).all()


def test_csv_has_six_significant_digits(table):
    scores = pa.array([0.1234567] * len(table))
    exact = tabulate(
        table.set_column(table.column_names.index("accuracy"), "accuracy", scores)
    )
    assert {
        line["mean_accuracy"] for line in csv.DictReader(io.StringIO(as_csv(exact)))
    } == {"0.123457"}
    assert {
        row["mean"]
        for row in csv.DictReader(io.StringIO(breakdowns_csv(exact.breakdowns)))
    } <= {"0.123457", ""}


def test_a_method_that_lacks_instances_is_not_the_best(table):
    best = tabulate(table).lines[0].mean
    scores = [
        best if score == 0.99 else score for score in table["accuracy"].to_pylist()
    ]
    equal = tabulate(
        table.set_column(
            table.column_names.index("accuracy"), "accuracy", pa.array(scores)
        )
    )
    assert [line.mean == best for line in equal.lines] == [True, False, True]
    assert page(equal, MANIFEST).count("<span class=best>") == 1


def test_methods_that_lack_instances_are_ordered_by_their_mean(table):
    rows = []
    for i, score in enumerate([0.3, 0.9, 0.6]):
        rows.append(
            table.to_pylist()[-1] | {"generator": f"fps(k={i + 3})", "accuracy": score}
        )
    lines = tabulate(pa.concat_tables([table, pa.Table.from_pylist(rows)])).lines
    assert [line.mean for line in lines[2:]] == pytest.approx([0.99, 0.9, 0.6, 0.3])


def test_comparison_is_of_complete_methods(table):
    tables = tabulate(table)
    assert tables.comparison.names == tuple(line.name for line in tables.lines[:2])
    assert tables.comparison.instances == 2
    assert (tables.experiments, tables.near_ties, tables.decisions) == (11, 11, 11_000)
    (pair,) = csv.DictReader(io.StringIO(pairs_csv(tables.comparison)))
    assert (float(pair["p"]), pair["significant"]) == (0.5, "0")


def test_every_format_has_the_same_content(table):
    tables = tabulate(table)
    rows = list(csv.DictReader(io.StringIO(as_csv(tables))))
    assert [float(r["mean_accuracy"]) for r in rows] == pytest.approx(
        [line.mean for line in tables.lines]
    )
    assert rows[2]["average_rank"] == rows[2]["std"] == ""
    assert "72.50 ± 10.61" in as_text(tables)
    assert r"72.50 $\pm$ 10.61 & 1.00 \\" in as_latex(tables)
    assert r"norm\_pre" in as_latex(tables)
    assert "11 of 11,000 predictions were near ties" in as_text(tables)
    html = page(
        tables,
        MANIFEST,
        [{"unit": "u", "experiments": 3, "failed": [], "reason": "a < b"}],
    )
    assert "<span class=best>72.50</span> <small>± 10.61</small></td>" in html
    assert "<title>&lt;s&gt;</title>" in html
    assert "11 of 12 experiments" in html
    assert "a &lt; b" in html
    assert "<svg" in html
    assert not re.search(r"(src|href)=\"http", html)


def test_recipes_keep_their_names_and_the_rest_only_what_differs(table):
    two = table.filter(pa.compute.field("generator") == "mean")
    assert [line.name for line in tabulate(two).lines] == ["l2 / l2", "none / none"]
    assert (
        tabulate(two).common
        == "All methods: generator mean, norm_inf l2, aggregator max."
    )
    named = tabulate(table, named=["qi2018", "l2 / mean / l2 / l2 / max"])
    assert named.lines[0].name == "qi2018"
    assert named.lines[0].method == " / ".join(GOOD)
    assert named.comparison.names[0] == "qi2018"
    assert next(csv.DictReader(io.StringIO(as_csv(named))))["name"] == "qi2018"
    assert '<th scope="row">qi2018<small>l2 / mean / l2 / l2 / max</small>' in page(
        named, MANIFEST
    )


def test_every_data_set_and_backbone_has_a_table(table):
    tables = tabulate(table)
    assert [(b.kind, b.name, b.across, b.columns) for b in tables.breakdowns] == [
        ("data set", "x", "task", ("all",)),
        ("data set", "y", "task", ("all",)),
        ("backbone", "b", "data set", ("x", "y")),
    ]
    good, _, part = tables.breakdowns[2].rows
    assert (good.values, good.mean, good.rank) == (
        pytest.approx((0.8, 0.65)),
        pytest.approx(0.725),
        1,
    )
    assert part.values[0] == pytest.approx(0.99)
    assert np.isnan([part.values[1], part.mean, part.rank]).all()
    assert tables.breakdowns[0].rows[2].rank == 1  # best on the instances with results
    lines = list(csv.DictReader(io.StringIO(breakdowns_csv(tables.breakdowns))))
    assert len(lines) == 3 * (2 + 2 + 3)
    assert as_json(tables)["breakdowns"][2]["rows"][2]["mean"] is None


def test_counts_of_one_are_singular(table):
    one = table.slice(0, 1).set_column(
        table.column_names.index("near_ties"), "near_ties", pa.array([0])
    )
    text = as_text(tabulate(one))
    assert text.startswith("1 experiment, 1 instance, ")
    assert "near ties" not in text
    html = page(tabulate(one), {**MANIFEST, "experiments": 1})
    assert "<b>1</b><span>instance</span>" in html
    assert "near ties" not in html
    assert "in %, on one instance" in html
    assert "median over its seeds" not in html
    assert tabulate(one).breakdowns == ()


def test_the_page_says_what_was_run_on_what(table):
    study = {
        "name": "s",
        "backbones": ["b"],
        "datasets": ["x", "y"],
        "tasks": ["all"],
        "seeds": [0, 1, 2],
    }
    html = page(tabulate(table), {**MANIFEST, "study": study})
    assert "Backbones b; data sets x, y; tasks all; seeds 0, 1, 2." in html
    assert "over 2 instances" in html
    assert "median over its seeds" in html
    assert "among the methods that have all instances" in html


def test_a_study_without_results_is_refused(table):
    with pytest.raises(ParameterError, match="no finished experiment"):
        tabulate(table.slice(0, 0))
    with pytest.raises(ParameterError, match="metric must be one of"):
        tabulate(table, "loss")


def test_commands_plan_run_and_report(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("IMPRINT_HOME", str(tmp_path / "home"))
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 20)
    X = rng.normal(size=(3, 6))[y] + rng.normal(size=(60, 6))
    write_pack(tmp_path / "a-one.npz", X, y, X[::2] + 0.3, y[::2])
    file, out = tmp_path / "study.yaml", tmp_path / "out"
    file.write_text(
        "embeddings: .\nbackbones: a\ndatasets: one\ntasks: [all, even]\nrecipes: [qi2018, janson2022]\n"
    )
    assert main(["study", "run", str(file), "--dry", "--json"]) == 0
    assert (
        json.loads(capsys.readouterr().out).items()
        >= {"experiments": 4, "computations": 10}.items()
    )
    assert main(["study", "run", str(file)]) == 2
    assert "name the folder of the results" in capsys.readouterr().err
    assert main(["study", "run", str(file), "--out", str(out), "--workers", "1"]) == 0
    assert "4 experiments computed" in capsys.readouterr().err
    assert main(["study", "report", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "qi2018" in printed
    assert "Against " in printed
    assert {p.name for p in (out / "report").iterdir()} == {
        "report.txt", "report.csv", "report.tex", "report.html", "ranks.svg", "pairs.csv", "breakdowns.csv",
        ".imprint-files.json",
    }  # fmt: skip
    assert "data set one, 2 instances" in (out / "report" / "report.txt").read_text()
    assert main(["study", "report", str(out), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {m["name"] for m in found["methods"]} == {"qi2018", "janson2022"}
    assert [p["adjusted"] for p in found["pairs"]] == [1.0]
    assert main(["study", "report", str(tmp_path)]) == 2
    assert "no study has been run into this folder" in capsys.readouterr().err
