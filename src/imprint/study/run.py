"""Run a study: plan what is missing, evaluate units on workers, store their results."""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from imprint.core.errors import ParameterError
from imprint.core.family import unknown
from imprint.kernels import cpu
from imprint.study.plan import LIMIT, plan
from imprint.study.study import Source, Study

WORTH_PROCESSES = 5e10  # multiplications, some seconds; for less, no worker processes are started


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
    from imprint.study.workers import RUNNERS

    if engine not in RUNNERS:
        raise unknown("engine", engine, RUNNERS)
    studies = [study] if isinstance(study, Study) else list(study)
    if workers is not None and (isinstance(workers, bool) or not isinstance(workers, int) or workers < 1):
        raise ParameterError(f"run(workers={workers!r}): workers must be int >= 1.")
    store = Store(out)
    with store.locked():
        todo = plan(studies, source or studies[0].source(), store.done(), limit)
        store.describe(studies[0], todo)
        default = 1 if todo.work < WORTH_PROCESSES else cpu.available_cpus()
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
