"""The plain endpoints."""

import base64
import json

import numpy as np
import pytest

from imprint import Imprinter
from imprint.imprinter.predictor import predictions
from imprint.inference.plain import multipart_inputs

from .conftest import image, png

IMAGES = "/models/shades/predict"


def form(*parts, boundary="----x"):
    """A multipart form of (disposition, content) pairs, and its media type."""
    body = b""
    for disposition, content in parts:
        head = f"--{boundary}\r\nContent-Disposition: form-data; {disposition}\r\n\r\n"
        body += head.encode() + content + b"\r\n"
    return (
        body + f"--{boundary}--\r\n".encode(),
        f"multipart/form-data; boundary={boundary}",
    )


def test_an_image_has_the_answer_of_the_library(client, model_files):
    model = Imprinter.load(model_files["shades"], cache=False)
    pixels = image(99, 1)
    (expected,) = predictions(
        model.state.head, model.look([pixels]), top=2, unknown=0.05
    )
    status, answer = client.json(
        "POST", f"{IMAGES}?top=2&unknown=0.05&name=a.png", png(pixels)
    )
    assert status == 200
    (prediction,) = answer["predictions"]
    assert prediction == {**expected, "path": "a.png"}
    assert answer["version"] == client.service.repository["shades"].version


def test_several_files_of_a_form_have_their_names(client):
    body, media_type = form(
        ('name="file"; filename="upper.png"', png(image(1, 0))),
        ('name="file"; filename="lower.png"', png(image(2, 1))),
    )
    status, answer = client.json("POST", IMAGES, body, content_type=media_type)
    assert status == 200
    assert [(one["path"], one["label"]) for one in answer["predictions"]] == [
        ("upper.png", "top"),
        ("lower.png", "bottom"),
    ]


def test_files_may_be_base64_in_json(client):
    encoded = base64.b64encode(png(image(3, 0))).decode()
    status, answer = client.json("POST", IMAGES, {"inputs": [encoded, encoded]})
    assert status == 200
    assert [one["label"] for one in answer["predictions"]] == ["top", "top"]


def test_embeddings_in_json(client):
    rows = (4 * np.eye(3, 4)).tolist()
    status, answer = client.json("POST", "/models/points/predict", {"inputs": rows})
    assert status == 200
    assert [one["label"] for one in answer["predictions"]] == [0, 1, 2]


def test_an_unknown_input_has_no_label(client):
    odd = [[-400.0, -400.0, 400.0, 900.0]]
    status, answer = client.json(
        "POST", "/models/points/predict?unknown=0.5", {"inputs": odd}
    )
    assert status == 200
    assert answer["predictions"][0]["label"] is None


def test_models_and_their_cards(client):
    status, models = client.json("GET", "/models")
    assert status == 200
    assert [model["name"] for model in models] == ["shades", "points"]
    assert all(model["sha256"].startswith(model["version"]) for model in models)
    status, headers, card = client.ask("GET", "/models/points/card")
    assert status == 200
    assert headers["content-type"].startswith("text/markdown")
    assert card.startswith(b"---") or b"# Model card" in card


@pytest.mark.parametrize(
    ("path", "body", "media_type", "status", "sentence"),
    [
        (IMAGES, b"no image", "image/png", 400, "not an image"),
        (IMAGES, b"", "image/png", 400, "empty"),
        (IMAGES, b"{", "application/json", 400, "JSON object"),
        (IMAGES, b'{"inputs": []}', "application/json", 400, "list of inputs"),
        (IMAGES, b'{"inputs": [1]}', "application/json", 400, "base64"),
        (IMAGES, b'{"inputs": ["*"]}', "application/json", 400, "base64"),
        (IMAGES, b"text", "text/plain", 415, "reads images"),
        (IMAGES, b"--x", "multipart/form-data", 400, "no boundary"),
        (
            IMAGES,
            b"--x\r\n",
            "multipart/form-data; boundary=x",
            400,
            "closing boundary",
        ),
        (f"{IMAGES}?top=0", b"", "image/png", 400, "top must be an integer"),
        (f"{IMAGES}?unknown=nan", b"", "image/png", 400, "unknown must be a number"),
        (f"{IMAGES}?level=7", png(image(0)), "image/png", 400, "level"),
        ("/models/points/predict", b"x", "text/plain", 415, "reads embeddings"),
        (
            "/models/points/predict",
            b'{"inputs": [[1, 2]]}',
            "application/json",
            400,
            "columns",
        ),
        (
            "/models/points/predict",
            b'{"inputs": [["a"]]}',
            "application/json",
            400,
            "numbers",
        ),
        (
            "/models/points/predict",
            b'{"inputs": [[NaN,1,1,1]]}',
            "application/json",
            400,
            "finite",
        ),
        ("/models/nothing/predict", b"", "image/png", 404, "no model 'nothing'"),
        ("/predict", b"", "image/png", 404, "Name a model"),
    ],
)
def test_invalid_requests_are_refused_in_one_sentence(
    client, path, body, media_type, status, sentence
):
    actual, answer = client.json("POST", path, body, content_type=media_type)
    assert actual == status, answer
    assert sentence in answer["error"]
    assert answer["error"].endswith(".")


def test_a_form_is_split_at_its_boundary_only():
    content = b"\r\n--y\r\n\r\n\x00--x"
    body, media_type = form(
        ('name="file"; filename="a b.bin"', content),
        ('name="t"', b"text"),
        boundary="x",
    )
    assert multipart_inputs(media_type, body) == [
        ("a b.bin", content, False),
        ("t", b"text", True),
    ]


def test_other_methods_are_refused(client):
    status, headers, raw = client.ask("GET", IMAGES)
    assert status == 405
    assert headers["allow"] == "POST"
    assert json.loads(raw)["error"] == "This address does not accept that method."
