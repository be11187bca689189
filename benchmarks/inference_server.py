"""The latency and the throughput of `imprint api`, compared with the library in the same run.

Usage: python benchmarks/inference_server.py MODEL IMAGE... [--rounds N]

MODEL is a model of images. The server runs in a process of its own, on the same cores as the clients.
Rounds of the library and of the server alternate, so that other load on the machine affects both.

1. One client: the median latency, and that of decoding and predicting in Python.
2. 16 clients: images per second, compared with the library on batches (decoding on all cores, then the
   network) and with the network alone on prepared images.
3. 200 clients with 15 requests each: the median latency, and failures.
4. Memory of the server before and after.

On a busy machine, times are those of the scheduler. The CPU time of one image, of the library and of the server,
is comparable there too: on cores that are all busy, its inverse is the throughput.
"""

import argparse
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from imprint import Imprinter
from imprint.embeddings.pipeline import BATCH_SIZE


class Connection:
    """A kept connection that sends prepared requests, with as little work as possible."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=120)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, request):
        self.socket.sendall(request)
        received = b""
        while b"\r\n\r\n" not in received:
            received += self.socket.recv(65536)
        header, _, body = received.partition(b"\r\n\r\n")
        length = int(re.search(rb"content-length: (\d+)", header)[1])
        while len(body) < length:
            body += self.socket.recv(65536)
        return int(header[9:12])


def request_of(image):
    head = f"POST /predict HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(image)}\r\n\r\n"
    return head.encode() + image


def timed(function, *arguments):
    started = time.perf_counter()
    result = function(*arguments)
    return time.perf_counter() - started, result


def in_parallel(port, requests, clients, each):
    """The latencies of `clients` that send `each` requests one after the other, the failures, and the time of all."""
    latencies, failures = [], []
    barrier = threading.Barrier(clients + 1)

    def client(number):
        connection = Connection(port)
        barrier.wait()
        for i in range(each):
            seconds, status = timed(
                connection.ask, requests[(number + i) % len(requests)]
            )
            latencies.append(seconds)
            if status != 200:
                failures.append(status)

    threads = [threading.Thread(target=client, args=(n,)) for n in range(clients)]
    for thread in threads:
        thread.start()
    barrier.wait()
    started = time.perf_counter()
    for thread in threads:
        thread.join()
    return latencies, failures, time.perf_counter() - started


def memory(pid):
    """The resident memory of a process, in MB."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024


def cpu_seconds(pid):
    """The CPU time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("images", nargs="+")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--crowd", type=int, default=2, help="rounds of 200 clients")
    parser.add_argument(
        "--requests", type=int, default=0, help="further requests, to watch memory"
    )
    options = parser.parse_args()
    images = [Path(name).read_bytes() for name in options.images]
    requests = [request_of(image) for image in images]
    model = Imprinter.load(options.model, cache=False)
    network, kind = model.backbone, model.embedder.kind
    command = [sys.executable, "-m", "imprint", "api", options.model, "--log", "none"]
    started = time.perf_counter()
    server = subprocess.Popen(
        command, stdout=subprocess.PIPE, env={**os.environ, "IMPRINT_PORT": "0"}
    )
    port = int(server.stdout.readline().rpartition(b":")[2])
    facts = {
        "ready_s": time.perf_counter() - started,
        "memory_mb_at_start": memory(server.pid),
    }
    pool = ThreadPoolExecutor(os.cpu_count())

    def decode(raw):
        return network.prepare(kind.read(raw))

    def in_python(raw):
        return model.predict([raw])

    batch = [images[i % len(images)] for i in range(BATCH_SIZE)]
    prepared = np.stack([decode(raw) for raw in batch])

    def embed_batches():
        """Two batches in the library: decoded on all cores while the network runs."""
        decoded = [list(pool.map(decode, batch)) for _ in range(2)]
        for one in decoded:
            model.state.head.predict(network.embed(np.stack(one)))

    alone = Connection(port)
    single = {"python": [], "embed": [], "server": []}
    rates = {"bare_network": [], "library": [], "server_16": []}
    cpu = {"library": [], "server_16": []}
    crowd = []
    for _ in range(options.rounds):
        for i in range(20):
            raw = images[i % len(images)]
            single["python"].append(timed(in_python, raw)[0])
            single["embed"].append(
                timed(lambda raw=raw: network.embed(decode(raw)[None]))[0]
            )
            single["server"].append(timed(alone.ask, requests[i % len(images)])[0])
        rates["bare_network"].append(BATCH_SIZE / timed(network.embed, prepared)[0])
        before = time.process_time()
        rates["library"].append(2 * BATCH_SIZE / timed(embed_batches)[0])
        cpu["library"].append((time.process_time() - before) / (2 * BATCH_SIZE))
        before = cpu_seconds(server.pid)
        latencies, _, seconds = in_parallel(port, requests, 16, 12)
        cpu["server_16"].append((cpu_seconds(server.pid) - before) / len(latencies))
        rates["server_16"].append(len(latencies) / seconds)
    for _ in range(options.crowd):
        latencies, failures, _ = in_parallel(port, requests, 200, 15)
        crowd.append((statistics.median(latencies), max(latencies), len(failures)))
    facts |= {
        f"one_client_{k}_ms": 1000 * statistics.median(v) for k, v in single.items()
    }
    facts |= {f"{k}_per_s": statistics.median(v) for k, v in rates.items()}
    facts |= {f"{k}_cpu_ms": 1000 * statistics.median(v) for k, v in cpu.items()}
    if crowd:
        facts["crowd_median_s"], facts["crowd_max_s"], facts["crowd_failures"] = min(
            crowd
        )
    facts["memory_mb_after_crowd"] = memory(server.pid)
    if options.requests:
        in_parallel(port, requests, 16, options.requests // 16)
        facts["memory_mb_at_end"] = memory(server.pid)
    server.terminate()
    server.wait()
    print(json.dumps(facts, indent=1))


if __name__ == "__main__":
    main()
