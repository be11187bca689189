"""A model file that is imported into a project with classes is merged with them, or refused."""

import io
import json

import numpy as np
import pytest
from PIL import Image

from imprint import Imprinter, backbones
from imprint.generators._base import Generator
from imprint.generators.fps import FPS
from imprint.serve.export import exported_model
from imprint.serve.project import Project
from imprint.serve.store import ProjectStore, digest_of

from .conftest import METHOD, PARTS, image

CENTRES = {"top": (0, 3), "bottom": (1, 3), "small": (0, 9), "low": (1, 9)}
"""The shade of each class, and a multiple of the seeds of its images."""
NEW = [image(5000 + i, shade=i % 2) for i in range(8)]


def raws(label, numbers):
    """Images of a class as files, in the order in which the page fits them."""
    shade, factor = CENTRES[label]
    files = [
        image(100 * factor + i, shade=shade, size=(18 + factor, 24)) for i in numbers
    ]
    return sorted(files, key=digest_of)


def opened(files):
    return [np.array(Image.open(io.BytesIO(raw))) for raw in files]


def fitted(classes, **parts):
    """A model of some images of each class."""
    parts = {"calibrate": True, **PARTS, **parts}
    images, labels = [], []
    for label, numbers in classes.items():
        files = opened(raws(label, numbers))
        images += files
        labels += [label] * len(files)
    return Imprinter("raw", cache=False, **parts).fit((images, labels))


def content(model, path):
    model.save(path / "model.imprint")
    return (path / "model.imprint").read_bytes()


def send(client, raw, name="a.imprint"):
    return client.json("POST", f"/api/import?name={name}", raw)


def add(client, classes):
    for label, numbers in classes.items():
        for raw in raws(label, numbers):
            assert client.json("POST", f"/api/items?label={label}", raw)[0] == 201


def exported(project):
    return exported_model(project, project.evaluated().result(60))


def assert_equal(one, other, rtol=1e-5):
    """Assert that two models have the same classes and predictions."""
    assert one.classes_.tolist() == other.classes_.tolist()
    new = opened(NEW)
    assert np.allclose(one.predict_proba(new), other.predict_proba(new), atol=rtol)
    assert np.allclose(one.known(new), other.known(new), atol=1e-6)
    assert one.expected_accuracy_ == pytest.approx(other.expected_accuracy_)


A = {"top": range(20), "bottom": range(20)}
B = {"small": range(15), "low": range(25)}


def test_new_classes_join_those_of_the_project_as_in_one_fit(client, project, tmp_path):
    add(client, A)
    status, reply = send(client, content(fitted(B), tmp_path))
    assert (status, reply["merged"], reply["notices"]) == (200, [], [])
    assert client.labels() == {"top": 20, "bottom": 20, "small": 0, "low": 0}
    assert_equal(exported(project), fitted({**A, **B}))
    expected = fitted({**A, **B}).state.head.proxies
    weights = exported(project).state.head.proxies.weights
    assert sorted(map(bytes, weights)) == sorted(map(bytes, expected.weights))


def test_two_files_are_merged_as_in_python(client, project, tmp_path):
    parts = [
        {"top": range(12), "bottom": range(20)},
        {"top": range(12, 30), "low": range(9)},
    ]
    models = [fitted(part) for part in parts]
    for i, model in enumerate(models):
        status, reply = send(client, content(model, tmp_path), f"{i}.imprint")
        assert status == 200, reply
    assert (reply["merged"], reply["notices"]) == (["top"], [])
    merged = fitted(parts[0]).merge(fitted(parts[1]))
    assert_equal(exported(project), merged)
    one_fit = fitted({"top": range(30), "bottom": range(20), "low": range(9)})
    assert_equal(exported(project), one_fit)
    reasons = client.json("POST", "/api/predict?why", NEW[0])[1][0]["why"]
    assert all(reason["name"] for reason in reasons)


