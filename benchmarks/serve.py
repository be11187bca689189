"""Latency and throughput of `imprint serve` on this machine: `python benchmarks/serve.py [BACKBONE]`.

Learning: send one example, then one query; the time until the updated model has answered. Answering: many queries over
several concurrent connections, compared with `Imprinter.predict` of the same images in one process. Rounds of both
alternate, and medians over rounds are printed, so that other load on the machine affects both equally.
"""

import http.client
import io
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
from PIL import Image
from sklearn.datasets import load_sample_images

from imprint import Imprinter

CLASSES, PER_CLASS, NEW, QUESTIONS, CONNECTIONS, ROUNDS, SIDE = (
    5,
    20,
    30,
    192,
    16,
    5,
    256,
)


def photographs(count: int, seed: int) -> list[bytes]:
    """Crops of two photographs, as JPEG files of 256 x 256 pixels."""
    rng, images, files = np.random.default_rng(seed), load_sample_images().images, []
    for _ in range(count):
        image = images[rng.integers(len(images))]
        y, x = (int(rng.integers(side - SIDE + 1)) for side in image.shape[:2])
        out = io.BytesIO()
        Image.fromarray(image[y : y + SIDE, x : x + SIDE]).save(out, "JPEG", quality=90)
        files.append(out.getvalue())
    return files


class Connection:
    """A client with one persistent connection."""

    def __init__(self, address: str):
        parts = urlsplit(address)
        self.headers = {"Authorization": f"Bearer {parts.query.removeprefix('token=')}"}
        self.http = http.client.HTTPConnection(parts.hostname, parts.port, timeout=120)

    def post(self, path: str, body: bytes) -> object:
        self.http.request("POST", path, body, self.headers)
        answer = self.http.getresponse()
        raw = answer.read()
        if answer.status >= 300:
            raise SystemExit(raw.decode())
        return json.loads(raw)


def learning(address: str) -> np.ndarray:
    """Milliseconds from sending an example to the prediction of the updated model."""
    connection, times = Connection(address), []
    images = photographs(NEW + 1, 2)
    for raw in images[:NEW]:
        begun = time.perf_counter()
        connection.post("/api/items?label=class0&name=new.jpg", raw)
        connection.post("/api/predict", images[-1])
        times.append(1e3 * (time.perf_counter() - begun))
        time.sleep(0.7)  # the pace of a user; the evaluation runs meanwhile
    return np.array(times)


def answering(address: str, images: list[bytes]) -> tuple[float, list[float]]:
    """Total seconds for all queries over several concurrent connections, and the milliseconds of each query."""
    times: list[float] = []
    waiting = iter(images)
    lock = threading.Lock()

    def work() -> None:
        connection = Connection(address)
        while True:
            with lock:
                raw = next(waiting, None)
            if raw is None:
                return
            begun = time.perf_counter()
            connection.post("/api/predict", raw)
            times.append(1e3 * (time.perf_counter() - begun))

    threads = [threading.Thread(target=work) for _ in range(CONNECTIONS)]
    begun = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - begun, times


def main(backbone: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        env = {**os.environ, "IMPRINT_HOME": str(place / "home")}
        words = [
            "serve",
            "--no-open",
            "--port",
            "0",
            "--folder",
            str(place / "room"),
            "--backbone",
            backbone,
        ]
        server = subprocess.Popen(
            [sys.executable, "-m", "imprint", *words],
            stdout=subprocess.PIPE,
            text=True,
            env=env,
        )
        try:
            address = server.stdout.readline().strip()
            connection = Connection(address)
            taught = photographs(CLASSES * PER_CLASS, 1)
            for i, raw in enumerate(taught):
                connection.post(
                    f"/api/items?label=class{i % CLASSES}&name={i}.jpg", raw
                )
            new = learning(address)
            print(f"{backbone}, {CLASSES} classes of {PER_CLASS} images and more")
            print(
                f"learn one, then ask: p50 {np.median(new):.0f} ms, p95 {np.percentile(new, 95):.0f} ms"
            )
            questions = photographs(QUESTIONS, 3)
            for i, raw in enumerate(questions):
                (place / f"{i}.jpg").write_bytes(raw)
            files = [place / f"{i}.jpg" for i in range(QUESTIONS)]
            (place / "model.imprint").write_bytes(_taken(address))
            model = Imprinter.load(place / "model.imprint", cache=False)
            model.predict(files[:64])
            shares, bare, served, each = [], [], [], []
            for _ in range(ROUNDS):
                seconds, times = answering(address, questions)
                begun = time.perf_counter()
                model.predict(files)
                bare.append(time.perf_counter() - begun)
                served.append(seconds)
                shares.append(seconds / bare[-1])
                each += times
            print(
                f"{CONNECTIONS} connections: {QUESTIONS / np.median(served):.0f} requests a second, ",
                end="",
            )
            print(f"p50 {np.median(each):.0f} ms, p95 {np.percentile(each, 95):.0f} ms")
            print(
                f"an image: served {1e3 * np.median(served) / QUESTIONS:.2f} ms, ",
                end="",
            )
            print(
                f"Imprinter.predict {1e3 * np.median(bare) / QUESTIONS:.2f} ms, ratio {np.median(shares):.2f}"
            )
        finally:
            server.kill()
            server.wait()


def _taken(address: str) -> bytes:
    connection = Connection(address)
    connection.http.request(
        "GET", "/api/export/model.imprint", headers=connection.headers
    )
    return connection.http.getresponse().read()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "efficientnet_lite0")
