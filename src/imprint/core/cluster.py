"""Ray clusters: the one at RAY_ADDRESS, or a local one."""

import math
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from imprint.core.errors import ImprintError
from imprint.core.extras import import_extra

MAX_RETRIES = 3  # of a task whose node was lost
JOIN_TIMEOUT = 60.0  # seconds to wait for a node that can run a task
POLL_INTERVAL = 0.5  # seconds between two listings of the nodes while waiting
# seconds for which a listing is used again; with a thousand nodes, a listing is slow
LISTING_INTERVAL = 2.0
# tasks submitted at a time, so that no slot waits for its next task
IN_FLIGHT_PER_SLOT = 2


@contextmanager
def connected(cores: int) -> Iterator[Any]:
    """The module `ray`, connected to the cluster that RAY_ADDRESS names, or to one of
    `cores` cores started here.
    """
    ray = import_extra("ray", "ray", "The ray engine")
    if ray.is_initialized():
        yield ray
        return
    _join(ray, cores)
    try:
        yield ray
    finally:
        ray.shutdown()


def _join(ray: Any, cores: int) -> None:
    quiet = dict(log_to_driver=False, logging_level="ERROR")
    address = os.environ.get("RAY_ADDRESS", "")
    if not address:
        local = dict(include_dashboard=False, _node_ip_address="127.0.0.1")
        ray.init(address="local", num_cpus=cores, **local, **quiet)
        return
    host, _, port = address.rpartition(":")
    try:
        if port.isdigit() and "/" not in host:  # ray itself would try for minutes
            socket.create_connection((host, int(port)), timeout=10).close()
        ray.init(**quiet)
    except (ConnectionError, TimeoutError, socket.gaierror):
        raise ImprintError(
            f"RAY_ADDRESS={address}: no Ray cluster answers there."
        ) from None


class Slots:
    """How many tasks the cluster can run at a time, each on `cores` cores and `gpus`
    GPUs.
    """

    def __init__(self, ray: Any, cores: int = 1, gpus: int = 0):
        self.cores = cores
        self.gpus = gpus
        self._ray = ray
        self._count = 0
        self._listed_at = -math.inf

    def count(self) -> int:
        """The number of slots, at most `LISTING_INTERVAL` seconds old.

        If no node can run a task, it waits one minute for a node to join, then fails.
        """
        if self._count and time.monotonic() - self._listed_at < LISTING_INTERVAL:
            return self._count
        deadline = time.monotonic() + JOIN_TIMEOUT
        while True:
            nodes = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
            per_node = (
                min(
                    n.get("CPU", 0) // self.cores,
                    n.get("GPU", 0) if self.gpus else math.inf,
                )
                for n in nodes
            )
            self._count = int(sum(per_node))
            self._listed_at = time.monotonic()
            if self._count:
                return self._count
            if time.monotonic() > deadline:
                max_cores = max((int(node.get("CPU", 0)) for node in nodes), default=0)
                needs = f"{self.cores} core(s){' and a GPU' * self.gpus}"
                raise ImprintError(
                    f"No node of the Ray cluster has {needs}; the largest has"
                    f" {max_cores} core(s)."
                )
            time.sleep(POLL_INTERVAL)
