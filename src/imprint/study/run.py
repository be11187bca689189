"""Run a study: plan what is missing, evaluate units by processes or on a Ray cluster, store their results."""

import multiprocessing
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import TypeAlias

from imprint.core.cluster import IN_FLIGHT_PER_SLOT, MAX_RETRIES, Slots, connected
from imprint.core.errors import check_int
from imprint.core.family import unknown
from imprint.core.types import Array
from imprint.kernels.cpu import available_cpus, limit_for_good, one_thread
from imprint.study.evaluate import evaluate
from imprint.study.plan import LIMIT, Unit, plan
from imprint.study.study import Source, Study

WORTH_PROCESSES = 5e10  # multiplications, some seconds; for less, no worker processes are started
Columns: TypeAlias = dict[str, Array]
Outcome: TypeAlias = tuple[Unit, Columns | str]
"""A unit with its columns, or with the reason why it failed."""


@dataclass(frozen=True)
class Progress:
    """The progress of a run. `seconds_left` is extrapolated from the finished work."""

    done: int
    total: int
    failed: int
    seconds: float
    seconds_left: float

    @property
    def rate(self) -> float:
        """Experiments per second."""
        return self.done / self.seconds if self.seconds else 0.0


@dataclass(frozen=True)
class Summary:
    """The outcome of a run."""

    experiments: int  # of the study
    computed: int  # by this run; the others were finished before or failed
    failed: int
    seconds: float
    failures: tuple[str, ...]


def run(
    study: Study | Sequence[Study],
    out: str | os.PathLike[str],
    *,
    source: Source | None = None,
    workers: int | None = None,
    engine: str = "local",
    limit: int | None = LIMIT,
    progress: Callable[[Progress], None] = lambda _: None,
) -> Summary:
    """Compute the experiments of a study that are missing in the folder `out`, and store them there.

    Several studies of the same packs can be given; their common work is computed once. A study of more than `limit`
    experiments is refused; None means no limit. A run may be killed at any moment and called again: a finished unit is
    never lost and never computed twice. If a unit fails, its reason is recorded and the others continue.
    """
    from imprint.study.store import Store

    if engine not in RUNNERS:
        raise unknown("engine", engine, RUNNERS)
    studies = [study] if isinstance(study, Study) else list(study)
    if workers is not None:
        check_int("run", "workers", workers)
    store = Store(out)
    with store.locked():
        todo = plan(studies, source or studies[0].source(), store.done(), limit)
        store.describe(studies[0], todo)
        default = 1 if todo.work < WORTH_PROCESSES else available_cpus()
        start, done, failed, worked, failures = time.monotonic(), 0, 0, 0.0, list[str]()

        def report() -> None:
            seconds = time.monotonic() - start
            left = seconds * (todo.work - worked) / worked if worked else float("inf") if todo.units else 0.0
            progress(Progress(done, todo.to_do, failed, seconds, left))

        with RUNNERS[engine](todo.units, workers or default) as finished:
            report()
            for unit, outcome in finished:
                if isinstance(outcome, str):
                    store.fail(unit, outcome)
                    failures.append(f"{unit}: {outcome}")
                    failed += len(unit.experiments)
                else:
                    store.write(unit, outcome)
                    done += len(unit.experiments)
                worked += unit.work
                report()
    return Summary(todo.experiments, done, failed, time.monotonic() - start, tuple(failures))


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
    with connected(workers) as ray:
        task = ray.remote(num_cpus=1, max_retries=MAX_RETRIES, retry_exceptions=False)(evaluate)
        slots = Slots(ray)
        yield _outcomes(units, lambda unit: task.remote(unit).future(), lambda: IN_FLIGHT_PER_SLOT * slots.count())


RUNNERS = {"local": local_runner, "ray": ray_runner}


def _outcomes(
    units: tuple[Unit, ...], submit: Callable[[Unit], Future[Columns]], room: Callable[[], int]
) -> Iterator[Outcome]:
    """Submit units, up to `room()` at a time, and yield each with its columns or the reason for its failure."""
    waiting, busy = deque(units), dict[Future[Columns], Unit]()
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
    if type(error).__module__ == "ray.exceptions":
        cause = getattr(error, "cause", None)  # of an error in the task
        return _reason(cause) if cause else f"lost by the cluster after {MAX_RETRIES} retries: {type(error).__name__}"
    return f"{type(error).__name__}: {error}".splitlines()[0]


class _Worker:
    """A process that evaluates one unit at a time, and ends when this end of its pipe is closed."""

    def __init__(self) -> None:
        self._future: Future[Columns] | None = None
        self.start()

    def start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, far = context.Pipe()
        self._pool = ProcessPoolExecutor(1, mp_context=context, initializer=_prepare, initargs=(far,))
        self._pool.submit(os.getpid)  # starts the process, which inherits the environment
        far.close()

    def is_idle(self) -> bool:
        return self._future is None or self._future.done()

    def submit(self, unit: Unit) -> Future[Columns]:
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
    """In the worker: use one BLAS thread, ignore Ctrl-C, and end when the parent ends or closes its end of the pipe."""

    def end_with_parent() -> None:
        with suppress(EOFError, OSError):
            pipe.recv()
        os._exit(0)

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    limit_for_good()
    threading.Thread(target=end_with_parent, daemon=True).start()
