"""Inputs in forms that users have at hand: archives, tables of other programs, mistyped
paths, folders of one class, and files of kinds that are not read.
"""

import csv
import io
import json
import zipfile

import pytest

from imprint import Imprinter

MAILS = 'text\tLabel\n"refund it, please"\tmoney\n"Gebühr: 3 €"\tmoney\n"my card is lost"\tcard\n"Karte verloren, bitte"\tcard\n'


def answers(done):
    return {answer["path"]: answer["label"] for answer in json.loads(done.out)}


@pytest.fixture
def archive(photos, tmp_path):
    with zipfile.ZipFile(tmp_path / "two.zip", "w") as out:
        for label in ("dark", "light"):
            out.write(photos / label / "0.png", f"new/{label}.png")
        out.writestr("new/readme.txt", "not an image")
    return tmp_path / "two.zip"


def test_predict_reads_an_archive(imprint, model, photos, archive, tmp_path):
    done = imprint("predict", model, archive, "--json")
    assert (done.code, answers(done)) == (
        0,
        {"new/dark.png": "dark", "new/light.png": "light"},
    )
    assert "Ignored 1 .txt." in done.err
    done = imprint("predict", model, archive, "--csv")
    assert [row["label"] for row in csv.DictReader(io.StringIO(done.out))] == [
        "dark",
        "light",
    ]
    imprint("predict", model, archive, photos).refused("one .zip", "2 arguments")
    imprint("predict", model, archive, "--sort-into", "sorted").refused(
        "--sort-into: the inputs of a .zip are not files"
    )
    assert not (tmp_path / "sorted").exists()


def test_texts_in_an_archive(imprint, tmp_path):
    (tmp_path / "mails.csv").write_text(MAILS)
    assert imprint("fit", "mails.csv", "-o", "m.imprint").code == 0
    with zipfile.ZipFile("new.zip", "w") as out:
        out.writestr("a.txt", "where is my card")
        out.writestr("b.txt", "refund the money")
    done = imprint("predict", "m.imprint", "new.zip", "--json")
    assert answers(done) == {"a.txt": "card", "b.txt": "money"}


def test_tables_of_spreadsheets_in_other_countries(imprint, tmp_path):
    (tmp_path / "mails.csv").write_bytes(MAILS.encode("cp1252"))
    imprint("fit", "mails.csv", "-o", "m.imprint").refused(
        "mails.csv, line 3: not UTF-8", "--encoding latin-1"
    )
    fitted = imprint("fit", "mails.csv", "-o", "m.imprint", "--encoding", "cp1252")
    assert (fitted.code, "4 texts of 2 classes" in fitted.err) == (0, True)
    stored = Imprinter.load("m.imprint").state.exemplars["money"].names
    assert "Gebühr: 3 €" in " ".join(stored)
    done = imprint("predict", "m.imprint", "mails.csv", "--csv", "--encoding", "cp1252")
    rows = list(csv.DictReader(io.StringIO(done.out)))
    assert [(row["text"], row["Label"], row["label"]) for row in rows[1:2]] == [
        ("Gebühr: 3 €", "money", "money")
    ]
    for command in ("check", "evaluate"):
        words = (["m.imprint"] if command == "evaluate" else []) + ["mails.csv"]
        assert imprint(command, *words, "--encoding", "cp1252").code == 0
    imprint("fit", "mails.csv", "-o", "m.imprint", "--encoding", "klingon").refused(
        "--encoding klingon: there is no such encoding"
    )
    (tmp_path / "new.csv").write_bytes("text\nhi\nÜber 5 €\n".encode("cp1252"))
    done = imprint("suggest", "m.imprint", "new.csv", "--encoding", "cp1252", "--csv")
    assert (done.code, "Über 5 €" in done.out) == (0, True)


