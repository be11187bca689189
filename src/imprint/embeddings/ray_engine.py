"""The pipeline's middle stages on the nodes of a Ray cluster; the batches come back in order.

Each batch is computed by itself, so it does not matter which node computes it, or how often.
"""

import pickle
import socket
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

from imprint.backbones import Backbone
from imprint.core.cluster import AHEAD, RETRIES, joined, room
from imprint.core.errors import ImprintError, ParameterError
from imprint.embeddings.pipeline import Advance, EmbeddedBatch, EmbeddingJob, local_batches
from imprint.kernels.cpu import available_cpus

PATIENCE = 5  # seconds of waiting for a batch, after which the cluster is asked whether a node is left to compute it


class BatchInputs(NamedTuple):
    """The inputs of one batch and their names; for files, their paths and digests."""

    inputs: Any
    names: Any


@contextmanager
def ray_batches(job: EmbeddingJob, advance: Advance) -> Iterator[Iterator[EmbeddedBatch]]:
    """The batches of a job, computed by a cluster on `workers` cores each (default: one).

    The inputs must be sliceable, and the backbone picklable, as those of `imprint.backbones.load` are. Files must have
    the same path on all nodes. A batch whose node dies is given to another.
    """
    with joined(available_cpus()) as ray:
        yield scheduled_batches(ray, job)


def scheduled_batches(ray: Any, job: EmbeddingJob) -> Iterator[EmbeddedBatch]:
    """Hand out batches, `AHEAD` for every one that the cluster can compute at a time, and collect them in order."""
    backbone, cores = job.backbone, job.workers or 1
    needs = {"cores": cores, "gpus": int(getattr(backbone, "device", "cpu") != "cpu")}
    options = {"num_cpus": cores, "num_gpus": needs["gpus"], "max_retries": RETRIES, "retry_exceptions": False}
    task, pickled = ray.remote(**options)(_compute), ray.put(_pickled(ray, backbone))
    waiting: deque[Any] = deque()
    for span in job.spans():
        while len(waiting) >= AHEAD * room(ray, **needs):
            yield _result(ray, waiting.popleft(), needs)
        batch = BatchInputs(job.data.inputs[span.start : span.stop], job.data.names[span.start : span.stop])
        waiting.append(task.remote(pickled, backbone.fingerprint, batch, span.start, cores))
    while waiting:
        yield _result(ray, waiting.popleft(), needs)


def _result(ray: Any, reference: Any, needs: dict[str, int]) -> EmbeddedBatch:
    try:
        while not ray.wait([reference], timeout=PATIENCE)[0]:
            room(ray, **needs)
        batch: EmbeddedBatch = ray.get(reference)
    except ray.exceptions.RayTaskError as e:
        raise e.cause from None
    except ray.exceptions.RayError as e:
        raise ImprintError(
            f"The cluster lost a batch after {RETRIES} retries ({type(e).__name__}); "
            "finished batches are kept and the same call goes on after them."
        ) from None
    return batch


def _pickled(ray: Any, backbone: Backbone) -> bytes:
    try:
        content: bytes = ray.cloudpickle.dumps(backbone)
    except (pickle.PicklingError, TypeError, AttributeError) as e:
        raise ParameterError(
            f"extract(engine='ray'): {backbone.record.name} cannot be sent to other machines ({e})."
        ) from None
    return content


def _compute(pickled: bytes, fingerprint: str, batch: BatchInputs, first: int, cores: int) -> EmbeddedBatch:
    """On a node: compute one batch, whose first input has the index `first` in the data."""
    try:
        backbone = _loaded(pickled)
        if backbone.fingerprint != fingerprint:
            raise ImprintError(f"{backbone.record.name} is not the backbone it is where the extraction was started.")
        with local_batches(EmbeddingJob(backbone, batch, len(batch.inputs), cores), lambda _: None) as batches:
            (computed,) = batches
    except ImprintError as e:
        raise ImprintError(f"On the node {socket.gethostname()}: {e}") from None
    skipped = [replace(s, index=first + s.index) for s in computed.skipped]
    return replace(computed, index=[first + i for i in computed.index], skipped=skipped)


@lru_cache(1)
def _loaded(pickled: bytes) -> Backbone:
    """On a node: the backbone, loaded once by every process."""
    backbone: Backbone = pickle.loads(pickled)
    return backbone
