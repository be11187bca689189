"""The commands as people and programs use them."""

import json
import re
import shutil
from itertools import chain

import numpy as np
import pytest

from imprint import Imprinter, __version__
from imprint.cli.run import SUMMARIES, TASKS
from imprint.modalities.image import Image

RAW = ("--backbone", "raw", "--recipe", "janson2022")


def test_fit_predict_add_forget(imprint, paint, tmp_path, photos):
    two = paint(tmp_path / "two", ["dark", "light"])
    fitted = imprint("fit", two, "-o", "m.imprint", *RAW)
    assert fitted == (0, "", fitted.err)
    assert "Imprinted 10 images of 2 classes." in fitted.err
    assert "Next: imprint predict m.imprint IMAGE" in fitted.err

    added = imprint("add", "m.imprint", paint(tmp_path / "new", ["middle"]), "--json")
    assert json.loads(added.out) == {
        "model": "m.imprint",
        "classes": ["dark", "light", "middle"],
        "proxies": 3,
        "rows": {"middle": 5},
        "expected_accuracy": 1.0,
        "expected_interval": [pytest.approx(0.684, abs=1e-3), 1.0],
        "skipped": [],
    }
    answers = json.loads(imprint("predict", "m.imprint", photos, "--json").out)
    assert len(answers) == 15
    assert all(f"/{a['label']}/" in a["path"].replace("\\", "/") for a in answers)

    assert imprint("forget", "m.imprint", "middle").code == 0
    assert Imprinter.load("m.imprint").classes_.tolist() == ["dark", "light"]


def test_predict_json_has_the_fixed_shape(imprint, model, photos):
    done = imprint("predict", model, photos / "dark" / "0.png", "--json", "--top", 2)
    (answer,) = json.loads(done.out)
    assert list(answer) == ["path", "label", "probability", "known", "top"]
    assert 0 < answer["known"] <= 1
    assert answer["path"] == str(photos / "dark" / "0.png")
    assert (answer["label"], answer["probability"]) == tuple(answer["top"][0].values())
    assert [list(g) for g in answer["top"]] == [["label", "probability"]] * 2
    # with these few rows nothing can be refused
    assert done.err.startswith("known cannot tell yet what to refuse below 0.05")


def test_predict_shows_classes_and_reasons(imprint, model, photos):
    done = imprint("predict", model, photos / "dark" / "0.png", "--why")
    assert "dark" in done.out
    assert "proxy of" in done.out
    assert "dark/" in done.out.split("closest training input")[1]
    assert "distance" in done.out
    (answer,) = json.loads(
        imprint("predict", model, photos / "dark" / "0.png", "--why", "--json").out
    )
    assert [r["label"] for r in answer["why"]] == ["dark", "middle", "light"]
    assert answer["why"][0]["image"].startswith("dark/")
    assert answer["why"][0]["distance"] < answer["why"][1]["distance"]


def test_names_with_brackets_and_long_paths_are_printed_whole(
    imprint, model, photos, tmp_path
):
    place = tmp_path / ("x" * 100) / "[bold]"
    place.mkdir(parents=True)
    image = (photos / "dark" / "0.png").rename(place / "[red]a.png")
    assert str(image) in imprint("predict", model, image).out
    folder = imprint("predict", model, photos).out
    assert "dark/1.png" in folder
    assert str(photos) not in folder  # relative to the given folder
    folders = imprint("predict", model, photos / "dark", photos / "light").out
    assert "\ndark/1.png" in folders
    assert "\nlight/1.png" in folders
    bad = place / "[blue]bad.png"
    bad.write_bytes(b"")
    assert (
        f"Skipped {bad}: the file is empty."
        in imprint("predict", model, image, bad).err
    )
    assert str(bad) in imprint("predict", model, bad).err


def test_numbers_as_labels_can_be_forgotten(imprint):
    assert (
        imprint("fit", "digits", "-o", "d.imprint", "-b", "raw", "-r", "qi2018").code
        == 0
    )
    assert imprint("forget", "d.imprint", "7").code == 0
    assert Imprinter.load("d.imprint").classes_.tolist() == [0, 1, 2, 3, 4, 5, 6, 8, 9]


