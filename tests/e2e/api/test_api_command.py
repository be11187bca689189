"""`imprint api` as a process."""

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request

import numpy as np
import pytest

pytest.importorskip("starlette")
pytest.importorskip("prometheus_client")

from imprint import Imprinter

ENVIRONMENT = {**os.environ, "IMPRINT_PORT": "0"}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(24, 4)) + 4 * np.repeat(np.eye(2, 4), 12, axis=0)
    path = tmp_path_factory.mktemp("api") / "points.imprint"
    Imprinter(cache=False).fit((X.astype(np.float32), ["a"] * 12 + ["b"] * 12)).save(
        path
    )
    return path


def command(*arguments):
    return [sys.executable, "-m", "imprint", "api", *map(str, arguments)]


def started(*arguments):
    """A running server, and its port once it is ready."""
    server = subprocess.Popen(
        command(*arguments),
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    return server, int(server.stdout.readline().rpartition(":")[2])


def test_sigterm_finishes_the_requests_that_have_begun(model):
    server, port = started(model, "--log", "json")
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    body = json.dumps({"inputs": [[4, 0, 0, 0]] * 200})
    connection.putrequest("POST", "/predict")
    connection.putheader("content-type", "application/json")
    connection.putheader("content-length", str(len(body)))
    connection.endheaders(body[:100].encode())
    while "predict" not in _in_flight(port):
        time.sleep(0.02)
    server.send_signal(signal.SIGTERM)
    # the rest of the body arrives after the signal
    threading.Timer(0.3, lambda: connection.send(body[100:].encode())).start()
    answer = connection.getresponse()
    assert answer.status == 200
    assert len(json.loads(answer.read())["predictions"]) == 200
    connection.close()
    _, errors = server.communicate(timeout=20)
    assert server.returncode == 0
    assert '"status": 200' in errors
    assert "Traceback" not in errors


def _in_flight(port):
    """The request of the test has arrived as soon as the server answers another one."""
    return _read(port, "/openapi.json")


def test_a_file_that_is_replaced_is_loaded(model, tmp_path):
    path = tmp_path / "m.imprint"
    path.write_bytes(model.read_bytes())
    server, port = started(path)
    try:
        changed = Imprinter.load(path)
        changed.forget("b")
        changed.add(
            (
                np.full((12, 4), 9, np.float32) + np.eye(12, 4, dtype=np.float32),
                ["c"] * 12,
            )
        )
        changed.save(path)
        deadline = time.monotonic() + 15
        while "c" not in _classes(port):
            assert time.monotonic() < deadline
            time.sleep(0.1)
    finally:
        server.terminate()
        server.communicate(timeout=20)


def _classes(port):
    return json.loads(_read(port, "/models"))[0]["classes"]


def _read(port, path):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=20) as answer:
        return answer.read().decode()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nothing.imprint"], "nothing.imprint: no such file"),
        (["MODEL", "--host", "0.0.0.0"], "name a --token-file, or state --no-token"),
        (["MODEL", "--token-file", "nothing"], "Cannot read the token in nothing"),
        (
            ["MODEL", "--certificate", "a"],
            "--certificate and --key are needed together",
        ),
        (["MODEL", "MODEL"], "there is another model points"),
    ],
)
def test_invalid_use_is_one_sentence(model, arguments, sentence):
    words = [str(model) if word == "MODEL" else word for word in arguments]
    done = subprocess.run(
        command(*words), env=ENVIRONMENT, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1