def test_examples_of_the_project_are_added_to_a_merged_class(client, project, tmp_path):
    add(client, {"top": range(8), "bottom": range(20)})
    status, reply = send(client, content(fitted({"top": range(8, 20)}), tmp_path))
    assert (status, reply["merged"]) == (200, ["top"])
    added = fitted({"top": range(8, 20)})
    added.add((opened(raws("top", range(8))), ["top"] * 8))
    added.add((opened(raws("bottom", range(20))), ["bottom"] * 20))
    assert_equal(exported(project), added)


def test_an_import_is_named_undone_and_redone(client, project, tmp_path):
    add(client, A)
    before = exported(project)
    assert send(client, content(fitted(B), tmp_path), "birds.imprint")[0] == 200
    undo = client.json("GET", "/api/state")[1]["undo"]
    assert undo["text"] == "birds.imprint imported"
    after = exported(project)
    client.change(do="undo")
    assert client.labels() == {"top": 20, "bottom": 20}
    assert_equal(exported(project), before)
    client.change(do="redo")
    assert_equal(exported(project), after)


def test_a_merged_project_is_the_same_after_a_restart(client, project, tmp_path):
    add(client, {"top": range(10)})
    assert send(client, content(fitted(A), tmp_path), "a.imprint")[0] == 200
    assert (
        send(client, content(fitted({**B, "top": range(40, 50)}), tmp_path))[0] == 200
    )
    client.change(do="rename", label="low", to="lower")
    before = exported(project)
    labels = client.labels()
    project.close()
    again = Project(project.folder, "raw", backbones.load("raw"), METHOD)
    try:
        by_class = again.history.labelled.by_class()
        assert {k: len(items) for k, items in by_class.items()} == labels
        assert_equal(exported(again), before)
    finally:
        again.close()


def tagged():
    images = opened([*raws("top", range(8)), *raws("bottom", range(8))])
    return Imprinter("raw", cache=False).fit((images, [["top"]] * 8 + [["low"]] * 8))


REFUSED = {
    "method": (lambda: fitted(B, generator="mean"), "generator mean and this project"),
    "seed": (
        lambda: fitted(B, random_state=7),
        "random_state 7 and this project has 0",
    ),
    "tags": (
        tagged,
        "The classes of a.imprint are tags, and those of this project are",
    ),
    "tree": (lambda: nested(), "'top/left' cannot be a class, because 'top' is one"),
}


def nested():
    images = opened(raws("top", range(8)))
    model = Imprinter("raw", cache=False, tree=True, **PARTS)
    return model.fit((images, ["top/left"] * 4 + ["top/right"] * 4))


@pytest.mark.parametrize(("make", "sentence"), REFUSED.values(), ids=list(REFUSED))
def test_models_that_do_not_fit_are_refused_and_nothing_changes(
    client, project, tmp_path, make, sentence
):
    add(client, {"top": range(6), "bottom": range(6)})
    before = project.history
    raw = content(make(), tmp_path)
    status, reply = send(client, raw)
    assert status == 400
    assert sentence in reply["error"]
    assert reply["error"].count(". ") == 0, "one sentence"
    assert project.history is before
    assert len(project.store.entries()) == before.revision
    assert client.json("POST", "/api/predict", NEW[0])[0] == 200
    client.change(do="clear")
    assert send(client, raw)[0] == 200, "a project without classes opens any model"


def test_a_file_is_imported_once_and_a_copy_of_the_project_is_refused(
    client, project, tmp_path
):
    add(client, A)
    own = client.ask("GET", "/api/export/model.imprint")[2]
    other = content(fitted(B), tmp_path)
    assert send(client, other, "b.imprint")[0] == 200
    status, reply = send(client, other, "c.imprint")
    assert (status, reply["error"]) == (
        400,
        "This model was imported already, and its classes are here; undo that or delete them first.",
    )
    client.change(do="undo")
    status, reply = send(client, own)
    assert status == 400
    assert "a.imprint is a copy of the model of this project" in reply["error"]
    assert client.labels() == {"top": 20, "bottom": 20}
    for label in A:
        client.change(do="drop", label=label)
    assert send(client, own)[0] == 200


