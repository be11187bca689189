"""`imprint evaluate` and `imprint check` on small images, texts and embeddings."""

import json
import re
import shutil

import numpy as np
from PIL import Image

from imprint.cli import terminal

RAW = ("--backbone", "raw")
PATTERNS = {
    "across": lambda rows, columns: rows // 3 % 2,
    "down": lambda rows, columns: columns // 3 % 2,
    "aslant": lambda rows, columns: (rows + columns) // 3 % 2,
}


def draw(root, labels, n=5, first=0):
    """Noisy stripes, one folder per direction; pixels separate the directions at any brightness."""
    for label in labels:
        (root / label).mkdir(parents=True, exist_ok=True)
        for i in range(first, first + n):
            noise = np.random.default_rng([i, *label.encode()]).integers(
                0, 60, (12, 12)
            )
            pattern = PATTERNS[label](*np.indices((12, 12)))
            Image.fromarray((150 * pattern + noise).astype(np.uint8)).save(
                root / label / f"{i}.png"
            )
    return root


def held(page):
    """The data embedded in a page."""
    text = page.read_text("utf-8")
    return json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])


def test_evaluate_counts_and_names_mistakes(imprint, model, paint, tmp_path):
    data = paint(tmp_path / "new", ["dark", "light"], n=3, first=50)
    shutil.move(data / "dark" / "50.png", data / "light" / "wrong.png")
    done = imprint("evaluate", model, data, "--json", "--page", "page.html")
    assert done.code == 0
    printed = json.loads(done.out)
    assert list(printed) == [
        "accuracy",
        "balanced_accuracy",
        "rows",
        "classes",
        "confusion",
        "per_class",
        "calibration_error",
        "mistakes",
        "unreadable",
    ]
    assert (printed["rows"], printed["classes"]) == (6, ["dark", "light", "middle"])
    assert printed["confusion"] == [[2, 0, 0], [1, 3, 0], [0, 0, 0]]
    assert printed["accuracy"] == 5 / 6
    assert printed["balanced_accuracy"] == (1 + 3 / 4) / 2
    assert printed["per_class"][2] == {
        "label": "middle",
        "rows": 0,
        "recall": None,
        "precision": None,
    }
    (mistake,) = printed["mistakes"]
    assert list(mistake) == ["path", "label", "predicted", "probability"]
    assert mistake["path"] == str(data / "light" / "wrong.png")
    assert (mistake["label"], mistake["predicted"]) == ("light", "dark")
    page = held(tmp_path / "page.html")
    assert page["items"][str(page["mistakes"][0])]["predicted"] == "dark"
    assert {len(page["cells"][f]) for f in ("0,0", "1,0", "1,1")} == {2, 1, 3}
    shown = imprint("evaluate", model, data)
    assert "Accuracy 83.3 % (5 of 6 correct)." in shown.out
    assert re.search(r"light +dark +1$", shown.out, re.MULTILINE)
    assert max(len(line) for line in shown.out.splitlines()) <= 80


def test_evaluate_takes_the_test_part_and_shows_what_decided(imprint, tmp_path):
    data = tmp_path / "both"
    draw(data / "train", ["across", "down"])
    draw(data / "test", ["across", "down"], n=2, first=70)
    shutil.copy(data / "test" / "across" / "70.png", data / "test" / "down" / "odd.png")
    assert imprint("fit", data, "-o", "m.imprint", *RAW).code == 0
    printed = json.loads(
        imprint("evaluate", "m.imprint", data, "--json", "--page", "page.html").out
    )
    assert printed["rows"] == 5
    page = held(tmp_path / "page.html")
    reason = page["items"][str(page["mistakes"][0])]["because"]
    assert reason["name"].startswith("across/")
    assert reason["image"].startswith("data:image/png;base64,")
    assert len(page["map"]["points"]) == 5
    assert page["map"]["marked"] == 1


def test_an_image_of_the_same_name_is_not_shown_as_the_closest_one(
    imprint, model, paint, tmp_path
):
    other = paint(tmp_path / "other", ["dark", "middle", "light"], n=5, first=0)
    for path in other.glob("*/*.png"):
        pixels = np.asarray(Image.open(path))
        Image.fromarray(pixels[::-1]).save(path)
    shutil.copy(other / "dark" / "0.png", other / "light" / "0.png")
    assert imprint("evaluate", model, other, "--page", "page.html").code == 0
    page = held(tmp_path / "page.html")
    assert "image" not in page["items"][str(page["mistakes"][0])]["because"]


