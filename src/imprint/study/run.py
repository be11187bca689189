"""Run a study: plan what is missing, hand units to workers, keep what they bring back."""

import os
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from imprint.core.errors import ParameterError
from imprint.core.family import unknown
from imprint.kernels.placed import check_device
from imprint.study.plan import Outcome, Plan, Unit, plan
from imprint.study.source import Packs, Source
from imprint.study.study import Study

if TYPE_CHECKING:
    from imprint.study.store import Store

ENGINES = ("local", "ray")
WORTH_PROCESSES = 5e10  # multiplications, a second or so
DEVICES = ("cpu", "cuda")


@dataclass(frozen=True)
class Progress:
    """How far a run is. `seconds_left` is a guess from the work done so far."""

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
    """What a run did."""

    experiments: int
    """How many cells the study names."""
    computed: int
    """How many of them this run computed; the others were there or failed."""
    failed: int
    seconds: float
    failures: tuple[str, ...]


class Runner(Protocol):
    """Something that evaluates units and yields what became of each."""

    def __call__(self, units: tuple[Unit, ...], workers: int) -> AbstractContextManager[Iterator[Outcome]]: ...


def run(
    study: Study,
    out: str | os.PathLike[str],
    *,
    source: Source | None = None,
    workers: int | None = None,
    engine: str = "local",
    device: str = "cpu",
    progress: Callable[[Progress], None] = lambda _: None,
) -> Summary:
    """Compute the cells of a study that `out` does not hold yet, and keep them there.

    May be killed at any moment and called again: a finished unit is never lost, never computed twice. A unit that
    fails is recorded with its reason and the rest goes on.
    """
    runner = _runner(engine)
    _check_device(device)
    if workers is not None and (isinstance(workers, bool) or not isinstance(workers, int) or workers < 1):
        raise ParameterError(f"run(workers={workers!r}): workers must be int >= 1.")
    from imprint.study.store import Store

    store = Store(out)
    with store.locked():
        todo = plan(study, source or source_of(study), store.done(), device)
        store.describe(study, todo)
        return _run(store, todo, runner, workers or _usual_workers(todo, device), progress)


def _usual_workers(todo: Plan, device: str) -> int:
    """All cores, unless there is a GPU to share or so little to do that starting processes would cost more."""
    small = sum(u.work for u in todo.units) < WORTH_PROCESSES
    return 1 if small or device != "cpu" else cores()


def _run(store: "Store", todo: Plan, runner: Runner, workers: int, progress: Callable[[Progress], None]) -> Summary:
    start, done, failed, worked = time.monotonic(), 0, 0, 0.0
    work = sum(u.work for u in todo.units)
    failures = []

    def report() -> None:
        seconds = time.monotonic() - start
        left = seconds * (work - worked) / worked if worked else float("inf") if todo.units else 0.0
        progress(Progress(done, todo.cells, failed, seconds, left))

    report()
    with closing(_outcomes(runner, todo.units, workers)) as finished:
        for unit, outcome in finished:
            if isinstance(outcome, str):
                store.fail(unit, outcome)
                failures.append(f"{unit}: {outcome}")
                failed += len(unit.cells)
            else:
                store.write(unit, outcome)
                done += len(unit.cells)
            worked += unit.work
            report()
    return Summary(todo.experiments, done, failed, time.monotonic() - start, tuple(failures))


def _outcomes(runner: Runner, units: tuple[Unit, ...], workers: int) -> Generator[Outcome, None, None]:
    """What became of units. One that fails is tried again, each class of generators alone: others do not suffer."""
    again: list[Unit] = []
    with runner(units, workers) as finished:
        for unit, outcome in finished:
            parts = unit.apart() if isinstance(outcome, str) else []
            if len(parts) > 1:
                again += parts
            else:
                yield unit, outcome
    if again:
        yield from _outcomes(runner, tuple(again), workers)


def source_of(study: Study) -> Source:
    """The folder of packs that the study names."""
    if not study.embeddings:
        raise ParameterError("Study(embeddings=''): say in which folder the embeddings lie.")
    if not os.path.isdir(study.embeddings):
        raise ParameterError(f"Study(embeddings={study.embeddings!r}): there is no such folder.")
    return Packs(study.embeddings)


def cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _runner(engine: str) -> Runner:
    if engine == "local":
        from imprint.study.local import local_runner

        return local_runner
    if engine == "ray":
        from imprint.study.cluster import ray_runner

        return ray_runner
    raise unknown("engine", engine, ENGINES)


def _check_device(device: str) -> None:
    if device not in DEVICES:
        raise unknown("device", device, DEVICES)
    check_device(device)