def test_parts_replace_those_of_the_recipe(imprint, photos):
    imprint(
        "fit",
        photos,
        "-o",
        "m.imprint",
        "-b",
        "raw",
        "--generator",
        "kmeans(k=2)",
        "--aggregator",
        "nearest(m=3)",
    )
    assert "kmeans(k=2)" in repr(Imprinter.load("m.imprint"))
    assert "nearest(m=3)" in repr(Imprinter.load("m.imprint"))


def test_a_budget_of_proxies_replaces_the_recipes_own(imprint, photos):
    imprint("fit", photos, "-o", "m.imprint", "-b", "raw", "--proxies", "3")
    assert "kmeans(k=3)" in repr(Imprinter.load("m.imprint"))
    imprint(
        "fit",
        photos,
        "-o",
        "n.imprint",
        "-b",
        "raw",
        "--generator",
        "kmedoids(k=9)",
        "--proxies",
        "2",
    )
    assert "kmedoids(k=2)" in repr(Imprinter.load("n.imprint"))
    imprint(
        "fit", photos, "-o", "x.imprint", "-b", "raw", "-r", "qi2018", "--proxies", "2"
    ).refused("mean has no parameter k")


def test_embed_writes_both_splits(imprint):
    done = imprint("embed", "digits", "--backbone", "raw", "-o", "e.npz", "--json")
    assert json.loads(done.out) == {
        "file": "e.npz",
        "width": 784,
        "rows": {"train": 1442, "test": 355},
    }
    with np.load("e.npz") as pack:
        assert pack["train"].shape == (1442, 784)
        assert np.bincount(pack["test_labels"]).min() > 30
        assert pack["train_names"][0] == "digits/train/0"


def test_embed_writes_a_folder_without_a_test_split(imprint, photos):
    done = imprint("embed", photos, "-b", "raw", "-o", "e.npz", "--json")
    assert json.loads(done.out)["rows"] == {"train": 15}


def test_collapse_measures_what_the_library_measures(imprint, photos):
    from imprint.collapse import nc1

    printed = json.loads(imprint("collapse", photos, "-b", "raw", "--json").out)
    rows = Imprinter("raw").embed(photos)
    assert printed["nc1"] == pytest.approx(nc1(rows.X, rows.y))
    assert printed["rows"] == 15
    assert "nc1" in imprint("collapse", photos, "-b", "raw").out


def test_collapse_names_the_backbone_that_it_chose(
    imprint, photos, monkeypatch, tmp_path
):
    monkeypatch.setattr(Image, "backbone", "raw")
    assert json.loads(imprint("collapse", photos, "--json").out)["backbone"] == "raw"
    np.savez(
        tmp_path / "rows.npz",
        train=np.eye(6, 3, dtype=np.float32),
        train_labels=np.arange(6) % 2,
    )
    assert json.loads(imprint("collapse", "rows.npz", "--json").out)["backbone"] is None


def test_list_names_every_component(imprint):
    members = {
        kind["name"]: kind["members"]
        for kind in json.loads(imprint("list", "--json").out)
    }
    assert "kmeans" in members["generators"]
    assert "digits" in members["datasets"]
    assert all(
        name in imprint("list").out for names in members.values() for name in names
    )


def test_rows_without_a_name_are_called_after_their_file(imprint, tmp_path):
    import numpy as np

    X, y = np.eye(3, dtype=np.float32).repeat(4, axis=0), np.arange(3).repeat(4)
    np.savez(tmp_path / "old.npz", train=X, train_labels=y)
    np.save(tmp_path / "new.npy", X[:2])
    (tmp_path / "new.csv").write_text("a,b,c\n1,0,0\n0,1,0\n")
    assert imprint("fit", tmp_path / "old.npz", "-o", tmp_path / "m.imprint").code == 0
    for file, rows in (("new.csv", (2, 3)), ("new.npy", (1, 2)), ("old.npz", (1, 2))):
        answers = json.loads(
            imprint("predict", tmp_path / "m.imprint", tmp_path / file, "--json").out
        )
        assert [a["path"] for a in answers][:2] == [
            f"{file}, row {row}" for row in rows
        ]