def test_unknown_labels_count_as_mistakes_and_are_named(imprint, tmp_path):
    assert (
        imprint(
            "fit", draw(tmp_path / "two", ["across", "down"]), "-o", "m.imprint", *RAW
        ).code
        == 0
    )
    data = draw(tmp_path / "three", ["across", "down", "aslant"], n=2, first=60)
    done = imprint("evaluate", "m.imprint", data)
    assert "training data" not in done.err
    assert "Accuracy 66.7 % (4 of 6 correct)." in done.out
    assert (
        "Classes that the model does not have: aslant. Their rows count as mistakes."
        in done.err
    )
    assert (
        len(
            json.loads(imprint("evaluate", "m.imprint", data, "--json").out)["mistakes"]
        )
        == 2
    )


def test_training_rows_are_reported_first(imprint, model, photos, paint):
    paint(photos, ["dark"], n=2, first=80)
    for words in (("evaluate", model, photos), ("evaluate", model, photos, "--json")):
        first = imprint(*words).err.splitlines()[0]
        assert first in ("15 of these rows are training data; use held-out data.",
                         "At least 15 of these rows are training data; use held-out data.")  # fmt: skip


def test_the_number_of_training_rows_is_exact_where_all_are_in_the_file(
    imprint, tmp_path
):
    data = draw(tmp_path / "two", ["across", "down"])
    assert imprint("fit", data, "-o", "m.imprint", *RAW).code == 0
    draw(data, ["across"], n=1, first=60)
    assert imprint("evaluate", "m.imprint", data).err.startswith(
        "10 of these rows are training data; use held-out"
    )


def test_unreadable_inputs_are_named_and_the_rest_counts(imprint, model, photos):
    bad = photos / "dark" / "!bad.png"
    bad.write_bytes(b"nonsense")
    done = imprint("evaluate", model, photos, "--json")
    assert done.code == 1
    assert [u["path"] for u in json.loads(done.out)["unreadable"]] == [str(bad)]
    assert (json.loads(done.out)["rows"], json.loads(done.out)["mistakes"]) == (15, [])
    done = imprint("check", photos, *RAW, "--json")
    assert done.code == 1
    assert [u["path"] for u in json.loads(done.out)["unreadable"]] == [str(bad)]


def test_check_finds_what_was_planted(imprint, tmp_path):
    data = draw(tmp_path / "photos", ["across", "aslant", "down"], n=30)
    wrong = shutil.move(data / "across" / "3.png", data / "down" / "wrong.png")
    copy = shutil.copy(data / "aslant" / "5.png", data / "aslant" / "copy.png")
    done = imprint("check", data, *RAW, "--json", "--page", "page.html")
    assert done.code == 0
    printed = json.loads(done.out)
    assert list(printed) == ["mislabelled", "duplicates", "outliers", "unreadable"]
    (suspect,) = printed["mislabelled"]
    assert list(suspect) == ["path", "label", "suggested", "probability", "score"]
    assert (suspect["path"], suspect["label"], suspect["suggested"]) == (
        str(wrong),
        "down",
        "across",
    )
    assert printed["duplicates"] == [[str(data / "aslant" / "5.png"), str(copy)]]
    page = held(tmp_path / "page.html")
    assert page["totals"] == [1, 1, len(printed["outliers"]), 0]
    assert all("image" in page["items"][str(i)] for i in page["duplicates"][0]["items"])
    shown = imprint("check", data, *RAW).out
    assert "Labels to check: 1, the highest score first" in shown
    assert "Groups of duplicates: 1\n" in shown
    assert re.search(r"^down/wrong.png +down +across +[0-9.]+$", shown, re.MULTILINE)
    assert str(tmp_path) not in shown + (tmp_path / "page.html").read_text("utf-8")