def test_copies_and_a_lost_calibration_are_reported(client, project, tmp_path):
    add(client, A)
    shared = fitted({"top": range(15, 25), "low": range(5)}, calibrate=True)
    status, reply = send(client, content(shared, tmp_path))
    assert (status, reply["notices"]) == (
        200,
        ["5 images of a class are in several models; they count several times."],
    )
    client.change(do="undo")
    status, reply = send(client, content(fitted(B, calibrate=False), tmp_path))
    assert status == 200
    assert "The merged model is not calibrated" in reply["notices"][0]
    evaluation = client.json("GET", "/api/evaluation")[1]
    project.evaluated().result(60)
    evaluation = client.json("GET", "/api/evaluation")[1]
    assert not evaluation["ready"]
    assert "was fitted without calibration" in evaluation["reason"]
    for label in B:
        client.change(do="drop", label=label)
    project.evaluated().result(60)
    assert client.json("GET", "/api/evaluation")[1]["calibrated"]


def test_an_undo_that_would_join_other_settings_is_refused(client, project, tmp_path):
    assert send(client, content(fitted(A), tmp_path))[0] == 200
    revision = json.loads(client.ask("POST", "/api/change", {"do": "clear"})[2])[
        "revision"
    ]
    assert send(client, content(fitted(B, generator="mean"), tmp_path))[0] == 200
    before = project.history
    status, reply = client.change(do="undo", change=revision)
    assert status == 400
    assert "an imported model has generator mean" in reply["error"]
    assert project.history is before
    assert set(client.labels()) == set(B)


def test_classes_that_cannot_be_merged_are_refused_when_they_meet(
    client, project, tmp_path, monkeypatch
):
    """A generator of another package need not merge states."""
    monkeypatch.setattr(FPS, "merge", Generator.merge)
    parts = {"generator": "fps(k=3)", "calibrate": False, "aggregator": "max"}
    assert send(client, content(fitted({"top": range(9)}, **parts), tmp_path))[0] == 200
    other = content(fitted({"top": range(9, 20), "low": range(5)}, **parts), tmp_path)
    status, reply = send(client, other)
    assert status == 400
    assert "does not merge the states of one class" in reply["error"]
    revision = client.change(do="drop", label="top")[1]["revision"]
    client.add("left", 7)
    assert send(client, other)[0] == 200
    status, reply = client.change(do="undo", change=revision)
    assert status == 400
    assert "does not merge the states of one class" in reply["error"]
    assert set(client.labels()) == {"left", "top", "low"}


def test_models_with_numbers_as_labels_are_merged_with_all_their_rows(
    client, project, tmp_path
):
    """Labels are texts on the page; a class with more rows than calibration holds keeps their sum."""
    images = opened(raws("top", range(130)))
    others = opened(raws("bottom", range(130, 150)))
    model = Imprinter("raw", cache=False, calibrate=True, **PARTS)
    model.fit((images + others, [1] * 130 + [2] * 20))
    assert send(client, content(model, tmp_path))[0] == 200
    more = Imprinter("raw", cache=False, calibrate=True, **PARTS)
    more.fit((opened(raws("top", range(200, 230))), ["1"] * 30))
    status, reply = send(client, content(more, tmp_path))
    assert (status, reply["merged"]) == (200, ["1"])
    assert "which is not exactly one fit: '1'" in reply["notices"][0]
    proxies = exported(project).state.head.proxies
    mass = np.bincount(proxies.labels, proxies.mass)
    assert mass.tolist() == [160, 20]


def test_projects_of_earlier_versions_keep_their_imported_model(tmp_path, project):
    """They replaced the classes by those of a model file, and stored that as `open`."""
    raw = content(fitted(B), tmp_path)
    entry = {"do": "open", "model": digest_of(raw), "labels": list(B)}
    project.close()
    store = ProjectStore(project.folder)
    store.entries()
    store.commit([{"do": "create", "label": "gone"}, entry], {digest_of(raw): raw})
    store.close()
    again = Project(project.folder, "raw", backbones.load("raw"), METHOD)
    try:
        assert list(again.history.labelled.classes) == list(B)
        assert_equal(exported(again), fitted(B))
        other = content(fitted(A), tmp_path)
        again.import_model(other, "a.imprint").result()
        assert_equal(exported(again), fitted({**A, **B}))
    finally:
        again.close()
