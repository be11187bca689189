"""Commands do not overwrite files that imprint did not write, and suggest corrections of mistyped names."""

import json

import numpy as np
import pytest

from imprint.study import Held, Study, run


@pytest.fixture
def results(tmp_path):
    X, y = (
        np.random.default_rng(0).normal(size=(40, 5)).astype(np.float32),
        np.repeat([0, 1], 20),
    )
    study = Study(
        backbones="a", datasets="one", tasks=["all"], recipes=["qi2018", "janson2022"]
    )
    run(
        study,
        tmp_path / "results",
        source=Held({("a", "one"): (X, y, X, y)}),
        workers=1,
    )
    return tmp_path / "results"


def test_a_report_replaces_its_own_files_only(imprint, results, tmp_path):
    assert imprint("study", "report", results).code == 0
    assert imprint("study", "report", results, "--metric", "macro_f1").code == 0
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "report.txt").write_text("my own report")
    refused = imprint("study", "report", results, "--to", tmp_path / "mine")
    refused.refused(
        "report.txt: it exists, and imprint did not write it", "choose another folder"
    )
    assert [p.name for p in (tmp_path / "mine").iterdir()] == ["report.txt"]


@pytest.mark.parametrize("name", ["thesis.csv", "thesis.parquet"])
def test_an_export_replaces_exports_only(imprint, results, tmp_path, name):
    for _ in range(2):
        assert (
            imprint("study", "export", results, "-o", tmp_path / f"out-{name}").code
            == 0
        )
    (tmp_path / name).write_text("chapter,words\n1,2\n")
    imprint("study", "export", results, "-o", tmp_path / name).refused(
        f"{name}: it exists and holds no results"
    )
    assert (tmp_path / name).read_text() == "chapter,words\n1,2\n"


def test_a_page_replaces_pages_only(imprint, model, photos, tmp_path):
    for _ in range(2):
        assert (
            imprint("evaluate", model, photos, "--page", tmp_path / "page.html").code
            == 0
        )
    (tmp_path / "thesis.html").write_text("<html>mine</html>")
    for command in (
        ("evaluate", model, photos),
        ("check", photos, "--backbone", "raw"),
    ):
        imprint(*command, "--page", tmp_path / "thesis.html").refused(
            "it exists and is not a page of imprint"
        )
    assert (tmp_path / "thesis.html").read_text() == "<html>mine</html>"


def test_vci_needs_more_rows_than_columns(imprint, photos):
    done = imprint("collapse", photos, "--backbone", "raw")
    assert done.code == 0
    assert "vci cannot be computed: it needs more rows than columns" in done.err
    assert "0.0000  variability" not in done.out
    assert (
        json.loads(imprint("collapse", photos, "--backbone", "raw", "--json").out)[
            "vci"
        ]
        is None
    )


def test_mistyped_names_are_suggested(imprint):
    imprint("list", "backbone").refused(
        "Unknown list 'backbone'. Did you mean 'backbones'?"
    )
    imprint("study", "run", "tabel1", "--out", "x").refused(
        "study run tabel1: there is no such file", "imprint list studies"
    )
    imprint("study", "run", "paper/tabel1", "--out", "x").refused(
        "Did you mean 'table1'?", "imprint list studies"
    )
