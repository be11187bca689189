"""Requests that are refused, and stored or displayed content that cannot be abused."""

import http.client
import io
import json
import os
import socket
import struct
import time
import zlib
from contextlib import closing, suppress
from importlib import import_module
from inspect import signature
from ipaddress import ip_address

import pytest
from PIL import Image, PngImagePlugin
from starlette.requests import HTTPConnection

from imprint.core.errors import FileError, ParameterError
from imprint.http import body, listening
from imprint.serve import requests
from imprint.serve.project import Project
from imprint.serve.security import Guard, redirect_file, token_of

ADDRESSES = [
    "/",
    "/api/state",
    "/api/projects",
    "/api/pool",
    "/api/classes",
    "/api/evaluation",
    "/api/judge",
    "/api/export/model.imprint",
    "/api/take/model.imprint",
    "/static/main.js",
    "/api/items/1/thumbnail",
]


@pytest.mark.parametrize("path", ADDRESSES)
def test_nothing_is_answered_without_the_token(client, path):
    for wrong in (None, "Bearer wrong", "Bearer ", "secret"):
        status, _, raw = client.ask("GET", path, Authorization=wrong)
        assert status == 403, (path, wrong)
        assert b"token" in raw


def test_the_token_in_the_address_becomes_a_cookie_that_scripts_and_sites_cannot_use(
    client,
):
    status, headers, _ = client.ask("GET", "/?token=secret", Authorization=None)
    assert (status, headers["location"]) == (303, "/")
    cookie = headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "samesite=strict" in cookie.lower()
    assert (
        client.ask(
            "GET", "/api/state", Authorization=None, Cookie=cookie.split(";")[0]
        )[0]
        == 200
    )
    assert client.ask("GET", "/?token=wrong", Authorization=None)[0] == 403
    assert (
        client.ask("GET", "/api/state?token=secret", Authorization=None)[0] == 403
    )  # in the address it would remain in logs


def test_other_host_names_and_origins_are_refused(client):
    address = f"127.0.0.1:{client.port}"
    assert client.ask("GET", "/api/state", Host=f"localhost:{client.port}")[0] == 200
    assert (
        client.ask("GET", "/api/health", Host="evil.example")[0] == 403
    )  # a domain that resolves to this machine
    for origin in (
        "http://evil.example",
        f"https://{address}",
        "null",
        f"http://127.0.0.1:{client.port + 1}",
    ):
        assert (
            client.ask(
                "POST", "/api/change", {"do": "create", "label": "cat"}, Origin=origin
            )[0]
            == 403
        ), origin
    assert (
        client.ask(
            "POST",
            "/api/change",
            {"do": "create", "label": "a"},
            **{"Sec-Fetch-Site": "cross-site"},
        )[0]
        == 403
    )
    link = {
        "Sec-Fetch-Site": "cross-site",
        "Sec-Fetch-Mode": "navigate",
    }  # redirects only to the page
    assert [client.ask("GET", path, **link)[0] for path in ("/", "/api/state")] == [
        200,
        403,
    ]
    assert (
        client.ask(
            "POST",
            "/api/change",
            {"do": "create", "label": "cat"},
            Origin=f"http://{address}",
        )[0]
        == 200
    )
    assert list(client.labels()) == ["cat"]


@pytest.mark.parametrize(
    ("host", "port", "tls", "sent"),
    [
        ("127.0.0.2", 8470, False, "127.0.0.2:8470"),
        ("fd00::7", 8470, False, "[fd00::7]:8470"),
        ("Lab.example", 8470, False, "lab.example:8470"),
        (
            "lab.example",
            443,
            True,
            "lab.example",
        ),  # without the default port, as browsers send it
        ("127.0.0.1", 80, False, "127.0.0.1"),
    ],
)
def test_the_address_that_serve_prints_is_answered(host, port, tls, sent):
    guard = Guard(None, "secret", port, host, tls)

    def refusal(name):
        headers = [(b"host", name.encode()), (b"authorization", b"Bearer secret")]
        scope = {
            "type": "http",
            "method": "GET",
            "path": "/",
            "query_string": b"",
            "headers": headers,
        }
        return guard._refusal(HTTPConnection(scope))

    assert refusal(sent) is None
    for other in ("evil.example", "evil.example:80", f"{sent}1", "lab.example:80"):
        assert "does not answer under that name" in refusal(other)


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
def test_path_traversal_finds_nothing(client, path):
    status, _, raw = client.ask("GET", path)
    assert status in (400, 404)
    assert b"secret" not in raw
    assert b"import" not in raw


