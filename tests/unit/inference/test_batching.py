"""Requests that wait while the network is busy share its next pass, and readiness
follows the threads of the network.
"""

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from .conftest import image, png, serving

PATH = "/models/shades/predict"
CLIENTS = 6


@pytest.fixture
def fresh(model_files):
    with serving({"shades": model_files["shades"]}) as client:
        yield client


def metric(client, line):
    """The value of one line of the metrics."""
    lines = client.ask("GET", "/metrics")[2].decode().splitlines()
    (found,) = [one for one in lines if one.startswith(line + " ")]
    return float(found.rpartition(" ")[2])


def test_requests_that_wait_are_one_batch(fresh):
    thread = fresh.service.repository["shades"].network.thread
    release, answer_all = threading.Event(), thread._work
    sizes = []

    def held(queries):
        sizes.append(len(queries))
        release.wait(20)
        return answer_all(queries)

    thread._work = held
    queue = fresh.service.admission
    with ThreadPoolExecutor(CLIENTS) as pool:
        asked = [
            pool.submit(fresh.json, "POST", PATH, png(image(seed, seed % 2)))
            for seed in range(CLIENTS)
        ]
        deadline = time.monotonic() + 20
        while queue.inputs < CLIENTS or thread._queue.qsize() + sum(sizes) < CLIENTS:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert metric(fresh, "imprint_queue_inputs") == CLIENTS
        release.set()
        answers = [one.result() for one in asked]
    assert {status for status, _ in answers} == {200}
    labels = [answer["predictions"][0]["label"] for _, answer in answers]
    assert labels == ["top", "bottom"] * (CLIENTS // 2)
    # what came while the first pass ran is the second one, unless all came before
    assert sum(sizes) == CLIENTS
    assert len(sizes) <= 2
    assert metric(fresh, "imprint_batch_inputs_count") == 1 + len(sizes)  # the warm-up


def test_a_model_has_answered_before_the_server_listens(fresh):
    # no request was sent: this is the warm-up
    assert metric(fresh, "imprint_batch_inputs_count") == 1
    assert metric(fresh, "imprint_batch_inputs_sum") == 1


@pytest.mark.parametrize("path", ["/v2/health/ready", "/v2/models/shades/ready"])
def test_a_server_whose_network_has_stopped_is_not_ready(fresh, path):
    assert fresh.ask("GET", path)[0] == 200
    fresh.service.repository["shades"].network.close()
    status, headers, raw = fresh.ask("GET", path)
    assert status == 503
    assert int(headers["retry-after"]) >= 1
    assert "thread of the server has stopped" in json.loads(raw)["error"]
    assert fresh.ask("GET", "/v2/health/live")[0] == 200
