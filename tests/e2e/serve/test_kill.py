"""`kill -9` at random moments during uploads: no acknowledged change is lost, and the model is correct."""

import http.client
import io
import json
import threading
import time
import zipfile

import numpy as np
import pytest
from PIL import Image

from imprint import Imprinter

KILLS = 20
LABELS = ("ant", "bee", "cat")


def image(seed):
    out = io.BytesIO()
    Image.fromarray(
        np.random.default_rng(seed).integers(0, 255, (12, 12, 3), dtype=np.uint8)
    ).save(out, "PNG")
    return out.getvalue()


def send(server, counter, acknowledged, rng):
    """Add images and sometimes move one, until the server dies; record the acknowledged images."""
    while True:
        seed = next(counter)
        try:
            if seed % 7 == 3 and acknowledged:
                moved = {
                    "do": "move",
                    "ids": [list(acknowledged)[-1]],
                    "label": LABELS[seed % 3],
                }
                status, _ = server.ask("POST", "/api/change", json.dumps(moved))
            else:
                status, raw = server.ask(
                    "POST",
                    f"/api/items?label={LABELS[seed % 3]}&name={seed}.png",
                    image(seed),
                )
                if status == 201:
                    acknowledged[json.loads(raw)["id"]] = f"{seed}.png"
        except (OSError, http.client.HTTPException):  # includes incomplete responses
            return


@pytest.mark.parametrize("backbone", ["raw"])
def test_twenty_kills_lose_nothing(serving, tmp_path, backbone):
    acknowledged, counter, rng = {}, iter(range(10**6)), np.random.default_rng(0)
    for round_ in range(KILLS):
        with serving("--backbone", backbone) as server:
            there = {
                number: name
                for one in server.json("GET", "/api/state")["classes"]
                for number, name, *_ in one["items"]
            }
            assert there.items() >= acknowledged.items(), f"after kill {round_}"
            writers = [
                threading.Thread(target=send, args=(server, counter, acknowledged, rng))
                for _ in range(3)
            ]
            for thread in writers:
                thread.start()
            time.sleep(float(rng.uniform(0.05, 0.5)))
            server.process.kill()
            for thread in writers:
                thread.join()
    with serving("--backbone", backbone) as server:
        there = {
            number: name
            for one in server.json("GET", "/api/state")["classes"]
            for number, name, *_ in one["items"]
        }
        assert there.items() >= acknowledged.items()
        assert len(acknowledged) > KILLS
        archive = zipfile.ZipFile(
            io.BytesIO(server.ask("GET", "/api/take/examples.zip")[1])
        )
        archive.extractall(tmp_path / "photos")
        (tmp_path / "model.imprint").write_bytes(
            server.ask("GET", "/api/take/model.imprint")[1]
        )
    assert len(archive.namelist()) == len(there)
    served = Imprinter.load(tmp_path / "model.imprint").state.head
    fresh = (
        Imprinter(backbone, cache=False, norm_post="none", aggregator="kernel")
        .fit(str(tmp_path / "photos"))
        .state.head
    )
    assert np.array_equal(served.proxies.weights, fresh.proxies.weights)
    assert served.classes.tolist() == fresh.classes.tolist()
