"""Failures in every thread of the server: one request fails with one sentence, the next one succeeds."""

import ctypes
import threading
import time
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest

from imprint.core.errors import ParameterError, UnreadableInput
from imprint.core.workers import SupervisedThread, TaskFailedError
from imprint.serve import api, requests

from .conftest import Client, image, serving

THREADS = ("commit", "embed", "evaluate")


class OnnxRuntimeError(Exception):
    """ONNX Runtime's errors derive from Exception, not from RuntimeError."""


def failing(error, times=1):
    """Wrap a method: the first `times` calls raise an error."""

    def around(original):
        left = iter(range(times))

        def called(*arguments):
            if next(left, None) is not None:
                raise error
            return original(*arguments)

        return called

    return around


def thread_of(project, name):
    threads = {
        "commit": project._committer,
        "embed": project._embedder,
        "evaluate": project.evaluator,
    }
    return threads[name]


def patched(project, name, around):
    """Wrap the work of a thread of a project."""
    thread = thread_of(project, name)
    thread._work = around(thread._work)


def request_of(client, name):
    """Send the request that a thread processes."""
    if name == "evaluate":
        return client.ask("GET", "/api/export/model.imprint")
    return client.ask(
        "POST",
        "/api/items?label=top&name=new.png",
        image(int(time.monotonic() * 1e6) % 10**9),
    )


@pytest.fixture
def ready(client, project):
    for i in range(4):
        client.add("top", i, 0)
        client.add("bottom", 100 + i, 1)
    project.evaluated().result(60)
    return client


def test_the_threads_are_these_and_the_health_check_reports_them(client):
    status, health = client.json("GET", "/api/health", Authorization=None)
    assert (status, health["status"]) == (200, "ok")
    assert sorted(health["threads"]) == sorted(THREADS)
    assert all(
        one == {"alive": True, "failures": 0, "restarts": 0}
        for one in health["threads"].values()
    )
    names = [thread.name for thread in threading.enumerate()]
    assert all(name in names for name in THREADS)


@pytest.mark.parametrize("name", THREADS)
@pytest.mark.parametrize(
    "error",
    [
        OnnxRuntimeError("bad input"),
        KeyError("cat"),
        MemoryError(),
        SystemExit(3),
        KeyboardInterrupt(),
    ],
    ids=lambda e: type(e).__name__,
)
def test_an_error_in_a_thread_fails_one_request_with_a_sentence(
    ready, project, name, error
):
    patched(project, name, failing(error))
    project.history = project.history._replace(
        revision=project.history.revision
    )  # something to evaluate
    status, _, raw = request_of(ready, name)
    assert status == 500, raw
    assert raw.startswith(b'{"error":"The ' + name.encode() + b" thread "), raw
    assert ready.json("GET", "/api/health")[1]["threads"][name]["failures"] == 1
    assert request_of(ready, name)[0] in (200, 201)
    assert ready.json("GET", "/api/health")[1]["status"] == "ok"


@pytest.mark.parametrize("name", THREADS)
def test_a_dead_thread_is_replaced(ready, project, name):
    supervised = thread_of(project, name)
    thread = supervised._thread
    interrupted = ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_long(thread.ident), ctypes.py_object(SystemExit)
    )
    assert interrupted == 1
    supervised._queue.put((None, Future()))  # wakes it
    thread.join(20)
    assert not thread.is_alive()
    assert request_of(ready, name)[0] in (200, 201)
    health = ready.json("GET", "/api/health")[1]["threads"][name]
    assert health["alive"]
    assert health["restarts"] >= 1