@pytest.mark.parametrize(
    ("what", "some"),
    [
        ("backbones", {"tinynet", "raw", "resnet50"}),
        ("datasets", {"digits", "mnist", "imagenet"}),
        ("generators", {"mean", "kmeans", "least_squares"}),
        ("normalisers", {"none", "l2", "quantile"}),
        ("aggregators", {"max", "nearest"}),
        ("recipes", {"qi2018", "imprint2025", "oracle"}),
        ("studies", {"paper/all", "paper/table1"}),
    ],
)
def test_list(imprint, what, some):
    objects = json.loads(imprint("list", what, "--json").out)
    assert some <= {o["name"] for o in objects}
    shown = imprint("list", what).out
    assert all(name in shown for name in some)


def test_the_demonstration_compares_the_recipes_and_writes_a_page(imprint, tmp_path):
    done = imprint("demo", "--out", tmp_path / "out", "--seeds", 2, "--json")
    assert done.code == 0
    printed = json.loads(done.out)
    accuracy = {r["name"]: r["accuracy"]["all"] for r in printed["recipes"]}
    assert len(accuracy) == 6
    assert (
        accuracy["kernel"]
        > accuracy["imprint2025"]
        > accuracy["qi2018"]
        > accuracy["hosoda2024"]
        > 0.3
    )
    assert printed["instances"] == 8
    assert printed["knowledge"]["forgets_exactly"]
    assert (
        printed["knowledge"]["refused_unknown"]
        > 3 * printed["knowledge"]["refused_known"]
    )
    page = (tmp_path / "out" / "demo.html").read_text("utf-8")
    assert page.count("data:image/svg+xml") == 4  # three figures and the icon
    assert "://" not in page.replace("http://www.w3.org", ""), (
        "the page loads nothing from elsewhere"
    )
    assert "$" not in page


def test_version_help_and_usage(imprint):
    assert imprint("--version").out == f"imprint {__version__}\n"
    assert "Make a model:" in imprint("--help").out
    assert imprint("fit", "-h").code == 0
    wrong = imprint("predict")
    assert wrong.code == 2
    assert "imprint predict" in wrong.err
    assert imprint("fly").code == 2
    assert imprint("list", "birds").code == 2
    assert imprint("predict", "m", "p", "--top", 0).code == 2


def test_every_command_has_help_that_fits_a_terminal(imprint):
    lines = imprint("--help").out.splitlines()
    starts = {line.split()[0] for line in lines if re.match("  [a-z]", line)}
    assert set(SUMMARIES) <= starts
    assert not [
        line for line in lines if line.endswith("...") and not line.startswith("Usage")
    ]
    for name in SUMMARIES:
        done = imprint(name, "--help")
        assert done.code == 0
        assert max(map(len, done.out.splitlines())) <= 80


def test_each_command_belongs_to_one_task():
    assert sorted(chain(*TASKS.values())) == sorted(SUMMARIES)


def help_of(imprint, *words):
    """The entries of the help by section."""
    sections = {}
    for line in imprint(*words, "--help").out.splitlines():
        if re.fullmatch(r"\w[\w ]*:", line):
            sections[line[:-1]] = entries = []
        elif sections and re.match("  [^ ]", line):
            entries.append(line.split()[0].rstrip(","))
    return sections


def test_help_lists_options_by_task_and_names_values(imprint):
    sections = help_of(imprint, "fit")
    assert {"-o", "--json"} == {*sections["Output"]}
    assert {"--generator", "--seed"} < {*sections["Method"]}
    assert {"-b", "--device"} < {*sections["Backbone"]}
    assert sections["Options"] == ["-h"], "every option has a task"
    for words in (["fit"], ["predict"], ["suggest"], ["study", "run"], ["api"]):
        page = imprint(*words, "--help").out
        assert not re.search(r"<[a-z]|[{}]|\bx>=|\[x", page), "types are not leaked"
    usage = imprint("suggest", "--help").out.splitlines()[0]
    assert usage == "Usage: imprint suggest [OPTIONS] [FILE] POOL"


