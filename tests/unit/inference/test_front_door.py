"""Tokens, names, request ids, metrics and the access log."""

import json
import re

import pytest

from imprint.core.errors import FileError
from imprint.inference.server import read_token

from .conftest import image, png, serving

TOKEN = "0123456789abcdef"
PATH = "/models/shades/predict"


@pytest.fixture(scope="module")
def guarded(model_files):
    with serving(model_files, token=TOKEN) as client:
        yield client


def test_all_but_health_needs_the_token(guarded):
    for path in ("/models", "/metrics", "/v2", "/v2/models/shades", "/nothing"):
        status, headers, _ = guarded.ask("GET", path)
        assert status == 401
        assert headers["www-authenticate"] == "Bearer"
        assert guarded.ask("GET", path, Authorization=f"Bearer {TOKEN}x")[0] == 401
        assert guarded.ask("GET", path, Authorization=f"Bearer {TOKEN}")[0] in (
            200,
            404,
        )
    for path in ("/v2/health/live", "/v2/health/ready", "/openapi.json"):
        assert guarded.ask("GET", path)[0] == 200


def test_a_token_allows_any_name_and_web_pages(guarded):
    headers = {
        "Authorization": f"Bearer {TOKEN}",
        "Host": "models.example",
        "Origin": "https://a.example",
    }
    assert guarded.ask("GET", "/models", **headers)[0] == 200


@pytest.mark.parametrize(
    "headers", [{"Host": "evil.example"}, {"Origin": "http://evil.example"}]
)
def test_without_a_token_pages_of_other_sites_are_refused(client, headers):
    status, _, raw = client.ask("GET", "/models", **headers)
    assert status == 403
    assert "Without --token-file" in json.loads(raw)["error"]


@pytest.mark.parametrize("content", ["short", "with a space in it, long", "é" * 20])
def test_a_file_without_a_usable_token_is_refused(tmp_path, content):
    path = tmp_path / "token"
    path.write_text(content, "utf-8")
    with pytest.raises(FileError, match="token"):
        read_token(path)
    path.write_text(TOKEN + "\n")
    assert read_token(path) == TOKEN


def test_every_answer_has_a_request_id_and_the_version_of_the_model(client):
    status, headers, _ = client.ask("POST", PATH, png(image(0)), X_Request_Id="abc-1")
    assert status == 200
    assert headers["x-request-id"] == "abc-1"
    assert headers["x-model-version"] == client.service.repository["shades"].version
    other = client.ask("GET", "/models", X_Request_Id="not one\tid")[1]["x-request-id"]
    assert len(other) == 16


def test_the_log_has_one_json_object_per_request(model_files, capsys):
    with serving(model_files, log="json") as client:
        client.ask("POST", PATH, png(image(0)), X_Request_Id="abc-2")
        client.ask("POST", PATH, b"no image", X_Request_Id="abc-3")
    first, second = map(json.loads, capsys.readouterr().err.splitlines())
    assert (first["id"], first["status"], first["model"], first["inputs"]) == (
        "abc-2",
        200,
        "shades",
        1,
    )
    assert first["ms"] >= first["network_ms"] > 0
    assert (second["id"], second["status"]) == ("abc-3", 400)
    assert "not an image" in second["error"]


def test_a_line_of_the_text_log_cannot_be_forged(model_files, capsys):
    with serving(model_files, log="text") as client:
        client.ask("GET", "/a%0A%0D%1B[2J/b%E2%80%A8c")
    (line,) = capsys.readouterr().err.splitlines()
    assert "\x1b" not in line
    assert " 404 " in line


def test_metrics_count_requests_classes_and_unknown_inputs(model_files):
    with serving(model_files) as client:
        for seed in range(3):
            client.ask("POST", PATH, png(image(seed, 0)))
        client.ask(
            "POST",
            "/models/points/predict?unknown=0.5",
            '{"inputs": [[-400,-400,400,900]]}',
            content_type="application/json",
        )
        client.ask("POST", PATH, b"no image")
        status, headers, raw = client.ask("GET", "/metrics")
    assert status == 200
    assert headers["content-type"].startswith("text/plain")
    lines = raw.decode().splitlines()
    for line in (
        'imprint_requests_total{endpoint="predict",model="shades",status="200"} 3.0',
        'imprint_requests_total{endpoint="predict",model="shades",status="400"} 1.0',
        'imprint_predictions_total{label="top",model="shades"} 3.0',
        'imprint_predictions_total{label="(none of these)",model="points"} 1.0',
        "imprint_queue_inputs 0.0",
    ):
        assert line in lines
    assert any(
        line.startswith('imprint_drift_evidence{model="shades"}') for line in lines
    )


def test_all_metrics_are_described(client):
    client.ask("POST", PATH, png(image(1)))
    lines = client.ask("GET", "/metrics")[2].decode().splitlines()
    described = {line.split()[2]: line for line in lines if line.startswith("# HELP")}
    values = {re.split("[{ ]", line)[0] for line in lines if not line.startswith("#")}
    for name in (
        *("imprint_requests_total", "imprint_request_seconds_bucket"),
        *("imprint_wait_seconds_bucket", "imprint_batch_inputs_bucket"),
        *("imprint_queue_inputs", "imprint_predictions_total"),
        *("imprint_unknown_total", "imprint_drift_evidence", "imprint_model_info"),
    ):
        assert name in values
    # it has no value before a file is replaced
    assert "imprint_model_reloads_total" in described
    assert all(len(line.split()) > 4 for line in described.values())
