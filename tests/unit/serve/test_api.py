"""Adding, predicting, evaluating and exporting by the HTTP API."""

import asyncio
import io
import json
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from imprint import Imprinter
from imprint.serve import api
from imprint.serve.export import exported_model

from .conftest import PARTS, Client, image


@pytest.fixture
def labelled(client) -> Client:
    for i in range(12):
        client.add("top", i, 0)
        client.add("bottom", 100 + i, 1)
    return client


def test_an_image_is_learnt_before_the_next_query(client):
    assert client.json("POST", "/api/predict", image(0))[0] == 409
    client.add("top", 1, 0)
    client.add("bottom", 2, 1)
    status, (reply,) = client.json(
        "POST", "/api/predict?name=new.png&top=2", image(3, shade=1)
    )
    assert status == 200
    assert (reply["path"], reply["label"]) == ("new.png", "bottom")
    assert [one["label"] for one in reply["top"]] == ["bottom", "top"]
    assert reply["probability"] == reply["top"][0]["probability"] > 0.5
    again = client.add("top", 1, 0)
    assert again == (200, {"id": 1, "new": False, "revision": 2, "others": []})


def test_the_decisive_proxies_are_named_with_their_weights(labelled):
    (reply,) = labelled.json("POST", "/api/predict?why", image(999, shade=1))[1]
    assert reply["measure"] == "weight"
    best = reply["why"][0]
    assert best["label"] == "bottom"
    assert best["value"] > 0
    assert best["id"] is not None


def test_changes_are_made_at_once_and_undone(labelled):
    assert labelled.change(do="rename", label="top", to="upper")[0] == 200
    assert labelled.change(do="move", ids=[1, 3], label="bottom")[0] == 200
    assert labelled.labels() == {"upper": 10, "bottom": 14}
    assert labelled.change(do="merge", label="upper", into="bottom")[0] == 200
    assert labelled.labels() == {"bottom": 24}
    for _ in range(3):
        labelled.change(do="undo")
    assert labelled.labels() == {"top": 12, "bottom": 12}
    labelled.change(do="redo")
    assert list(labelled.labels()) == ["upper", "bottom"]
    for entry, words in (
        ({"do": "rename", "label": "uper", "to": "x"}, "Did you mean 'upper'"),
        ({"do": "move", "ids": [99], "label": "upper"}, "no item 99"),
        ({"do": "delete", "ids": []}, "at least one"),
        ({"do": "open", "model": "x"}, "must be one of"),
        ({"do": "move"}, "lacks"),
    ):
        status, reply = labelled.change(**entry)
        assert status == 400
        assert words in reply["error"]


def test_every_item_is_evaluated_by_a_model_that_was_fitted_without_it(
    labelled, project
):
    wrong = labelled.add("top", 500, 1)[1]["id"]
    project.evaluated().result()
    reply = labelled.json("GET", "/api/judge")[1]
    assert reply["ready"]
    assert reply["rows"] == 25
    assert reply["accuracy"] == pytest.approx(
        24 / 25, abs=0.01
    )  # extrapolated along the learning curve
    assert reply["interval"][0] < 24 / 25 < reply["interval"][1]
    assert reply["classes"] == ["top", "bottom"], (
        "in the order in which they were added"
    )
    assert reply["confusion"] == [[12, 1], [0, 12]]
    assert [one["id"] for one in reply["mistakes"]] == [wrong]
    assert [(one["id"], one["predicted"]) for one in reply["mislabelled"]] == [
        (wrong, "bottom")
    ]
    labelled.change(do="move", ids=[wrong], label="bottom")
    project.evaluated().result()
    assert labelled.json("GET", "/api/judge")[1]["accuracy"] == 1