def test_browsers_ask_again_for_the_files_of_the_page_and_get_them_once(client):
    status, headers, raw = client.ask("GET", "/static/main.js")
    assert (status, headers["cache-control"]) == (200, "no-cache")
    assert headers["content-type"].startswith("text/javascript")
    assert raw
    assert (
        client.ask("GET", "/static/main.js", **{"If-None-Match": headers["etag"]})[0]
        == 304
    )


def test_names_and_labels_cannot_escape_the_folder(client, project):
    assert client.json("POST", "/api/items?label=..&name=x.png", b"")[0] == 400
    assert (
        client.json("POST", "/api/items?label=cat&name=..%2F..%2Fevil%00.png", _png())[
            0
        ]
        == 201
    )
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
        return (
            struct.pack(">I", len(data))
            + kind
            + data
            + struct.pack(">I", zlib.crc32(kind + data))
        )

    header = struct.pack(">IIBBBBB", 60000, 60000, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(b"\0" * 60001 * 20))
        + chunk(b"IEND", b"")
    )


def test_decompression_bombs_and_other_files_are_refused_in_a_sentence(client):
    svg = b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"
    for raw in (
        _bomb(),
        svg,
        b"",
        b"hello",
        b"%PDF-1.7",
        _png()[:40],
        b"\x7fELF" + bytes(99),
    ):
        status, reply = client.json("POST", "/api/items?label=cat&name=a.png", raw)
        assert status == 400, raw[:10]
        assert reply["error"].startswith("Cannot read a.png: ")
        assert reply["error"].endswith(".")
    assert client.json("POST", "/api/predict", b"nothing")[0] == 400
    assert client.labels() == {}


def test_large_requests_are_refused_before_they_are_read(client, monkeypatch):
    monkeypatch.setitem(requests.MAX_BYTES, "file", 1000)
    status, reply = client.json(
        "POST", "/api/items?label=cat&name=big.png", bytes(1001)
    )
    assert (status, reply["error"]) == (
        413,
        "big.png is too large: the maximum size of a file is 0 kB.",
    )
    chunks = iter([bytes(600), bytes(600)])
    assert (
        client.json(
            "POST", "/api/items?label=cat", chunks, **{"Transfer-Encoding": "chunked"}
        )[0]
        == 413
    )
    header = f"POST /api/predict HTTP/1.1\r\nHost: 127.0.0.1:{client.port}\r\nAuthorization: Bearer secret\r\n"
    with socket.create_connection(("127.0.0.1", client.port), timeout=5) as announcing:
        announcing.sendall(
            f"{header}Content-Length: 1001\r\n\r\n".encode()
        )  # and no body
        assert b" 413 " in announcing.recv(4000)


def test_images_are_encoded_again_before_they_are_shown(client):
    about = PngImagePlugin.PngInfo()
    about.add_text("Comment", "<script>alert('hidden')</script>")
    out = io.BytesIO()
    Image.new("RGB", (300, 400), "red").save(out, "PNG", pnginfo=about)
    number = client.json("POST", "/api/items?label=cat&name=a.png", out.getvalue())[1][
        "id"
    ]
    status, headers, raw = client.ask("GET", f"/api/items/{number}/thumbnail")
    assert (status, headers["content-type"]) == (200, "image/jpeg")
    assert b"script" not in raw
    assert Image.open(io.BytesIO(raw)).size == (168, 224)


def test_a_project_has_one_owner(project):
    with pytest.raises(FileError, match="in use"):
        Project(
            project.folder, "raw", project.backbone, project.model().basis.empty.method
        )
    token_of(project.folder)
    assert os.stat(project.folder / "token").st_mode & 0o777 == 0o600


# The token


@pytest.mark.parametrize(
    "content",
    [b"", b"\n", b"short", b"\xff\xfe" * 20, b"with spaces in the middle of it"],
)
def test_a_token_file_that_is_empty_short_or_unreadable_is_refused(tmp_path, content):
    (tmp_path / "token").write_bytes(content)
    with pytest.raises(FileError, match="delete that file to create another one"):
        token_of(tmp_path)


