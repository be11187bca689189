"""Who is refused, and that what is shown and kept cannot be abused."""

import io
import os
import struct
import zlib

import pytest
from PIL import Image, PngImagePlugin

from imprint.core.errors import FileError
from imprint.serve import requests
from imprint.serve.project import Project
from imprint.serve.security import token_of

ADDRESSES = [
    "/",
    "/api/state",
    "/api/classes",
    "/api/judge",
    "/api/take/model.imprint",
    "/static/main.js",
    "/api/items/1/thumbnail",
]


@pytest.mark.parametrize("path", ADDRESSES)
def test_nothing_is_told_without_the_token(client, path):
    for wrong in (None, "Bearer wrong", "Bearer ", "secret"):
        status, _, raw = client.ask("GET", path, Authorization=wrong)
        assert status == 403, (path, wrong)
        assert b"token" in raw


def test_the_token_in_the_address_becomes_a_cookie_that_scripts_and_sites_cannot_use(client):
    status, headers, _ = client.ask("GET", "/?token=secret", Authorization=None)
    assert (status, headers["location"]) == (303, "/")
    cookie = headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert client.ask("GET", "/api/state", Authorization=None, Cookie=cookie.split(";")[0])[0] == 200
    assert client.ask("GET", "/?token=wrong", Authorization=None)[0] == 403
    assert (
        client.ask("GET", "/api/state?token=secret", Authorization=None)[0] == 403
    )  # there alone it would stay in logs


def test_other_names_and_other_pages_are_refused(client):
    own = f"127.0.0.1:{client.port}"
    assert client.ask("GET", "/api/state", Host=f"localhost:{client.port}")[0] == 200
    assert client.ask("GET", "/api/health", Host="evil.example")[0] == 403  # a name that was made to point here
    for origin in ("http://evil.example", f"https://{own}", "null", f"http://127.0.0.1:{client.port + 1}"):
        assert client.ask("POST", "/api/change", {"do": "create", "label": "cat"}, Origin=origin)[0] == 403, origin
    assert (
        client.ask("POST", "/api/change", {"do": "create", "label": "a"}, **{"Sec-Fetch-Site": "cross-site"})[0] == 403
    )
    assert client.ask("POST", "/api/change", {"do": "create", "label": "cat"}, Origin=f"http://{own}")[0] == 200
    assert list(client.labels()) == ["cat"]


def test_every_answer_carries_the_policy(client):
    for path in ("/", "/api/state", "/nowhere", "/static/style.css"):
        headers = client.ask("GET", path)[1]
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "path",
    ["/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py", "//etc/passwd", "/static/%00", "/static/",
     "/etc/passwd",
     "/api/items/1/..%2f..%2fjournal", "/api/items/../../journal", "/api/take/..%2ftoken", "/api/take/token", "/token"],
)  # fmt: skip
def test_path_tricks_find_nothing(client, path):
    status, _, raw = client.ask("GET", path)
    assert status in (400, 404)
    assert b"secret" not in raw
    assert b"import" not in raw


def test_names_and_labels_stay_inside(client, project):
    assert client.json("POST", "/api/items?label=..&name=x.png", b"")[0] == 400
    assert client.json("POST", "/api/items?label=cat&name=..%2F..%2Fevil%00.png", _png())[0] == 201
    (item,) = project.history.labelled.items.values()
    assert item.name == "evil.png"
    assert client.json("POST", "/api/items?label=..%2Fup&name=x.png", _png())[0] == 400


def _png(size=(8, 8)):
    out = io.BytesIO()
    Image.new("RGB", size, "red").save(out, "PNG")
    return out.getvalue()


def _bomb():
    """A PNG of 60,000 x 60,000 pixels in a few kB."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 60000, 60000, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(b"\0" * 60001 * 20))
        + chunk(b"IEND", b"")
    )


def test_bombs_and_what_is_no_picture_are_refused_in_a_sentence(client):
    svg = b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"
    for raw in (_bomb(), svg, b"", b"hello", b"%PDF-1.7", _png()[:40], b"\x7fELF" + bytes(99)):
        status, said = client.json("POST", "/api/items?label=cat&name=a.png", raw)
        assert status == 400, raw[:10]
        assert said["error"].startswith("Cannot read a.png: ")
        assert said["error"].endswith(".")
    assert client.json("POST", "/api/predict", b"nothing")[0] == 400
    assert client.labels() == {}


def test_what_is_too_large_is_refused_before_it_is_read(client, monkeypatch):
    monkeypatch.setitem(requests.LARGEST, "picture", 1000)
    status, told = client.json("POST", "/api/items?label=cat&name=big.png", bytes(1001))
    assert (status, told["error"]) == (413, "big.png is too large: the maximum size of a picture is 0 kB.")
    chunks = iter([bytes(600), bytes(600)])
    assert client.json("POST", "/api/items?label=cat", chunks, **{"Transfer-Encoding": "chunked"})[0] == 413


def test_pictures_are_encoded_anew_before_they_are_shown(client):
    about = PngImagePlugin.PngInfo()
    about.add_text("Comment", "<script>alert('hidden')</script>")
    out = io.BytesIO()
    Image.new("RGB", (300, 400), "red").save(out, "PNG", pnginfo=about)
    number = client.json("POST", "/api/items?label=cat&name=a.png", out.getvalue())[1]["id"]
    status, headers, raw = client.ask("GET", f"/api/items/{number}/thumbnail")
    assert (status, headers["content-type"]) == (200, "image/jpeg")
    assert b"script" not in raw
    assert Image.open(io.BytesIO(raw)).size == (168, 224)


def test_a_project_has_one_owner(project):
    with pytest.raises(FileError, match="in use"):
        Project(project.folder, "raw", project.backbone, project.model().basis.method)
    token_of(project.folder)
    assert os.stat(project.folder / "token").st_mode & 0o777 == 0o600
