"""Units as tasks of a Ray cluster; the results come back here, so that one process alone writes the folder."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from imprint.core.errors import ImprintError, MissingExtraError
from imprint.core.types import Array
from imprint.study.evaluate import evaluate
from imprint.study.local import one_thread
from imprint.study.plan import Outcome, Unit

RETRIES = 3  # of a unit whose node was lost
AHEAD = 2  # units on their way for every core of the cluster


@contextmanager
def ray_runner(units: tuple[Unit, ...], workers: int) -> Iterator[Iterator[Outcome]]:
    """Evaluate units on the cluster that RAY_ADDRESS names, or on one of `workers` cores started here.

    The nodes must see the embeddings under the same path. A unit whose node dies is given to another.
    """
    try:
        import ray
    except ImportError:
        raise MissingExtraError("The ray engine needs ray: pip install 'imprint[ray]'.") from None
    mine = not ray.is_initialized()
    if mine:
        _join(ray, workers)
    try:
        yield _outcomes(ray, units)
    finally:
        if mine:
            ray.shutdown()


def _join(ray: Any, workers: int) -> None:
    quiet = dict(log_to_driver=False, logging_level="ERROR")
    address = os.environ.get("RAY_ADDRESS", "")
    if not address:
        local = dict(include_dashboard=False, _node_ip_address="127.0.0.1")
        ray.init(address="local", num_cpus=workers, **local, **quiet)
        return
    host, _, port = address.rpartition(":")
    try:
        if port.isdigit() and "/" not in host:  # ray itself would try for minutes
            socket.create_connection((host, int(port)), timeout=10).close()
        ray.init(**quiet)
    except (ConnectionError, TimeoutError, socket.gaierror):
        raise ImprintError(f"RAY_ADDRESS={address}: no Ray cluster answers there.") from None


def _outcomes(ray: Any, units: tuple[Unit, ...]) -> Iterator[Outcome]:
    task = ray.remote(num_cpus=1, max_retries=RETRIES, retry_exceptions=False)(_evaluate)
    left = list(reversed(units))
    busy: dict[Any, Unit] = {}
    room = AHEAD * max(1, int(ray.cluster_resources().get("CPU", 1)))
    while left or busy:
        while left and len(busy) < room:
            unit = left.pop()
            busy[task.remote(unit)] = unit
        (reference,), _ = ray.wait(list(busy), num_returns=1)
        yield busy.pop(reference), _result(ray, reference)


def _result(ray: Any, reference: Any) -> dict[str, Array] | str:
    try:
        found: dict[str, Array] = ray.get(reference)
    except ray.exceptions.RayTaskError as e:
        return f"{type(e.cause).__name__}: {e.cause}".splitlines()[0]
    except ray.exceptions.RayError as e:
        return f"lost by the cluster after {RETRIES} retries: {type(e).__name__}"
    return found


def _evaluate(unit: Unit) -> dict[str, Array]:
    """In the cluster: one thread of BLAS for the one core that a unit has."""
    with one_thread():
        return evaluate(unit)
