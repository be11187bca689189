"""Run a study: plan what is missing, hand units to workers, keep what they bring back."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from imprint.core.errors import ParameterError
from imprint.core.family import unknown
from imprint.kernels import cpu
from imprint.study.plan import LIMIT, Outcome, Plan, check_size, plan_together
from imprint.study.source import Packs, Source
from imprint.study.study import Study

if TYPE_CHECKING:
    from imprint.study.store import Store

WORTH_PROCESSES = 5e10  # multiplications, some seconds; for less no processes are started


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

    experiments: int  # that the study names
    computed: int  # of them by this run; the others were there or failed
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
    """Compute the experiments of a study that `out` does not hold yet, and keep them there.

    Several studies of the same packs may be given: what their experiments have in common is computed once.
    A study that names more than `limit` experiments is refused; None lifts the limit. It may be killed at any
    moment and called again: a finished unit is never lost, never computed twice. A unit that fails is recorded with
    its reason and the rest goes on.
    """
    from imprint.study.store import Store
    from imprint.study.workers import RUNNERS

    if engine not in RUNNERS:
        raise unknown("engine", engine, RUNNERS)
    studies = [study] if isinstance(study, Study) else list(study)
    for one in studies:
        check_size(one, limit)
    if workers is not None and (isinstance(workers, bool) or not isinstance(workers, int) or workers < 1):
        raise ParameterError(f"run(workers={workers!r}): workers must be int >= 1.")
    store = Store(out)
    with store.locked():
        todo = plan_together(studies, source or source_of(studies[0]), store.done(), limit)
        store.describe(studies[0], todo)
        usual = 1 if sum(u.work for u in todo.units) < WORTH_PROCESSES else cpu.available_cpus()
        with RUNNERS[engine](todo.units, workers or usual) as finished:
            return _keep(store, todo, finished, progress)


def _keep(store: "Store", todo: Plan, finished: Iterator[Outcome], progress: Callable[[Progress], None]) -> Summary:
    """Keep what becomes of units, one after the other, and say how far it is."""
    start, done, failed, worked = time.monotonic(), 0, 0, 0.0
    work = sum(u.work for u in todo.units)
    failures = []

    def report() -> None:
        seconds = time.monotonic() - start
        left = seconds * (work - worked) / worked if worked else float("inf") if todo.units else 0.0
        progress(Progress(done, todo.to_do, failed, seconds, left))

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


def source_of(study: Study) -> Source:
    """The folder of packs that the study names."""
    if not study.embeddings:
        raise ParameterError("Study(embeddings=''): say in which folder the embeddings lie.")
    if not os.path.isdir(study.embeddings):
        raise ParameterError(f"Study(embeddings={study.embeddings!r}): there is no such folder.")
    return Packs(study.embeddings)
