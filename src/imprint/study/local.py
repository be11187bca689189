"""Units on the cores of this machine: one process each, one thread of BLAS each."""

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

from threadpoolctl import threadpool_limits

from imprint.core.types import Array
from imprint.kernels import engine
from imprint.study.evaluate import evaluate
from imprint.study.plan import Outcome, Unit

ONE_THREAD = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
KEPT = {"MALLOC_TRIM_THRESHOLD_": str(2**28), "MALLOC_MMAP_THRESHOLD_": str(2**25)}
"""For the C library of Linux: arrays of one unit after another use the same memory, which need not be cleared anew."""


@contextmanager
def local_runner(units: tuple[Unit, ...], workers: int) -> Iterator[Iterator[Outcome]]:
    """Evaluate units in worker processes; when the block ends, so do they, whatever they are doing.

    One worker is this process itself: small studies need not wait for another to start.
    """
    if workers == 1:
        with one_thread(), ThreadPoolExecutor(1) as pool:
            yield (_attempt(pool, unit) for unit in units)
        return
    crew = [_Worker() for _ in range(min(workers, len(units)))]
    try:
        yield _outcomes(units, crew)
    finally:
        for worker in crew:
            worker.stop()


def _attempt(pool: ThreadPoolExecutor, unit: Unit) -> Outcome:
    future = pool.submit(evaluate, unit)
    error = future.exception()
    return unit, future.result() if error is None else reason(error)


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread of BLAS and of kernels, here and in processes started meanwhile, which also keep freed memory."""
    before = {name: os.environ.get(name) for name in ONE_THREAD | KEPT}
    os.environ.update(KEPT | os.environ | ONE_THREAD)
    try:
        with threadpool_limits(1):
            yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _outcomes(units: tuple[Unit, ...], crew: "list[_Worker]") -> Iterator[Outcome]:
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
            error = future.exception()
            if isinstance(error, BrokenProcessPool):
                worker.restart()
            idle.append(worker)
            yield unit, future.result() if error is None else reason(error)


def reason(error: BaseException) -> str:
    """Why a unit failed, in one line."""
    if isinstance(error, BrokenProcessPool):
        return "its process was killed, perhaps for want of memory"
    return f"{type(error).__name__}: {error}".splitlines()[0]


class _Worker:
    """A process that evaluates one unit at a time and ends when this end of its lifeline closes."""

    def __init__(self) -> None:
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._lifeline, far = context.Pipe()
        self._pool = ProcessPoolExecutor(1, mp_context=context, initializer=_prepare, initargs=(far,))
        with one_thread():
            self._pool.submit(os.getpid)  # starts the process, which inherits the environment
        far.close()

    def submit(self, unit: Unit) -> "Future[dict[str, Array]]":
        return self._pool.submit(_evaluate, unit)

    def restart(self) -> None:
        self.stop()
        self._start()

    def stop(self) -> None:
        self._lifeline.close()
        self._pool.shutdown(wait=True, cancel_futures=True)


def _evaluate(unit: Unit) -> dict[str, Array]:
    """In the worker: cycles of objects are looked for once, after the unit, not again and again in between."""
    found = evaluate(unit)
    gc.collect(1)
    return found


def _prepare(lifeline: Connection) -> None:
    """In the worker: one thread of BLAS, and an end when the parent's has come."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's affair
    engine.limit_for_good()
    gc.disable()
    threading.Thread(target=_end_with, args=(lifeline,), daemon=True).start()


def _end_with(lifeline: Connection) -> None:
    try:
        lifeline.recv()
    except (EOFError, OSError):
        os._exit(0)
