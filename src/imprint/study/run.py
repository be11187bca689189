"""Run a study: plan the missing experiments, evaluate units in processes or on a Ray
cluster, store their results.
"""

import multiprocessing
import os
import signal
import threading
import time
from collections import defaultdict, deque
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

from imprint.core.cluster import (
    IN_FLIGHT_PER_SLOT,
    MAX_RETRIES,
    Slots,
    connected,
)
from imprint.core.errors import ParameterError, check_int, unknown
from imprint.core.memory import keep_freed_memory
from imprint.kernels.cpu import available_cpus, limit_permanently, one_thread
from imprint.study.evaluate import UnitResults, evaluate
from imprint.study.failures import by_reason, examples, reason_of
from imprint.study.plan import (
    MAX_EXPERIMENTS,
    Plan,
    Unit,
    plan,
)
from imprint.study.study import Source, Study

# Multiplications: some seconds. Below, starting worker processes takes longer.
MIN_PARALLEL_WORK = 5e10
# a unit with its results, or with the reason why it failed as a whole
Outcome: TypeAlias = tuple[Unit, UnitResults | str]


@dataclass(frozen=True)
class Progress:
    """The progress of a run.

    `seconds_left` is extrapolated from the measured times of finished units, by type of
    generator; it is infinite before the first one.
    """

    done: int
    total: int
    failed: int
    seconds: float
    seconds_left: float

    @property
    def rate(self) -> float:
        """Experiments per second."""
        return self.done / self.seconds if self.seconds else 0.0


