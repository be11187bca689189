"""Tags at the command line: from tables and folders to predictions, evaluations and pages."""

import json
import re

import numpy as np
import pytest

DIRECTIONS = np.random.default_rng(5).normal(size=(3, 8))
LABELS = ["fear", "joy", "love"]


def write(path, n, seed):
    """A table of embeddings with a column of labels."""
    rng = np.random.default_rng(seed)
    Y = (rng.random((n, 3)) < 0.4).astype(int)
    Y[Y.sum(axis=1) == 0, 1] = 1
    X = 2 * Y @ DIRECTIONS + rng.normal(size=(n, 8)) * 1.2
    lines = [",".join([*(f"x{i}" for i in range(8)), "labels"])]
    for x, y in zip(X, Y):
        lines.append(
            ",".join(
                [
                    *(f"{v:.4f}" for v in x),
                    "|".join(LABELS[c] for c in np.flatnonzero(y)),
                ]
            )
        )
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def fitted(imprint, tmp_path):
    done = imprint(
        "fit",
        write(tmp_path / "train.csv", 150, 0),
        "--separator",
        "|",
        "-o",
        "m.imprint",
    )
    assert done.code == 0
    return done


def test_fit_reports_the_model(fitted, imprint, tmp_path):
    assert "150 embeddings of 3 labels, 8 wide (train.csv)." in fitted.err
    assert "m.imprint: 3 labels, 150 proxies" in fitted.err
    assert "Expected (leave-one-out): mean average precision 9" in fitted.err
    done = imprint("fit", tmp_path / "train.csv", "-o", "n.imprint")
    assert (
        "are one class each; --separator '|' (separator='|') reads them as tags."
        in done.err
    )


def test_predict_in_all_forms(fitted, imprint, tmp_path):
    table = write(tmp_path / "new.csv", 6, 1)
    answers = json.loads(imprint("predict", "m.imprint", table, "--json").out)
    for answer in answers:
        assert answer["label"] == "|".join(one["label"] for one in answer["labels"])
        assert [one["label"] for one in answer["top"]][: len(answer["labels"])] == [
            one["label"] for one in answer["labels"]
        ]
    lines = imprint("predict", "m.imprint", table, "--csv").out.splitlines()
    assert lines[0].endswith("labels,label,probability,known")
    assert [line.split(",")[9] for line in lines[1:]] == [
        answer["label"] for answer in answers
    ]
    shown = imprint("predict", "m.imprint", table).out
    assert answers[0]["label"].replace("|", ", ") in shown
    assert any(len(answer["labels"]) > 1 for answer in answers)
    for answer, line in zip(answers, shown.splitlines()[2:]):
        assert all(line.count(one["label"]) == 1 for one in answer["top"])
    thresholded = json.loads(
        imprint("predict", "m.imprint", table, "--json", "--unknown", "1").out
    )
    rejected = [answer["known"] < 1 for answer in thresholded]
    assert any(rejected)
    assert [
        (answer["label"], answer["labels"]) == (None, []) for answer in thresholded
    ] == rejected
    imprint("predict", "m.imprint", table, "--sort-into", "out").refused(
        "--sort-into", "one label each"
    )


def test_an_input_without_a_label_has_no_probability(fitted, imprint, tmp_path):
    against = -4 * DIRECTIONS.sum(axis=0)
    table = tmp_path / "far.csv"
    table.write_text(
        ",".join(f"x{i}" for i in range(8))
        + "\n"
        + ",".join(f"{v:.4f}" for v in against)
        + "\n"
    )
    (answer,) = json.loads(imprint("predict", "m.imprint", table, "--json").out)
    assert answer["labels"] == []
    line = imprint("predict", "m.imprint", table).out.splitlines()[2]
    assert re.search(
        r"no label\s+[\d.]+\s+\w+ [\d.]+ %, \w+ [\d.]+ %", line
    )  # nothing between label and `known`


def test_evaluate_and_its_page(fitted, imprint, tmp_path):
    test = write(tmp_path / "test.csv", 100, 2)
    done = imprint(
        "evaluate",
        "m.imprint",
        test,
        "--separator",
        "|",
        "--json",
        "--page",
        "page.html",
    )
    result = json.loads(done.out)
    assert {
        "mean_average_precision",
        "macro_f1",
        "micro_f1",
        "per_label",
        "mistakes",
        "unreadable",
    } <= set(result)
    assert result["rows"] == 100
    assert result["macro_f1"] > 0.8
    assert [one["label"] for one in result["per_label"]] == LABELS
    assert "Mean average precision" in (tmp_path / "page.html").read_text()
    shown = imprint("evaluate", "m.imprint", test, "--separator", "|").out
    assert shown.startswith(
        f"Mean average precision {100 * result['mean_average_precision']:.1f} %, macro F1"
    )
    assert (
        imprint("evaluate", "m.imprint", test).code == 0
    )  # `a|b` is then one label, which the model does not have


def test_add_forget_card_and_check(fitted, imprint, tmp_path):
    before = json.loads(imprint("card", "m.imprint", "--json").out)
    assert (before["classes"], before["rows"], before["tags"]) == (LABELS, 150, True)
    assert (
        "3 tags, of which an input may have several" in imprint("card", "m.imprint").out
    )
    done = imprint(
        "add",
        "m.imprint",
        write(tmp_path / "more.csv", 20, 3),
        "--separator",
        "|",
        "--json",
    )
    assert json.loads(done.out)["proxies"] == 170
    assert json.loads(imprint("forget", "m.imprint", "joy", "--json").out)[
        "classes"
    ] == ["fear", "love"]
    imprint("forget", "m.imprint", "joy").refused("Unknown label 'joy'")
    done = imprint("check", tmp_path / "train.csv", "--separator", "|", "--json")
    assert set(json.loads(done.out)) == {
        "mislabelled",
        "duplicates",
        "outliers",
        "unreadable",
    }


def test_components_and_commands_for_one_label_refuse_tags(fitted, imprint, tmp_path):
    (tmp_path / "folder").mkdir()
    imprint("watch", "m.imprint", "folder", "--once").refused("model of tags")
    imprint("suggest", "m.imprint", tmp_path / "train.csv").refused(
        "one label per input"
    )
    (tmp_path / "lists.jsonl").write_text(
        '{"text": "a", "label": ["x", "y"]}\n{"text": "b", "label": ["x"]}\n'
    )
    imprint("embed", tmp_path / "lists.jsonl", "-o", "e.npz").refused(
        "one label per input, and these have tags"
    )
    imprint(
        "fit",
        tmp_path / "train.csv",
        "--separator",
        "|",
        "-o",
        "n.imprint",
        "--aggregator",
        "max",
    ).refused("max: it predicts one class; for tags, use aggregator='kernel'")


def test_equal_images_in_two_folders_have_two_tags(imprint, paint, tmp_path):
    paint(tmp_path / "photos", ["dark", "light"], n=8)
    for i in range(4):
        for name in ("grey", "dark"):
            target = tmp_path / "photos" / name / f"both{i}.png"
            target.parent.mkdir(exist_ok=True)
            target.write_bytes((tmp_path / "photos" / "dark" / f"{i}.png").read_bytes())
    done = imprint(
        "fit",
        tmp_path / "photos",
        "--separator",
        "|",
        "-b",
        "raw",
        "-o",
        "m.imprint",
        "--json",
    )
    assert json.loads(done.out)["rows"] == {"dark": 8, "grey": 4, "light": 8}
