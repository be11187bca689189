"""`imprint serve` in a new process, started as a user does it."""

import http.client
import json
import os
import subprocess
import sys
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")


class Server:
    """A running server: its process, its address, and requests with its token."""

    def __init__(self, process, address):
        self.process, self.address = process, address
        parts = urlsplit(address)
        self.port, self.token = parts.port, parts.query.removeprefix("token=")

    def ask(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(
                method, path, body, {"Authorization": f"Bearer {self.token}"}
            )
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def json(self, method, path, body=None):
        status, raw = self.ask(method, path, body)
        assert status < 300, raw
        return json.loads(raw)


@pytest.fixture
def serving(tmp_path):
    """Start servers on a folder; they are stopped after the test."""

    @contextmanager
    def start(*words, folder=tmp_path / "room"):
        command = [
            sys.executable,
            "-m",
            "imprint",
            "serve",
            "--no-open",
            "--port",
            "0",
            "--folder",
            str(folder),
            *map(str, words),
        ]
        env = {
            **os.environ,
            "IMPRINT_HOME": str(tmp_path / "home"),
            "PYTHONUNBUFFERED": "1",
        }
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env
        ) as process:
            try:
                address = process.stdout.readline().strip()
                assert address.startswith("http"), process.stderr.read()
                yield Server(process, address)
            finally:
                process.kill()

    return start
