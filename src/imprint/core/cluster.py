"""A Ray cluster: the one that RAY_ADDRESS names, or one that is started on this machine."""

import math
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from imprint.core.errors import ImprintError
from imprint.core.extras import missing

RETRIES = 3  # of what was under way on a node that was lost
WAIT, PAUSE = 60.0, 0.5  # seconds: for a node to join, and between two looks
AHEAD = 2  # tasks on their way for every one that the cluster can do at a time


@contextmanager
def joined(cores: int) -> Iterator[Any]:
    """The module `ray`, connected to the cluster that RAY_ADDRESS names, or to one of `cores` cores started here."""
    try:
        import ray
    except ImportError:
        raise missing("ray", "The ray engine needs ray") from None
    mine = not ray.is_initialized()
    if mine:
        _join(ray, cores)
    try:
        yield ray
    finally:
        if mine:
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
        raise ImprintError(f"RAY_ADDRESS={address}: no Ray cluster answers there.") from None


def room(ray: Any, cores: int = 1, gpus: int = 0) -> int:
    """How many tasks that need so much each the cluster can do at a time.

    Where no node can do one, a minute is waited for one to join; then that is said, instead of waiting for ever.
    """
    deadline = time.monotonic() + WAIT
    while True:
        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        if fits := int(sum(min(n.get("CPU", 0) // cores, n.get("GPU", 0) if gpus else math.inf) for n in nodes)):
            return fits
        if time.monotonic() > deadline:
            most = max((int(n.get("CPU", 0)) for n in nodes), default=0)
            wanted = f"{cores} core(s){' and a GPU' * gpus}"
            raise ImprintError(f"No node of the Ray cluster has {wanted}; the largest has {most} core(s).")
        time.sleep(PAUSE)
