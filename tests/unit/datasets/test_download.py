"""The downloader against servers that drop connections, refuse requests or ignore ranges."""

import hashlib
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from imprint.core.errors import FileError, ImprintError, ParameterError
from imprint.datasets import PublishedFile, download, load, record
from imprint.datasets.download import fetch

CONTENT = bytes(range(256)) * 4000  # about a megabyte


class Server(ThreadingHTTPServer):
    """Serves CONTENT at /file.bin; `drop` ends every response after this number of bytes."""

    daemon_threads = True
    drop, ranges, status, content, length, redirect, drip = (
        None,
        True,
        None,
        CONTENT,
        None,
        None,
        None,
    )

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked = []


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        server = self.server
        requested = self.headers.get("Range")
        server.asked.append(requested)
        start = int(requested[6:-1]) if requested and server.ranges else 0
        if server.status or (
            requested and server.ranges and start >= len(server.content)
        ):
            self.send_error(server.status or 416)
            return
        if server.redirect:
            self.send_response(302)
            self.send_header("Location", server.redirect)
            self.end_headers()
            return
        self.send_response(206 if requested and server.ranges else 200)
        self.send_header(
            "Content-Length", server.length or str(len(server.content) - start)
        )
        self.end_headers()
        body = server.content[start:]
        with suppress(ConnectionError):
            for first in range(0, len(body), server.drip or len(body)):
                if server.drip:
                    time.sleep(0.02)
                self.wfile.write(
                    body[first:][: server.drip]
                    if server.drop is None
                    else body[: server.drop]
                )

    def log_message(self, *_):
        pass


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(download, "PAUSE", 0)
    with Server() as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


def source(server, content=CONTENT, **changes):
    url = f"http://127.0.0.1:{server.server_address[1]}/file.bin"
    return PublishedFile(
        **{
            "urls": (url,),
            "sha256": hashlib.sha256(content).hexdigest(),
            "size": len(content),
        }
        | changes
    )


def test_a_file_is_downloaded_completely_with_progress(server, tmp_path):
    progress = []
    path = fetch(
        source(server), tmp_path / "new" / "folder", lambda *a: progress.append(a)
    )
    assert path.read_bytes() == CONTENT
    assert progress[-1] == ("file.bin", len(CONTENT), len(CONTENT))
    assert [h[1] for h in progress] == sorted({h[1] for h in progress})
    assert not list(path.parent.glob("*.part"))
    assert fetch(source(server), path.parent) == path
    assert len(server.asked) == 1


def test_md5_is_used_if_no_better_checksum_is_published(server, tmp_path):
    md5 = hashlib.md5(CONTENT).hexdigest()
    assert (
        fetch(source(server, sha256="", md5=md5, size=None), tmp_path).read_bytes()
        == CONTENT
    )


def test_a_dropped_connection_is_resumed(server, tmp_path):
    server.drop = 100_000
    assert fetch(source(server), tmp_path).read_bytes() == CONTENT
    assert server.asked[:3] == [None, "bytes=100000-", "bytes=200000-"]
    assert len(server.asked) == 11


def test_a_partial_file_of_a_killed_process_is_resumed(server, tmp_path):
    (tmp_path / "file.bin.part").write_bytes(CONTENT[:700_000])
    assert fetch(source(server), tmp_path).read_bytes() == CONTENT
    assert server.asked == ["bytes=700000-"]


def test_a_complete_partial_file_is_only_checked(server, tmp_path):
    (tmp_path / "file.bin.part").write_bytes(CONTENT)
    assert fetch(source(server), tmp_path).read_bytes() == CONTENT
    assert len(server.asked) == 1


def test_a_server_without_ranges_starts_again(server, tmp_path):
    server.ranges = False
    (tmp_path / "file.bin.part").write_bytes(b"x" * 700_000)
    assert fetch(source(server), tmp_path).read_bytes() == CONTENT


def test_wrong_content_is_discarded(server, tmp_path):
    server.content = CONTENT[:-1] + b"!"
    with pytest.raises(
        FileError,
        match=r"^Cannot download file\.bin: what .* sends .* has sha256 .* discarded",
    ):
        fetch(source(server), tmp_path)
    assert not (tmp_path / "file.bin").exists()
    server.content = CONTENT
    assert fetch(source(server), tmp_path).read_bytes() == CONTENT


def test_a_wrong_partial_file_is_discarded(server, tmp_path):
    (tmp_path / "file.bin.part").write_bytes(b"x" * 700_000)
    with pytest.raises(FileError, match="discarded"):
        fetch(source(server), tmp_path)
    assert fetch(source(server), tmp_path).read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("status", "asked"), [(404, 1), (403, 1), (503, download.MAX_ATTEMPTS)]
)
def test_a_refusal_names_the_file_the_place_and_the_reason(
    server, tmp_path, status, asked
):
    server.status = status
    with pytest.raises(
        FileError, match=rf"^Cannot download file\.bin: .*\({status}|does not answer"
    ) as caught:
        fetch(source(server), tmp_path, hint=", or elsewhere")
    assert str(caught.value).endswith(f"put the file into {tmp_path}, or elsewhere.")
    assert len(server.asked) == asked


