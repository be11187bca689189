"""An inference server in this process, and a client."""

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
pytest.importorskip("prometheus_client")
import uvicorn

from imprint import Imprinter
from imprint.http.listening import listen, server_config
from imprint.inference.metrics import Metrics
from imprint.inference.records import AccessLog
from imprint.inference.repository import ModelRepository
from imprint.inference.server import application
from imprint.inference.service import Service


def image(seed, shade=0):
    """An image that is bright at the top (shade 0) or at the bottom (shade 1)."""
    pixels = np.random.default_rng(seed).integers(0, 60, (20, 24, 3), dtype=np.uint8)
    half = slice(0, 10) if shade == 0 else slice(10, 20)
    pixels[half] += 150
    return pixels


def png(pixels):
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "png")
    return out.getvalue()


def image_model(rows=12, labels=("bottom", "top")):
    """A calibrated model of images whose embeddings are their pixels."""
    images = [image(seed, shade) for shade in (1, 0) for seed in range(rows)]
    y = [label for label in labels for _ in range(rows)]
    return Imprinter("raw", cache=False).fit((images, y))


def embedding_model():
    """A model of embeddings with four values."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 4)) + 4 * np.repeat(np.eye(3, 4), 10, axis=0)
    return Imprinter(cache=False).fit(
        (X.astype(np.float32), [0] * 10 + [1] * 10 + [2] * 10)
    )


@pytest.fixture(scope="session")
def model_files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    image_model().save(folder / "shades.imprint")
    embedding_model().save(folder / "points.imprint")
    return {"shades": folder / "shades.imprint", "points": folder / "points.imprint"}


class Client:
    """An HTTP client, with one connection per request."""

    def __init__(self, port, service):
        self.port, self.service = port, service

    def ask(self, method, path, body=None, **headers):
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer.status, dict(answer.headers), answer.read()
        finally:
            connection.close()

    def json(self, method, path, body=None, **headers):
        if isinstance(body, dict):
            body = json.dumps(body)
            headers.setdefault("content_type", "application/json")
        status, _, raw = self.ask(method, path, body, **headers)
        return status, json.loads(raw)


@contextmanager
def serving(files, limits=None, token=None, log="none"):
    """Serve model files on a free port."""
    metrics = Metrics()
    repository = ModelRepository(files, metrics.batches.observe)
    service = Service(repository, metrics, AccessLog(log), limits)
    listening = listen("127.0.0.1", 0)
    app = application(service, "127.0.0.1", token)
    server = uvicorn.Server(server_config(app, shutdown_seconds=5))
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.005)
    try:
        yield Client(listening.getsockname()[1], service)
    finally:
        server.should_exit = True
        thread.join()
        service.close()


@pytest.fixture(scope="module")
def client(model_files):
    with serving(model_files) as one:
        yield one
