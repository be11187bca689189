"""The Open Inference Protocol."""

import base64
import json

import numpy as np
import pytest

from .conftest import image, png

INFER = "/v2/models/shades/infer"
ROWS = 4 * np.eye(3, 4)


def tensor(data, datatype="FP64", shape=(3, 4), **more):
    return {
        "inputs": [
            {"name": "inputs", "datatype": datatype, "shape": list(shape), "data": data}
        ],
        **more,
    }


def test_health_and_metadata(client):
    assert client.json("GET", "/v2/health/live") == (200, {})
    assert client.json("GET", "/v2/health/ready") == (200, {})
    assert client.json("GET", "/v2/models/shades/ready") == (200, {})
    status, metadata = client.json("GET", "/v2/models/points")
    assert status == 200
    assert metadata["inputs"] == [
        {"name": "inputs", "datatype": "FP32", "shape": [-1, 4]}
    ]
    assert [output["name"] for output in metadata["outputs"]] == [
        "label",
        "probability",
        "known",
        "probabilities",
    ]
    assert metadata["parameters"]["classes"] == [0, 1, 2]
    (version,) = metadata["versions"]
    assert client.json("GET", f"/v2/models/points/versions/{version}")[1] == metadata
    status, answer = client.json("GET", "/v2/models/points/versions/0")
    assert status == 404
    assert version in answer["error"]


def test_embeddings_as_json(client):
    status, answer = client.json(
        "POST", "/v2/models/points/infer", tensor(ROWS.ravel().tolist(), id="7")
    )
    assert status == 200
    assert answer["id"] == "7"
    outputs = {output["name"]: output for output in answer["outputs"]}
    assert outputs["label"]["data"] == ["0", "1", "2"]
    assert outputs["probabilities"]["shape"] == [3, 3]
    P = np.array(outputs["probabilities"]["data"]).reshape(3, 3)
    np.testing.assert_allclose(P.sum(axis=1), 1, rtol=1e-6)
    np.testing.assert_allclose(
        P.max(axis=1), outputs["probability"]["data"], rtol=1e-12
    )


def test_nested_data_and_chosen_outputs(client):
    request = tensor(ROWS.tolist(), outputs=[{"name": "label"}])
    status, answer = client.json("POST", "/v2/models/points/infer", request)
    assert status == 200
    assert [output["name"] for output in answer["outputs"]] == ["label"]


def test_files_as_base64_and_pixels_as_numbers_have_the_same_answer(client):
    pixels = image(5, 1)
    files = tensor([base64.b64encode(png(pixels)).decode()], "BYTES", (1,))
    numbers = tensor(pixels.ravel().tolist(), "UINT8", (1, *pixels.shape))
    by_file = client.json("POST", INFER, files)
    assert by_file[0] == 200
    assert by_file == client.json("POST", INFER, numbers)


def test_binary_tensors_in_and_out(client):
    raw = ROWS.astype("<f4").tobytes()
    header = {
        "inputs": [
            {
                "name": "inputs",
                "datatype": "FP32",
                "shape": [3, 4],
                "parameters": {"binary_data_size": len(raw)},
            }
        ],
        "outputs": [
            {"name": "label", "parameters": {"binary_data": True}},
            {"name": "probability"},
        ],
    }
    head = json.dumps(header).encode()
    status, headers, body = client.ask(
        "POST",
        "/v2/models/points/infer",
        head + raw,
        Inference_Header_Content_Length=str(len(head)),
    )
    assert status == 200
    length = int(headers["inference-header-content-length"])
    label, probability = json.loads(body[:length])["outputs"]
    assert label["parameters"]["binary_data_size"] == len(body) - length
    assert body[length:] == b"".join(
        b"\1\0\0\0" + digit for digit in (b"0", b"1", b"2")
    )
    assert len(probability["data"]) == 3


@pytest.mark.parametrize(
    ("request_", "sentence"),
    [
        ({}, "list of input tensors"),
        ({"inputs": [{}]}, "with a name"),
        (tensor([1], "FP128"), "datatype="),
        (tensor([1], "FP32", (2,)), "1 elements do not have the shape [2]"),
        (tensor([1.5] * 12, "INT32"), "not INT32"),
        (tensor([256] * 12, "UINT8"), "not UINT8"),
        (tensor(["a"] * 12), "not FP64"),
        (tensor([[1], [1, 2]], "FP32", (3,)), "must be numbers"),
        (tensor([1], "FP32", (True,)), "shape must be a list"),
        (tensor([1.0] * 8, "FP64", (2, 4), id=3), "id: it must be a JSON string"),
        (
            tensor([1.0] * 4, "FP64", (1, 4), outputs=[{"name": "colour"}]),
            "Unknown output",
        ),
        (tensor([1.0] * 4, "FP64", (1, 4), parameters={"unknown": 2}), "from 0 to 1"),
        (tensor([1.0] * 3, "FP64", (1, 3)), "3 columns"),
        (tensor(["x"], "BYTES", (1,)), "base64"),
    ],
)
def test_invalid_tensors_are_refused_in_one_sentence(client, request_, sentence):
    status, answer = client.json("POST", "/v2/models/points/infer", request_)
    assert status == 400
    assert sentence in answer["error"]


def test_a_header_length_beyond_the_body_is_refused(client):
    status, _, raw = client.ask(
        "POST", INFER, b"{}", Inference_Header_Content_Length="3"
    )
    assert status == 400
    assert "number of bytes of the JSON part" in json.loads(raw)["error"]


def test_tritons_own_client(client):
    triton = pytest.importorskip("tritonclient.http", reason="needs tritonclient[http]")
    with triton.InferenceServerClient(f"127.0.0.1:{client.port}") as server:
        assert server.is_server_live()
        assert server.is_server_ready()
        assert server.is_model_ready("shades")
        assert server.get_model_metadata("shades")["platform"] == "imprint"
        assert {model["name"] for model in server.get_model_repository_index()} == {
            "shades",
            "points",
        }
        files = triton.InferInput("inputs", [2], "BYTES")
        contents = [png(image(1, 0)), png(image(2, 1))]
        files.set_data_from_numpy(np.array(contents, dtype=object))
        outputs = [
            triton.InferRequestedOutput("label"),
            triton.InferRequestedOutput("probabilities", binary_data=False),
        ]
        result = server.infer("shades", [files], outputs=outputs, request_id="a")
        assert result.as_numpy("label").tolist() == [b"top", b"bottom"]
        assert result.as_numpy("probabilities").shape == (2, 2)
        points = triton.InferInput("inputs", [3, 4], "FP32")
        points.set_data_from_numpy(ROWS.astype(np.float32), binary_data=False)
        result = server.infer("points", [points])
        assert result.as_numpy("label").tolist() == [b"0", b"1", b"2"]