def test_check_reports_the_same_image_in_two_classes(imprint, tmp_path, monkeypatch):
    monkeypatch.setattr(terminal, "marked", lambda label: f"{label}!")  # in red
    data = draw(tmp_path / "photos", ["across", "down"], n=6)
    shutil.copy(data / "across" / "3.png", data / "down" / "same.png")
    shutil.copy(data / "across" / "1.png", data / "across" / "copy.png")
    shown = imprint("check", data, *RAW, "--page", "page.html").out
    assert "Groups of duplicates: 2, 1 with different labels" in shown
    lines = shown[shown.index("Groups") :].splitlines()[3:7]
    assert [line.split() for line in lines] == [
        ["across/3.png", "across!", "1"],
        ["down/same.png", "down!", "1"],
        ["across/1.png", "across", "2"],
        ["across/copy.png", "across", "2"],
    ]


def test_check_lists_outliers_with_their_labels_and_unreadable_inputs_with_the_reason(
    imprint, tmp_path
):
    data = draw(tmp_path / "photos", ["across", "aslant", "down"], n=30)
    Image.fromarray(np.eye(12, dtype=np.uint8) * 255).save(data / "down" / "odd.png")
    (data / "down" / "!bad.png").write_bytes(b"")
    done = imprint("check", data, *RAW)
    assert done.code == 1
    outliers, unreadable = done.out[done.out.index("Outliers: ") :].split(
        "Unreadable inputs: 1"
    )
    assert re.search(r"^down/odd.png +down *$", outliers, re.MULTILINE)
    assert re.search(r"^down/!bad.png +the file is empty *$", unreadable, re.MULTILINE)


def test_check_compares_both_parts(imprint, tmp_path):
    data = tmp_path / "both"
    draw(data / "train", ["across", "down"])
    draw(data / "test", ["across", "down"], n=2, first=70)
    shutil.copy(
        data / "train" / "across" / "1.png", data / "test" / "across" / "leak.png"
    )
    printed = json.loads(imprint("check", data, *RAW, "--json").out)
    assert printed["duplicates"] == [
        [
            str(data / "train" / "across" / "1.png"),
            str(data / "test" / "across" / "leak.png"),
        ]
    ]


def test_tables_of_embeddings(imprint, tmp_path):
    rng = np.random.default_rng(0)
    X, y = (
        rng.normal(size=(40, 6)) + 4 * np.eye(2, 6).repeat(20, axis=0),
        np.array(["a", "b"]).repeat(20),
    )
    lines = ["label," + ",".join(f"x{i}" for i in range(6))]
    lines += [
        f"{label}," + ",".join(f"{v:.6f}" for v in row) for label, row in zip(y, X)
    ]
    (tmp_path / "rows.csv").write_text("\n".join([*lines, lines[7]]) + "\n")
    printed = json.loads(imprint("check", "rows.csv", "--json", "--page", "c.html").out)
    assert printed["duplicates"] == [["rows.csv, row 8", "rows.csv, row 42"]]
    assert imprint("fit", "rows.csv", "-o", "m.imprint").code == 0
    assert (
        json.loads(
            imprint(
                "evaluate", "m.imprint", "rows.csv", "--json", "--page", "e.html"
            ).out
        )["rows"]
        == 41
    )


def test_names_with_control_characters_are_shown_escaped(imprint, model, photos):
    name = "\x1b[31mred\x07.png"
    shutil.move(photos / "dark" / "0.png", photos / "light" / name)
    done = imprint("evaluate", model, photos, "--page", "page.html")
    assert "\x1b" not in done.out + done.err + (photos.parent / "page.html").read_text(
        "utf-8"
    )
    assert "\x1b" not in imprint("check", photos, *RAW).out


def test_a_page_replaces_only_pages(imprint, model, photos):
    for words in (("evaluate", model, photos), ("check", photos, *RAW)):
        page = photos.parent / f"{words[0]}.html"
        page.write_text("<html>mine</html>")
        imprint(*words, "--page", page).refused(
            "it exists and is not a page of imprint; choose another name."
        )
        assert page.read_text() == "<html>mine</html>"
        page.unlink()
        for _ in range(2):
            assert imprint(*words, "--page", page).code == 0


def test_a_page_that_cannot_be_written_is_refused_before_any_work(
    imprint, model, photos
):
    for words in (("evaluate", model, photos), ("check", photos)):
        done = imprint(*words, "--page", "nowhere/page.html")
        assert done.code != 0
        assert "Cannot write nowhere" in done.err
