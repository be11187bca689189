"""Batches computed by the nodes of a Ray cluster, brought back in order.

Where a batch begins and ends depends on the data alone, and each is computed by itself: so it does not matter which
node computes it, or how often.
"""

import pickle
import socket
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

from imprint.core.cluster import AHEAD, RETRIES, joined, room
from imprint.core.errors import ImprintError, ParameterError
from imprint.embeddings.batches import Computed, computed_batches
from imprint.embeddings.types import Backbone, Inputs, NameOf, Unlabelled
from imprint.kernels.cpu import granted

PATIENCE = 5  # seconds of waiting for a batch, after which it is asked whether anybody is left to compute it


class Part(NamedTuple):
    """The inputs of one batch and their names; of files, where they lie and what their bytes must be."""

    inputs: Inputs
    names: NameOf


@contextmanager
def ray_batches(
    backbone: Backbone, split: Unlabelled, start: int, batch_size: int, workers: int | None
) -> Iterator[Iterator[Computed]]:
    """The batches from the input `start` on, computed by a cluster, on `workers` cores each (one unless told).

    The inputs must be sliceable, and the backbone one that can be pickled, as those of `imprint.backbones.load` are.
    Files must lie under the same path on all nodes. A batch whose node dies is given to another.
    """
    with joined(granted()) as ray:
        yield _from_nodes(ray, backbone, split, start, batch_size, workers or 1)


def _from_nodes(
    ray: Any, backbone: Backbone, split: Unlabelled, start: int, batch_size: int, cores: int
) -> Iterator[Computed]:
    needs = {"cores": cores, "gpus": int(getattr(backbone, "device", "cpu") != "cpu")}
    options = {"num_cpus": cores, "num_gpus": needs["gpus"], "max_retries": RETRIES, "retry_exceptions": False}
    task, pickled = ray.remote(**options)(_compute), ray.put(_pickled(ray, backbone))
    waiting: deque[Any] = deque()
    inputs: Any = split.inputs
    names: Any = split.names
    for first in range(start, len(inputs), batch_size):
        while len(waiting) >= AHEAD * room(ray, **needs):
            yield _result(ray, waiting.popleft(), needs)
        part = Part(inputs[first : first + batch_size], names[first : first + batch_size])
        waiting.append(task.remote(pickled, backbone.fingerprint, part, first, cores))
    while waiting:
        yield _result(ray, waiting.popleft(), needs)


def _result(ray: Any, reference: Any, needs: dict[str, int]) -> Computed:
    try:
        while not ray.wait([reference], timeout=PATIENCE)[0]:
            room(ray, **needs)
        found: Computed = ray.get(reference)
    except ray.exceptions.RayTaskError as e:
        raise e.cause from None
    except ray.exceptions.RayError as e:
        raise ImprintError(
            f"The cluster lost a batch after {RETRIES} retries ({type(e).__name__}); "
            "finished batches are kept and the same call goes on after them."
        ) from None
    return found


def _pickled(ray: Any, backbone: Backbone) -> bytes:
    try:
        content: bytes = ray.cloudpickle.dumps(backbone)
    except (pickle.PicklingError, TypeError, AttributeError) as e:
        raise ParameterError(
            f"extract(engine='ray'): {backbone.record.name} cannot be sent to other machines ({e})."
        ) from None
    return content


def _compute(pickled: bytes, fingerprint: str, part: Part, first: int, cores: int) -> Computed:
    """On a node: one batch, whose first input has the number `first` in the whole data."""
    try:
        backbone = _loaded(pickled)
        if backbone.fingerprint != fingerprint:
            raise ImprintError(f"{backbone.record.name} is not the backbone it is where the extraction was started.")
        with ThreadPoolExecutor(cores) as pool:
            (found,) = computed_batches(pool, cores, backbone, part, 0, len(part.inputs))
    except ImprintError as e:
        raise ImprintError(f"On the node {socket.gethostname()}: {e}") from None
    return found._replace(skipped=[replace(s, index=first + s.index) for s in found.skipped])


@lru_cache(1)
def _loaded(pickled: bytes) -> Backbone:
    """On a node: the backbone, loaded once by every process."""
    backbone: Backbone = pickle.loads(pickled)
    return backbone
