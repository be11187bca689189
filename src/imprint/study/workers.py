"""Evaluation of units: by processes on this machine, or on a Ray cluster."""

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from multiprocessing.connection import Connection

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
    with one_thread(), ExitStack() as stack:
        if workers == 1:
            pool = stack.enter_context(ThreadPoolExecutor(1))
            yield _outcomes(units, lambda unit: pool.submit(evaluate, unit), lambda: 1)
            return
        crew = [_Worker() for _ in range(min(workers, len(units)))]
        for worker in crew:
            stack.callback(worker.stop)
        yield _outcomes(units, lambda unit: next(w for w in crew if w.is_idle()).submit(unit), lambda: len(crew))


@contextmanager
def ray_runner(units: tuple[Unit, ...], workers: int) -> Iterator[Iterator[Outcome]]:
    """Evaluate units on the cluster of RAY_ADDRESS, or on one with `workers` cores that is started here.

    The nodes must have the embeddings at the same path. If a node dies, another one evaluates its unit.
    """
    with joined(workers) as ray:
        task = ray.remote(num_cpus=1, max_retries=RETRIES, retry_exceptions=False)(_evaluate_on_node)
        slots = Slots(ray)
        yield _outcomes(units, lambda unit: task.remote(unit).future(), lambda: AHEAD * slots.count())


RUNNERS = {"local": local_runner, "ray": ray_runner}


def _outcomes(
    units: tuple[Unit, ...], submit: Callable[[Unit], Future[dict[str, Array]]], room: Callable[[], int]
) -> Iterator[Outcome]:
    """Submit units, up to `room()` at a time, and yield each with its columns or the reason for its failure."""
    waiting, busy = deque(units), dict[Future[dict[str, Array]], Unit]()
    while waiting or busy:
        while waiting and len(busy) < room():
            unit = waiting.popleft()
            busy[submit(unit)] = unit
        for future in wait(busy, return_when=FIRST_COMPLETED).done:
            error = future.exception()
            yield busy.pop(future), future.result() if error is None else _reason(error)


def _reason(error: BaseException) -> str:
    """The reason for a failure in one line."""
    if isinstance(error, BrokenProcessPool):
        return "its process was killed, perhaps because memory ran out"
    error = getattr(error, "cause", error)  # of an error in a task of Ray
    if type(error).__module__ == "ray.exceptions":
        return f"lost by the cluster after {RETRIES} retries: {type(error).__name__}"
    return f"{type(error).__name__}: {error}".splitlines()[0]


class _Worker:
    """A process that evaluates one unit at a time, and ends when this end of its pipe is closed."""

    def __init__(self) -> None:
        self._future: Future[dict[str, Array]] | None = None
        self.start()

    def start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, far = context.Pipe()
        self._pool = ProcessPoolExecutor(1, mp_context=context, initializer=_prepare, initargs=(far,))
        self._pool.submit(os.getpid)  # starts the process, which inherits the environment
        far.close()

    def is_idle(self) -> bool:
        return self._future is None or self._future.done()

    def submit(self, unit: Unit) -> Future[dict[str, Array]]:
        """Evaluate a unit; a process that was killed is replaced first."""
        if self._future is not None and isinstance(self._future.exception(), BrokenProcessPool):
            self.stop()
            self.start()
        self._future = self._pool.submit(evaluate, unit)
        return self._future

    def stop(self) -> None:
        self._pipe.close()
        self._pool.shutdown(wait=True, cancel_futures=True)


def _prepare(pipe: Connection) -> None:
    """In the worker: use one BLAS thread, ignore Ctrl-C, and end with the parent process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    limit_for_good()
    threading.Thread(target=_end_with, args=(pipe,), daemon=True).start()


def _end_with(pipe: Connection) -> None:
    try:
        pipe.recv()
    except (EOFError, OSError):
        os._exit(0)


def _evaluate_on_node(unit: Unit) -> dict[str, Array]:
    """In the cluster: use one BLAS thread, because a unit has one core."""
    with one_thread():
        return evaluate(unit)