def test_an_out_of_distribution_image_is_none_of_these(labelled, project):
    for i in range(30):
        labelled.add("top", 200 + i, 0)
    project.evaluated().result()
    (reply,) = labelled.json("POST", "/api/predict", image(1, shade=0))[1]
    assert reply["label"] == "top"
    noise = np.random.default_rng(5).integers(0, 255, (20, 24, 3), dtype=np.uint8)
    out = io.BytesIO()
    __import__("PIL.Image").Image.fromarray(np.rot90(noise) // 2 * 2).save(out, "PNG")
    (reply,) = labelled.json("POST", "/api/predict", out.getvalue())[1]
    assert reply["label"] is None
    assert reply["known"] < 0.05


def test_exported_models_agree_with_the_page(labelled, project, tmp_path):
    import onnxruntime

    labelled.change(do="rename", label="top", to="upper half")
    project.evaluated().result()
    for name in ("model.imprint", "model.onnx", "examples.zip"):
        status, headers, raw = labelled.ask("GET", f"/api/take/{name}")
        assert status == 200
        assert headers["content-disposition"] == f'attachment; filename="{name}"'
        (tmp_path / name).write_bytes(raw)
    with zipfile.ZipFile(tmp_path / "examples.zip") as z:
        z.extractall(tmp_path / "photos")
    files = sorted((tmp_path / "photos").rglob("*.png"))
    assert len(files) == 24
    model = Imprinter.load(tmp_path / "model.imprint")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    classes = json.loads(session.get_modelmeta().custom_metadata_map["imprint.export"])[
        "classes"
    ]
    pixels = np.stack(
        [
            model.backbone.prepare(
                np.array(__import__("PIL.Image").Image.open(f).convert("RGB"))
            )
            for f in files
        ]
    )
    by_graph = session.run(["probabilities"], {"images": pixels})[0]
    by_file = model.predict_proba(files)
    for file, graph, own in zip(files, by_graph, by_file):
        (reply,) = labelled.json("POST", "/api/predict?top=2", file.read_bytes())[1]
        page = {one["label"]: one["probability"] for one in reply["top"]}
        assert np.allclose([page[k] for k in classes], graph, atol=1e-4)
        assert np.allclose([page[k] for k in model.classes_.tolist()], own, atol=1e-4)
    fresh = Imprinter("raw", cache=False, **PARTS).fit(str(tmp_path / "photos"))
    assert np.array_equal(
        fresh.state.head.proxies.weights, project.model().head.proxies.weights
    )


def test_the_report_shows_the_evaluation_on_one_page(client):
    assert client.ask("GET", "/api/take/evaluation.html")[0] == 409
    for i in range(4):
        client.add("top", i, 0)
        client.add("bottom", 100 + i, 1)
    status, headers, raw = client.ask("GET", "/api/take/evaluation.html")
    assert status == 200
    assert headers["content-disposition"].startswith("attachment")
    assert b"8 of 8 correct" in raw
    assert raw.count(b"data:image/png;base64,") == 8


def test_a_model_is_imported_extended_and_removed_by_undo(labelled, project, tmp_path):
    raw = labelled.ask("GET", "/api/take/model.imprint")[2]
    labelled.change(do="clear")
    assert labelled.json("POST", "/api/open?name=a.imprint", raw)[0] == 200
    assert labelled.labels() == {"bottom": 0, "top": 0}
    (reply,) = labelled.json("POST", "/api/predict?why", image(999, shade=1))[1]
    assert reply["label"] == "bottom"
    assert reply["why"][0]["name"].startswith("bottom/")
    labelled.add("left", 7, 0, size=(24, 20))
    labelled.add("top", 300, 0)
    labelled.change(do="rename", label="bottom", to="low")
    (reply,) = labelled.json("POST", "/api/predict", image(999, shade=1))[1]
    assert reply["label"] == "low"
    assert sorted(
        exported_model(project, project.evaluated().result()).classes_.tolist()
    ) == ["left", "low", "top"]
    assert (
        "without its examples"
        in labelled.change(do="merge", label="low", into="top")[1]["error"]
    )
    for _ in range(5):
        labelled.change(do="undo")
    assert labelled.labels() == {"top": 12, "bottom": 12}
    assert (
        "not an imprint model"
        in labelled.json("POST", "/api/open?name=b.imprint", b"something else")[1][
            "error"
        ]
    )


def test_a_hundred_predictions_at_once_are_all_answered(labelled):
    with ThreadPoolExecutor(100) as pool:
        answers = list(
            pool.map(
                lambda i: labelled.json(
                    "POST", "/api/predict", image(1000 + i, shade=i % 2)
                ),
                range(100),
            )
        )
    assert [status for status, _ in answers] == [200] * 100
    assert [reply[0]["label"] for _, reply in answers] == ["top", "bottom"] * 50


def test_open_pages_are_notified_of_changes(labelled):
    import http.client

    connection = http.client.HTTPConnection("127.0.0.1", labelled.port, timeout=20)
    connection.request("GET", "/api/events", headers={"Authorization": "Bearer secret"})
    stream = connection.getresponse()
    first = json.loads(stream.readline()[6:])
    stream.readline()
    timer = threading.Timer(0.2, lambda: labelled.change(do="create", label="third"))
    timer.start()
    while (news := json.loads(stream.readline()[6:]))["revision"] == first["revision"]:
        stream.readline()
    assert news["revision"] == first["revision"] + 1
    timer.join()
    connection.close()


def test_an_event_follows_an_alarm_and_every_heartbeat(project, monkeypatch):
    monkeypatch.setattr(api, "HEARTBEAT", 0.1)
    project.drift = SimpleNamespace(monitor=SimpleNamespace(alarm=None))

    async def collect():
        stream = api.events(project)
        received = [await anext(stream), await anext(stream)]
        project.drift.monitor.alarm = "these inputs look unlike the training data"
        project.news.tell()
        while received[-1] == received[0]:
            received.append(await anext(stream))
        return [json.loads(event.removeprefix("data: "))["alarm"] for event in received]

    alarms = asyncio.run(asyncio.wait_for(collect(), 20))
    assert alarms[:2] == [None, None]
    assert alarms[-1] == project.drift.monitor.alarm


@pytest.mark.parametrize(
    "body",
    [
        b"[1]",
        b"{",
        b"[" * 100_000,
        b'{"do": "rename", "label": "\\ud800", "to": "x"}',  # half of a character, which UTF-8 cannot encode
        b'{"do": "describe", "label": "x", "description": "\\udfff"}',
    ],
)
def test_a_body_that_is_not_a_json_object_of_unicode_texts_is_refused(client, body):
    status, reply = client.json("POST", "/api/change", body)
    assert (status, reply["error"]) == (400, "The request must carry a JSON object.")


def test_a_class_that_cannot_name_a_folder_is_refused_with_what_to_do(client, tmp_path):
    images = [np.full((8, 8), shade, np.uint8) for shade in (0, 9, 200, 255)]
    model = Imprinter("raw", cache=False).fit(
        (images, ["../../x", "../../x", "bright", "bright"])
    )
    model.save(tmp_path / "m.imprint")
    status, reply = client.json(
        "POST", "/api/import?name=m.imprint", (tmp_path / "m.imprint").read_bytes()
    )
    assert status == 400
    assert "imprint forget m.imprint '../../x'" in reply["error"]


def test_a_model_that_keeps_pre_trained_classes_is_refused_with_what_to_do(
    client, tmp_path
):
    images = [
        np.full((32, 32, 3), shade, np.uint8) for shade in (0, 9, 18, 237, 246, 255)
    ]
    model = Imprinter("tinynet", keep_head=True, cache=False).fit(
        (images, ["night"] * 3 + ["snow"] * 3)
    )
    model.save(tmp_path / "m.imprint")
    status, reply = client.json(
        "POST", "/api/import?name=m.imprint", (tmp_path / "m.imprint").read_bytes()
    )
    assert status == 400
    assert "use imprint predict, or fit it without --keep-head" in reply["error"]


def test_the_state_names_the_changes_that_undo_and_redo_are_about(labelled):
    def state():
        return labelled.json("GET", "/api/state")[1]

    assert state()["redo"] is None
    newest = state()["undo"]
    assert newest["text"] == "1 image added to bottom"
    labelled.change(do="move", ids=[1, 3], label="bottom")
    assert state()["undo"]["text"] == "2 images moved to bottom"
    assert labelled.change(do="undo", change=newest["change"])[0] == 200
    assert labelled.labels() == {"top": 10, "bottom": 13}
    assert state()["redo"] == newest
    assert labelled.change(do="redo", change=newest["change"])[0] == 200
    assert labelled.labels() == {"top": 10, "bottom": 14}
    status, reply = labelled.change(do="undo", change=99)
    assert status == 400
    assert "no change 99" in reply["error"]


def test_an_input_is_explained_by_the_places_that_speak_for_its_class(labelled):
    pixels = np.zeros((8, 8), np.uint8)
    pixels[:4] = 255
    raw = io.BytesIO()
    Image.fromarray(pixels).save(raw, "png")
    status, reply = labelled.json("POST", "/api/explain?name=a.png", raw.getvalue())
    assert status == 200
    assert {reply["label"], reply["against"]} == {"top", "bottom"}
    assert reply["overlay"].startswith("data:image/png;base64,")
    assert reply["parts"] == []
    assert reply["method"] == "each part left out"
