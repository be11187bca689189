"""Limits of size, time and queue."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from imprint.inference.limits import Admission, BusyError, Limits

from .conftest import image, png, serving

IMAGES = "/models/shades/predict"
LIMITS = Limits(body=4096, pixels=1000, inputs=2, queue=3, seconds=0.4)


@pytest.fixture(scope="module")
def narrow(model_files):
    with serving(model_files, LIMITS) as client:
        yield client


@pytest.mark.parametrize("stated", [True, False])
def test_a_large_body_is_refused(narrow, stated):
    body = bytes(5000)
    status, headers, raw = narrow.ask("POST", IMAGES, body if stated else iter([body]))
    assert status == 413
    assert headers["connection"] == "close"
    assert "maximum is 4,096 bytes" in json.loads(raw)["error"]


def test_an_image_with_many_pixels_is_refused_before_it_is_decoded(narrow):
    import numpy as np

    status, answer = narrow.json(
        "POST", f"{IMAGES}?name=a.png", png(np.zeros((40, 50, 3), np.uint8))
    )
    assert status == 413
    assert answer["error"] == "a.png has 2,000 pixels; the maximum is 1,000."


def test_many_inputs_are_refused(narrow):
    status, answer = narrow.json(
        "POST", "/models/points/predict", {"inputs": [[0, 0, 0, 0]] * 3}
    )
    assert status == 413
    assert "3 inputs" in answer["error"]


@pytest.fixture
def stopped_network(narrow):
    """The network of images does not answer until the test ends."""
    network = narrow.service.repository["shades"].network
    release, answer_all = threading.Event(), network.thread._work

    def wait(queries):
        release.wait(20)
        return answer_all(queries)

    network.thread._work = wait
    yield release
    release.set()
    network.thread._work = answer_all


def test_a_full_queue_says_when_to_come_back(narrow, stopped_network):
    with ThreadPoolExecutor(5) as pool:
        body = png(image(0))
        answers = list(pool.map(lambda _: narrow.ask("POST", IMAGES, body), range(5)))
    statuses = sorted(status for status, _, _ in answers)
    # three wait until their deadline, and for the others there is no room
    assert statuses == [429, 429, 503, 503, 503]
    for _, headers, raw in answers:
        assert 1 <= int(headers["retry-after"]) <= 60
        assert "try again later" in json.loads(raw)["error"]
    stopped_network.set()
    assert narrow.service.admission.inputs == 0
    assert narrow.ask("POST", IMAGES, png(image(0)))[0] == 200


def test_bodies_that_wait_have_a_limit_too(model_files):
    body = png(image(0))
    limits = Limits(body=4096, queue_bytes=4096, seconds=5)
    with serving(model_files, limits) as client:
        room = client.service.admission.room(size=4096)
        with room:
            status, headers, _ = client.ask("POST", IMAGES, body)
            assert status == 429
            assert int(headers["retry-after"]) >= 1
        assert client.ask("POST", IMAGES, body)[0] == 200


def test_room_is_given_back_after_a_failure():
    admission = Admission(LIMITS)
    with pytest.raises(ZeroDivisionError), admission.room(2, 100):
        raise ZeroDivisionError
    assert (admission.inputs, admission.bytes) == (0, 0)
    with admission.room(3), pytest.raises(BusyError) as error, admission.room(1):
        pass
    assert error.value.status == 429
