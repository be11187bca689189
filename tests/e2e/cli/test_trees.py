"""Trees of classes in the terminal: nested folders, levels, nodes instead of 'none of these', forgetting."""

import csv
import io
import json
import warnings

import numpy as np
import pytest
from PIL import Image

from imprint import Imprinter
from imprint.core.errors import DataWarning

CENTRES = {
    "animal/cat": (2, 2),
    "animal/dog": (2, 5),
    "vehicle/car": (9, 8),
    "vehicle/bus": (9, 11),
}
RAW = ("--backbone", "raw")


def draw(root, labels, n=12, first=0):
    """Bright spots on noise; classes of one node have spots close to each other."""
    rows, columns = np.indices((14, 14))
    for label in labels:
        (root / label).mkdir(parents=True, exist_ok=True)
        r, c = CENTRES[label]
        for i in range(first, first + n):
            noise = np.random.default_rng([i, *label.encode()]).normal(0, 18, (14, 14))
            spot = 160 * np.exp(-((rows - r) ** 2 + (columns - c) ** 2) / 6)
            Image.fromarray(np.clip(40 + spot + noise, 0, 255).astype(np.uint8)).save(
                root / label / f"{i}.png"
            )
    return root


@pytest.fixture
def model(imprint, tmp_path):
    done = imprint("fit", draw(tmp_path / "photos", CENTRES), *RAW, "-o", "m.imprint")
    assert done.code == 0
    assert "--flat (tree=False) makes each top folder one class" in done.err
    return tmp_path / "m.imprint"


@pytest.fixture
def new(tmp_path):
    return draw(tmp_path / "new", CENTRES, n=3, first=50)


def test_levels(imprint, model, new):
    answers = json.loads(imprint("predict", model, new, "--json").out)
    assert {a["label"] for a in answers} == set(CENTRES)
    top = json.loads(imprint("predict", model, new, "--level", "1", "--json").out)
    assert [a["label"] for a in top] == ["animal"] * 6 + ["vehicle"] * 6
    assert list(top[0]) == ["path", "label", "probability", "known", "top"]
    assert {g["label"] for g in top[0]["top"]} == {"animal", "vehicle"}
    assert sum(g["probability"] for g in top[0]["top"]) == pytest.approx(1)
    imprint("predict", model, new, "--level", "3").refused(
        "--level 3: ", "levels 1 to 2"
    )


def test_a_node_in_the_place_of_none_of_these(imprint, model, tmp_path):
    rows, columns = np.indices((14, 14))
    between = 40 + 160 * np.exp(-((rows - 2) ** 2 + (columns - 3.5) ** 2) / 1.5)
    (tmp_path / "odd").mkdir()
    Image.fromarray(between.astype(np.uint8)).save(tmp_path / "odd/lynx.png")
    Image.fromarray(np.random.default_rng(1).integers(0, 255, (14, 14), np.uint8)).save(
        tmp_path / "odd/noise.png"
    )
    lynx, noise = json.loads(
        imprint("predict", model, "odd", "--unknown", "0.05", "--json").out
    )
    assert (lynx["label"], lynx["node"]["label"]) == (None, "animal")
    assert lynx["node"]["probability"] >= 0.8
    assert (noise["label"], noise["node"]) == (None, None)
    shown = imprint("predict", model, "odd", "--unknown", "0.05").out
    assert "animal (kind unknown; closest: animal/" in shown
    assert "none of these (closest: " in shown
    table = list(
        csv.DictReader(
            io.StringIO(
                imprint("predict", model, "odd", "--unknown", "0.05", "--csv").out
            )
        )
    )
    assert [(row["label"], row["node"]) for row in table] == [("", "animal"), ("", "")]
    imprint("predict", model, "odd", "--unknown", "0.05", "--sort-into", "sorted")
    assert (tmp_path / "sorted/none of these/animal/lynx.png").is_file()
    assert (tmp_path / "sorted/none of these/noise.png").is_file()


def test_sorting_nests_folders_that_fit_reads_back(imprint, model, new, tmp_path):
    imprint("predict", model, new, "--sort-into", "sorted")
    files = (tmp_path / "sorted").rglob("*.png")
    assert {str(file.parent.relative_to(tmp_path / "sorted")) for file in files} == set(
        CENTRES
    )


