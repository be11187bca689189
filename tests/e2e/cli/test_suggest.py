"""`imprint suggest`, and the suggestions of `imprint fit` for a pool."""

import csv
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from PIL import Image

from imprint import Imprinter
from imprint.cli import main

RAW = ("--backbone", "raw", "--recipe", "janson2022")
TEXTS = [
    f"{subject} {verb} number {i}"
    for i in range(5)
    for subject in ("The cat", "A bank")
    for verb in ("is", "was")
]


@pytest.fixture
def pool(paint, tmp_path):
    """Fifteen images without labels, and one file that is not an image."""
    root = paint(tmp_path / "painted", ["dark", "middle", "light"], first=50)
    folder = tmp_path / "pool"
    folder.mkdir()
    for path in root.glob("*/*.png"):
        path.rename(folder / f"{path.parent.name}-{path.name}")
    (folder / "broken.png").write_bytes(b"no image")
    return folder


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "pool.csv"
    with open(path, "w", newline="") as f:
        csv.writer(f).writerows([["text"], *([text] for text in TEXTS)])
    return path


def test_without_a_model_the_first_images_have_all_shades(imprint, pool):
    done = imprint("suggest", pool, "-n", 3, "--json", "--backbone", "raw")
    entries = json.loads(done.out)
    assert [list(e) for e in entries] == [["path", "row", "reason"]] * 3
    names = sorted(os.listdir(pool))
    assert [names[e["row"]] for e in entries] == [
        os.path.basename(e["path"]) for e in entries
    ]
    assert all(
        e["reason"] == "nothing like it is labelled yet" and os.path.isfile(e["path"])
        for e in entries
    )
    assert done.code == 1
    assert "broken.png" in done.err


def test_a_model_gives_reasons(imprint, model, pool, tmp_path):
    (pool / "broken.png").unlink()
    done = imprint("suggest", model, pool, "-n", 15, "--csv")
    assert done.code == 0
    rows = list(csv.DictReader(io.StringIO(done.out)))
    assert list(rows[0]) == ["path", "row", "reason"]
    assert {int(r["row"]) for r in rows} == set(range(15))
    assert any(r["reason"].startswith("between ") for r in rows)


def test_files_are_copied_and_a_page_is_written(imprint, model, pool, tmp_path):
    done = imprint(
        "suggest",
        model,
        pool,
        "-n",
        4,
        "--copy-into",
        tmp_path / "next",
        "--page",
        tmp_path / "page.html",
    )
    assert len(list((tmp_path / "next").glob("*.png"))) == 4
    assert "4 files copied" in done.err
    page = (tmp_path / "page.html").read_text("utf-8")
    assert page.count("data:image/") >= 4
    assert "4 of 16 images" in page
    assert "reason" in done.out


def test_texts_come_with_a_column_to_fill_in(imprint, table):
    done = imprint("suggest", table, "-n", 5, "--csv", "--backbone", "minilm")
    rows = list(csv.DictReader(io.StringIO(done.out)))
    assert [TEXTS[int(r["row"])] for r in rows] == [r["text"] for r in rows]
    assert {r["label"] for r in rows} == {""}


def test_texts_are_shown_with_their_rows_in_the_file(imprint, table):
    lines = imprint("suggest", table, "-n", 3, "--backbone", "minilm").out.splitlines()[
        2:
    ]
    for line in lines:
        name, _, text = line.partition(": ")
        assert text.startswith(TEXTS[int(name.split("row ")[1]) - 2]), (
            "the first row of the file is its header"
        )


def test_embeddings_can_be_a_pool(imprint, tmp_path):
    np.save(
        tmp_path / "pool.npy",
        np.random.default_rng(0).normal(size=(30, 5)).astype(np.float32),
    )
    done = imprint("suggest", "pool.npy", "-n", 30, "--json")
    entries = json.loads(done.out)
    assert sorted(e["row"] for e in entries) == list(range(30))


def test_labels_entered_in_the_terminal_are_written_as_csv_and_files_are_copied(
    imprint, pool, tmp_path, monkeypatch
):
    monkeypatch.setattr(sys, "stdin", io.StringIO("dark\n\n1\nnew class\n"))
    done = imprint(
        "suggest",
        pool,
        "-n",
        12,
        "--ask",
        "--copy-into",
        tmp_path / "labelled",
        "--backbone",
        "raw",
    )
    rows = list(csv.DictReader(io.StringIO(done.out)))
    assert [r["label"] for r in rows] == ["dark", "dark", "new class"]
    assert {p.parent.name for p in (tmp_path / "labelled").glob("*/*.png")} == {
        "dark",
        "new class",
    }
    assert len({r["row"] for r in rows}) == 3
    assert "3 answers written" in done.err


