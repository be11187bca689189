"""How `imprint predict` interprets its arguments, and what it writes."""

import csv
import io
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from imprint.cli import terminal

TEXTS = {
    "money": [
        "I paid 3.50 euros",
        "refund it. now",
        "a charge of 9.99",
        "send my money back",
        "the fee is wrong",
    ],
    "card": [
        "lost my card",
        "my card is gone.",
        "somebody stole the card",
        "where is my card",
        "card not received",
    ],
}


@pytest.fixture
def mails(tmp_path):
    with open(tmp_path / "mails.csv", "w", newline="") as f:
        csv.writer(f).writerows(
            [
                ["text", "label"],
                *([t, label] for label, texts in TEXTS.items() for t in texts),
            ]
        )
    return tmp_path / "mails.csv"


@pytest.fixture
def texts(mails, imprint):
    assert imprint("fit", mails, "-o", "texts.imprint").code == 0
    return "texts.imprint"


def answers(done):
    assert done.code == 0, done.err
    return [(a["path"], a["label"]) for a in json.loads(done.out)]


def test_texts_with_dots_are_distinguished_from_files(imprint, texts, tmp_path):
    spoken = "I was charged 3.50 euros"
    assert answers(imprint("predict", texts, spoken, "my card is lost.", "--json"))[
        0
    ] == (spoken, "money")
    imprint("predict", texts, "new.csv").refused(
        "There is no file new.csv", "add --text"
    )
    imprint("predict", texts, "lines.txt").refused("There is no file lines.txt")
    assert answers(imprint("predict", texts, "my card.csv", "--text", "--json")) == [
        ("my card.csv", "card")
    ]
    assert (
        "\nmy card.csv,card,"
        in imprint("predict", texts, "my card.csv", "--text", "--csv").out
    )
    (tmp_path / "note.txt").write_text("the money was charged twice")
    assert answers(imprint("predict", texts, "note.txt", "--json")) == [
        ("note.txt", "money")
    ]
    (tmp_path / "inbox").mkdir()
    (tmp_path / "inbox" / "a.txt").write_text("the card was stolen")
    assert answers(imprint("predict", texts, "inbox", "--json"))[0][1] == "card"


def test_blank_texts_are_unreadable(imprint, texts, tmp_path):
    done = imprint("predict", texts, "")
    assert (done.code, done.out, done.err) == (
        1,
        "",
        "Error: Cannot read text 1: the text is empty.\n",
    )
    done = imprint("predict", texts, "my card is lost.", " ", "--json")
    assert (done.code, [a["path"] for a in json.loads(done.out)]) == (
        1,
        ["my card is lost."],
    )
    assert "Skipped text 2: the text is empty." in done.err
    (tmp_path / "new.csv").write_text('text,number\nlost my card,1\n" ",2\n')
    done = imprint("predict", texts, "new.csv", "--csv")
    assert done.code == 1
    assert [line.split(",")[2] for line in done.out.splitlines()] == [
        "label",
        "card",
        "",
    ]


def test_csv_keeps_predictions_next_to_their_rows_where_a_text_is_empty(
    imprint, texts, tmp_path
):
    (tmp_path / "new.csv").write_text("text,number\n,1\nlost my card,2\n")
    done = imprint("predict", texts, "new.csv", "--csv")
    assert done.code == 1
    rows = list(csv.DictReader(io.StringIO(done.out)))
    assert [(row["number"], row["label"]) for row in rows] == [("1", ""), ("2", "card")]


def test_csv_appends_columns_to_the_table(imprint, texts, mails):
    mails.write_text('id,text,label\n7,"a fee, wrong",old\n8,,old\n9,lost card,old\n')
    done = imprint("predict", texts, mails, "--csv")
    rows = list(csv.DictReader(io.StringIO(done.out)))
    assert list(rows[0]) == [
        "id",
        "text",
        "label",
        "predicted_label",
        "probability",
        "known",
    ]
    assert [
        (r["id"], r["text"], r["label"], r["predicted_label"])
        for r in (rows[0], rows[2])
    ] == [
        ("7", "a fee, wrong", "old", "money"),
        ("9", "lost card", "old", "card"),
    ]


def test_csv_reads_a_table_below_the_home_folder(imprint, texts, mails, monkeypatch):
    monkeypatch.setenv("HOME", str(mails.parent))
    done = imprint(
        "predict", texts, f"~/{mails.name}", "--csv"
    )  # some shells pass the tilde on
    assert (done.code, done.out) == (0, imprint("predict", texts, mails, "--csv").out)


def test_rows_of_a_table_show_their_text(imprint, texts, mails):
    done = imprint("predict", texts, mails, "--why")
    assert "mails.csv, row 2: I paid 3.50 euros" in done.out
    assert (
        "mails.csv, row 7: lost my card" in done.out.split("closest training input")[1]
    )
    assert "contribution" in done.out


