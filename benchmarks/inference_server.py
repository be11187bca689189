"""The latency, throughput and memory of `imprint api`, compared with the library.

Usage: python benchmarks/inference_server.py PART MODEL IMAGE... [--rounds N]

The server runs in a process of its own, on the same cores as the clients. What is
compared alternates in one run, so that other load on the machine affects both. Each
part takes a minute or two and prints one JSON object:

start   until a new server answers `/v2/health/ready`.
kept    ten requests on one connection, and ten connections with one request each.
one     one client: the median latency, and that of the library in Python.
many    16 clients: images per second, and those of the network alone on prepared
        images, and of the library, which decodes and embeds batches.
crowd   200 clients with 15 requests each: the median latency, and failures.
memory  memory of the server during `--requests` requests.
budget  one request, part by part.
folder  the exported folder in Python and, if `IMPRINT_NODE_MODULES` names a folder with
        onnxruntime-web and sharp (`make node`), in Node, next to the library.

Elapsed times on a busy machine are those of its scheduler. CPU times are comparable
there too: on cores that are all busy, their inverse is the throughput.
"""

import argparse
import importlib
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from imprint import Imprinter
from imprint.embeddings.pipeline import BATCH_SIZE
from imprint.export.whole import export_whole
from imprint.imprinter import Embedded
from imprint.imprinter.predictor import predictions

MANY, EACH_OF_MANY = 16, 12  # clients, and requests of each in a round
CROWD, EACH_OF_CROWD = 200, 15
KEPT_REQUESTS = 10
READY_TIMEOUT = 120.0  # seconds


class Setting(NamedTuple):
    """What a part measures with."""

    path: str
    model: Imprinter
    images: list[bytes]
    rounds: int
    requests: int

    def decode(self, raw: bytes) -> Any:
        """An image as the network's input."""
        return self.model.backbone.prepare(self.model.embedder.kind.read(raw))

    def image(self, number: int) -> bytes:
        return self.images[number % len(self.images)]


class Connection:
    """A kept connection that sends prepared requests, with as little work as
    possible.
    """

    def __init__(self, port: int):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=300)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, request: bytes) -> int:
        """The status of the answer."""
        self.socket.sendall(request)
        received = b""
        while b"\r\n\r\n" not in received:
            received += self._receive()
        header, _, body = received.partition(b"\r\n\r\n")
        length = int(re.search(rb"content-length: (\d+)", header)[1])
        while len(body) < length:
            body += self._receive()
        return int(header[9:12])

    def _receive(self) -> bytes:
        part = self.socket.recv(65536)
        if not part:
            raise ConnectionError("the server closed the connection")
        return part