def test_only_files_are_opened_for_a_person_to_look_at(
    imprint, pool, tmp_path, monkeypatch
):
    class Keyboard(io.StringIO):
        def isatty(self):
            return True

    opened = []
    monkeypatch.setattr("typer.launch", opened.append)
    np.save(
        tmp_path / "pool.npy",
        np.random.default_rng(0).normal(size=(9, 4)).astype(np.float32),
    )
    for words, expected in (([pool, "--backbone", "raw"], 2), (["pool.npy"], 0)):
        monkeypatch.setattr(sys, "stdin", Keyboard("dark\n\n"))
        imprint("suggest", *words, "-n", 2, "--ask")
        assert len(opened) == expected
        assert all(os.path.isfile(path) for path in opened)
        opened.clear()


def test_answers_improve_the_suggestions_but_do_not_change_the_file(
    imprint, model, pool, monkeypatch
):
    before = model.read_bytes()
    monkeypatch.setattr(sys, "stdin", io.StringIO("dark\n" * 14))
    done = imprint("suggest", model, pool, "-n", 14, "--ask")
    assert len({r["row"] for r in csv.DictReader(io.StringIO(done.out))}) == 14
    assert model.read_bytes() == before


def test_a_model_of_numbers_refuses_words(imprint, tmp_path, monkeypatch):
    X = np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32)
    np.savez(tmp_path / "train.npz", train=X[:10], train_labels=np.arange(10) % 2)
    np.save(tmp_path / "pool.npy", X[10:])
    assert imprint("fit", "train.npz", "-o", "m.imprint").code == 0
    monkeypatch.setattr(sys, "stdin", io.StringIO("word\n7\n0\n"))
    done = imprint("suggest", "m.imprint", "pool.npy", "-n", 2, "--ask")
    assert [r["label"] for r in csv.DictReader(io.StringIO(done.out))] == ["7", "0"]
    assert "integers" in done.err


def test_after_ten_answers_the_model_learns_them(imprint, tmp_path, monkeypatch):
    X = np.random.default_rng(0).normal(size=(40, 4)).astype(np.float32)
    np.savez(tmp_path / "train.npz", train=X[:10], train_labels=np.arange(10) % 2)
    np.save(tmp_path / "pool.npy", X[10:])
    assert imprint("fit", "train.npz", "-o", "m.imprint").code == 0
    learnt = []
    for name in ("add", "fit"):
        learn = getattr(Imprinter, name)
        monkeypatch.setattr(
            Imprinter,
            name,
            lambda self, rows, learn=learn: learnt.append(rows.y) or learn(self, rows),
        )
    for words, answer, labels in (
        (["m.imprint", "pool.npy"], "7", [7] * 10),
        (["pool.npy"], "cat", ["cat"] * 10),
    ):
        monkeypatch.setattr(sys, "stdin", io.StringIO(f"{answer}\n" * 12))
        assert imprint("suggest", *words, "-n", 12, "--ask").code == 0
        assert learnt.pop().tolist() == labels
    assert not learnt


@pytest.mark.skipif(os.name == "nt", reason="sends SIGINT")
def test_control_c_keeps_the_answers(table, tmp_path):
    labels = tmp_path / "labels.csv"
    code = "import sys; from imprint.cli import main; sys.exit(main(sys.argv[1:]))"
    words = [sys.executable, "-c", code, "suggest", str(table), "-n", "5", "--ask"]
    with (
        open(labels, "wb") as out,
        subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=out, stderr=subprocess.PIPE
        ) as child,
    ):
        child.stdin.write(b"animal\n")
        child.stdin.flush()
        deadline = time.monotonic() + 120
        while b"animal" not in labels.read_bytes():
            assert time.monotonic() < deadline
            assert child.poll() is None
            time.sleep(0.1)
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=60)
    assert b"1 answer written" in err
    assert labels.read_text().splitlines()[1].split(",")[1] == "animal"


def test_fit_ends_with_what_to_label_next(imprint, photos, pool, tmp_path):
    done = imprint("fit", photos, "-o", "m.imprint", "--pool", pool, *RAW)
    assert "Label next:" in done.err
    assert f"Skipped {pool / 'broken.png'}: " in done.err
    assert done.code == 1
    (pool / "broken.png").unlink()
    pool.rename(photos / "unlabelled")
    done = imprint("fit", photos, "-o", "m.imprint", "--json", *RAW)
    assert json.loads(done.out)["classes"] == ["dark", "light", "middle"]
    assert "Label next:" in done.err
    assert (
        len(
            [
                line
                for line in done.err.splitlines()
                if "unlabelled" in line and ".png" in line
            ]
        )
        == 10
    )


