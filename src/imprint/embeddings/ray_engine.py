"""The pipeline on the nodes of a Ray cluster. Batches are independent: any node may
compute any of them, even twice.
"""

import pickle
import socket
from collections import deque
from dataclasses import replace
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

from imprint.backbones import Backbone
from imprint.core.cluster import IN_FLIGHT_PER_SLOT, MAX_RETRIES, Slots, connected
from imprint.core.errors import ImprintError, ParameterError
from imprint.embeddings.pipeline import (
    Advance,
    Batches,
    EmbeddedBatch,
    EmbeddingJob,
    local_batches,
)
from imprint.kernels.cpu import available_cpus

POLL_SECONDS = 5  # without a result, after which the nodes are listed again
BUFFER = 16  # results per slot that may wait for an earlier one
BUFFER_BYTES = 1 << 32  # and their maximum size
MAX_BATCHES = 8  # per task
MIN_TASKS_PER_SLOT = 32  # if a task holds several batches
LARGE_CLUSTER = 16  # slots from which a task may hold several batches


def ray_batches(job: EmbeddingJob, advance: Advance) -> Batches:
    """The batches of a job, computed by a cluster on `workers` cores each (default:
    one).

    The inputs must be sliceable, and the backbone picklable, as those of
    `imprint.backbones.load` are. Files must have the same path on all nodes. A batch
    whose node dies is given to another.
    """
    with connected(available_cpus()) as ray:
        yield from scheduled_batches(ray, job)


def scheduled_batches(ray: Any, job: EmbeddingJob) -> Batches:
    """Submit the batches of a job, and yield the results in order.

    `IN_FLIGHT_PER_SLOT` tasks are submitted for every slot of the cluster. Results that
    arrive before an earlier one, such as one whose node was lost, wait in a buffer of
    bounded size, so that one slow task does not stop the others.
    """
    backbone, cores = job.backbone, job.workers or 1
    slots = Slots(ray, cores, int(getattr(backbone, "device", "cpu") != "cpu"))
    options = {
        "num_cpus": cores,
        "num_gpus": slots.gpus,
        "max_retries": MAX_RETRIES,
        "retry_exceptions": False,
    }
    task, pickled = ray.remote(**options)(_compute), ray.put(_pickled(ray, backbone))
    inputs = job.batch_size * _batches_in_a_task(job, slots)
    max_waiting = BUFFER_BYTES // (4 * backbone.width * inputs)
    spans = replace(job, batch_size=inputs).spans()
    span = next(spans, None)
    unwritten: deque[Any] = deque()
    running: dict[Any, None] = {}  # an ordered set
    while span or unwritten:
        limit = IN_FLIGHT_PER_SLOT * slots.count()
        if (
            span
            and len(running) < limit
            and len(unwritten) < limit + min(BUFFER * slots.count(), max_waiting)
        ):
            interval = slice(span[0], span[-1] + 1)
            part = SimpleNamespace(
                inputs=job.data.inputs[interval], names=job.data.names[interval]
            )
            unwritten.append(
                task.remote(
                    pickled, backbone.fingerprint, part, span[0], job.batch_size, cores
                )
            )
            running[unwritten[-1]] = None
            span = next(spans, None)
        else:
            # polling thousands of tasks after each one is slow
            wait_for = max(1, len(running) // 8)
            _, unfinished = ray.wait(
                list(running), num_returns=wait_for, timeout=POLL_SECONDS
            )
            running = dict.fromkeys(unfinished)
            while unwritten and unwritten[0] not in running:
                yield from _result(ray, unwritten.popleft())


def _batches_in_a_task(job: EmbeddingJob, slots: Slots) -> int:
    """One batch, or several if submitting single ones to many or fast nodes would be
    the bottleneck.
    """
    count = slots.count()
    if count < LARGE_CLUSTER and not slots.gpus:
        return 1
    return min(
        MAX_BATCHES,
        max(1, len(job.index) // (job.batch_size * count * MIN_TASKS_PER_SLOT)),
    )


def _result(ray: Any, reference: Any) -> list[EmbeddedBatch]:
    try:
        batches: list[EmbeddedBatch] = ray.get(reference)
    except ray.exceptions.RayTaskError as e:
        raise e.cause from None
    except ray.exceptions.RayError as e:
        problem = (
            f"The cluster lost a batch after {MAX_RETRIES} retries ({type(e).__name__})"
        )
        raise ImprintError(
            f"{problem}; finished batches are kept, and the same call resumes."
        ) from None
    return batches


def _pickled(ray: Any, backbone: Backbone) -> bytes:
    try:
        content: bytes = ray.cloudpickle.dumps(backbone)
    except (pickle.PicklingError, TypeError, AttributeError) as e:
        problem = f"{backbone.record.name} cannot be sent to other machines ({e})"
        raise ParameterError(f"extract(engine='ray'): {problem}.") from None
    return content


def _compute(
    pickled: bytes, fingerprint: str, part: Any, first: int, batch_size: int, cores: int
) -> list[EmbeddedBatch]:
    """On a node: the batches of a task, whose inputs are `part` and begin at the index
    `first` of the data.
    """
    try:
        backbone = _loaded(pickled)
        if backbone.fingerprint != fingerprint:
            raise ImprintError(
                f"{backbone.record.name} is not the backbone it is where the extraction"
                " was started."
            )
        job = EmbeddingJob(
            backbone, part, range(len(part.inputs)), batch_size, cores, offset=first
        )
        return list(local_batches(job, lambda _: None))
    except ImprintError as e:
        raise ImprintError(f"On the node {socket.gethostname()}: {e}") from None


@lru_cache(1)
def _loaded(pickled: bytes) -> Backbone:
    """On a node: the backbone, loaded once by every process."""
    backbone: Backbone = pickle.loads(pickled)
    return backbone
