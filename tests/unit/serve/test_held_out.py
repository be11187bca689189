"""Held-out items are not fitted; the model is evaluated on them."""

import io
import zipfile

import numpy as np
import pytest

from .conftest import image


@pytest.fixture
def labelled(client):
    for label, shade in (("top", 0), ("bottom", 1)):
        for i in range(8):
            client.add(label, 100 * shade + i, shade)
    return client


def hold(client, label, seed, shade):
    path = f"/api/items?label={label}&name={seed}.png&held_out=1"
    return client.json("POST", path, image(seed, shade=shade))[1]["id"]


def test_held_out_items_are_evaluated_and_never_fitted(labelled, project):
    project.evaluated().result()
    head, before = project.model().head, labelled.json("GET", "/api/evaluation")[1]
    assert before["held_out"] is None
    for i in range(4):
        hold(labelled, "top", 50 + i, 0)
    wrong = hold(labelled, "bottom", 60, 0)
    project.evaluated().result()
    np.testing.assert_array_equal(
        project.model().head.proxies.weights, head.proxies.weights
    )
    reply = labelled.json("GET", "/api/evaluation")[1]
    assert (reply["rows"], reply["accuracy"]) == (before["rows"], before["accuracy"])
    held_out = reply["held_out"]
    assert (held_out["rows"], held_out["accuracy"]) == (5, 0.8)
    assert held_out["interval"][0] < 0.8 < held_out["interval"][1]
    assert (held_out["classes"], held_out["confusion"]) == (
        ["top", "bottom"],
        [[4, 0], [1, 0]],
    )
    assert [(one["id"], one["predicted"]) for one in held_out["mistakes"]] == [
        (wrong, "top")
    ]
    assert b"Held-out examples" in labelled.ask("GET", "/api/export/evaluation.html")[2]


def test_items_are_held_out_and_fitted_again_by_a_change_that_can_be_undone(
    labelled, project
):
    def fitted():
        return round(float(project.model().head.proxies.mass.sum()))

    assert fitted() == 16
    assert labelled.change(do="hold", ids=[1, 2])[0] == 200
    assert [i.id for i in project.history.labelled.items.values() if i.held_out] == [
        1,
        2,
    ]
    assert fitted() == 14
    labelled.change(do="undo")
    assert not any(i.held_out for i in project.history.labelled.items.values())
    labelled.change(do="redo")
    labelled.change(do="hold", ids=[1, 2], held_out=False)
    assert fitted() == 16


def test_a_class_with_held_out_items_only_is_not_in_the_model(labelled, project):
    hold(labelled, "left", 70, 0)
    project.evaluated().result()
    assert "left" not in project.model().head.classes.tolist()
    reply = labelled.json("GET", "/api/evaluation")[1]
    assert reply["held_out"]["classes"] == ["top", "left"]
    assert {"kind": "few", "label": "left", "count": 0} in reply["advice"]


def test_the_archive_has_train_and_test_as_fit_reads_them(labelled):
    hold(labelled, "top", 50, 0)
    with zipfile.ZipFile(
        io.BytesIO(labelled.ask("GET", "/api/export/examples.zip")[2])
    ) as z:
        folders = [name.rsplit("/", 1)[0] for name in z.namelist()]
    assert {f: folders.count(f) for f in folders} == {
        "train/top": 8,
        "test/top": 1,
        "train/bottom": 8,
    }
