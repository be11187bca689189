"""Run a study: plan the missing experiments, evaluate units in processes or on a Ray
cluster, store their results.
"""

import multiprocessing
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import TypeAlias

from imprint.core.arrays import Array
from imprint.core.cluster import IN_FLIGHT_PER_SLOT, MAX_RETRIES, Slots, connected
from imprint.core.errors import ParameterError, check_int, unknown
from imprint.kernels.cpu import available_cpus, limit_permanently, one_thread
from imprint.study.evaluate import evaluate
from imprint.study.plan import MAX_EXPERIMENTS, Unit, plan
from imprint.study.study import Source, Study

# multiplications, some seconds; below, starting worker processes takes longer
MIN_PARALLEL_WORK = 5e10
Columns: TypeAlias = dict[str, Array]
# a unit with its columns, or with the reason why it failed
Outcome: TypeAlias = tuple[Unit, Columns | str]


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
    limit: int | None = MAX_EXPERIMENTS,
    progress: Callable[[Progress], None] = lambda _: None,
) -> Summary:
    """Compute the experiments of a study that are missing in the folder `out`, and
    store them there.

    Several studies of the same packs can be given; their common work is computed once.
    A study of more than `limit` experiments is refused; None means no limit. A run may
    be killed at any moment and called again: a finished unit is never lost and never
    computed twice. If a unit fails, its reason is recorded and the others continue.
    """
    from imprint.study.store import Store

    if engine not in RUNNERS:
        raise unknown("engine", engine, RUNNERS)
    studies = [study] if isinstance(study, Study) else list(study)
    if not studies:
        raise ParameterError("run(study): give one study or more.")
    if workers is not None:
        check_int("run", "workers", workers)
    store = Store(out)
    with store.locked():
        todo = plan(studies, source or studies[0].source(), store.done(), limit)
        store.describe(studies[0], todo)
        default_workers = 1 if todo.work < MIN_PARALLEL_WORK else available_cpus()
        start, finished_work = time.monotonic(), 0.0
        done, failed, failures = 0, 0, list[str]()

        def report() -> None:
            seconds = time.monotonic() - start
            seconds_left = float("inf") if todo.units else 0.0
            if finished_work:
                seconds_left = seconds * (todo.work - finished_work) / finished_work
            progress(Progress(done, todo.to_do, failed, seconds, seconds_left))

        with RUNNERS[engine](todo.units, workers or default_workers) as outcomes:
            report()
            for unit, outcome in outcomes:
                if isinstance(outcome, str):
                    store.fail(unit, outcome)
                    failures.append(f"{unit}: {outcome}")
                    failed += len(unit.experiments)
                else:
                    store.write(unit, outcome)
                    done += len(unit.experiments)
                finished_work += unit.work
                report()
    return Summary(
        todo.experiments, done, failed, time.monotonic() - start, tuple(failures)
    )


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
        processes = [_Worker() for _ in range(min(workers, len(units)))]
        for process in processes:
            stack.callback(process.stop)

        def submit(unit: Unit) -> Future[Columns]:
            return next(process for process in processes if process.is_idle()).submit(
                unit
            )

        yield _outcomes(units, submit, lambda: len(processes))


@contextmanager
def ray_runner(units: tuple[Unit, ...], workers: int) -> Iterator[Iterator[Outcome]]:
    """Evaluate units on the cluster of RAY_ADDRESS, or on one with `workers` cores that
    is started here.

    The nodes must have the embeddings at the same path. If a node dies, another one
    evaluates its unit.
    """
    with connected(workers) as ray:
        task = ray.remote(num_cpus=1, max_retries=MAX_RETRIES, retry_exceptions=False)(
            evaluate
        )
        slots = Slots(ray)
        yield _outcomes(
            units,
            lambda unit: task.remote(unit).future(),
            lambda: IN_FLIGHT_PER_SLOT * slots.count(),
        )


RUNNERS = {"local": local_runner, "ray": ray_runner}


def _outcomes(
    units: tuple[Unit, ...],
    submit: Callable[[Unit], Future[Columns]],
    capacity: Callable[[], int],
) -> Iterator[Outcome]:
    """Submit units, at most `capacity()` at a time, and yield each with its columns or
    the reason for its failure.
    """
    waiting, running = deque(units), dict[Future[Columns], Unit]()
    while waiting or running:
        while waiting and len(running) < capacity():
            unit = waiting.popleft()
            running[submit(unit)] = unit
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            error = future.exception()
            yield (
                running.pop(future),
                future.result() if error is None else _reason(error),
            )


def _reason(error: BaseException) -> str:
    """The reason for a failure in one line."""
    if isinstance(error, BrokenProcessPool):
        return "its process was killed, perhaps because memory ran out"
    if type(error).__module__ == "ray.exceptions":
        cause = getattr(error, "cause", None)  # of an error in the task
        return (
            _reason(cause)
            if cause
            else (
                f"lost by the cluster after {MAX_RETRIES} retries:"
                f" {type(error).__name__}"
            )
        )
    return f"{type(error).__name__}: {error}".splitlines()[0]


class _Worker:
    """A process that evaluates one unit at a time, and exits when the parent's end of
    its pipe is closed.
    """

    def __init__(self) -> None:
        self._future: Future[Columns] | None = None
        self.start()

    def start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, worker_end = context.Pipe()
        self._pool = ProcessPoolExecutor(
            1, mp_context=context, initializer=_prepare, initargs=(worker_end,)
        )
        # starts the process, which inherits the environment
        self._pool.submit(os.getpid)
        worker_end.close()

    def is_idle(self) -> bool:
        return self._future is None or self._future.done()

    def submit(self, unit: Unit) -> Future[Columns]:
        """Evaluate a unit; a process that was killed is replaced first."""
        if self._future is not None and isinstance(
            self._future.exception(), BrokenProcessPool
        ):
            self.stop()
            self.start()
        self._future = self._pool.submit(evaluate, unit)
        return self._future

    def stop(self) -> None:
        self._pipe.close()
        self._pool.shutdown(wait=True, cancel_futures=True)


def _prepare(pipe: Connection) -> None:
    """In the worker: use one BLAS thread, ignore Ctrl-C, exit when the parent exits or
    closes its end of the pipe.
    """

    def exit_with_parent() -> None:
        with suppress(EOFError, OSError):
            pipe.recv()
        os._exit(0)

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    limit_permanently()
    threading.Thread(target=exit_with_parent, daemon=True).start()
