"""A model of tags on the page: its label sets are the classes, and answers have several labels."""

import io

import numpy as np
import pytest
from PIL import Image

from imprint import Imprinter
from imprint.serve.export import exported_model

SETS = {"top": (1, 0), "bottom": (0, 1), "bottom|top": (1, 1)}


def halves(top, bottom, seed):
    pixels = np.random.default_rng(seed).integers(0, 70, (20, 24), dtype=np.uint8)
    pixels[:10] += np.uint8(150 * top)
    pixels[10:] += np.uint8(150 * bottom)
    return pixels


def png(pixels):
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "png")
    return out.getvalue()


@pytest.fixture(scope="module")
def model():
    rows = [
        (halves(*lit, [i, *lit]), name.split("|"))
        for name, lit in SETS.items()
        for i in range(12)
    ]
    images, labels = zip(*rows)
    return Imprinter("raw", cache=False).fit((list(images), list(labels)))


@pytest.fixture
def page(client, project, model, tmp_path):
    model.save(tmp_path / "m.imprint")
    status, answer = client.json(
        "POST", "/api/import?name=m.imprint", (tmp_path / "m.imprint").read_bytes()
    )
    assert status < 300, answer
    project.evaluated().result()
    return client


def test_the_page_agrees_with_the_model(page, model):
    assert set(page.labels()) == {"top", "bottom", "bottom + top"}
    for lit, expected in (((1, 1), "bottom + top"), ((1, 0), "top")):
        pixels = halves(*lit, 99)
        (answer,) = page.json("POST", "/api/predict", png(pixels))[1]
        P = dict(zip(model.classes_.tolist(), model.predict_proba([pixels])[0]))
        assert sorted(answer["label"].split(" + ")) == sorted(expected.split(" + "))
        assert {
            one["label"]: pytest.approx(one["probability"]) for one in answer["top"]
        } == P
        assert [one["label"] for one in answer["labels"]] == answer["label"].split(
            " + "
        )
        assert answer["known"] == pytest.approx(model.known([pixels])[0])
    (answer,) = page.json("POST", "/api/predict?unknown=1", png(halves(0, 0, 5)))[1]
    assert (answer["label"], answer["labels"]) == (None, [])


def test_the_evaluation_has_a_line_per_label(page, model):
    evaluation = page.json("GET", "/api/evaluation")[1]
    assert evaluation["ready"]
    assert [one["label"] for one in evaluation["tags"]["per_label"]] == [
        "bottom",
        "top",
    ]
    assert [one["rows"] for one in evaluation["tags"]["per_label"]] == [24, 24]
    assert evaluation["tags"]["macro_f1"] == pytest.approx(
        model.state.head.calibration.f1.mean()
    )


def test_items_are_labelled_with_sets_and_the_export_holds_them(page, project):
    status, _ = page.json(
        "POST", "/api/items?label=top%20%2B%20bottom&name=x.png", png(halves(1, 1, 7))
    )
    assert status == 201  # the same set as "bottom + top"
    status, _ = page.json(
        "POST", "/api/items?label=new%20%2B%20top&name=y.png", png(halves(1, 0, 8))
    )
    assert status == 201
    again = exported_model(project, project.evaluated().result())
    assert again.classes_.tolist() == ["bottom", "new", "top"]
    assert sorted(again.state.head.imprinted.labels) == [
        "bottom",
        "bottom|top",
        "new|top",
        "top",
    ]
    (answer,) = page.json("POST", "/api/predict", png(halves(1, 1, 9)))[1]
    assert {one["label"] for one in answer["labels"]} == {
        again.classes_[c] for c in np.flatnonzero(again.predict([halves(1, 1, 9)])[0])
    }


def test_held_out_items_are_reported_as_not_evaluated(page, project):
    assert not page.json("GET", "/api/evaluation")[1]["tags"]["held_out_ignored"]
    status, _ = page.json("POST", "/api/items?label=top&held_out", png(halves(1, 0, 7)))
    assert status == 201
    project.evaluated().result()
    measured = page.json("GET", "/api/evaluation")[1]
    assert measured["held_out"] is None
    assert measured["tags"]["held_out_ignored"]
    status, reply = page.json("GET", "/api/export/evaluation.html")
    assert (status, "imprint evaluate" in reply["error"]) == (409, True)


def test_rows_without_labels_are_a_class_of_their_own(client, project, tmp_path):
    sets = {(0, 0): [], (1, 0): ["top"], (0, 1): ["bottom"], (1, 1): ["bottom", "top"]}
    rows = [
        (halves(*lit, [i, *lit]), labels)
        for lit, labels in sets.items()
        for i in range(12)
    ]
    images, labels = zip(*rows)
    model = Imprinter("raw", cache=False).fit((list(images), list(labels)))
    model.save(tmp_path / "m.imprint")
    status, reply = client.json(
        "POST", "/api/import?name=m.imprint", (tmp_path / "m.imprint").read_bytes()
    )
    assert status == 200, reply
    assert sorted(client.labels()) == ["bottom", "bottom + top", "no label", "top"]
    for label, lit in (("no%20label", (0, 0)), ("top", (1, 0))):
        assert (
            client.json("POST", f"/api/items?label={label}", png(halves(*lit, 50)))[0]
            == 201
        )
    again = exported_model(project, project.evaluated().result())
    assert again.classes_.tolist() == ["bottom", "top"]
    assert sorted(again.state.head.imprinted.labels) == [
        "",
        "bottom",
        "bottom|top",
        "top",
    ]
    assert again.predict([halves(0, 0, 50)]).tolist() == [[0, 0]]
    (answer,) = client.json("POST", "/api/predict?unknown=0", png(halves(0, 0, 50)))[1]
    assert (answer["label"], answer["labels"]) == ("no label", [])
    for label in ("bottom", "bottom + top", "top"):
        assert client.change(do="drop", label=label)[0] == 200
    assert (
        client.json("POST", "/api/predict", png(halves(0, 0, 50)))[1][0]["label"]
        == "no label"
    )


@pytest.mark.parametrize("label", ["a + b", "no label", "a:b"])
def test_labels_that_the_page_would_misread_are_refused(client, label, tmp_path):
    rows = [
        (halves(*lit, [i, *lit]), labels)
        for lit, labels in (((1, 0), [label]), ((0, 1), ["c"]))
        for i in range(5)
    ]
    images, labels = zip(*rows)
    Imprinter("raw", cache=False).fit((list(images), list(labels))).save(
        tmp_path / "m.imprint"
    )
    status, reply = client.json(
        "POST", "/api/import?name=m.imprint", (tmp_path / "m.imprint").read_bytes()
    )
    assert status == 400
    assert f"imprint forget m.imprint {label!r}." in reply["error"]