class Server:
    """`imprint api` as a process."""

    def __init__(self, path: str, log: str = "none", errors: Any = None):
        command = [sys.executable, "-m", "imprint", "api", path, "--log", log]
        environment = {**os.environ, "IMPRINT_PORT": "0"}
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, env=environment
        )
        address = self.process.stdout.readline()
        self.port = int(address.rpartition(b":")[2])

    def memory(self) -> float:
        """The resident memory, in MB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024

    def cpu_seconds(self) -> float:
        """The CPU time so far."""
        stat = Path(f"/proc/{self.process.pid}/stat").read_text()
        fields = stat.rpartition(")")[2].split()
        ticks = int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def event_loop_seconds(self) -> float:
        """The CPU time of the first thread: it parses requests and writes answers."""
        pid = self.process.pid
        schedule = Path(f"/proc/{pid}/task/{pid}/schedstat").read_text()
        nanoseconds = int(schedule.split()[0])
        return nanoseconds / 1e9

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()


@contextmanager
def serving(path: str, **options: Any) -> Iterator[Server]:
    server = Server(path, **options)
    try:
        yield server
    finally:
        server.stop()


def request_of(image: bytes) -> bytes:
    """The request that classifies an image."""
    lines = [
        "POST /predict HTTP/1.1",
        "host: localhost",
        f"content-length: {len(image)}",
    ]
    return "\r\n".join([*lines, "", ""]).encode() + image


def timed(function: Callable[..., Any], *arguments: Any) -> float:
    """The seconds that a call takes."""
    started = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - started


def median_ms(seconds: list[float]) -> float:
    return round(1000 * statistics.median(seconds), 2)


class Outcome(NamedTuple):
    """What several clients saw."""

    latencies: list[float]  # seconds
    failures: list[str]
    seconds: float  # until the last client had its last answer


def in_parallel(port: int, requests: list[bytes], clients: int, each: int) -> Outcome:
    """`clients` send `each` requests, one after the other."""
    latencies: list[float] = []
    failures: list[str] = []
    barrier = threading.Barrier(clients + 1)

    def client(number: int) -> None:
        connection = Connection(port)
        barrier.wait()
        for i in range(each):
            request = requests[(number + i) % len(requests)]
            started = time.perf_counter()
            try:
                status = connection.ask(request)
            except OSError as e:
                failures.append(str(e))
                return
            latencies.append(time.perf_counter() - started)
            if status != 200:
                failures.append(str(status))

    threads = [threading.Thread(target=client, args=(n,)) for n in range(clients)]
    for thread in threads:
        thread.start()
    barrier.wait()
    started = time.perf_counter()
    for thread in threads:
        thread.join()
    return Outcome(latencies, failures, time.perf_counter() - started)


def start(setting: Setting) -> dict[str, Any]:
    """From the start of the process to an answer that the model is ready."""
    seconds = []
    cpu = []
    for _ in range(setting.rounds):
        started = time.perf_counter()
        with serving(setting.path) as server:
            request = b"GET /v2/health/ready HTTP/1.1\r\nhost: localhost\r\n\r\n"
            status = Connection(server.port).ask(request)
            seconds.append(time.perf_counter() - started)
            cpu.append(server.cpu_seconds())
            assert status == 200
            memory = server.memory()
    return {
        "ready_s_least": round(min(seconds), 2),
        "ready_s_median": round(statistics.median(seconds), 2),
        "cpu_s_least": round(min(cpu), 2),
        "memory_mb": round(memory),
    }


def kept(setting: Setting) -> dict[str, Any]:
    """Requests on one connection, and on connections of their own."""
    request = request_of(setting.images[0])
    later, first = [], []
    with serving(setting.path) as server:
        for _ in range(setting.rounds):
            connection = Connection(server.port)
            times = [timed(connection.ask, request) for _ in range(KEPT_REQUESTS)]
            later += times[1:]
            for _ in range(KEPT_REQUESTS):
                fresh = Connection(server.port)
                first.append(timed(fresh.ask, request))
    return {
        "kept_connection_ms": median_ms(later),
        "new_connection_ms": median_ms(first),
        "kept_least_ms": round(1000 * min(later), 2),
        "new_least_ms": round(1000 * min(first), 2),
    }


def one(setting: Setting) -> dict[str, Any]:
    """One client, and the library in Python: the same images in turn."""
    backbone = setting.model.backbone
    names = ("embed", "predict", "server")
    times: dict[str, list[float]] = {name: [] for name in names}
    cpu = dict.fromkeys(names, 0.0)
    count = 10 * setting.rounds
    with serving(setting.path) as server:
        connection = Connection(server.port)
        connection.ask(request_of(setting.images[0]))
        server_before = server.cpu_seconds()
        for i in range(count):
            raw = setting.image(i)
            calls: dict[str, Callable[[], Any]] = {
                "embed": lambda raw=raw: backbone.embed(setting.decode(raw)[None]),
                "predict": lambda raw=raw: setting.model.predict([raw]),
                "server": lambda raw=raw: connection.ask(request_of(raw)),
            }
            for name, call in calls.items():
                before = time.process_time()
                times[name].append(timed(call))
                cpu[name] += time.process_time() - before
        # the client's part is in `cpu` already
        cpu["server"] += server.cpu_seconds() - server_before
    added = [a - b for a, b in zip(times["server"], times["embed"], strict=True)]
    facts = {}
    for name, values in times.items():
        facts[f"{name}_ms"] = median_ms(values)
        facts[f"{name}_least_ms"] = round(1000 * min(values), 2)
        facts[f"{name}_cpu_ms"] = round(1000 * cpu[name] / count, 2)
    facts["server_minus_embed_ms"] = median_ms(added)
    facts["server_minus_embed_cpu_ms"] = round(
        1000 * (cpu["server"] - cpu["embed"]) / count, 2
    )
    return facts


def many(setting: Setting) -> dict[str, Any]:
    """16 clients, the network alone, and the library on batches."""
    backbone, head = setting.model.backbone, setting.model.state.head
    requests = [request_of(image) for image in setting.images]
    batch = [setting.image(i) for i in range(BATCH_SIZE)]
    prepared = np.stack([setting.decode(raw) for raw in batch])
    pool = ThreadPoolExecutor(os.cpu_count())

    def library() -> None:
        decoded = list(pool.map(setting.decode, batch))
        head.predict(backbone.embed(np.stack(decoded)))

    rates: dict[str, list[float]] = {"network": [], "library": [], "server": []}
    cpu: dict[str, list[float]] = {"network": [], "library": [], "server": []}
    clients_cpu = []
    with serving(setting.path) as server:
        in_parallel(server.port, requests, MANY, 2)
        for _ in range(setting.rounds):
            for name, work in (
                ("network", lambda: backbone.embed(prepared)),
                ("library", library),
            ):
                before = time.process_time()
                rates[name].append(BATCH_SIZE / timed(work))
                cpu[name].append((time.process_time() - before) / BATCH_SIZE)
            before = server.cpu_seconds()
            own_before = time.process_time()
            outcome = in_parallel(server.port, requests, MANY, EACH_OF_MANY)
            count = len(outcome.latencies)
            cpu["server"].append((server.cpu_seconds() - before) / count)
            clients_cpu.append((time.process_time() - own_before) / count)
            rates["server"].append(count / outcome.seconds)
    facts = {f"{name}_per_s": round(max(v), 1) for name, v in rates.items()}
    facts |= {f"{name}_cpu_ms": round(1000 * min(v), 2) for name, v in cpu.items()}
    facts["clients_cpu_ms"] = round(1000 * min(clients_cpu), 2)
    for peer in ("network", "library"):
        pairs = zip(rates["server"], rates[peer], strict=True)
        ratios = [server / other for server, other in pairs]
        facts[f"share_of_{peer}_best"] = round(
            max(rates["server"]) / max(rates[peer]), 3
        )
        facts[f"share_of_{peer}_median"] = round(statistics.median(ratios), 3)
        facts[f"share_of_{peer}_by_cpu"] = round(min(cpu[peer]) / min(cpu["server"]), 3)
    return facts


def crowd(setting: Setting) -> dict[str, Any]:
    """200 clients that all begin at once, and the network alone next to each round."""
    backbone = setting.model.backbone
    requests = [request_of(image) for image in setting.images]
    batch = [setting.image(i) for i in range(BATCH_SIZE)]
    prepared = np.stack([setting.decode(raw) for raw in batch])
    rounds = []
    rates = []
    with serving(setting.path) as server:
        in_parallel(server.port, requests, MANY, 2)
        for _ in range(setting.rounds):
            rates.append(BATCH_SIZE / timed(backbone.embed, prepared))
            before = server.cpu_seconds()
            outcome = in_parallel(server.port, requests, CROWD, EACH_OF_CROWD)
            cpu = (server.cpu_seconds() - before) / len(outcome.latencies)
            rounds.append((statistics.median(outcome.latencies), cpu, outcome))
        memory = server.memory()
    median, cpu, outcome = min(rounds, key=lambda one: one[0])
    return {
        "median_s": round(median, 2),
        "maximum_s": round(max(outcome.latencies), 2),
        "images_per_s": round(len(outcome.latencies) / outcome.seconds, 1),
        "network_alone_per_s": round(max(rates), 1),
        "failures": sum(len(outcome.failures) for _, _, outcome in rounds),
        "requests": sum(len(outcome.latencies) for _, _, outcome in rounds),
        "server_cpu_ms": round(1000 * cpu, 2),
        "memory_mb": round(memory),
    }


def memory(setting: Setting) -> dict[str, Any]:
    """The memory of the server while `--requests` requests are answered."""
    requests = [request_of(image) for image in setting.images]
    steps = 10
    failures = 0
    with serving(setting.path) as server:
        in_parallel(server.port, requests, MANY, 2)
        resident = [server.memory()]
        for _ in range(steps):
            each = setting.requests // steps // MANY
            outcome = in_parallel(server.port, requests, MANY, each)
            failures += len(outcome.failures)
            resident.append(server.memory())
    return {
        "requests": each * MANY * steps,
        "failures": failures,
        "memory_mb": [round(one) for one in resident],
    }


def budget(setting: Setting) -> dict[str, Any]:
    """One request, part by part: from the log of the server, and the parts of its
    preparation and of its answer in Python, as elapsed and as CPU time.
    """
    model = setting.model
    kind, backbone, head = model.embedder.kind, model.backbone, model.state.head
    names = ("decode", "resize", "network", "head", "json")
    elapsed: dict[str, list[float]] = {name: [] for name in names}
    cpu: dict[str, list[float]] = {name: [] for name in names}
    latencies = []
    count = 10 * setting.rounds
    with tempfile.TemporaryFile() as log:
        with serving(setting.path, log="json", errors=log) as server:
            connection = Connection(server.port)
            connection.ask(request_of(setting.images[0]))
            loop_before = server.event_loop_seconds()
            server_before = server.cpu_seconds()
            for i in range(count):
                raw = setting.image(i)
                latencies.append(timed(connection.ask, request_of(raw)))
                pixels = kind.read(raw)
                prepared = backbone.prepare(pixels)
                rows = Embedded(backbone.embed(prepared[None]), ["image 1"], ())
                answers = predictions(head, rows)
                calls: dict[str, Callable[[], Any]] = {
                    "decode": lambda raw=raw: kind.read(raw),
                    "resize": lambda pixels=pixels: backbone.prepare(pixels),
                    "network": lambda one=prepared: backbone.embed(one[None]),
                    "head": lambda rows=rows: predictions(head, rows),
                    "json": lambda answers=answers: json.dumps(answers).encode(),
                }
                for name, call in calls.items():
                    before = time.process_time()
                    elapsed[name].append(timed(call))
                    cpu[name].append(time.process_time() - before)
            loop_cpu = server.event_loop_seconds() - loop_before
            server_cpu = server.cpu_seconds() - server_before
        log.seek(0)
        records = [json.loads(line) for line in log if b'"path": "/predict"' in line]
    logged = {
        name: statistics.median(record[name] for record in records)
        for name in ("ms", "prepare_ms", "wait_ms", "network_ms")
    }
    known = logged["prepare_ms"] + logged["wait_ms"] + logged["network_ms"]
    facts: dict[str, Any] = {}
    for name in names:
        facts[f"{name}_ms"] = median_ms(elapsed[name])
        facts[f"{name}_cpu_ms"] = median_ms(cpu[name])
    return facts | {
        "client_ms": median_ms(latencies),
        "client_least_ms": round(1000 * min(latencies), 2),
        "server_ms": round(logged["ms"], 2),
        "server_decode_and_resize_ms": round(logged["prepare_ms"], 2),
        "server_wait_ms": round(logged["wait_ms"], 2),
        "server_network_and_head_ms": round(logged["network_ms"], 2),
        "server_rest_ms": round(logged["ms"] - known, 2),
        "server_cpu_ms": round(1000 * server_cpu / count, 2),
        "event_loop_cpu_ms": round(1000 * loop_cpu / count, 2),
    }


NODE_PROGRAM = """
import * as ort from "onnxruntime-web";
import { load } from "./imprint.mjs";
ort.env.wasm.numThreads = 1;
const model = await load(ort, new URL(".", import.meta.url));
const times = [];
for (const path of process.argv.slice(2)) {
  const start = performance.now();
  const before = process.cpuUsage();
  await model.classify(await model.read(path));
  const { user, system } = process.cpuUsage(before);
  times.push([(performance.now() - start) / 1e3, (user + system) / 1e6]);
}
// the first one compiles
console.log(JSON.stringify(times.slice(1)));
"""


def folder(setting: Setting) -> dict[str, Any]:
    """The folder that `imprint export --whole` writes, on the same images."""
    times: dict[str, list[tuple[float, float]]]
    times = {"library": [], "python": [], "node": []}
    packages = os.environ.get("IMPRINT_NODE_MODULES")
    with tempfile.TemporaryDirectory() as scratch:
        target = Path(scratch, "whole")
        export_whole(setting.model, target)
        size = sum(file.stat().st_size for file in target.iterdir())
        sys.path.insert(0, str(target))
        exported = importlib.import_module("classify").Model(target)
        names = []
        for i, image in enumerate(setting.images):
            name = str(Path(scratch, f"{i}.jpg"))
            Path(name).write_bytes(image)
            names.append(name)
        if packages:
            (target / "node_modules").symlink_to(packages)
            (target / "times.mjs").write_text(NODE_PROGRAM)

        def in_python(name: str) -> None:
            exported.classify(exported.preparation.read(name))

        for _ in range(setting.rounds):
            for name, raw in zip(names, setting.images, strict=True):
                for who, call, given in (
                    ("library", setting.model.predict, [raw]),
                    ("python", in_python, name),
                ):
                    before = time.process_time()
                    seconds = timed(call, given)
                    times[who].append((seconds, time.process_time() - before))
            if packages:
                command = ["node", str(target / "times.mjs"), *names]
                printed = subprocess.run(command, check=True, capture_output=True)
                times["node"] += json.loads(printed.stdout)
    facts: dict[str, Any] = {"folder_mb": round(size / 1e6, 1)}
    facts["model_mb"] = round(Path(setting.path).stat().st_size / 1e6, 1)
    for name, values in times.items():
        if values:
            elapsed, cpu = zip(*values, strict=True)
            facts[f"{name}_ms"] = median_ms(elapsed)
            facts[f"{name}_least_ms"] = round(1000 * min(elapsed), 2)
            facts[f"{name}_cpu_ms"] = median_ms(cpu)
    return facts


PARTS = {
    part.__name__: part
    for part in (start, kept, one, many, crowd, memory, budget, folder)
}


def main() -> None:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("model")
    parser.add_argument("images", nargs="+", help="files of images")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=50_000, help="of `memory`")
    options = parser.parse_args()
    images = [Path(name).read_bytes() for name in options.images]
    model = Imprinter.load(options.model, cache=False)
    setting = Setting(options.model, model, images, options.rounds, options.requests)
    load = os.getloadavg()[0]
    facts = PARTS[options.part](setting)
    print(json.dumps({"part": options.part, "load_before": round(load, 1)} | facts))


if __name__ == "__main__":
    main()