def test_a_study_may_be_planned_with_either_name(imprint):
    for option in ("--dry", "--dry-run"):
        done = imprint("study", "run", "no-such-study.yaml", option)
        assert "no such file" in done.err


def test_the_module_is_the_command(start, finish):
    done = finish(start("--version"))
    assert done == (0, f"imprint {__version__}\n", "")


def test_keep_head_keeps_the_network_s_own_classes(imprint, photos):
    done = imprint(
        "fit", photos, "-o", "m.imprint", "--backbone", "tinynet", "--keep-head"
    )
    assert "m.imprint: 203 classes" in done.err
    model = Imprinter.load("m.imprint")
    assert {"goldfish", "dark"} <= {*model.classes_.tolist()}
    answers = json.loads(imprint("predict", "m.imprint", photos, "--json").out)
    assert len(answers) == 15
    assert all(
        f"/{a['label']}/" in a["path"].replace("\\", "/") and a["known"] is None
        for a in answers
    )
    assert imprint("forget", "m.imprint", "goldfish").code == 0
    assert len(Imprinter.load("m.imprint").classes_) == 202
    imprint("predict", "m.imprint", photos, "--unknown", 0.05).refused(
        "no images of the network's own classes"
    )
    imprint("fit", photos, "-o", "n.imprint", *RAW, "--keep-by", "margin").refused(
        "no pre-training head"
    )


def test_fit_announces_the_train_and_test_parts_before_it_starts(
    imprint, photos, tmp_path
):
    for part in ("train", "test"):
        shutil.copytree(photos, tmp_path / "both" / part)
    done = imprint(
        "fit",
        tmp_path / "both",
        "-o",
        tmp_path / "m.imprint",
        "-b",
        "raw",
        "--recipe",
        "janson2022",
    )
    first, second, *rest = done.err.splitlines()
    assert first.endswith("(both), by raw.")
    assert (
        second
        == "The data have a train and a test part: this uses train; test is for evaluation."
    )
    assert any(line.endswith(" on the test part.") for line in rest)
    done = imprint(
        "fit", tmp_path / "both", "-o", tmp_path / "m.imprint", *RAW, "--json"
    )
    tested = json.loads(done.out)["test"]
    assert (tested["accuracy"], tested["balanced_accuracy"], tested["rows"]) == (
        1,
        1,
        15,
    )


def test_fit_names_the_inputs_of_the_test_part_that_cannot_be_read(
    imprint, photos, tmp_path
):
    for part in ("train", "test"):
        shutil.copytree(photos, tmp_path / "both" / part)
    bad = tmp_path / "both" / "test" / "dark" / "bad.png"
    bad.write_bytes(b"nothing")
    done = imprint("fit", tmp_path / "both", "-o", tmp_path / "m.imprint", *RAW)
    assert done.code == 1
    assert f"Skipped {bad}: " in done.err
    assert "Accuracy 100.0 % (15 of 15 correct) on the test part." in done.err


def test_commands_pass_on_device_and_cache_options(imprint, photos, tmp_path):
    network, cached = ("--backbone", "tinynet"), tmp_path / "home" / "embeddings"
    assert imprint("fit", photos, "-o", "m.imprint", *network, "--no-cache").code == 0
    for words in (
        ("fit", photos, "-o", "n.imprint", *network),
        ("add", "m.imprint", photos),
        ("predict", "m.imprint", photos),
        ("evaluate", "m.imprint", photos),
        ("suggest", "m.imprint", photos),
        ("check", photos, *network),
    ):
        assert imprint(*words, "--no-cache").code == 0
        assert not cached.exists(), words
        imprint(*words, "--no-cache", "--device", "tpu").refused("--device tpu: ")
    for words in (
        ("embed", photos, "-o", "e.npz", *network),
        ("collapse", photos, *network),
        ("watch", "m.imprint", photos, "--once"),
    ):
        imprint(*words, "--device", "tpu").refused("--device tpu: ")
    assert imprint("predict", "m.imprint", photos).code == 0
    assert any(cached.rglob("*"))
