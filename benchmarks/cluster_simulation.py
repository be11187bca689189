"""A thousand nodes that fail and return: the real scheduling code against a simulated Ray, clock and nodes.

    python benchmarks/cluster_simulation.py                          # the table in docs/cluster.md
    python benchmarks/cluster_simulation.py --nodes 100 --hours 2    # one setting

The code under test is `imprint.embeddings.ray_engine.scheduled_batches`, which hands out batches, waits, and puts the
results in order. Ray is replaced by a discrete-event simulation. A batch of 64 images takes 0.82 s on one core. A
node fails after a random time. Ray notices the loss after 30 s and gives its batches to other nodes; the node returns
after 10 minutes. The work of the driver takes the time that `capacity.py` measures. The simulation counts how often
each batch was computed, and compares the throughput with nodes that never fail and a driver that takes no time.
"""

import argparse
import heapq
import pickle
import platform
import random
import time
from datetime import date
from types import SimpleNamespace

from imprint.core import cluster
from imprint.embeddings import ray_engine
from imprint.embeddings.pipeline import EmbeddedBatch, EmbeddingJob

SECONDS, BATCH, WIDTH = (
    0.82,
    64,
    1280,
)  # for one batch on one core: 78 images a second, measured by image_speed.py
SUBMIT, COLLECT, WRITE, LIST_NODE = (
    0.9e-3,
    3.0e-3,
    0.48e-3,
    37e-6,
)  # seconds of the driver, from capacity.py


class LostError(Exception):
    """A batch failed on every try."""