def test_a_rejected_input_names_the_closest_class(imprint, paint, tmp_path):
    photos = paint(tmp_path / "photos", ["dark", "light"], 12)
    assert imprint("fit", photos, "-o", "m.imprint", "-b", "raw").code == 0
    done = imprint("predict", "m.imprint", photos, "--unknown", "1")
    (line, *_) = [
        line
        for line in done.out.splitlines()
        if "none of these (closest: light)" in line
    ]
    assert "%" not in line.split("(closest: light)")[1].split("dark")[0], (
        "a rejected input has no probability"
    )
    assert "known: conformal p-value" in done.err


def test_long_class_names_lose_their_middle_on_a_narrow_terminal(
    imprint, tmp_path, monkeypatch
):
    monkeypatch.setattr(terminal, "PIPE_COLUMNS", 80)
    rng, y = np.random.default_rng(0), np.repeat([0, 1], 15)
    X = rng.normal(size=(30, 4)) + 4 * np.eye(2, 4)[y]
    labels = np.array(
        ["balance_not_updated_after_bank_transfer", "card_delivery_estimate"]
    )[y]
    np.savez(tmp_path / "train.npz", train=X, train_labels=labels)
    assert imprint("fit", "train.npz", "-o", "m.imprint").code == 0
    np.save(tmp_path / "new.npy", -X[:1])
    shown = imprint("predict", "m.imprint", "new.npy", "--unknown", "0.5", "--why").out
    assert "card_de…estimate)" in shown
    assert "card_de…estimate " in shown.split("proxy of")[1]


def test_too_few_images_to_refuse_anything_are_named_with_the_remedy(
    imprint, paint, tmp_path
):
    photos = paint(tmp_path / "photos", ["dark", "light"], 4)
    assert imprint("fit", photos, "-o", "m.imprint", "-b", "raw").code == 0
    sentence = "known cannot tell yet what to refuse below 0.05: needs 12 more images"
    for options in ((), ("--unknown", 0.05)):
        done = imprint("predict", "m.imprint", photos, *options)
        assert f"{sentence} (the smallest p-value is 0.11)" in done.err
        assert "or use --unknown 0.12." in done.err
        assert done.out.count("cannot tell yet") == 8
    told = imprint("predict", "m.imprint", photos, "--unknown", 0.2)
    assert "cannot tell yet" not in told.out + told.err
    assert sentence in imprint("evaluate", "m.imprint", photos).err
    watched = imprint("watch", "m.imprint", photos, "--once")
    assert sentence in watched.err
    assert watched.out.count("cannot tell yet") == 8


def test_one_image_on_standard_input(model, photos):
    words = [sys.executable, "-m", "imprint", "predict", str(model), "-", "--json"]
    raw = (photos / "light" / "0.png").read_bytes()
    done = subprocess.run(
        words,
        input=raw,
        capture_output=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        check=True,
    )
    assert [(a["path"], a["label"]) for a in json.loads(done.stdout)] == [
        ("standard input", "light")
    ]
    done = subprocess.run(
        words, input=b"\xff\xfe\x00nonsense", capture_output=True, env=os.environ
    )
    assert done.returncode == 1
    assert b"Cannot read standard input: not an image" in done.stderr
    assert b"\\x" not in done.stderr


def test_sorting_falls_back_to_copies_without_hard_links(
    imprint, model, photos, tmp_path, monkeypatch
):
    def denied(*args, **options):
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", denied)
    for _ in range(2):
        assert imprint("predict", model, photos, "--sort-into", "sorted").code == 0
    assert sorted(p.name for p in (tmp_path / "sorted" / "dark").iterdir()) == [
        f"{i}.png" for i in range(5)
    ]
    assert (tmp_path / "sorted" / "dark" / "0.png").read_bytes() == (
        photos / "dark" / "0.png"
    ).read_bytes()


def test_fit_reports_the_same_image_in_two_classes(imprint, photos):
    (photos / "light" / "copy.png").write_bytes(
        (photos / "dark" / "0.png").read_bytes()
    )
    done = imprint("fit", photos, "-o", "m.imprint", "-b", "raw")
    assert (
        "The same image has two labels: dark/0.png (dark) and light/copy.png (light)."
        in done.err
    )


def test_fit_lists_skipped_inputs(imprint, photos):
    (photos / "owl").mkdir()
    (photos / "dark" / "0.png").rename(photos / "stray.png")
    done = imprint("fit", photos, "-o", "m.imprint", "-b", "raw")
    assert done.code == 0
    assert "Ignored 1 image outside any class folder: stray.png." in done.err
    assert "Ignored 1 folder without images: owl." in done.err


