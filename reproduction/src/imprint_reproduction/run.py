"""Run studies of the paper, or what is missing of them."""

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, astuple, replace
from math import inf
from operator import add
from pathlib import Path
from typing import Any

from imprint.extend import make_folder
from imprint.study import Progress, Study, Summary
from imprint.study import run as run_study
from imprint_reproduction import artefacts_named
from imprint_reproduction.artefact import (
    FORMAT,
    PAPER,
    Artefact,
    OnProgress,
    elapsed,
    write_json,
)
from imprint_reproduction.setting import Setting

BATCH = 20  # maximum number of tasks in a batch


def runnable(name: str, setting: Setting) -> list[Artefact]:
    """The artefacts of `paper/NAME` that can run on these packs."""
    return [
        artefact
        for artefact in artefacts_named(name).values()
        if artefact.can_run(setting)
    ]


def planned_batches(name: str, setting: Setting) -> list[list[Study]]:
    """The studies behind `paper/NAME` in batches. Experiments that several artefacts
    need are named once.
    """
    settings = setting.by_aggregator
    return batches(
        s
        for one in settings
        for artefact in runnable(name, one)
        for s in artefact.studies(one)
    )


def run(
    name: str,
    setting: Setting,
    out: str | os.PathLike[str],
    *,
    progress: Callable[[Progress], None] = lambda _: None,
    measuring: OnProgress = lambda *_: None,
    **how: Any,
) -> Summary:
    """Compute what is missing in `out`. A run may be killed at any moment and called
    again.

    `how` is passed to `imprint.study.run`: workers, engine, limit.
    """
    folder, start = Path(out), time.monotonic()
    make_folder(folder)
    before, planned = elapsed(folder), planned_batches(name, setting)
    total, ahead = (
        Summary(0, 0, 0, 0.0, ()),
        sum(study.points for batch in planned for study in batch),
    )

    def seconds() -> float:
        return time.monotonic() - start

    def record() -> None:
        """Record the setting and the elapsed time: a killed run loses the time since
        the last call, but no results.
        """
        note = {
            "format": FORMAT,
            "places": asdict(setting),
            "seconds": round(before + seconds(), 1),
        }
        write_json(folder / PAPER, note)

    def report(p: Progress) -> None:
        """Report the progress of all batches, given that of one; `ahead` counts later
        experiments, finished or not.
        """
        done, failed, left = (
            total.computed + p.done,
            total.failed + p.failed,
            p.total - p.done - p.failed + ahead,
        )
        # of later batches, as long for an experiment as so far
        later = seconds() * ahead / done if done else inf
        seconds_left = p.seconds_left + later
        progress(Progress(done, done + failed + left, failed, seconds(), seconds_left))

    record()
    for batch in planned:
        ahead -= sum(study.points for study in batch)
        part = run_study(batch, folder / batch[0].name, progress=report, **how)
        total = Summary(*map(add, astuple(total), astuple(part)))
        record()
    for artefact in runnable(name, setting):
        artefact.measure(setting, folder, measuring)
        record()
    return replace(total, seconds=seconds())


def batches(studies: Iterable[Study]) -> list[list[Study]]:
    """The experiments of some studies, each named once, in batches that are run one
    after the other.

    Studies that differ only in their methods are merged, so that their common work is
    computed once. A batch has few tasks, so that a killed run loses little and uses
    little memory. Its studies have the same packs and seeds, so that they share proxies
    and distances.
    """
    methods: dict[Study, list[str]] = {}  # by the study without its methods
    for study in studies:
        methods.setdefault(replace(study, recipes=("qi2018",)), []).extend(
            study.recipes
        )
    batches: list[list[Study]] = [[]]
    for study, texts in methods.items():
        for i in range(0, len(study.tasks), BATCH):
            part = replace(
                study,
                recipes=tuple(dict.fromkeys(texts)),
                tasks=study.tasks[i : i + BATCH],
            )
            batch = [*batches[-1], part]
            shared = {(s.name, s.seeds, s.shots) for s in batch}
            if len(shared) == 1 and sum(len(s.tasks) for s in batch) <= BATCH:
                batches[-1] = batch
            else:
                batches.append([part])
    return list(filter(None, batches))