def _ignore(progress: Progress) -> None:
    """The default of `progress`."""


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
    progress: Callable[[Progress], None] = _ignore,
) -> Summary:
    """Compute the experiments of a study that are missing in a folder, and store them
    there.

    A run may be killed at any moment and called again: a finished unit is never lost
    and never computed twice. If an experiment fails, its reason is recorded and the
    others continue; the next run tries it again.

    Parameters
    ----------
    study : Study or sequence of Study
        Several studies of the same packs share their common work.
    out : str or path
        The folder of the results.
    source : Source, optional
        Opens the embeddings. [default: the folder of the study]
    workers : int, optional
        Number of processes. [default: one per core; one for little work]
    engine : str
        `local`, or `ray` for a cluster. [default: `local`]
    limit : int, optional
        A study of more experiments is refused; None means no limit. [default:
        2,000,000]
    progress : callable, optional
        Called with the progress, after each unit of work.

    Returns
    -------
    Summary
        What was computed, and what failed.
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
        store.forget_failures(todo)
        default_workers = 1 if todo.work < MIN_PARALLEL_WORK else available_cpus()
        tally = _Tally(todo)
        with RUNNERS[engine](todo.units, workers or default_workers) as outcomes:
            progress(tally.progress())
            for unit, outcome in outcomes:
                if isinstance(outcome, str):
                    store.fail(unit, outcome)
                else:
                    store.write(unit, outcome)
                tally.add(unit, outcome)
                progress(tally.progress())
    return tally.summary()


class _Pace:
    """The measured time of finished units, from which that of the others follows.

    The planned work of units is comparable for generators of one type. A type of which
    no unit is finished counts as the mean of the others.
    """

    def __init__(self, units: Sequence[Unit]) -> None:
        # planned work of unfinished and of measured units
        self._left: dict[type, float] = defaultdict(float)
        self._done: dict[type, float] = defaultdict(float)
        # processor time of measured units
        self._seconds: dict[type, float] = defaultdict(float)
        for unit in units:
            self._left[_type_of(unit)] += unit.work

    def add(self, unit: Unit, results: UnitResults | None) -> None:
        """Count a finished unit; None if it failed, and its time is not known."""
        kind = _type_of(unit)
        self._left[kind] -= unit.work
        if results is None:
            return
        columns = results.columns
        self._done[kind] += unit.work
        for name in ("seconds_generation", "seconds_evaluation"):
            self._seconds[kind] += float(columns[name].sum())

    def seconds_left(self, elapsed: float) -> float:
        """The remaining time, given the time of the finished units together."""
        measured = sum(self._seconds.values())
        if not measured:
            return float("inf") if sum(self._left.values()) > 0 else 0.0
        mean = measured / sum(self._done.values())
        left = 0.0
        for kind, work in self._left.items():
            rate = mean
            if self._done[kind]:
                rate = self._seconds[kind] / self._done[kind]
            left += rate * work
        # Units run at the same time, and some of their time is not that of experiments.
        return elapsed * left / measured


def _type_of(unit: Unit) -> type:
    """The type of the generators of a unit."""
    return type(unit.methods[0].generator)


class _Tally:
    """Counts what a run has finished."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.start = time.monotonic()
        self.pace = _Pace(plan.units)
        self.done = 0
        self.failed = 0
        self.failures: list[str] = []

    def add(self, unit: Unit, outcome: UnitResults | str) -> None:
        """Count a finished unit."""
        self.pace.add(unit, None if isinstance(outcome, str) else outcome)
        total = len(unit.experiments)
        if isinstance(outcome, str):
            self.failures.append(f"{unit}: {outcome}")
            self.failed += total
            return
        self.failed += len(outcome.failures)
        self.done += total - len(outcome.failures)
        for reason, indices in by_reason(outcome.failures):
            which = ""
            if len(indices) < total:
                failed = examples(unit.texts(indices))
                which = f" ({len(indices):,} of {total:,} experiments: {failed})"
            self.failures.append(f"{unit}: {reason}{which}")

    @property
    def seconds(self) -> float:
        """The seconds since the start."""
        return time.monotonic() - self.start

    def progress(self) -> Progress:
        """The progress so far."""
        seconds = self.seconds
        return Progress(
            done=self.done,
            total=self.plan.to_do,
            failed=self.failed,
            seconds=seconds,
            seconds_left=self.pace.seconds_left(seconds),
        )

    def summary(self) -> Summary:
        """The outcome of the run."""
        return Summary(
            experiments=self.plan.experiments,
            computed=self.done,
            failed=self.failed,
            seconds=self.seconds,
            failures=tuple(self.failures),
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

        def submit(unit: Unit) -> Future[UnitResults]:
            # No more units are submitted at a time than there are processes.
            idle = next(process for process in processes if process.is_idle())
            return idle.submit(unit)

        yield _outcomes(units, submit, lambda: len(processes))


@contextmanager
def ray_runner(units: tuple[Unit, ...], workers: int) -> Iterator[Iterator[Outcome]]:
    """Evaluate units on the cluster of RAY_ADDRESS, or on one with `workers` cores that
    is started here.

    The nodes must have the embeddings at the same path. If a node dies, another one
    evaluates its unit.
    """
    with connected(workers) as ray:
        task = ray.remote(
            num_cpus=1,
            max_retries=MAX_RETRIES,
            retry_exceptions=False,
        )(evaluate)
        slots = Slots(ray)
        yield _outcomes(
            units,
            lambda unit: task.remote(unit).future(),
            lambda: IN_FLIGHT_PER_SLOT * slots.count(),
        )


RUNNERS = {"local": local_runner, "ray": ray_runner}


def _outcomes(
    units: tuple[Unit, ...],
    submit: Callable[[Unit], Future[UnitResults]],
    capacity: Callable[[], int],
) -> Iterator[Outcome]:
    """Submit units, at most `capacity()` at a time, and yield each with its columns or
    the reason for its failure.
    """
    waiting = deque(units)
    running: dict[Future[UnitResults], Unit] = {}
    while waiting or running:
        while waiting and len(running) < capacity():
            unit = waiting.popleft()
            running[submit(unit)] = unit
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            unit = running.pop(future)
            error = future.exception()
            if error is None:
                yield unit, future.result()
            else:
                yield unit, _reason(error)


def _reason(error: BaseException) -> str:
    """The reason for a failure in one line."""
    if isinstance(error, BrokenProcessPool):
        return "its process was killed, perhaps because memory ran out"
    if type(error).__module__ == "ray.exceptions":
        cause = getattr(error, "cause", None)  # of an error in the task
        if cause:
            return _reason(cause)
        kind = type(error).__name__
        return f"lost by the cluster after {MAX_RETRIES} retries: {kind}"
    return reason_of(error)


class _Worker:
    """A process that evaluates one unit at a time, and exits when the parent's end of
    its pipe is closed.
    """

    def __init__(self) -> None:
        self._future: Future[UnitResults] | None = None
        self.start()

    def start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, worker_end = context.Pipe()
        self._pool = ProcessPoolExecutor(
            max_workers=1,
            mp_context=context,
            initializer=_prepare,
            initargs=(worker_end,),
        )
        # starts the process, which inherits the environment
        self._pool.submit(os.getpid)
        worker_end.close()

    def is_idle(self) -> bool:
        return self._future is None or self._future.done()

    def submit(self, unit: Unit) -> Future[UnitResults]:
        """Evaluate a unit; a process that was killed is replaced first."""
        if self._future is not None:
            error = self._future.exception()
            if isinstance(error, BrokenProcessPool):
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
    keep_freed_memory()
    threading.Thread(target=exit_with_parent, daemon=True).start()
