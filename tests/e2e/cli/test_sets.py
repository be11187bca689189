"""Models as sets: merge, split, rename and forget on the command line."""

import json

import numpy as np
import pytest

from imprint import ImprintClassifier, Imprinter

RAW = ("--backbone", "raw", "--recipe", "janson2022")


@pytest.fixture
def sites(imprint, paint, tmp_path):
    """Two models: of dark and light images, and of light and middle ones."""
    folders = {
        "a": paint(tmp_path / "a", ["dark", "light"]),
        "b": paint(tmp_path / "b", ["light", "middle"], first=5),
    }
    for name, folder in folders.items():
        assert imprint("fit", folder, "-o", f"{name}.imprint", *RAW).code == 0
    return folders


def test_merged_sites_are_one_fit(imprint, sites, paint, tmp_path):
    done = imprint("merge", "a.imprint", "b.imprint", "-o", "c.imprint")
    assert (done.code, done.out) == (0, "")
    assert done.err.startswith("c.imprint: 3 classes, 3 proxies")
    assert "Expected accuracy" in done.err
    everything = paint(tmp_path / "all", ["dark"])
    paint(everything, ["light"], n=10)
    paint(everything, ["middle"], first=5)
    imprint("fit", everything, "-o", "one.imprint", *RAW)
    merged, one = Imprinter.load("c.imprint"), Imprinter.load("one.imprint")
    assert merged.expected_accuracy_ == one.expected_accuracy_
    new = paint(tmp_path / "new", ["dark", "light", "middle"], first=20)
    answers = [
        json.loads(imprint("predict", f"{name}.imprint", new, "--json").out)
        for name in ("c", "one")
    ]
    assert answers[0] == answers[1]
    # exemplars of both sites serve as reasons
    why = imprint("predict", "c.imprint", new / "light" / "20.png", "--why")
    assert "light/" in why.out


def test_merge_reports_images_that_several_models_have(imprint, paint, tmp_path):
    for name, n in (("a", 5), ("b", 7)):
        folder = paint(tmp_path / name, ["dark", "light"], n=n)
        assert imprint("fit", folder, "-o", f"{name}.imprint", *RAW).code == 0
    done = imprint("merge", "a.imprint", "b.imprint", "-o", "c.imprint", "--json")
    assert json.loads(done.out)["classes"] == ["dark", "light"]
    assert done.err == (
        "10 images of a class are in several models; they count several times.\n"
    )


def test_what_cannot_be_merged_is_one_sentence(imprint, sites, paint, tmp_path, photos):
    words = ("-o", "c.imprint")
    imprint("merge", "a.imprint", *words).refused("two or more model files")
    imprint("merge", "a.imprint", "a.imprint", *words).refused(
        "a.imprint is given twice"
    )
    (tmp_path / "copy.imprint").write_bytes((tmp_path / "a.imprint").read_bytes())
    imprint("merge", "a.imprint", "copy.imprint", *words).refused(
        "copy.imprint is a copy of a.imprint"
    )
    imprint("merge", "a.imprint", "no.imprint", *words).refused("no.imprint")
    damaged = bytearray((tmp_path / "a.imprint").read_bytes())
    damaged[-3] ^= 1
    (tmp_path / "damaged.imprint").write_bytes(damaged)
    imprint("merge", "a.imprint", "damaged.imprint", *words).refused("checksum")
    for options, part in (
        (("--seed", 1), "random_state 1"),
        (("--generator", "all"), "generator all"),
    ):
        imprint("fit", sites["b"], "-o", "other.imprint", *RAW, *options)
        imprint("merge", "a.imprint", "other.imprint", *words).refused(
            "other.imprint has", part, "a.imprint has"
        )
    imprint("fit", photos, "-o", "net.imprint", "-b", "tinynet", "-r", "janson2022")
    imprint("merge", "a.imprint", "net.imprint", *words).refused(
        "net.imprint has the backbone tinynet and a.imprint has the backbone raw"
    )
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 4)), np.arange(20) % 2
    ImprintClassifier(generator="mean").fit(X, y).save("rows.imprint")
    imprint("merge", "a.imprint", "rows.imprint", *words).refused("no backbone")
    imprint("merge", "rows.imprint", "a.imprint", *words).refused("the backbone raw")
    assert not (tmp_path / "c.imprint").exists()


def test_the_output_may_be_one_of_the_inputs(imprint, sites):
    assert imprint("merge", "a.imprint", "b.imprint", "-o", "a.imprint").code == 0
    assert Imprinter.load("a.imprint").classes_.tolist() == ["dark", "light", "middle"]
    imprint("merge", "b.imprint", "a.imprint", "-o", "a/dark/0.png").refused(
        "is not an imprint model"
    )


