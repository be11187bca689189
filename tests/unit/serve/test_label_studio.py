"""The protocol between Label Studio and a machine-learning backend."""

import base64
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from imprint.active.suggestions import PreparedPool
from imprint.core.errors import ParameterError, UnreadableInput
from imprint.serve.label_studio import LabelConfig, fetch
from imprint.serve.store import digest_of

from .conftest import Client, image, serving

CONFIG = """<View><Image name="img" value="$photo"/>
<Choices name="kind" toName="img"><Choice value="top"/><Choice value="bottom"/></Choices></View>"""
BASE = "/label-studio/secret"


class Files(BaseHTTPRequestHandler):
    """A file server that requires an API key, like Label Studio."""

    def do_GET(self):
        allowed = (
            self.headers.get("Authorization") == "Token key"
            and "moved" not in self.path
        )
        number = self.path.rpartition("/")[2].partition(".")[0]
        if not number.isdecimal() and "moved" not in self.path:
            self.send_error(404)
            return
        self.send_response(302 if "moved" in self.path else 200 if allowed else 401)
        if "moved" in self.path:
            self.send_header("location", "http://example.org/")
        self.end_headers()
        if allowed:
            seed = int(number)
            self.wfile.write(image(seed, shade=seed % 2))

    def log_message(self, *words):
        pass