def test_tasks_of_a_killed_thread_fail_and_queued_tasks_are_done():
    killed, taken = threading.Event(), threading.Event()

    def work(tasks):
        if not killed.is_set():
            taken.set()
            killed.wait(20)
            raise SystemExit
        return tasks

    thread = SupervisedThread("example", work, 2)
    first = thread.submit(0)
    assert taken.wait(20)
    others = [thread.submit(i) for i in (1, 2, 3)]
    killed.set()
    with pytest.raises(
        TaskFailedError,
        match=r"^The example thread stopped \(SystemExit\); try again\.$",
    ):
        first.result(20)
    assert [future.result(20) for future in others] == [1, 2, 3]
    assert thread.status() == {"alive": True, "failures": 1, "restarts": 1}
    thread.close()
    assert not thread.status()["alive"]
    with pytest.raises(TaskFailedError, match="closed; reload the page"):
        thread.submit(4).result(20)


def test_a_task_that_arrives_while_the_thread_is_closed_is_done_or_refused():
    thread, arriving, futures = (
        SupervisedThread("example", lambda tasks: tasks, 1),
        threading.Event(),
        [],
    )
    queue = thread._queue

    def put_slowly(item):
        if item is not None:
            arriving.set()
            time.sleep(0.3)
        queue.put(item)

    thread._queue = SimpleNamespace(put=put_slowly, get=queue.get, empty=queue.empty)
    submitting = threading.Thread(target=lambda: futures.append(thread.submit(1)))
    submitting.start()
    assert arriving.wait(20)
    thread.close()
    submitting.join(20)
    assert futures[0].result(5) == 1


def test_a_bad_input_fails_alone_in_its_batch(client, project, monkeypatch):
    embed = project.backbone.embed

    def picky(X):
        if (X.reshape(len(X), -1).min(axis=1) > 200).any():
            raise OnnxRuntimeError(
                "[ONNXRuntimeError] : 6 : RUNTIME_EXCEPTION : Non-zero status code"
            )
        return embed(X)

    monkeypatch.setattr(project.backbone, "embed", picky)
    bright = _bright()
    futures = [project.embed(image(i), f"{i}.png") for i in range(30)]
    bad = project.embed(bright, "bright.png")
    futures += [project.embed(image(i), f"{i}.png") for i in range(30, 60)]
    assert all(np.isfinite(future.result(30)).all() for future in futures)
    assert isinstance(bad.exception(30), TaskFailedError)
    status, reply = client.json("POST", "/api/items?label=top", bright)
    assert status == 500
    assert reply["error"].startswith("The embed thread failed: ")
    assert client.labels() == {}


def _bright():
    import io

    from PIL import Image

    out = io.BytesIO()
    Image.new("RGB", (20, 24), "white").save(out, "PNG")
    return out.getvalue()


def test_an_embedding_that_is_not_finite_is_refused(client, project, monkeypatch):
    monkeypatch.setattr(
        project.backbone,
        "embed",
        lambda X: np.full((len(X), project.backbone.width), np.nan, "f4"),
    )
    status, reply = client.json("POST", "/api/items?label=top&name=a.png", image(1))
    name = project.backbone.record.name
    assert (status, reply["error"]) == (
        400,
        f"The embedding of a.png by {name} is not finite.",
    )
    monkeypatch.setattr(
        project.backbone, "embed", lambda X: np.zeros((len(X), 3), np.float32)
    )
    status, reply = client.json("POST", "/api/items?label=top&name=a.png", image(1))
    assert status == 400
    assert reply["error"].startswith(
        f"{name} gave float32 rows of shape (1, 3); they must be float32 of shape (1, "
    )


def test_an_abandoned_request_does_no_harm():
    started, go = threading.Event(), threading.Event()

    def work(tasks):
        started.set()
        go.wait(20)
        return tasks

    thread = SupervisedThread("example", work, 1)
    first, second, third = (thread.submit(i) for i in range(3))
    assert started.wait(20)
    assert not first.cancel()
    assert second.cancel()
    go.set()
    assert third.result(20) == 2
    with pytest.raises(CancelledError):
        second.result()
    thread.close()
    assert thread.status()["failures"] == 0


