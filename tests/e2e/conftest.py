"""Fixtures: a browser, and a Ray cluster of two nodes on this machine that can be killed separately."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import pytest
from filelock import FileLock

from .serve.browser import chromium


@pytest.fixture(autouse=True)
def children_receive_sigint():
    """Let child processes react to SIGINT, which they would ignore if the tests run under nohup or in the background.

    A child inherits an ignored signal across exec, and any other handler as the default.
    """
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, handler)


@pytest.fixture(scope="module")
def browser_page(tmp_path_factory):
    """A headless browser page, shared by the tests of a module."""
    with chromium(tmp_path_factory.mktemp("browser")) as page:
        yield page


class Cluster:
    """`ray start` processes bound to 127.0.0.1, each in its own session."""

    def __init__(self, folder):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.folder, self.nodes = folder, []
        self.env = {
            **os.environ,
            "RAY_USAGE_STATS_ENABLED": "0",
            "PYTHONPATH": os.pathsep.join(sys.path),
        }
        self.add(
            "--head",
            f"--port={self.port}",
            "--include-dashboard=false",
            f"--temp-dir={folder}",
        )
        self.add(f"--address=127.0.0.1:{self.port}")

    def add(self, *options):
        ray = Path(sys.executable).parent / "ray"
        common = (
            "--node-ip-address=127.0.0.1",
            "--num-cpus=1",
            "--object-store-memory=100000000",
            "--block",
        )
        with open(self.folder / f"node{len(self.nodes)}.log", "wb") as log:
            node = subprocess.Popen(
                [ray, "start", *options, *common],
                env=self.env,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.nodes.append(node)

    def wait(self):
        import ray

        deadline = time.monotonic() + 120
        while True:
            try:
                ray.init(log_to_driver=False, logging_level="ERROR")
                break
            except ConnectionError:
                assert time.monotonic() < deadline, self.logs()
                time.sleep(0.5)
        while ray.cluster_resources().get("CPU") != 2:
            assert time.monotonic() < deadline, self.logs()
            time.sleep(0.2)

    def logs(self):
        return [p.read_text()[-2000:] for p in sorted(self.folder.glob("node*.log"))]

    def kill(self, node):
        """Kill all processes of a node at once, like a machine failure."""
        for pid in sorted(
            int(p.name) for p in Path("/proc").iterdir() if p.name.isdigit()
        ):
            with suppress(ProcessLookupError):
                if os.getsid(pid) == node.pid:
                    os.kill(pid, signal.SIGKILL)
        node.wait()


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    import ray

    short = Path(f"/tmp/r{os.getpid()}")  # for sockets, whose paths must be short
    monkeypatch.setenv(
        "RAY_AUTH_MODE", "disabled"
    )  # the nodes would use a token in the home folder
    with FileLock(
        Path(tempfile.gettempdir()) / "imprint-tests-ray.lock"
    ):  # two clusters would use the same ports
        short.mkdir()
        nodes = Cluster(short)
        monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.1:{nodes.port}")
        try:
            nodes.wait()
            yield nodes
        finally:
            ray.shutdown()
            for node in reversed(nodes.nodes):
                nodes.kill(node)
            subprocess.run(["rm", "-rf", str(short)], check=True)
