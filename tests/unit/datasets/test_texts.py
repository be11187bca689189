import json

import pytest

from imprint.core.errors import FileError
from imprint.datasets import load


def lines(path, rows):
    path.write_text(
        "\n".join(json.dumps(r) if not isinstance(r, str) else r for r in rows), "utf-8"
    )
    return path


def test_csv(tmp_path):
    path = tmp_path / "mail.csv"
    path.write_bytes(
        '\ufefflabel,text,note\r\nspam,"Buy, ""now""\nhere",x\r\n7,Grüße,y\r\n'.encode()
    )
    split = load(path)
    assert split.inputs == ('Buy, "now"\nhere', "Grüße")
    assert split.labels.tolist() == ["spam", "7"]
    assert split.classes == ("7", "spam")
    assert split.modality == "text"
    assert split.names[1] == "mail.csv, row 3"


def test_json_lines_keep_integers(tmp_path):
    split = load(
        lines(
            tmp_path / "a.jsonl",
            [{"text": "x", "label": 3}, "", {"text": "y", "label": 1}],
        )
    )
    assert split.labels.tolist() == [3, 1]


def test_whole_numbers_in_csv_are_numbers_if_all_are(tmp_path):
    def labels(*values):
        (tmp_path / "a.csv").write_text(
            "text,label\n" + "".join(f"x,{v}\n" for v in values)
        )
        return load(tmp_path / "a.csv").labels.tolist()

    assert labels("3", "-1", "10") == [3, -1, 10]
    assert labels("3", "b") == ["3", "b"]
    assert labels("007", "12") == ["007", "12"]  # a code, not a number
    with pytest.raises(
        FileError,
        match=r"row 3, column 'label': '0\.5' is neither text nor a whole number",
    ):
        labels("3", "0.5")


def test_a_column_may_name_the_split(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("text,category,split\na,x,train\nb,y,test\nc,x,train\n")
    assert load(path).inputs == ("a", "c")
    assert load(path, "test").inputs == ("b",)


def test_a_folder_may_hold_train_and_test(tmp_path):
    (tmp_path / "train.csv").write_text("text,label\na,x\nb,y\n")
    with pytest.raises(FileError, match="has no test split"):
        load(tmp_path, "test")
    lines(tmp_path / "test.jsonl", [{"text": "c", "label": "x"}])
    assert load(tmp_path).inputs == ("a", "b")
    assert load(tmp_path, "test").inputs == ("c",)


def test_the_fingerprint_is_of_texts_and_labels(tmp_path):
    def of(name, rows):
        return load(
            lines(tmp_path / name, [{"text": t, "label": v} for t, v in rows])
        ).fingerprint

    first = of("a.jsonl", [("ab", "x"), ("c", "y")])
    assert of("b.jsonl", [("ab", "x"), ("c", "y")]) == first
    assert of("c.jsonl", [("a", "x"), ("bc", "y")]) != first
    assert of("d.jsonl", [("ab", "y"), ("c", "x")]) != first
    assert of("e.jsonl", [("ab", 1), ("c", 2)]) != first


def test_trec_lines_end_at_line_feeds_only(tmp_path, monkeypatch):
    monkeypatch.setenv("IMPRINT_HOME", str(tmp_path))
    folder = tmp_path / "data" / "text" / "trec"
    folder.mkdir(parents=True)
    (folder / "train_5500.label").write_bytes(
        b"NUM:dist How far\x85is it ?\nLOC:city Where is Malm\xf6 ? \n"
    )
    (folder / "TREC_10.label").write_bytes(b"HUM:desc Who ?\r\n")
    split = load("trec")
    assert split.inputs == ("How far\x85is it ?", "Where is Malmö ?")
    assert split.labels.tolist() == ["NUM", "LOC"]
    assert load("trec", "test").inputs == ("Who ?",)
