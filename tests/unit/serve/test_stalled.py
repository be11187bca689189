"""Clients that ask and do not read give their connection back."""

import socket
import threading
import time
from contextlib import contextmanager

import pytest

pytest.importorskip("starlette")
import uvicorn

from imprint.http import listening

BLOCK = b"x" * 65_536


def application(blocks):
    """An ASGI application that answers with so many blocks."""

    async def answer(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(blocks):
            await send({"type": "http.response.body", "body": BLOCK, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    return answer


@contextmanager
def serving(blocks):
    sock = listening.listen("127.0.0.1", 0)
    # so that little of an answer is on its way
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    config = listening.server_config(application(blocks))
    config.timeout_keep_alive = 1
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([sock],), daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield sock.getsockname()[1], server
    server.should_exit = True
    thread.join(20)


def asking(port):
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect(("127.0.0.1", port))
    client.sendall(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    return client


def remaining(server, seconds=20.0):
    """The number of connections after some time, or 0 as soon as there are none."""
    latest = time.monotonic() + seconds
    while server.server_state.connections and time.monotonic() < latest:
        time.sleep(0.05)
    return len(server.server_state.connections)


@pytest.mark.parametrize("blocks", [1, 2000])
def test_downloads_that_nobody_reads_end(blocks, monkeypatch):
    monkeypatch.setattr(listening, "WRITE_SECONDS", 0.3)
    monkeypatch.setattr(listening, "HEADER_SECONDS", 0.3)
    with serving(blocks) as (port, server):
        clients = [asking(port) for _ in range(20)]
        while len(server.server_state.connections) < 1:
            time.sleep(0.01)
        assert remaining(server) == 0
        for client in clients:
            client.close()


def test_a_slow_reader_gets_everything(monkeypatch):
    monkeypatch.setattr(listening, "WRITE_SECONDS", 3.0)
    with serving(60) as (port, _):
        client = asking(port)
        received = 0
        started = time.monotonic()
        while received < 60 * len(BLOCK):
            part = client.recv(20_000)
            assert part, received
            received += len(part)
            time.sleep(0.02)
        assert time.monotonic() - started > 3.5
        client.close()