def test_wrong_usage(imprint, model, pool, tmp_path):
    imprint("suggest", "missing.imprint", pool).refused("missing.imprint")
    imprint("suggest", model, pool, pool).refused("[FILE] POOL")
    imprint("suggest", tmp_path / "missing").refused("missing")
    np.save(tmp_path / "pool.npy", np.eye(3, dtype=np.float32))
    imprint("suggest", "pool.npy", "--copy-into", tmp_path / "x").refused("--copy-into")
    shutil.make_archive(str(tmp_path / "photos"), "zip", pool)
    imprint(
        "suggest", "photos.zip", "--copy-into", tmp_path / "x", "--backbone", "raw"
    ).refused("--copy-into", ".zip")
    imprint("suggest", model, "pool.npy").refused("reads images")


def test_nothing_readable_is_one_sentence(imprint, tmp_path):
    (tmp_path / "pool").mkdir()
    (tmp_path / "pool" / "a.png").write_bytes(b"no image")
    done = imprint("suggest", "pool", "--backbone", "raw")
    assert done.code == 1
    assert "a.png" in done.err
    Image.new("L", (4, 4)).save(tmp_path / "pool" / "b.png")
    assert main(["suggest", "pool", "--backbone", "raw"]) == 1


@pytest.fixture
def many_classes(imprint, tmp_path):
    """A model of 150 classes, one corner of a cube each, and a pool of unlabelled rows."""
    rng = np.random.default_rng(0)
    centres = 5 * rng.normal(size=(150, 40)).astype(np.float32)
    labels = np.array([f"class_{i:03}" for i in range(150)])
    X = np.repeat(centres, 3, axis=0)
    X += rng.normal(size=X.shape, scale=0.3)
    np.savez("train.npz", X=X, y=np.repeat(labels, 3))
    assert imprint("fit", "train.npz", "-o", "m.imprint").code == 0
    pool = np.repeat(centres[[140, 99, 7]], 20, axis=0)
    pool += rng.normal(size=pool.shape, scale=0.6)
    np.save("pool.npy", pool)
    return np.repeat(["class_140", "class_099", "class_007"], 20)


def test_the_most_probable_classes_are_offered(imprint, many_classes, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("1\n1\n1\n"))
    done = imprint("suggest", "m.imprint", "pool.npy", "--ask", "-n", 3)
    rows = list(csv.DictReader(io.StringIO(done.out)))
    assert len(rows) == 3
    for row in rows:
        assert row["label"] == many_classes[int(row["row"])]
    offered = [line for line in done.err.splitlines() if line.startswith("   1 ")]
    assert len(offered) == 3
    assert all(line.count("class_") == 9 for line in offered)


def test_q_ends_the_questions(imprint, many_classes, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("1\nq\n1\n"))
    done = imprint("suggest", "m.imprint", "pool.npy", "--ask", "-n", 3)
    rows = list(csv.DictReader(io.StringIO(done.out)))
    assert [r["label"][:6] for r in rows] == ["class_"]
    assert "q or Ctrl-C ends" in done.err
    assert "1 answer written" in done.err


def test_a_class_may_be_called_q(imprint, tmp_path, monkeypatch):
    np.savez("train.npz", X=np.eye(4), y=["q", "q", "r", "r"])
    np.save("pool.npy", np.array([[3.0, 2, 0, 0], [0, 0, 1, 2]]))
    assert imprint("fit", "train.npz", "-o", "m.imprint").code == 0
    monkeypatch.setattr(sys, "stdin", io.StringIO("q\nq\n"))
    done = imprint("suggest", "m.imprint", "pool.npy", "--ask", "-n", 2)
    rows = list(csv.DictReader(io.StringIO(done.out)))
    assert [r["label"] for r in rows] == ["q", "q"]
    assert "Ctrl-C ends" in done.err
    assert "q or Ctrl-C" not in done.err


def test_a_new_class_is_announced(imprint, many_classes, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("class_41\n\nclass_007\n"))
    done = imprint("suggest", "m.imprint", "pool.npy", "--ask", "-n", 3)
    assert done.err.count("New class: class_41.") == 1
    assert done.err.count("New class:") == 1


def test_a_cold_start_does_not_speak_of_what_is_known(imprint, tmp_path):
    np.save("pool.npy", np.random.default_rng(0).normal(size=(30, 5)))
    entries = json.loads(imprint("suggest", "pool.npy", "-n", 4, "--json").out)
    assert {e["reason"] for e in entries} == {"nothing like it is labelled yet"}
