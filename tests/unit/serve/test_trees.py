"""A tree of classes on the page: labels with a slash, predictions, evaluation, forgetting, export and import."""

import io
import re
import zipfile

import numpy as np
import pytest
from PIL import Image

from imprint import Imprinter
from imprint.core.errors import ParameterError
from imprint.core.files import container
from imprint.serve.export import exported_model
from imprint.serve.labelled import clean_label
from imprint.serve.projects import start_project

from .conftest import image

CENTRES = {"animal/cat": (4, 4), "animal/dog": (4, 10), "vehicle/car": (16, 18)}


def spot(row, column, seed, noise=18.0):
    rows, columns = np.indices((20, 24))
    rng = np.random.default_rng(seed)
    pixels = (
        40
        + 160 * np.exp(-((rows - row) ** 2 + (columns - column) ** 2) / 16)
        + rng.normal(0, noise, (20, 24))
    )
    out = io.BytesIO()
    Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8)).save(out, "png")
    return out.getvalue()


@pytest.fixture
def tree(client, project):
    for label, (row, column) in CENTRES.items():
        for seed in range(10):
            raw = spot(row, column, [seed, row, column])
            status, _ = client.json(
                "POST",
                f"/api/items?label={label.replace('/', '%2F')}&name={seed}.png",
                raw,
            )
            assert status == 201
    project.evaluated().result()
    return client


def test_predictions_of_a_tree(tree):
    (answer,) = tree.json("POST", "/api/predict", spot(4, 4, 99))[1]
    assert (answer["label"], answer["node"]) == ("animal/cat", None)
    (answer,) = tree.json("POST", "/api/predict?level=1", spot(4, 4, 99))[1]
    assert (answer["label"], {one["label"] for one in answer["top"]}) == (
        "animal",
        {"animal", "vehicle"},
    )
    status, refusal = tree.json("POST", "/api/predict?level=3", spot(4, 4, 99))
    assert (status, refusal["error"]) == (
        400,
        "level=3: the classes of this model have levels 1 to 2.",
    )
    (answer,) = tree.json("POST", "/api/predict?unknown=0.1", spot(4, 7, 99))[1]
    assert (answer["label"], answer["node"]["label"]) == (None, "animal")
    assert answer["node"]["probability"] >= 0.8


def test_flat_classes_have_no_node(client):
    client.add("top", 1, 0)
    client.add("bottom", 2, 1)
    assert "node" not in client.json("POST", "/api/predict", image(3))[1][0]


def test_the_evaluation_has_levels(tree):
    evaluation = tree.json("GET", "/api/evaluation")[1]
    assert evaluation["levels"] == [{"level": 1, "nodes": 2, "accuracy": 1.0}]


def test_a_node_is_forgotten_and_restored(tree):
    assert tree.change(do="drop", label="animal/")[0] == 200
    assert tree.labels() == {"vehicle/car": 10}
    tree.change(do="undo")
    assert tree.labels() == dict.fromkeys(CENTRES, 10)
    status, refusal = tree.change(do="drop", label="plant")
    assert (status, refusal["error"][:21]) == (400, "Unknown class 'plant'")
    status, refusal = tree.change(do="drop", label="animal")
    assert status == 400
    assert "'animal' is not a class but a node of the tree" in refusal["error"]


def test_no_class_is_above_or_below_another(tree):
    for label in ("animal", "animal/cat/black"):
        status, refusal = tree.change(do="create", label=label)
        assert status == 400
        assert (
            f"{label!r} cannot be a class, because 'animal/cat' is one; rename that first."
            == refusal["error"]
        )
    assert tree.change(do="rename", label="animal/cat", to="animal/cat/black")[0] == 200


def test_export_and_import_keep_the_tree(tree, project, tmp_path):
    raw = tree.ask("GET", "/api/export/examples.zip")[2]
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        archive.extractall(tmp_path / "photos")
    again, sentences = start_project(tmp_path / "photos", tmp_path / "again", "raw")
    try:
        assert {
            label: len(items)
            for label, items in again.history.labelled.by_class().items()
        } == dict.fromkeys(CENTRES, 10)
        assert ["tree of classes" in sentence for sentence in sentences] == [True]
    finally:
        again.close()
    flat, sentences = start_project(
        tmp_path / "photos", tmp_path / "flat", "raw", tree=False
    )
    try:
        assert sorted(flat.history.labelled.classes) == ["animal", "vehicle"]
        assert sentences == []
    finally:
        flat.close()


def test_an_imported_flat_model_stays_flat(tree, project, tmp_path):
    model = exported_model(project, project.evaluated().result())
    assert model.tree.depth == 2
    model.save(tmp_path / "nested.imprint")
    document, arrays = container.read(tmp_path / "nested.imprint")
    container.write(tmp_path / "flat.imprint", {**document, "tree": False}, arrays)
    project.change({"do": "clear"}).result()
    project.import_model(
        (tmp_path / "flat.imprint").read_bytes(), "flat.imprint"
    ).result()
    assert "node" not in tree.json("POST", "/api/predict", spot(4, 4, 99))[1][0]
    again = exported_model(project, project.evaluated().result())
    again.save(tmp_path / "again.imprint")
    assert Imprinter.load(tmp_path / "again.imprint").tree.depth == 1
    held_out = "/api/items?label=animal%2Fcat&name=x.png&held_out"
    assert (
        tree.json("POST", held_out, spot(4, 10, 99))[0] == 201
    )  # a dog: the model predicts its sibling
    page = tree.ask("GET", "/api/export/evaluation.html")[2]
    assert b"Held-out examples" in page
    assert re.search(rb"\"levels\": *\[\]", page)


@pytest.mark.parametrize(
    "bad", ["../../x", "animal//cat", "/cat", "animal/.cat", "a:b"]
)
def test_a_refused_name_says_what_to_do(bad):
    with pytest.raises(
        ParameterError,
        match=r"leave out leading dots .* a slash only between the levels of a tree",
    ):
        clean_label(bad)


def test_parameters_that_are_not_utf8_are_refused(client):
    status, refusal = client.json("POST", "/api/items?label=%ff&name=a.png", image(1))
    assert (status, refusal["error"]) == (
        400,
        "The parameters of the address are not UTF-8; percent-encode names as UTF-8, such as label=caf%C3%A9.",
    )
    assert (
        client.json("POST", "/api/items?label=caf%C3%A9&name=a.png", image(1))[0] == 201
    )
    assert list(client.labels()) == ["café"]