def test_split_and_rename(imprint, model, photos, tmp_path):
    before = json.loads(imprint("predict", model, photos, "--json").out)
    assert imprint("rename", model, "dark", "zinc").code == 0
    after = json.loads(imprint("predict", model, photos, "--json").out)
    for one, other in zip(before, after):
        assert other["label"] == {"dark": "zinc"}.get(one["label"], one["label"])
        assert other["probability"] == pytest.approx(one["probability"], abs=1e-5)
    done = imprint(
        "split", model, "--classes", "zinc, light", "-o", "n.imprint", "--json"
    )
    assert json.loads(done.out)["classes"] == ["light", "zinc"]
    assert len(Imprinter.load(model).classes_) == 3
    imprint("rename", model, "dark", "x").refused("Unknown class 'dark'")
    imprint("rename", model, "zinc", "light").refused("has a class 'light' already")
    imprint("split", model, "--classes", "a,b", "-o", "x.imprint").refused("'a'")
    imprint("split", model, "--classes", "", "-o", "x.imprint").refused("Unknown class")
    assert not (tmp_path / "x.imprint").exists()


def test_labels_that_are_numbers_are_renamed_to_numbers(imprint, tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(20) % 2
    X = rng.normal(size=(20, 4)) + y[:, None]
    ImprintClassifier(generator="mean").fit(X, y).save("rows.imprint")
    imprint("rename", "rows.imprint", "1", "one").refused("are numbers")
    assert imprint("rename", "rows.imprint", "1", "7").code == 0
    assert Imprinter.load("rows.imprint").classes_.tolist() == [0, 7]


def test_inputs_are_forgotten(imprint, photos, tmp_path):
    """The file is that of a model that never saw the image."""
    fit = ("fit", photos, "-b", "raw", "--keep-rows")
    imprint(*fit, "-o", "m.imprint")
    done = imprint("forget", "m.imprint", "--input", photos / "dark" / "1.png")
    assert done.code == 0
    assert done.err.startswith("Forgot 1 image.\n")
    imprint("forget", "m.imprint", "--input", photos / "dark" / "1.png").refused(
        "not training rows of the model", "nothing was forgotten"
    )
    imprint(
        "forget", "m.imprint", "light", "--input", photos / "dark" / "2.png"
    ).refused("not training rows of the class 'light'")
    imprint("forget", "m.imprint", "--input", photos / "dark" / "none.png").refused(
        "none.png"
    )
    imprint("forget", "m.imprint").refused("name a class, or inputs")
    (photos / "dark" / "1.png").unlink()
    imprint(*fit, "-o", "n.imprint")
    forgotten, never = (tmp_path / f"{name}.imprint" for name in "mn")
    assert forgotten.read_bytes() == never.read_bytes()


def test_inputs_of_large_classes_need_kept_rows(imprint, tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(300) % 2
    np.savez("rows.npz", X=rng.normal(size=(300, 4)).astype("float32"), y=y)
    np.savez("one.npz", X=np.load("rows.npz")["X"][:1])
    assert (
        imprint("fit", "rows.npz", "-o", "m.imprint", "--generator", "kmeans(k=5)").code
        == 0
    )
    imprint("forget", "m.imprint", "--input", "one.npz").refused("--keep-rows")


def test_shared_models_predict_and_merge(imprint, paint, tmp_path):
    for name, first in (("a", 0), ("b", 5)):
        folder = paint(tmp_path / name, ["dark", "light"], first=first)
        imprint("fit", folder, "-o", f"{name}.imprint", *RAW)
        done = imprint("share", f"{name}.imprint", "-o", f"{name}-shared.imprint")
        assert done.code == 0
        assert "Expected accuracy" in done.err
        assert "No proxy in it is a single training input." in done.err
        content = (tmp_path / f"{name}-shared.imprint").read_bytes()
        assert b".png" not in content
        assert b".png" in (tmp_path / f"{name}.imprint").read_bytes()
    new = paint(tmp_path / "new", ["dark", "light"], first=20)
    answers = [
        json.loads(imprint("predict", f"a{end}.imprint", new, "--json").out)
        for end in ("", "-shared")
    ]
    assert answers[0] == answers[1]
    done = imprint("merge", "a-shared.imprint", "b-shared.imprint", "-o", "c.imprint")
    assert done.code == 0
    assert "not calibrated" in done.err
    assert "dark" in imprint("predict", "c.imprint", new).out
    imprint("add", "a-shared.imprint", new).refused("shared without rows")
    imprint("fit", new, "-o", "all.imprint", "-b", "raw", "--generator", "all")
    imprint("share", "all.imprint", "-o", "x.imprint").refused(
        "proxies are training rows"
    )
    assert not (tmp_path / "x.imprint").exists()


def test_a_class_keeps_its_newest_inputs(imprint, paint, tmp_path):
    first = paint(tmp_path / "first", ["dark", "light"], n=8)
    more = paint(tmp_path / "more", ["dark"], n=8, first=50)
    assert imprint("fit", first, "-o", "m.imprint", *RAW).code == 0
    imprint("add", "m.imprint", more, "--max-rows", 0).refused("--max-rows")
    assert imprint("add", "m.imprint", more, "--max-rows", 6).code == 0
    card = json.loads(imprint("card", "m.imprint", "--json").out)
    newest = paint(tmp_path / "newest", ["light"], n=8)
    paint(newest, ["dark"], n=6, first=52)
    assert imprint("fit", newest, "-o", "one.imprint", *RAW).code == 0
    expected = json.loads(imprint("card", "one.imprint", "--json").out)
    assert card == expected
