"""Hostile servers: the download fails in one sentence and bounded time, and a mirror is used instead."""

import hashlib
import socket
import threading
import time
from contextlib import contextmanager, suppress
from itertools import chain, repeat

import pytest

from imprint.core.errors import FileError
from imprint.datasets import PublishedFile, download
from imprint.datasets.download import fetch

CONTENT = b"published" * 1000
LONGEST = 8.0  # seconds, on a busy machine; about one otherwise
OK, CHUNKED = (
    b"HTTP/1.1 200 OK\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
)


def dripping(raw):
    """Send single bytes, each well before the timeout."""
    for byte in raw:
        yield bytes([byte])
        time.sleep(0.1)


def leads_to(address):
    return [
        b"HTTP/1.1 302 Found\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n" % address
    ]


ANSWERS = {
    "nothing": [],
    "no HTTP": [b"\x00\xff\x16\x03" * 100],
    "a status of its own": [b"HTTP/9.9 abc\r\n\r\n"],
    "a status that drips": lambda: dripping(b"H" * 1000),
    "headers that drip": lambda: dripping(OK + b"X-" + b"a" * 1000),
    "headers without end": lambda: chain([OK], repeat(b"A: b\r\n" * 1000)),
    "a header without end": lambda: chain([OK + b"A: "], repeat(b"b" * 65536)),
    "to be continued for ever": lambda: repeat(b"HTTP/1.1 100 Continue\r\n\r\n" * 100),
    "a body without end": lambda: chain([OK + b"\r\n"], repeat(b"z" * 65536)),
    "an error without end": lambda: chain(
        [b"HTTP/1.1 404 No\r\n\r\n"], repeat(b"z" * 65536)
    ),
    "a redirection without end": lambda: chain(
        [b"HTTP/1.1 302 Found\r\nLocation: /other\r\n\r\n"], repeat(b"z" * 65536)
    ),
    "a negative chunk": [CHUNKED + b"-5\r\nabc"],
    "a chunk of no size": [CHUNKED + b"zz\r\nabc"],
    "a chunk that drips": lambda: chain([CHUNKED], dripping(b"5;" + b"a" * 1000)),
    "chunks that end for ever": lambda: chain(
        [CHUNKED + b"3\r\nabc\r\n0\r\n"], repeat(b"A: b\r\n" * 1000)
    ),
    "leads to itself": leads_to(b"/file.bin"),
    "leads nowhere": leads_to(b""),
    "leads to no host": leads_to(b"http:///x"),
    "leads to half an address": leads_to(b"http://[::1"),
    "leads to no port": leads_to(b"http://127.0.0.1:abc/x"),
    "leads to a host of dots": leads_to(b"http://../x"),
    "leads to a host of bytes": leads_to(b"http://\xff\xfe/"),
    "leads to a host too long": leads_to(b"http://" + b"a" * 60_000 + b"/"),
    "lies about the range": [
        b"HTTP/1.1 206 P\r\nContent-Range: bytes 99-/x\r\nContent-Length: 9000\r\n\r\nabc"
    ],
}


@contextmanager
def serving(answer):
    """Start a server that sends `answer` to every client."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve():
            with suppress(OSError):
                while True:
                    threading.Thread(
                        target=send, args=(listening.accept()[0],), daemon=True
                    ).start()

        def send(connection):
            with connection, suppress(OSError):
                connection.settimeout(10)
                connection.recv(65536)
                for part in answer() if callable(answer) else answer:
                    connection.sendall(part)

        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/file.bin"
        with suppress(OSError):
            listening.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("name", ANSWERS)
def test_a_hostile_server_is_reported_in_one_sentence_and_a_mirror_is_used(
    name, tmp_path, monkeypatch
):
    for limit, value in dict(
        PAUSE=0.0, TIMEOUT=0.5, BASE_SECONDS=0.5, MIN_BYTES_PER_SECOND=1e12
    ).items():
        monkeypatch.setattr(download, limit, value)
    digest = hashlib.sha256(CONTENT).hexdigest()
    good = [OK + b"Content-Length: %d\r\n\r\n" % len(CONTENT) + CONTENT]
    with serving(ANSWERS[name]) as bad, serving(good) as mirror:
        start = time.monotonic()
        with pytest.raises(
            FileError, match=r"^Cannot download file\.bin: .*; put the file into .*\.$"
        ) as e:
            fetch(
                PublishedFile(urls=(bad,), sha256=digest, size=len(CONTENT)), tmp_path
            )
        assert "\n" not in str(e.value)
        assert sum(p.stat().st_size for p in tmp_path.iterdir()) <= len(CONTENT)
        both = PublishedFile(urls=(bad, mirror), sha256=digest, size=len(CONTENT))
        assert fetch(both, tmp_path).read_bytes() == CONTENT
        assert time.monotonic() - start < 2 * LONGEST
