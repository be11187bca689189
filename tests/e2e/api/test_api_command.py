"""`imprint api` as a process."""

import hashlib
import http.client
import json
import os
import shutil
import signal
import ssl
import subprocess
import sys
import threading
import time
import urllib.request
from itertools import groupby

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


def test_rolling_forward_and_back_under_load_costs_no_request(model, tmp_path):
    path, previous = tmp_path / "m.imprint", tmp_path / "previous.imprint"
    path.write_bytes(model.read_bytes())
    previous.write_bytes(model.read_bytes())
    changed = Imprinter.load(path)
    changed.forget("b")
    rows = np.full((12, 4), 9, np.float32) + np.eye(12, 4, dtype=np.float32)
    changed.add((rows, ["c"] * 12))
    server, port = started(path, "--log", "none")
    stop = threading.Event()
    clients = [Client(port, stop) for _ in range(4)]
    try:
        for client in clients:
            client.start()
        changed.save(path)
        _wait_for("c", port)
        os.replace(previous, path)
        _wait_for("b", port)
    finally:
        stop.set()
        for client in clients:
            client.join()
        server.terminate()
        _, errors = server.communicate(timeout=20)
    assert server.returncode == 0, errors
    first = hashlib.sha256(model.read_bytes()).hexdigest()[:12]
    seen = []
    for client in clients:
        assert {status for status, _ in client.answers} == {200}
        versions = [version for _, version in client.answers]
        seen.append([version for version, _ in groupby(versions)])
    forward_and_back = max(seen, key=len)
    assert len(forward_and_back) == 3
    assert forward_and_back[0] == forward_and_back[2] == first


class Client(threading.Thread):
    """Asks on one connection until it is told to stop, and keeps the answers."""

    def __init__(self, port, stop):
        super().__init__()
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self.stop = stop
        self.answers = []

    def run(self):
        body = json.dumps({"inputs": [[4, 0, 0, 0]]})
        headers = {"content-type": "application/json"}
        while not self.stop.is_set():
            self.connection.request("POST", "/predict", body, headers)
            answer = self.connection.getresponse()
            content = json.loads(answer.read())
            self.answers.append((answer.status, content.get("version")))
        self.connection.close()


@pytest.fixture
def certificate(tmp_path):
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl")
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes"]
    command += ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    command += ["-days", "2", "-out", "certificate.pem", "-keyout", "key.pem"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    return tmp_path / "certificate.pem", tmp_path / "key.pem"


def test_tls_and_a_token(model, certificate, tmp_path):
    token = tmp_path / "token"
    token.write_text("0123456789abcdef\n")
    pem, key = certificate
    options = ["--certificate", pem, "--key", key, "--token-file", token]
    server, port = started(model, *options)
    trusted = ssl.create_default_context(cafile=pem)
    statuses = []
    try:
        for stated in ("", "Bearer 0123456789abcdeX", "Bearer 0123456789abcdef"):
            connection = http.client.HTTPSConnection(
                "localhost", port, timeout=20, context=trusted
            )
            connection.request("GET", "/models", headers={"authorization": stated})
            statuses.append(connection.getresponse().status)
            connection.close()
    finally:
        server.terminate()
        server.communicate(timeout=20)
    assert statuses == [401, 401, 200]


def _wait_for(label, port):
    """Until the model of a server has a class, and the clients have met it."""
    deadline = time.monotonic() + 30
    while label not in _classes(port):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    time.sleep(0.3)


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
