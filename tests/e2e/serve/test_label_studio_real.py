"""`imprint serve --label-studio` with the real Label Studio, if it is installed."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

COMMAND = os.environ.get("IMPRINT_LABEL_STUDIO") or shutil.which("label-studio") or ""
KEY = "0123456789abcdef0123456789abcdef01234567"
CONFIG = """<View><Image name="img" value="$image"/>
<Choices name="kind" toName="img"><Choice value="top"/><Choice value="bottom"/></Choices></View>"""
IMAGES, LABELS, EVERY = 200, 20, 5
pytestmark = [
    pytest.mark.skipif(
        not COMMAND,
        reason="the command label-studio is not installed (or set IMPRINT_LABEL_STUDIO)",
    ),
    pytest.mark.timeout(1800),
]


class Studio:
    """A client for the API of Label Studio."""

    def __init__(self, url):
        self.url = url

    def ask(self, method, path, body=None, content="application/json"):
        raw = (
            json.dumps(body).encode()
            if content == "application/json" and body is not None
            else body
        )
        headers = {"Authorization": f"Token {KEY}", "Content-Type": content}
        request = urllib.request.Request(self.url + path, raw, headers, method=method)
        with urllib.request.urlopen(request, timeout=600) as answer:
            return json.loads(answer.read() or b"null")

    def upload(self, project, files):
        edge = "edge-of-a-part"
        parts = []
        for path in files:
            head = f'--{edge}\r\nContent-Disposition: form-data; name="{path.name}"; filename="{path.name}"\r\n'
            parts.append(
                head.encode()
                + b"Content-Type: image/png\r\n\r\n"
                + path.read_bytes()
                + b"\r\n"
            )
        body = b"".join(parts) + f"--{edge}--\r\n".encode()
        return self.ask(
            "POST",
            f"/api/projects/{project}/import",
            body,
            f"multipart/form-data; boundary={edge}",
        )

    def predictions(self, project):
        """Retrieve predictions of the newest version: score and class by task number."""
        everything = {"selectedItems": {"all": True, "excluded": []}}
        self.ask(
            "POST",
            f"/api/dm/actions?id=retrieve_tasks_predictions&project={project}",
            everything,
        )
        by_task = {}
        for one in self.ask("GET", f"/api/predictions?project={project}"):
            version = int(one["model_version"].removeprefix("imprint-"))
            by_task[one["task"]] = max(
                by_task.get(one["task"], (-1, 0, [])),
                (version, one["score"], one["result"]),
            )
        newest = max(version for version, _, _ in by_task.values())
        self.ask(
            "PATCH", f"/api/projects/{project}", {"model_version": f"imprint-{newest}"}
        )
        return by_task


@pytest.fixture
def studio(tmp_path):
    if url := os.environ.get("IMPRINT_LABEL_STUDIO_URL"):
        yield Studio(url)
        return
    port = "8123"
    environment = {
        **os.environ,
        "LABEL_STUDIO_ENABLE_LEGACY_API_TOKEN": "true",
        "COLLECT_ANALYTICS": "false",
    }
    environment["USE_DEFAULT_BANNED_SUBNETS"] = (
        "false"  # otherwise it refuses backends on this machine
    )
    environment["LABEL_STUDIO_BASE_DATA_DIR"] = str(tmp_path / "studio")
    user = [
        "--username",
        "a@example.com",
        "--password",
        "secret-pass-1",
        "--user-token",
        KEY,
    ]
    with open(tmp_path / "studio.log", "wb") as log:
        words = [COMMAND, "start", "-b", "--port", port, *user]
        server = subprocess.Popen(
            words, stdout=log, stderr=log, env=environment, cwd=tmp_path
        )
    try:
        client = Studio(f"http://localhost:{port}")
        deadline = time.monotonic() + 900
        while True:
            try:
                client.ask("GET", "/api/projects")
                break
            except (urllib.error.URLError, ConnectionError):
                assert server.poll() is None, (tmp_path / "studio.log").read_text()[
                    -2000:
                ]
                assert time.monotonic() < deadline
                time.sleep(1)
        yield client
    finally:
        server.terminate()
        server.wait()


@pytest.fixture
def backend(studio, tmp_path):
    code = "import sys; from imprint.cli import main; sys.exit(main(sys.argv[1:]))"
    words = [
        sys.executable,
        "-c",
        code,
        "serve",
        "--label-studio",
        "--no-open",
        "--port",
        "0",
    ]
    words += ["--folder", str(tmp_path / "project"), "--backbone", "raw"]
    environment = {
        **os.environ,
        "LABEL_STUDIO_URL": studio.url,
        "LABEL_STUDIO_API_KEY": KEY,
    }
    with subprocess.Popen(
        words, env=environment, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL
    ) as server:
        address = None
        while address is None:
            line = server.stderr.readline().decode()
            assert line
            address = re.search(r"Backend URL for Label Studio: (\S+)", line)
        yield address[1]
        server.terminate()


def paint(folder: Path) -> list[Path]:
    """Images that are bright at the top (even numbers) or at the bottom."""
    for i in range(IMAGES):
        pixels = np.random.default_rng(i).integers(0, 60, (20, 24, 3), dtype=np.uint8)
        pixels[slice(10) if i % 2 == 0 else slice(10, None)] += 150
        Image.fromarray(pixels).save(folder / f"{i:03}.png")
    return sorted(folder.glob("*.png"))


def test_predictions_appear_and_tasks_have_the_order_of_the_server(
    studio, backend, tmp_path
):
    (tmp_path / "pictures").mkdir()
    settings = {
        "title": "shades",
        "label_config": CONFIG,
        "sampling": "Uncertainty sampling",
    }
    project = studio.ask("POST", "/api/projects", settings)["id"]
    images = paint(tmp_path / "pictures")
    for first in range(0, IMAGES, 50):  # Label Studio takes at most 100 files at a time
        studio.upload(project, images[first : first + 50])
    studio.ask(
        "POST", "/api/ml", {"url": backend, "project": project, "title": "imprint"}
    )
    tasks = {
        t["id"]: t
        for t in studio.ask("GET", f"/api/tasks?project={project}&page_size=1000")[
            "tasks"
        ]
    }
    assert len(tasks) == IMAGES
    kind = {
        n: ("top", "bottom")[int(re.search(r"(\d{3})\.png", t["data"]["image"])[1]) % 2]
        for n, t in tasks.items()
    }

    labelled = set()
    for done in range(LABELS):
        if done % EVERY == 0:
            found = studio.predictions(project)
            assert len(found) == IMAGES
        waiting = {n: score for n, (_, score, _) in found.items() if n not in labelled}
        task = studio.ask("GET", f"/api/projects/{project}/next")["id"]
        assert waiting[task] == min(waiting.values())
        region = {
            "from_name": "kind",
            "to_name": "img",
            "type": "choices",
            "value": {"choices": [kind[task]]},
        }
        studio.ask(
            "POST",
            f"/api/tasks/{task}/annotations",
            {"result": [region], "lead_time": 1},
        )
        labelled.add(task)
    time.sleep(2)  # the last webhook
    found = studio.predictions(project)
    predicted = {
        n: result[0]["value"]["choices"][0] for n, (_, _, result) in found.items()
    }
    rest = [n for n in tasks if n not in labelled]
    assert np.mean([predicted[n] == kind[n] for n in rest]) > 0.95
    assert {version for version, _, _ in found.values()} == {
        max(v for v, _, _ in found.values())
    }