def test_a_mirror_is_used(server, tmp_path):
    good = source(server)
    other = PublishedFile(
        urls=("http://127.0.0.1:9/file.bin", *good.urls), sha256=good.sha256
    )
    assert fetch(other, tmp_path).read_bytes() == CONTENT


def test_a_server_that_drops_every_connection_is_reported(server, tmp_path):
    server.drop = 0
    with pytest.raises(FileError, match=r"put the file into"):
        fetch(source(server), tmp_path)
    assert len(server.asked) == download.MAX_ATTEMPTS


def test_concurrent_downloads_of_a_file_wait_for_each_other(server, tmp_path):
    with ThreadPoolExecutor(4) as pool:
        paths = list(pool.map(lambda _: fetch(source(server), tmp_path), range(4)))
    assert {p.read_bytes() for p in paths} == {CONTENT}
    assert len(server.asked) == 1


def test_a_folder_that_cannot_be_made_is_named(server, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match=r"Cannot write .*file"):
        fetch(source(server), tmp_path / "file" / "below")


def test_a_download_is_limited_to_the_published_size(server, tmp_path):
    server.content = CONTENT * 3
    with pytest.raises(
        FileError,
        match=r"sends more than the 1,024,000 bytes of the file; put the file into",
    ):
        fetch(source(server), tmp_path)
    assert not list(tmp_path.glob("file*"))


def test_a_file_without_a_published_size_has_a_limit_too(server, tmp_path, monkeypatch):
    monkeypatch.setattr(download, "MAX_BYTES", 1000)
    with pytest.raises(FileError, match=r"sends more than the 1,000 bytes of the file"):
        fetch(source(server, size=None), tmp_path)
    assert not list(tmp_path.glob("file*"))


@pytest.mark.parametrize("length", ["abc", "-5", "9" * 30, "1e3"])
def test_an_implausible_length_is_refused(server, tmp_path, length):
    server.length = length
    server.protocol_version = "HTTP/1.0"
    assert fetch(source(server), tmp_path).read_bytes() == CONTENT


def test_a_mirror_is_used_if_a_server_sends_other_content(server, tmp_path):
    good = source(server)
    with Server() as bad:
        bad.content = b"<html>Moved</html>"
        threading.Thread(target=bad.serve_forever, args=(0.01,), daemon=True).start()
        both = PublishedFile(
            urls=(*source(bad).urls, *good.urls), sha256=good.sha256, size=good.size
        )
        assert fetch(both, tmp_path).read_bytes() == CONTENT
        bad.shutdown()


@pytest.mark.parametrize(
    "address", ["ftp://127.0.0.1/file.bin", "file:///etc/hostname", "data:,x"]
)
def test_only_http_is_followed(server, tmp_path, address):
    server.redirect = address
    with pytest.raises(
        FileError, match=r"^Cannot download file\.bin: .*does not answer"
    ):
        fetch(source(server), tmp_path)
    with pytest.raises(FileError, match=r"^Cannot download .*unknown url type: "):
        fetch(PublishedFile(urls=(address + "/file.bin",), sha256="0" * 64), tmp_path)


def test_a_slow_server_times_out_and_the_received_bytes_are_kept(
    server, tmp_path, monkeypatch
):
    monkeypatch.setattr(download, "BASE_SECONDS", 0.2)
    monkeypatch.setattr(download, "MIN_BYTES_PER_SECOND", 1e12)
    server.drip = 1000
    with pytest.raises(
        FileError, match=r"is too slow; the same call resumes the download"
    ):
        fetch(source(server), tmp_path)
    assert 0 < (tmp_path / "file.bin.part").stat().st_size < 100_000
    server.drip = None
    monkeypatch.undo()
    assert fetch(source(server), tmp_path).read_bytes() == CONTENT
    assert server.asked[-1].startswith("bytes=")


@pytest.mark.skipif(os.name != "posix", reason="POSIX limits the size of files")
def test_a_full_disk_is_one_sentence(server, tmp_path):
    import resource

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(
        resource.RLIMIT_FSIZE, (300_000, limits[1])
    )  # Python converts the signal to an error
    try:
        with pytest.raises(
            FileError, match=r"^Cannot write .*file\.bin: File too large\.$"
        ):
            fetch(source(server), tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert fetch(source(server), tmp_path).read_bytes() == CONTENT


def test_names_cannot_escape_the_folder(monkeypatch, tmp_path):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")  # names may be relative paths
    monkeypatch.setenv("IMPRINT_HOME", str(tmp_path / "home"))
    for place in ("packs", "data/named"):
        (tmp_path / "home" / place).mkdir(parents=True)
        np.savez(
            tmp_path / "home" / place / "a.npz",
            train_images=np.zeros((2, 4, 4), np.uint8),
            train_labels=[0, 1],
        )
    for name in ("../packs/a", "..", "named/a"):
        with pytest.raises(
            ImprintError, match=r"There is no file or folder|Unknown|no images"
        ):
            load(name)
        with pytest.raises(ParameterError, match="Unknown dataset"):
            record(name)