def test_a_class_dropped_while_the_model_is_evaluated_does_no_harm(
    ready, project, monkeypatch
):
    import imprint.serve.project as module

    evaluate, entered, dropped = module.evaluate, threading.Event(), threading.Event()

    def slow(*arguments):
        entered.set()
        dropped.wait(20)
        return evaluate(*arguments)

    monkeypatch.setattr(module, "evaluate", slow)
    ready.add("third", 7, 1)
    assert entered.wait(20)
    for entry in (
        {"do": "drop", "label": "top"},
        {"do": "undo"},
        {"do": "drop", "label": "third"},
    ):
        assert ready.change(**entry)[0] == 200
    dropped.set()
    assert (
        project.evaluated().result(60).model.history.revision
        == project.history.revision
    )
    assert project.threads()["evaluate"]["failures"] == 0


def test_an_evaluation_that_fails_is_reported_on_the_page_and_tried_again(
    ready, project
):
    patched(project, "evaluate", failing(KeyError("cat"), times=10**6))
    ready.add("top", 77, 0)
    deadline = time.monotonic() + 30
    while ready.json("GET", "/api/evaluation")[1]["error"] is None:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert (
        ready.json("GET", "/api/evaluation")[1]["error"]
        == "The evaluate thread failed: 'cat'."
    )
    assert ready.json("POST", "/api/predict", image(5))[0] == 200


def test_requests_have_a_deadline(ready, project, monkeypatch):
    monkeypatch.setattr(requests, "DEADLINE", 0.5)
    go = threading.Event()
    patched(
        project,
        "embed",
        lambda original: lambda tasks: (go.wait(20), original(tasks))[1],
    )
    status, reply = ready.json("POST", "/api/predict", image(991))
    assert (status, reply["error"]) == (
        503,
        "There was no answer within 0.5 seconds; try again.",
    )
    go.set()
    monkeypatch.undo()
    assert ready.json("POST", "/api/predict", image(991))[0] == 200


def test_the_number_of_requests_with_an_input_is_limited(project, monkeypatch):
    monkeypatch.setattr(requests, "MAX_INPUTS", 2)
    embed, held, go = project.embed, [], threading.Event()

    def counted(raw, name):
        held.append(name)
        go.wait(20)
        return embed(raw, name)

    monkeypatch.setattr(project, "embed", counted)
    with serving(project) as port, ThreadPoolExecutor(5) as pool:
        client = Client(port, "secret")
        added = [pool.submit(client.add, "top", i) for i in range(5)]
        deadline = time.monotonic() + 20
        while len(held) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        time.sleep(0.3)
        assert len(held) == 2
        assert client.json("GET", "/api/state")[0] == 200
        go.set()
        assert [future.result(20)[0] for future in added] == [201] * 5


def test_requests_that_timed_out_leave_their_threads_to_others(
    ready, project, monkeypatch
):
    for module in (requests, api):
        monkeypatch.setattr(module, "DEADLINE", 0.3)
    go = threading.Event()
    patched(
        project,
        "embed",
        lambda original: lambda tasks: (go.wait(60), original(tasks))[1],
    )
    try:
        for first in range(0, 2 * requests.THREADS, 32):
            with ThreadPoolExecutor(32) as pool:
                replies = pool.map(
                    lambda i: ready.json("POST", "/api/predict", image(1000 + i)),
                    range(first, first + 32),
                )
            assert {status for status, _ in replies} == {503}
        monkeypatch.setattr(requests, "DEADLINE", 20)
        assert ready.json("GET", "/api/state")[0] == 200
    finally:
        go.set()


def test_expected_errors_are_not_failures_of_a_thread(ready, project):
    assert isinstance(project.change({"do": "nonsense"}).exception(20), ParameterError)
    with pytest.raises(UnreadableInput):
        project.embed(b"nothing", "a.png")
    assert all(one["failures"] == 0 for one in project.threads().values())