def test_embeddings_of_another_width(imprint, tmp_path):
    np.savez(
        "train.npz",
        X=np.random.default_rng(0).normal(size=(20, 4)),
        y=np.repeat(["a", "b"], 10),
    )
    np.savez("other.npz", X=np.ones((3, 5)), y=np.array(["a", "b", "a"]))
    assert imprint("fit", "train.npz", "-o", "m.imprint").code == 0
    for command in ("predict", "evaluate"):
        imprint(command, "m.imprint", "other.npz").refused(
            "have 5 columns, and the model was fitted on 4"
        )


def test_check_shows_the_sentence(imprint, mails):
    mails.write_text(mails.read_text() + "I paid 3.50 euros,card\n")
    shown = imprint("check", mails).out
    assert "mails.csv, row 2: I paid 3.50 euros" in shown
    assert "mails.csv, row 12: I paid 3.50 euros" in shown


def test_rejected_inputs_have_no_label_in_csv(imprint, paint, tmp_path):
    photos = paint(tmp_path / "photos", ["dark", "light"], 12)
    assert imprint("fit", photos, "-o", "m.imprint", "-b", "raw").code == 0
    done = imprint("predict", "m.imprint", photos, "--unknown", 1, "--csv")
    rows = list(csv.DictReader(io.StringIO(done.out)))
    rejected = [row for row in rows if float(row["known"]) < 1]
    assert rejected
    assert all((row["label"], row["probability"]) == ("", "") for row in rejected)
    assert all(
        row["label"] and float(row["probability"]) > 0
        for row in rows
        if row not in rejected
    )


FORMULAS = [
    "=1+1",
    "=cmd|' /C calc'!A0",
    "+49 30 1234",
    "-x",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
]


def test_no_cell_of_csv_is_a_formula(imprint, texts, tmp_path):
    lines = [*FORMULAS, "-0.5", "+3", "lost = found", "'=quoted"]
    with open("new.csv", "w", newline="") as f:
        csv.writer(f).writerows([["text", "=col"], *([text, text] for text in lines)])
    done = imprint("predict", texts, "new.csv", "--csv")
    rows = list(csv.reader(io.StringIO(done.out, newline="")))
    assert rows[0][:2] == ["text", "'=col"]
    shown = [row[0] for row in rows[1:]]
    assert shown[: len(FORMULAS)] == [f"'{text}" for text in FORMULAS]
    assert shown[len(FORMULAS) :] == lines[len(FORMULAS) :]
    assert "15 cells begin like a formula" in done.err
    assert "a leading '" in done.err
    # JSON is for programs: it is exact
    done = imprint("predict", texts, "new.csv", "--json")
    assert len(json.loads(done.out)) == len(lines)


def test_a_class_that_looks_like_a_formula(imprint, tmp_path):
    (tmp_path / "a.csv").write_text("text,label\nhello there,=1+1\nbye now,b\n")
    assert imprint("fit", "a.csv", "-o", "f.imprint").code == 0
    done = imprint("predict", "f.imprint", "hello there", "--csv")
    assert "hello there,'=1+1,1" in done.out or ",'=1+1," in done.out
    done = imprint("suggest", "f.imprint", "a.csv", "--csv")
    assert "formula" not in done.err


def test_maps_show_where_for_images_and_words_for_texts(imprint, photos, tmp_path):
    assert imprint("fit", photos, "-o", "t.imprint", "-b", "tinynet").code == 0
    done = imprint("predict", "t.imprint", photos, "--maps", "maps", "--json")
    answers = json.loads(done.out)
    files = [tmp_path / answer["map"] for answer in answers]
    assert len({*files}) == len(answers) == 15
    with Image.open(answers[0]["path"]) as image, Image.open(files[0]) as drawn:
        assert drawn.size == image.size
        assert drawn.format == "PNG"
    assert "maps: 15 maps, orange for the predicted class" in done.err
    (tmp_path / "t.csv").write_text(
        "text,label\nwhere is my parcel,delivery\nthe parcel is late,delivery\n"
        "money back please,refund\nI want a refund,refund\n"
    )
    assert imprint("fit", "t.csv", "-o", "texts.imprint").code == 0
    texts = ("where is the parcel", "refund")
    done = imprint("predict", "texts.imprint", *texts, "--maps", "words", "--json")
    first, second = json.loads(done.out)
    assert "<mark" in (tmp_path / first["map"]).read_text()
    assert second["map"] is None
    assert "No map of refund: explain(item): this text has no parts" in done.err
    imprint("predict", "t.imprint", photos, "--maps", "t.imprint").refused(
        "Cannot write to t.imprint"
    )