def test_a_mistyped_path_does_not_stop_the_others(imprint, model, photos):
    done = imprint("predict", model, photos / "dark", "lihgt", "no.png", "--json")
    assert (done.code, set(answers(done).values())) == (1, {"dark"})
    assert "Skipped lihgt: No such file or directory." in done.err
    assert "Skipped no.png: No such file or directory." in done.err
    imprint("predict", model, "lihgt", "no.png").refused(
        "There is no file or folder lihgt"
    )


def test_a_mistyped_path_does_not_stop_other_texts(imprint, tmp_path):
    (tmp_path / "mails.csv").write_text(MAILS)
    assert imprint("fit", "mails.csv", "-o", "m.imprint").code == 0
    done = imprint("predict", "m.imprint", "my card", "no.txt", "--json")
    assert (done.code, answers(done)) == (1, {"my card": "card"})
    assert "Skipped no.txt: No such file or directory." in done.err


def test_files_of_other_kinds_are_named(imprint, model, photos):
    for name in ("a.jp2", "b.nef", "c.nef", "Thumbs.db"):
        (photos / "dark" / name).write_bytes(b"x")
    for command in ("predict", "suggest"):
        done = imprint(command, model, photos)
        assert (done.code, "Ignored 1 .jp2, 2 .nef." in done.err) == (0, True)


def test_a_folder_of_one_class_is_added(imprint, paint, photos, tmp_path):
    two = paint(tmp_path / "two", ["dark", "light"])
    raw = ("--backbone", "raw", "--recipe", "janson2022")
    assert imprint("fit", two, "-o", "m.imprint", *raw).code == 0
    imprint("add", "m.imprint", photos / "middle").refused(
        "has no sub-folders", "imprint add m.imprint", "--as middle"
    )
    done = imprint("add", "m.imprint", photos / "middle", "--as", "grey")
    assert (done.code, "Imprinted 5 images of 1 class." in done.err) == (0, True)
    assert Imprinter.load("m.imprint").classes_.tolist() == ["dark", "grey", "light"]
    done = imprint("predict", "m.imprint", photos / "middle", "--json")
    assert set(answers(done).values()) == {"grey"}
    # the same as from a folder per class
    assert imprint("fit", two, "-o", "n.imprint", *raw).code == 0
    (photos / "middle").rename(tmp_path / "grey")
    (tmp_path / "three").mkdir()
    (tmp_path / "grey").rename(tmp_path / "three" / "grey")
    assert imprint("add", "n.imprint", tmp_path / "three").code == 0
    first, second = (
        Imprinter.load(name).state.head.proxies.weights.tolist()
        for name in ("m.imprint", "n.imprint")
    )
    assert first == second


def test_one_file_an_archive_or_a_table_is_added_as_one_class(
    imprint, model, photos, archive, tmp_path
):
    assert imprint("add", model, photos / "dark" / "0.png", "--as", "one").code == 0
    assert imprint("add", model, archive, "--as", "zipped").code == 0
    assert {"one", "zipped"} < set(Imprinter.load(model).classes_.tolist())
    (tmp_path / "mails.csv").write_text(MAILS)
    (tmp_path / "more.csv").write_text("text\nwhere is my parcel\nno parcel\n")
    assert imprint("fit", "mails.csv", "-o", "m.imprint").code == 0
    assert imprint("add", "m.imprint", "more.csv", "--as", "parcel").code == 0
    assert Imprinter.load("m.imprint").classes_.tolist() == ["card", "money", "parcel"]


def test_the_class_of_a_model_with_integers_is_an_integer(imprint, tmp_path):
    (tmp_path / "a.csv").write_text("text,label\nhello,1\nbye,2\n")
    (tmp_path / "b.csv").write_text("text\nwelcome\n")
    assert imprint("fit", "a.csv", "-o", "m.imprint").code == 0
    assert imprint("add", "m.imprint", "b.csv", "--as", "3").code == 0
    assert Imprinter.load("m.imprint").classes_.tolist() == [1, 2, 3]
    imprint("add", "m.imprint", "b.csv", "--as", "three").refused(
        "--as three", "integer"
    )
    imprint("add", "m.imprint", "b.csv", "--as", "  ").refused("--as")
