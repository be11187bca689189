"""A server in this process, on a free port, and a client with its token."""

import http.client
import io
import json
import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("starlette")
import uvicorn

from imprint import backbones
from imprint.http.listening import listen, server_config
from imprint.method import Method
from imprint.serve.project import Project
from imprint.serve.projects import Projects
from imprint.serve.server import application

PARTS = {
    "norm_pre": "l2",
    "generator": "kmeans(k=3)",
    "norm_post": "none",
    "norm_inf": "l2",
    "aggregator": "kernel",
}
METHOD = Method.of(**PARTS)


def image(seed, kind="png", shade=0, size=(20, 24)):
    """An image that is bright at the top (shade 0) or at the bottom (shade 1), with individual noise."""
    rng = np.random.default_rng(seed)
    pixels = rng.integers(0, 60, (*size, 3), dtype=np.uint8)
    half = slice(0, size[0] // 2) if shade == 0 else slice(size[0] // 2, None)
    pixels[half] += 150
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, kind)
    return out.getvalue()


class Client:
    """An HTTP client; `headers` replace the default headers, or remove them if None."""

    def __init__(self, port, token):
        self.port, self.token = port, token

    def ask(self, method, path, body=None, **headers):
        usual = {"Authorization": f"Bearer {self.token}"}
        given = {k: v for k, v in {**usual, **headers}.items() if v is not None}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            content = json.dumps(body) if isinstance(body, dict) else body
            connection.request(
                method,
                path,
                content,
                given,
                encode_chunked="Transfer-Encoding" in given,
            )
            answer = connection.getresponse()
            return answer.status, dict(answer.headers), answer.read()
        finally:
            connection.close()

    def json(self, method, path, body=None, **headers):
        status, _, raw = self.ask(method, path, body, **headers)
        return status, json.loads(raw)

    def add(self, label, seed, shade=0, **more):
        return self.json(
            "POST",
            f"/api/items?label={label}&name={seed}.png",
            image(seed, shade=shade, **more),
        )

    def change(self, **entry):
        return self.json("POST", "/api/change", entry)

    def labels(self):
        return {
            one["label"]: one["items"] for one in self.json("GET", "/api/classes")[1]
        }


@pytest.fixture
def project(tmp_path):
    room = Project(tmp_path / "room", "raw", backbones.load("raw"), METHOD)
    yield room
    room.close()


@contextmanager
def serving(project, label_studio=False):
    """Serve a project on a free port."""
    listening = listen("127.0.0.1", 0)
    port = listening.getsockname()[1]
    server = uvicorn.Server(
        server_config(application(Projects(project, label_studio), "secret", port))
    )
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield port
    server.should_exit = True
    thread.join()


@pytest.fixture
def client(project):
    with serving(project) as port:
        yield Client(port, "secret")
