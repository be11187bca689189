"""`imprint study run paper/...` and its page, through the real entry point."""

import json

import numpy as np
import pytest


@pytest.fixture
def packs(tmp_path):
    rng = np.random.default_rng(3)
    y = np.repeat(np.arange(10), 21)
    for name in ("one-mnist", "two-mnist"):
        X = (2 * rng.normal(size=(10, 5))[y] + rng.normal(size=(210, 5))).astype(
            np.float32
        )
        np.savez(
            tmp_path / f"{name}.npz",
            train=X,
            train_labels=y,
            test=X[::4],
            test_labels=y[::4],
        )
    return tmp_path


def test_a_table_runs_resumes_and_makes_a_page(imprint, packs, tmp_path):
    words = [
        "study",
        "run",
        "paper/table1",
        "--embeddings",
        packs,
        "--out",
        tmp_path / "out",
        "--workers",
        1,
    ]
    first = imprint(*words)
    assert "86.79 ± 7.83" in first.out
    assert "Qi et al." in first.out
    again = json.loads(imprint(*words, "--json").out)
    assert (again["computed"], again["experiments"]) == (0, 5 * 8 * 3)
    report = json.loads(
        imprint(
            "study", "report", tmp_path / "out", "--to", tmp_path / "page", "--json"
        ).out
    )
    verdicts = [c["verdict"] for c in report["claims"] if c["study"] == "table1"]
    assert (
        verdicts[0] == verdicts[2] == "not testable here"
    )  # eight instances are too few for ten significant pairs
    assert verdicts[1] in {"holds", "does not hold"}
    assert (
        verdicts[3] == "not testable here"
    )  # on these packs the oracle is no better than one mean per class
    assert {c["study"] for c in report["claims"]} == {
        "table1"
    }  # claims of other studies are not listed
    text = (tmp_path / "page" / "results.md").read_text()
    assert "# Table 1 of the paper" in text
    assert "paper/all" not in text
    assert (tmp_path / "page" / "results" / "table1.svg").is_file()


def test_several_runs_make_one_page(imprint, packs, tmp_path):
    for name in ("one", "two"):
        words = [
            "--embeddings",
            packs,
            "--backbones",
            name,
            "--out",
            tmp_path / name,
            "--workers",
            1,
        ]
        assert imprint("study", "run", "paper/norm_post", *words).code == 0
    report = imprint(
        "study", "report", tmp_path / "one", tmp_path / "two", "--to", tmp_path / "page"
    )
    assert f"the results on {packs.name} 2 support" in report.err
    page = (tmp_path / "page" / "results.html").read_text()
    assert (
        page.count("<h3>") == 2 * 3
    )  # norm_post and two tables that need the same experiments
    (tmp_path / "none").mkdir()
    assert (
        "no study of the paper"
        in imprint("study", "report", tmp_path / "one", tmp_path / "none").err
    )
    imprint(
        "study", "report", tmp_path / "one", tmp_path / "two" / ".." / "one"
    ).refused("a folder is given twice")


def test_a_dry_run_counts(imprint, packs):
    printed = json.loads(
        imprint(
            "study", "run", "paper/table1", "--embeddings", packs, "--dry", "--json"
        ).out
    )
    assert printed["experiments"] == printed["to_do"] == 5 * 8 * 3


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["paper/tabel1", "--embeddings", "."], "Did you mean 'table1'?"),
        (["paper/table1"], "--embeddings DIR"),
        (["paper/table1", "--embeddings", "PACKS"], "--out DIR"),
        (
            ["paper/table1", "--embeddings", "PACKS", "--backbones", "three", "--dry"],
            "Unknown backbone",
        ),
    ],
)
def test_refusals_are_one_sentence(imprint, packs, words, sentence):
    done = imprint("study", "run", *(packs if w == "PACKS" else w for w in words))
    assert done.code == 2
    assert sentence in done.err
    assert done.err.count("\n") == 1


def test_without_the_reproduction_the_message_names_it(imprint, monkeypatch):
    monkeypatch.setattr("imprint.study.collection.registered", lambda group: {})
    listed = imprint("list", "studies")
    assert (listed.code, listed.out) == (0, "")
    assert "weight-imprinting-reproduction" in listed.err
    assert json.loads(imprint("list", "studies", "--json").out) == []
    imprint("study", "run", "paper/table1").refused("weight-imprinting-reproduction")