def test_a_token_is_written_completely_or_not_at_all(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "os.fsync", lambda handle: exec("raise OSError(28, 'No space left')")
    )
    with pytest.raises(FileError, match="No space left"):
        token_of(tmp_path)
    assert list(tmp_path.iterdir()) == []
    monkeypatch.undo()
    assert token_of(tmp_path) == token_of(tmp_path)
    assert len(token_of(tmp_path)) >= 20


def test_a_missing_credential_matches_nothing(client):
    with pytest.raises(ParameterError, match="must not be empty"):
        Guard(None, "", 80)
    guard = Guard(None, "x", 80)
    guard.token = ""
    headers = [(b"authorization", b"Bearer "), (b"cookie", b"imprint-80=")]
    scope = {"type": "http", "path": "/", "query_string": b"token=", "headers": headers}
    assert not guard._has_token(HTTPConnection(scope))
    cookie = f"imprint-{client.port}="
    for path in ("/", "/?token=", "/api/state", "/api/state?token="):
        assert client.ask("GET", path, Authorization=None)[0] == 403, path
        assert client.ask("GET", path, Authorization="Bearer ")[0] == 403, path
        assert client.ask("GET", path, Authorization=None, Cookie=cookie)[0] == 403, (
            path
        )


def test_the_browser_is_opened_without_the_token_in_its_command_line(
    client, tmp_path, monkeypatch
):
    from imprint.cli.commands import serve as command

    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    command._announce("http://127.0.0.1:8470/?token=secret", tmp_path, True, False)
    assert opened == [(tmp_path / "open.html").as_uri()]
    assert "secret" in (tmp_path / "open.html").read_text()
    assert os.stat(redirect_file(tmp_path, "x")).st_mode & 0o777 == 0o600
    visit = {
        "Authorization": None,
        "Sec-Fetch-Site": "cross-site",
        "Sec-Fetch-Mode": "navigate",
    }
    status, headers, raw = client.ask("GET", "/?token=secret", **visit)
    assert (status, b"url=/" in raw, "location" in headers) == (200, True, False)
    assert "HttpOnly" in headers["set-cookie"]


def test_a_long_cookie_costs_no_time(client):
    cookies = [chr(92) * 60_000, f'a="{chr(92) * 60_000}', ";" * 60_000, "=" * 60_000]
    started = time.process_time()
    for cookie in cookies:
        assert client.ask("GET", "/api/state", Authorization=None, Cookie=cookie)[
            0
        ] in (400, 403)
    assert time.process_time() - started < 2
    own = f"{'x=1; ' * 50}imprint-{client.port}=secret; y=2"
    assert client.ask("GET", "/api/state", Authorization=None, Cookie=own)[0] == 200


# The form of error responses


@pytest.mark.parametrize(
    "entry",
    [
        {"do": []},
        {"do": {}},
        {"do": None},
        {},
        {"do": "open", "model": "x"},
        {"do": "x"},
    ],
)
def test_an_invalid_change_is_refused(client, entry):
    status, reply = client.json("POST", "/api/change", entry)
    assert (status, "a change must be one of" in reply["error"]) == (400, True)


@pytest.mark.parametrize(
    "entry",
    [
        {"do": "create", "label": []},
        {"do": "rename", "label": [], "to": "a"},
        {"do": "rename", "label": {}, "to": "a"},
        {"do": "merge", "label": None, "into": []},
        {"do": "move", "ids": [[]], "label": "a"},
        {"do": "move", "ids": {}, "label": "a"},
        {"do": "delete", "ids": [True, None]},
        {"do": "drop", "label": 7},
    ],
)
def test_values_of_any_type_are_refused_in_a_sentence(client, entry):
    status, reply = client.json("POST", "/api/change", entry)
    assert (status, reply["error"].endswith((".", "]"))) == (400, True), reply


def test_wrong_methods_and_addresses_are_refused_as_json(client):
    for method, path, allowed in (
        ("GET", "/api/change", "POST"),
        ("GET", "/api/predict", "POST"),
        ("POST", "/api/state", "GET"),
        ("DELETE", "/api/items", "POST"),
        ("PUT", "/", "GET"),
    ):
        status, headers, raw = client.ask(method, path)
        assert (status, json.loads(raw)["error"]) == (
            405,
            "This address does not accept that method.",
        ), path
        assert allowed in headers["allow"]
    long_number = f"/api/items/{'7' * 5000}/thumbnail"  # Python refuses to convert it
    unknown = (
        "/nowhere",
        "/api/nowhere",
        "/static/nowhere.js",
        "/api/items/7/thumbnail",
        "/api/export/passwords",
    )
    for path in (*unknown, long_number, "/api/items/x/thumbnail"):
        status, reply = client.json("GET", path)
        assert status == 404
        assert reply["error"].startswith("There is no")
    status, headers, raw = client.ask("GET", "/api/state", Authorization=None)
    assert (status, headers["content-type"]) == (403, "application/json")
    assert json.loads(raw)["error"].startswith("The token is missing")