def test_evaluate_reports_each_level(imprint, model, new):
    result = json.loads(imprint("evaluate", model, new, "--json").out)
    assert (result["classes"], result["accuracy"]) == (sorted(CENTRES), 1)
    assert result["levels"] == [{"level": 1, "nodes": 2, "accuracy": 1.0}]
    (new / "animal/cat/50.png").rename(new / "animal/dog/wrong.png")
    (new / "vehicle/car/50.png").rename(new / "animal/dog/worse.png")
    result = json.loads(imprint("evaluate", model, new, "--json").out)
    assert (result["accuracy"], result["levels"][0]["accuracy"]) == (
        pytest.approx(10 / 12),
        pytest.approx(11 / 12),
    )
    assert (
        "Accuracy at level 1 (2 nodes): 91.7 %." in imprint("evaluate", model, new).out
    )


def test_a_part_of_the_tree_is_evaluated_and_added_by_the_classes_of_the_model(
    imprint, model, tmp_path
):
    part = draw(tmp_path / "part", ["animal/cat", "vehicle/bus"], n=2, first=70)
    (part / "animal/cat/indoors").mkdir()
    (part / "animal/cat/70.png").rename(part / "animal/cat/indoors/70.png")
    result = json.loads(imprint("evaluate", model, part, "--json").out)
    assert (result["accuracy"], result["classes"]) == (1, sorted(CENTRES))
    added = json.loads(imprint("add", model, part, "--json").out)
    assert (added["classes"], added["rows"]) == (
        sorted(CENTRES),
        {"animal/cat": 2, "vehicle/bus": 2},
    )


def test_forget_a_node(imprint, model):
    done = imprint("forget", model, "animal/", "--json")
    assert json.loads(done.out)["classes"] == ["vehicle/bus", "vehicle/car"]
    imprint("forget", model, "animal/").refused(
        "Unknown class 'animal/'", "vehicle/bus"
    )
    imprint("forget", model, "vehicle").refused("'vehicle/' means all classes below it")
    imprint("forget", model, "vehicle/").refused("the only class")


def test_flat_models_stay_flat(imprint, model, new, tmp_path):
    imprint("fit", tmp_path / "photos", *RAW, "--flat", "-o", "flat.imprint")
    result = json.loads(imprint("evaluate", "flat.imprint", new, "--json").out)
    assert (result["classes"], result["accuracy"]) == (["animal", "vehicle"], 1)
    assert "levels" not in result
    (new / "vehicle").rename(new / "plant")
    added = json.loads(imprint("add", "flat.imprint", new, "--json").out)
    assert added["classes"] == ["animal", "plant", "vehicle"]
    assert (
        "node"
        not in json.loads(
            imprint("predict", "flat.imprint", new, "--unknown", "0.05", "--json").out
        )[0]
    )


def test_labels_of_a_table_are_a_tree_unless_they_are_flat(imprint, tmp_path):
    rng = np.random.default_rng(0)
    lines = ["a,b,c,d,label"]
    for i, label in enumerate(CENTRES):
        lines += [
            ",".join(
                [*(f"{v:.3f}" for v in np.eye(4)[i] + 0.1 * rng.normal(size=4)), label]
            )
            for _ in range(6)
        ]
    (tmp_path / "rows.csv").write_text("\n".join(lines))
    tree, flat = ["vehicle/bus", "vehicle/car"], None
    for option, classes in (("--tree",), tree), (("--flat",), flat), ((), flat):
        imprint("fit", "rows.csv", *option, "-o", "rows.imprint")
        result = json.loads(
            imprint("evaluate", "rows.imprint", "rows.csv", "--json").out
        )
        assert ("levels" in result) == (classes == tree)
        done = imprint("forget", "rows.imprint", "animal/", "--json")
        if classes is None:
            done.refused("Unknown class 'animal/'")
        else:
            assert json.loads(done.out)["classes"] == classes


def test_python(tmp_path):
    draw(tmp_path / "photos", CENTRES)
    with pytest.warns(DataWarning, match="Nested folders are a tree of classes"):
        model = Imprinter("raw").fit(tmp_path / "photos")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stated = Imprinter("raw", tree=True).fit(tmp_path / "photos")
        flat = Imprinter("raw", tree=False).fit(tmp_path / "photos")
    assert stated.classes_.tolist() == model.classes_.tolist() == sorted(CENTRES)
    assert flat.classes_.tolist() == ["animal", "vehicle"]
    image = str(tmp_path / "photos/animal/cat/0.png")
    assert model.predict([image], level=1).tolist() == ["animal"]
    assert model.predict_proba([image], level=1).shape == (1, 2)
    assert model.likely_nodes([image]) == [None]
    p = float(model.known([image])[0])
    assert model.likely_nodes([image], unknown=2 * p)[0].label == "animal"
    flat.save(tmp_path / "flat.imprint")
    assert Imprinter.load(tmp_path / "flat.imprint").tree.depth == 1
    assert model.forget("vehicle/").classes_.tolist() == ["animal/cat", "animal/dog"]
