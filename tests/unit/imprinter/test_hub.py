"""Models on a stand-in of the Hugging Face hub, through the hub's own client."""

import base64
import hashlib
import http.server
import json
import re
import threading
from functools import partial

import numpy as np
import pytest

from imprint import Imprinter
from imprint.core.errors import FileError, MissingExtraError

pytest.importorskip("huggingface_hub", reason="needs huggingface_hub")

COMMIT = "0" * 39
REPO = "someone/points"


class Hub:
    """Repositories with their commits, as dicts from file names to contents."""

    def __init__(self):
        self.commits = {}
        self.tokens = []

    def file(self, repo, revision, name):
        commits = self.commits.get(repo, [])
        number = len(commits) if revision == "main" else int(revision[-1])
        return commits[number - 1].get(name) if commits else None


class Answers(http.server.BaseHTTPRequestHandler):
    """The parts of the hub's interface that its client uses for small files."""

    protocol_version = "HTTP/1.1"

    def __init__(self, hub, *arguments):
        self.hub = hub
        super().__init__(*arguments)

    def log_message(self, *_):
        pass

    def send(self, status, content, headers=()):
        raw = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in (("content-length", len(raw)), *headers):
            self.send_header(name, str(value))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(raw)

    def do_POST(self):
        raw = self.rfile.read(int(self.headers.get("content-length", 0)))
        self.hub.tokens.append(self.headers.get("authorization"))
        if self.path == "/api/repos/create":
            stated = json.loads(raw)
            repo = f"{stated.get('organization') or 'someone'}/{stated['name']}"
            self.hub.commits.setdefault(repo, [])
            self.send(200, {"url": f"https://huggingface.co/{repo}", "name": repo})
        elif self.path == "/api/validate-yaml":
            self.send(200, {"errors": [], "warnings": []})
        elif "/preupload/" in self.path:
            files = [
                {**one, "uploadMode": "regular", "shouldIgnore": False, "oid": None}
                for one in json.loads(raw)["files"]
            ]
            self.send(200, {"files": files})
        elif match := re.match(r"/api/models/(.+)/commit/main", self.path):
            commits = self.hub.commits[match[1]]
            files = dict(commits[-1]) if commits else {}
            for line in map(json.loads, raw.splitlines()):
                if line["key"] == "file":
                    value = line["value"]
                    files[value["path"]] = base64.b64decode(value["content"])
            commits.append(files)
            oid = f"{COMMIT}{len(commits)}"
            # the client accepts addresses of the real hub only
            address = f"https://huggingface.co/{match[1]}/commit/{oid}"
            self.send(200, {"commitUrl": address, "commitOid": oid})
        else:
            self.send(404, {"error": self.path})

    def do_GET(self):
        match = re.match(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", self.path)
        content = self.hub.file(*match.groups()) if match else None
        if match and content is not None:
            number = len(self.hub.commits[match[1]])
            oid = f"{COMMIT}{number if match[2] == 'main' else match[2][-1]}"
            etag = hashlib.sha1(content).hexdigest()
            self.send(200, content, [("etag", f'"{etag}"'), ("x-repo-commit", oid)])
        else:
            code = "EntryNotFound" if match else "RepoNotFound"
            self.send(404, {"error": "nothing"}, [("x-error-code", code)])

    def do_HEAD(self):
        self.do_GET()


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """A hub on this machine, and its address."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "c"))
    hub = Hub()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Answers, hub))
    with server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield hub, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def points(label="b"):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(24, 4)) + 4 * np.repeat(np.eye(2, 4), 12, axis=0)
    return Imprinter(cache=False).fit((X.astype(np.float32), ["a"] * 12 + [label] * 12))


def test_a_model_goes_to_the_hub_and_comes_back(hub):
    store, address = hub
    model = points()
    model.push_to_hub(REPO, token="hf_secret", endpoint=address)
    (files,) = store.commits[REPO]
    assert set(files) >= {"model.imprint", "README.md"}
    assert "Bearer hf_secret" in store.tokens
    card = files["README.md"].decode()
    assert card.startswith("---\nlibrary_name: imprint\n")
    assert "tabular-classification" in card
    again = Imprinter.from_hub(REPO, endpoint=address)
    rows = np.eye(4, dtype=np.float32)
    np.testing.assert_array_equal(again.predict_proba(rows), model.predict_proba(rows))
    np.testing.assert_array_equal(again.known(rows), model.known(rows))


def test_an_earlier_revision_stays(hub):
    _, address = hub
    points("old").push_to_hub(REPO, endpoint=address, token="hf_secret")
    points("new").push_to_hub(REPO, endpoint=address, token="hf_secret")
    newest = Imprinter.from_hub(REPO, endpoint=address)
    assert newest.classes_.tolist() == ["a", "new"]
    earlier = Imprinter.from_hub(REPO, endpoint=address, revision=f"{COMMIT}1")
    assert earlier.classes_.tolist() == ["a", "old"]


@pytest.mark.parametrize("repo", ["someone/nothing", "not//a name"])
def test_what_is_not_there_is_one_sentence(hub, repo):
    with pytest.raises(FileError, match=f"from_hub: {repo}") as error:
        Imprinter.from_hub(repo, endpoint=hub[1])
    assert "\n" not in str(error.value)


def test_without_the_client_the_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "huggingface_hub", None)
    with pytest.raises(MissingExtraError, match=r"weight-imprinting\[hub\]"):
        Imprinter.from_hub(REPO)