@pytest.fixture
def studio(monkeypatch):
    """The address of a server of images 0.png, 1.png, ...: even ones are bright at the top."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Files)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}"
    monkeypatch.setenv("LABEL_STUDIO_URL", url)
    monkeypatch.setenv("LABEL_STUDIO_API_KEY", "key")
    yield url
    server.shutdown()
    server.server_close()


@pytest.fixture
def backend(project, studio):
    with serving(project, label_studio=True) as port:
        yield Client(port, None)


def task(n):
    return {"id": n, "data": {"photo": f"/data/upload/1/{n}.png"}}


def ask(backend, path, body, method="POST"):
    return backend.json(method, BASE + path, body, Authorization=None)


def annotate(backend, n, label, action="ANNOTATION_CREATED", number=None):
    result = [
        {
            "from_name": "kind",
            "to_name": "img",
            "type": "choices",
            "value": {"choices": [label]},
        }
    ]
    annotation = {"id": number or 1000 + n, "result": result}
    return ask(
        backend,
        "/webhook",
        {
            "action": action,
            "annotation": annotation,
            "task": task(n),
            "project": {"id": 1},
        },
    )


def test_the_protocol(backend, project):
    assert ask(backend, "/health", None, "GET") == (
        200,
        {"status": "UP", "model_class": "imprint"},
    )
    setup = {"project": "1.1", "schema": CONFIG, "hostname": "", "access_token": ""}
    assert ask(backend, "/setup", setup) == (200, {"model_version": "imprint-0"})
    tasks = [task(n) for n in range(20)]
    status, answer = ask(
        backend, "/predict", {"tasks": tasks, "project": "1.1", "label_config": CONFIG}
    )
    assert status == 200
    first = answer["results"]
    assert all(
        one["result"] == [] and one["model_version"] == "imprint-0" for one in first
    )
    scores = [one["score"] for one in first]
    assert sorted(scores) == [place / 40 for place in range(20)]
    order = sorted(range(20), key=scores.__getitem__)
    assert {n % 2 for n in order[:2]} == {0, 1}  # the first two are of both classes
    rows = np.stack([project.rows[digest_of(image(n, shade=n % 2))] for n in range(20)])
    assert order == PreparedPool(rows).suggest(20, None).tolist()

    for n in order[:4]:
        assert annotate(backend, n, ("top", "bottom")[n % 2])[0] == 200
    results = ask(backend, "/predict", {"tasks": tasks})[1]["results"]
    region = results[7]["result"][0]
    assert region["value"] == {"choices": ["bottom"]}
    assert (region["from_name"], region["to_name"], region["type"]) == (
        "kind",
        "img",
        "choices",
    )
    assert 0.5 < region["score"] <= 1
    assert results[7]["model_version"] == f"imprint-{project.history.revision}"
    labelled = [results[n]["score"] for n in order[:4]]
    assert min(labelled) > max(results[n]["score"] for n in order[4:])


def test_annotations_are_changed_and_deleted(backend):
    ask(backend, "/setup", {"schema": CONFIG})
    annotate(backend, 0, "top")
    annotate(backend, 1, "top")
    annotate(backend, 1, "bottom", "ANNOTATION_UPDATED", 1001)
    labels = Client(backend.port, "secret").labels
    assert labels() == {"top": 1, "bottom": 1}
    assert (
        ask(
            backend,
            "/webhook",
            {"action": "ANNOTATIONS_DELETED", "annotations": [{"id": 1001}]},
        )[0]
        == 200
    )
    assert labels() == {"top": 1, "bottom": 0}
    assert ask(backend, "/webhook", {"action": "PROJECT_UPDATED"})[0] == 200


def test_tasks_that_cannot_be_read_get_no_class(backend):
    ask(backend, "/setup", {"schema": CONFIG})
    annotate(backend, 0, "top")
    odd = [
        {"id": 90, "data": {}},
        {"id": 91, "data": {"photo": "http://example.org/x.png"}},
        {"id": 92, "data": None},
    ]
    broken = {"id": 93, "data": {"photo": "data:image/png;base64,AAAA"}}
    status, answer = ask(backend, "/predict", {"tasks": [*odd, broken, task(2)]})
    assert status == 200, answer
    results = answer["results"]
    assert [bool(one["result"]) for one in results] == [False] * 4 + [True]


def test_only_the_token_opens_it(backend):
    for path in (
        "/label-studio/wrong/health",
        "/label-studio/",
        "/label-studio//health",
    ):
        assert backend.json("GET", path, Authorization=None)[0] == 403
    assert backend.json("GET", "/api/state", Authorization=None)[0] == 403
    status, refusal = ask(backend, "/predict", {"tasks": []})
    assert (status, "labelling configuration" in refusal["error"]) == (400, True)


def test_images_come_from_label_studio_alone(studio):
    raw = image(1)
    assert (
        fetch("data:image/png;base64," + base64.b64encode(raw).decode(), studio, "")
        == raw
    )
    assert fetch("/data/3.png", studio, "key") == image(3, shade=1)
    for address, key, words in (
        ("/data/3.png", "wrong", "LABEL_STUDIO_API_KEY"),
        ("/moved/3.png", "key", "302"),
        ("http://169.254.169.254/latest", "key", "LABEL_STUDIO_URL"),
        ("file:///etc/passwd", "key", "LABEL_STUDIO_URL"),
        (f"{studio}@example.org/x", "key", "LABEL_STUDIO_URL"),
        ("data:image/png;base64,AAA", "key", "padding"),
    ):
        with pytest.raises(UnreadableInput, match=words):
            fetch(address, studio, key)


@pytest.mark.parametrize(
    "xml", ["", "<View/>", "<View><Choices name='a' toName='b'/></View>", None]
)
def test_a_configuration_without_choices_is_refused(xml):
    with pytest.raises(ParameterError, match="<Choices>"):
        LabelConfig.parse(xml)


REGION = {"from_name": "kind", "value": {"choices": ["top"]}}
MALFORMED = [
    ("/predict", {"tasks": [5]}),
    ("/predict", {"tasks": [None]}),
    ("/predict", {"tasks": [{}]}),
    ("/predict", {"tasks": [{"id": "one", "data": {}}]}),
    ("/predict", {"tasks": [{"id": [1], "data": {}}]}),
    ("/predict", {"tasks": [{"id": True, "data": {}}]}),
    ("/predict", {"tasks": [{"id": 1.5, "data": {}}]}),
    ("/predict", {"tasks": [{"id": 1, "data": [1]}]}),
    ("/predict", {"tasks": [{"id": 1, "data": "x"}]}),
    (
        "/predict",
        {"tasks": [], "label_config": "<?xml version='1.0' encoding='x'?><a/>"},
    ),
    ("/predict", {"tasks": [], "label_config": ["<View/>"]}),
    ("/predict", {"tasks": {"id": 1}}),
    ("/setup", {"schema": 5}),
    ("/webhook", {"action": "ANNOTATION_CREATED", "annotation": 5, "task": task(1)}),
    (
        "/webhook",
        {"action": "ANNOTATION_CREATED", "annotation": {"id": 1, "result": [5]}},
    ),
    *(
        (
            "/webhook",
            {
                "action": "ANNOTATION_CREATED",
                "annotation": {"id": 1, "result": [region]},
                "task": task(1),
            },
        )
        for region in (
            {**REGION, "value": 5},
            {**REGION, "value": {"choices": 5}},
            {**REGION, "value": {"choices": {"a": 1}}},
            {**REGION, "value": {"choices": [["top"]]}},
            {**REGION, "value": {"choices": [None]}},
        )
    ),
    (
        "/webhook",
        {
            "action": "ANNOTATION_CREATED",
            "annotation": {"id": "x", "result": [REGION]},
            "task": task(1),
        },
    ),
    (
        "/webhook",
        {
            "action": "ANNOTATION_CREATED",
            "annotation": {"id": 1, "result": [REGION]},
            "task": 5,
        },
    ),
    ("/webhook", {"action": "ANNOTATIONS_DELETED", "annotations": 5}),
    ("/webhook", {"action": "ANNOTATIONS_DELETED", "annotations": [[1]]}),
    ("/webhook", {"action": "ANNOTATIONS_DELETED", "annotations": [{"id": {}}]}),
    ("/webhook", {"action": ["ANNOTATION_CREATED"]}),
]


def test_malformed_requests_are_refused_in_a_sentence(backend):
    ask(backend, "/setup", {"schema": CONFIG})
    for path, payload in MALFORMED:
        status, answer = ask(backend, path, payload)
        assert status == 400, (path, payload, status, answer)
        assert answer["error"].endswith("."), answer
        assert "Error" not in answer["error"], answer
    assert Client(backend.port, "secret").labels() == {}
    assert annotate(backend, 1, "bottom")[0] == 200


def test_an_address_that_cannot_be_fetched_fails_alone(backend, studio):
    ask(backend, "/setup", {"schema": CONFIG})
    annotate(backend, 0, "top")
    addresses = [
        "/data/upload/1/a\nb.png",
        "/data/\x00.png",
        "http://[",
        "/data/a b.png",
        "data:",
        "//",
        "x" * 5000,
    ]
    odd = [
        {"id": 80 + i, "data": {"photo": address}}
        for i, address in enumerate(addresses)
    ]
    status, answer = ask(backend, "/predict", {"tasks": [*odd, task(2)]})
    assert status == 200, answer
    shown = [bool(one["result"]) for one in answer["results"]]
    assert shown == [False] * len(odd) + [True]
    for address in addresses:
        with pytest.raises(UnreadableInput) as caught:
            fetch(address, studio, "key")
        assert str(caught.value).isprintable()