def test_a_form_is_refused_with_the_right_command(client):
    form = "multipart/form-data; boundary=x"
    status, reply = client.json(
        "POST", "/api/predict", b"--x\r\n", **{"Content-Type": form}
    )
    assert (status, "curl --data-binary @FILE" in reply["error"]) == (415, True)
    status, _ = client.json(
        "POST",
        "/api/items?label=a",
        _png(),
        **{"Content-Type": "application/x-www-form-urlencoded"},
    )
    assert status == 201  # as curl --data-binary sends it


# Slow requests


def test_a_stalled_upload_times_out_and_frees_its_slot(client, monkeypatch):
    monkeypatch.setattr(body, "IDLE_SECONDS", 0.3)
    stalled = []
    for _ in range(60):
        connection = http.client.HTTPConnection("127.0.0.1", client.port, timeout=30)
        connection.putrequest("POST", "/api/predict")
        for name, value in (
            ("Authorization", "Bearer secret"),
            ("Content-Length", "1000"),
        ):
            connection.putheader(name, value)
        connection.endheaders(b"begin")
        stalled.append(connection)
    assert client.add("cat", 1)[0] == 201
    statuses = [connection.getresponse().status for connection in stalled]
    assert statuses == [503] * 60
    for connection in stalled:
        connection.close()


def test_an_upload_that_never_pauses_but_never_ends_times_out(client, monkeypatch):
    monkeypatch.setattr(body, "IDLE_SECONDS", 1.0)
    monkeypatch.setattr(body, "MIN_RATE", 1 << 30)
    header = f"POST /api/predict HTTP/1.1\r\nHost: 127.0.0.1:{client.port}\r\nAuthorization: Bearer secret\r\n"
    with socket.create_connection(("127.0.0.1", client.port), timeout=0.1) as slow:
        slow.sendall(f"{header}Content-Length: 1000\r\n\r\n".encode())
        deadline, answer = time.monotonic() + 20, b""
        while not answer:
            assert time.monotonic() < deadline
            with suppress(TimeoutError):
                answer = slow.recv(4000)
            if not answer:
                with suppress(ConnectionError):
                    slow.sendall(b"x")
        slow.settimeout(20)
        with suppress(ConnectionError):
            while rest := slow.recv(
                4000
            ):  # the body of the response may follow its header
                answer += rest
    assert b" 503 " in answer
    assert b"The upload stalled after" in answer


def test_a_header_that_never_ends_times_out(client, monkeypatch):
    monkeypatch.setattr(listening, "HEADER_SECONDS", 0.3)
    with socket.create_connection(("127.0.0.1", client.port), timeout=20) as slow:
        slow.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n")
        assert slow.recv(100) == b""

    def drip(connection):
        connection.sendall(b"GET / HTTP/1.1\r\n")
        for _ in range(100):
            connection.sendall(b"A: b\r\n")
            time.sleep(0.1)

    dripping = socket.create_connection(("127.0.0.1", client.port), timeout=20)
    with (
        dripping,
        pytest.raises(ConnectionError),
    ):  # a few bytes do not extend the deadline
        drip(dripping)
    with socket.create_connection(("127.0.0.1", client.port), timeout=20) as second:
        host = f"Host: 127.0.0.1:{client.port}"
        second.sendall(f"GET /api/health HTTP/1.1\r\n{host}\r\n\r\n".encode())
        assert b"200 OK" in second.recv(4000)
        second.sendall(b"GET /api/health HTTP/1.1\r\nHo")
        while second.recv(4000):
            pass


@pytest.mark.parametrize("name", ["serve", "api"])
def test_by_default_servers_listen_on_this_machine_only(name):
    command = import_module(f"imprint.cli.commands.{name}").command
    host = signature(command).parameters["host"].default.default
    with closing(listening.listen(host, 0)) as sock:
        assert ip_address(sock.getsockname()[0]).is_loopback
