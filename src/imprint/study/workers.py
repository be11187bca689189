"""Evaluation of units: by processes on this machine, or on a Ray cluster."""

import gc
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any

from imprint.core.cluster import AHEAD, RETRIES, Slots, joined
from imprint.core.types import Array
from imprint.kernels.cpu import limit_for_good, one_thread
from imprint.study.evaluate import evaluate
from imprint.study.plan import Outcome, Unit


@contextmanager
def local_runner(units: tuple[Unit, ...], workers: int) -> Iterator[Iterator[Outcome]]:
    """Evaluate units in worker processes, which end with the block.

    A single worker is this process itself, so that small studies start at once.
    """
    if workers == 1:
        with one_thread(), ThreadPoolExecutor(1) as pool:
            yield (_outcome(unit, pool.submit(evaluate, unit)) for unit in units)
        return
    crew = [_Worker() for _ in range(min(workers, len(units)))]
    try:
        yield _local_outcomes(units, crew)
    finally:
        for worker in crew:
            worker.stop()


def _local_outcomes(units: tuple[Unit, ...], crew: "list[_Worker]") -> Iterator[Outcome]:
    left = list(reversed(units))
    busy: dict[Future[Any], tuple[_Worker, Unit]] = {}
    idle = list(crew)
    while left or busy:
        while idle and left:
            worker, unit = idle.pop(), left.pop()
            busy[worker.submit(unit)] = worker, unit
        finished, _ = wait(busy, return_when=FIRST_COMPLETED)
        for future in finished:
            worker, unit = busy.pop(future)
            if isinstance(future.exception(), BrokenProcessPool):
                worker.stop()
                worker.start()
            idle.append(worker)
            yield _outcome(unit, future)


def _outcome(unit: Unit, future: "Future[dict[str, Array]]") -> Outcome:
    """A finished unit with its columns, or with the reason for its failure in one line."""
    error = future.exception()
    if isinstance(error, BrokenProcessPool):
        return unit, "its process was killed, perhaps for want of memory"
    return unit, future.result() if error is None else _reason(error)


def _reason(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]


class _Worker:
    """A process that evaluates one unit at a time, and ends when this end of its pipe is closed."""

    def __init__(self) -> None:
        self.start()

    def start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, far = context.Pipe()
        self._pool = ProcessPoolExecutor(1, mp_context=context, initializer=_prepare, initargs=(far,))
        with one_thread():
            self._pool.submit(os.getpid)  # starts the process, which inherits the environment
        far.close()

    def submit(self, unit: Unit) -> "Future[dict[str, Array]]":
        return self._pool.submit(_evaluate, unit)

    def stop(self) -> None:
        self._pipe.close()
        self._pool.shutdown(wait=True, cancel_futures=True)


def _evaluate(unit: Unit) -> dict[str, Array]:
    """In the worker: collect cyclic garbage once after each unit, not during it."""
    columns = evaluate(unit)
    gc.collect(1)
    return columns


def _prepare(pipe: Connection) -> None:
    """In the worker: use one BLAS thread, ignore Ctrl-C, and end with the parent process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    limit_for_good()
    gc.disable()
    threading.Thread(target=_end_with, args=(pipe,), daemon=True).start()


def _end_with(pipe: Connection) -> None:
    try:
        pipe.recv()
    except (EOFError, OSError):
        os._exit(0)


@contextmanager
def ray_runner(units: tuple[Unit, ...], workers: int) -> Iterator[Iterator[Outcome]]:
    """Evaluate units on the cluster of RAY_ADDRESS, or on one with `workers` cores that is started here.

    The nodes must have the embeddings at the same path. If a node dies, another one evaluates its unit.
    """
    with joined(workers) as ray:
        yield _ray_outcomes(ray, units)


def _ray_outcomes(ray: Any, units: tuple[Unit, ...]) -> Iterator[Outcome]:
    task = ray.remote(num_cpus=1, max_retries=RETRIES, retry_exceptions=False)(_evaluate_alone)
    left, slots = list(reversed(units)), Slots(ray)
    busy: dict[Any, Unit] = {}
    while left or busy:
        while left and len(busy) < AHEAD * slots.count():
            unit = left.pop()
            busy[task.remote(unit)] = unit
        (reference,), _ = ray.wait(list(busy), num_returns=1)
        yield busy.pop(reference), _ray_result(ray, reference)


def _ray_result(ray: Any, reference: Any) -> dict[str, Array] | str:
    try:
        columns: dict[str, Array] = ray.get(reference)
    except ray.exceptions.RayTaskError as e:
        return _reason(e.cause)
    except ray.exceptions.RayError as e:
        return f"lost by the cluster after {RETRIES} retries: {type(e).__name__}"
    return columns


def _evaluate_alone(unit: Unit) -> dict[str, Array]:
    """In the cluster: use one BLAS thread, because a unit has one core."""
    with one_thread():
        return evaluate(unit)


RUNNERS = {"local": local_runner, "ray": ray_runner}