class Cluster:
    """A simulated Ray with the calls of the scheduler: `remote`, `put`, `wait`, `get`, `nodes`; they advance time."""

    cloudpickle = pickle
    exceptions = SimpleNamespace(
        RayTaskError=type("RayTaskError", (Exception,), {}), RayError=LostError
    )

    def __init__(self, nodes, hours, notice, away, seed=0):
        self.random, self.now, self.events, self.count = random.Random(seed), 0.0, [], 0
        self.hours, self.notice, self.away = hours, notice, away
        self.alive, self.work = [True] * nodes, [None] * nodes  # the task on each node
        self.free, self.queue = list(range(nodes)), []
        self.runs, self.tries, self.finished, self.sizes = (
            {},
            {},
            {},
            {},
        )  # by task; sizes in batches
        self.most_waiting = 0
        for node in range(nodes):
            self._fail_later(node)

    def _at(self, delay, action, *values):
        self.count += 1
        heapq.heappush(self.events, (self.now + delay, self.count, action, values))

    def _fail_later(self, node):
        if self.hours:
            self._at(self.random.expovariate(1 / (3600 * self.hours)), self._fail, node)

    def _fail(self, node):
        task, self.work[node], self.alive[node] = self.work[node], None, False
        if task is None:
            self.free.remove(node)
        else:
            self._at(self.notice, self._retry, task)
        self._at(self.away, self._return, node)

    def _retry(self, task):
        self.tries[task] += 1
        if self.tries[task] > cluster.MAX_RETRIES:
            self.finished[task] = LostError()
        else:
            self.queue.insert(0, task)
            self._start()

    def _return(self, node):
        self.alive[node] = True
        self.free.append(node)
        self._fail_later(node)
        self._start()

    def _start(self):
        while self.queue and self.free:
            node, task = self.free.pop(), self.queue.pop(0)
            self.work[node] = task
            self.runs[task] = self.runs.get(task, 0) + 1
            self._at(
                self.sizes[task] * SECONDS * self.random.uniform(0.8, 1.2),
                self._finish,
                node,
                task,
            )

    def _finish(self, node, task):
        if self.work[node] == task:  # otherwise the node failed meanwhile
            self.work[node] = None
            self.finished[task] = [
                EmbeddedBatch(list(range(BATCH)), None, [])
            ] * self.sizes[task]
            self.free.append(node)
            self._start()

    def pass_time(self, until, enough=lambda: False):
        """Process all events up to the time `until`, or stop earlier once `enough()` is true."""
        while not enough() and self.events and self.events[0][0] <= until:
            self.now, _, action, values = heapq.heappop(self.events)
            action(*values)
        if not enough():
            self.now = max(self.now, until)

    def put(self, value):
        return value

    def remote(self, **_):
        def submit(pickled, fingerprint, part, first, batch_size, cores):
            self.tries[first], self.sizes[first] = (
                0,
                -(-(part.inputs.stop - part.inputs.start) // batch_size),
            )
            self.queue.append(first)
            self._start()
            self.pass_time(self.now + SUBMIT)
            return first

        return lambda function: SimpleNamespace(remote=submit)

    def wait(self, tasks, num_returns, timeout):
        def enough():
            return len(missing) == 0 or len(tasks) - len(missing) >= num_returns

        missing = {task for task in tasks if task not in self.finished}
        waiting, self.finished = self.finished, _Watched(self.finished, missing)
        self.pass_time(self.now + timeout, enough)
        self.finished = dict(self.finished)
        del waiting
        return [t for t in tasks if t not in missing], [
            t for t in tasks if t in missing
        ]

    def get(self, task):
        self.most_waiting = max(self.most_waiting, len(self.finished))
        self.pass_time(self.now + COLLECT)
        result = self.finished.pop(task)
        if isinstance(result, LostError):
            raise result
        return result

    def nodes(self):
        self.pass_time(self.now + LIST_NODE * len(self.alive))
        return [{"Alive": alive, "Resources": {"CPU": 1.0}} for alive in self.alive]


class _Watched(dict):
    """Finished tasks. Storing one removes it from the tasks that `wait` still misses."""

    def __init__(self, tasks, missing):
        super().__init__(tasks)
        self.missing = missing

    def __setitem__(self, task, result):
        super().__setitem__(task, result)
        self.missing.discard(task)


class Names:
    """The inputs of a job, created when they are read, so that none is held in memory."""

    def __init__(self, size):
        self.size = size

    def __len__(self):
        return self.size

    def __getitem__(self, i):
        return i


def simulate(nodes, batches, hours, notice=30.0, away=600.0, buffer=ray_engine.BUFFER):
    """Run the real scheduler; return the results as one line of the table."""
    fake = Cluster(nodes, hours, notice, away)
    clock = SimpleNamespace(
        monotonic=lambda: fake.now, sleep=lambda s: fake.pass_time(fake.now + s)
    )
    data = SimpleNamespace(inputs=Names(batches * BATCH), names=Names(batches * BATCH))
    backbone = SimpleNamespace(
        width=WIDTH, fingerprint="simulated", record=SimpleNamespace(name="simulated")
    )
    job = EmbeddingJob(backbone, data, range(batches * BATCH), BATCH)
    before = cluster.time, ray_engine.BUFFER
    cluster.time, ray_engine.BUFFER = clock, buffer
    written = 0
    try:
        for _ in ray_engine.scheduled_batches(fake, job):
            fake.pass_time(fake.now + WRITE)
            written += 1
    finally:
        cluster.time, ray_engine.BUFFER = before
    assert written == batches, "a batch was lost"
    assert sum(fake.sizes.values()) == batches, "a batch was handed out twice, or never"
    assert all(fake.runs[task] == 1 + tries for task, tries in fake.tries.items()), (
        "computed again without a failure"
    )
    again = sum(tries * fake.sizes[task] for task, tries in fake.tries.items())
    ideal = batches * SECONDS / nodes
    return {
        "nodes": nodes, "hours": hours, "batches": batches, "batches in a task": max(fake.sizes.values()),
        "computed again": again, "lost": batches - written,
        "images a second": round(batches * BATCH / fake.now), "of the ideal": round(ideal / fake.now, 3),
        "most results waiting": fake.most_waiting,
    }  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, nargs="*", default=[10, 100, 300, 1000])
    parser.add_argument(
        "--hours",
        type=float,
        nargs="*",
        default=[0, 24, 1],
        help="mean time to failure; 0 is never",
    )
    parser.add_argument("--rounds", type=int, default=400, help="batches per node")
    args = parser.parse_args()
    print(f"{date.today()}, {platform.machine()}, Python {platform.python_version()}")
    for nodes in args.nodes:
        for hours in args.hours:
            for buffer in (0, ray_engine.BUFFER):
                start = time.process_time()
                line = simulate(nodes, nodes * args.rounds, hours, buffer=buffer)
                print(
                    f"buffer {buffer} a node",
                    line,
                    f"({time.process_time() - start:.1f} s)",
                    flush=True,
                )


if __name__ == "__main__":
    main()
