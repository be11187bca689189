"""Run studies of the paper, or what is missing of them."""

import os
import time
from collections.abc import Callable
from dataclasses import asdict, astuple, replace
from math import inf
from operator import add
from pathlib import Path
from typing import Any

from imprint.core.files.atomic import make_folder
from imprint.paper import chosen
from imprint.paper.artefact import FORMAT, PAPER, Artefact, OnProgress, elapsed, write_json
from imprint.paper.setting import Setting
from imprint.paper.studies import batches
from imprint.study import Progress, Study, Summary
from imprint.study import run as run_study


def runnable(name: str, setting: Setting) -> list[Artefact]:
    """The artefacts of `paper/NAME` that can run on these packs."""
    return [artefact for artefact in chosen(name).values() if artefact.can_run(setting)]


def planned_batches(name: str, setting: Setting) -> list[list[Study]]:
    """The studies behind `paper/NAME` in batches. Experiments that several artefacts need are named once."""
    settings = setting.by_aggregator
    return batches(s for one in settings for artefact in runnable(name, one) for s in artefact.studies(one))


def run(
    name: str,
    setting: Setting,
    out: str | os.PathLike[str],
    *,
    progress: Callable[[Progress], None] = lambda _: None,
    measuring: OnProgress = lambda *_: None,
    **how: Any,
) -> Summary:
    """Compute what is missing in `out`. A run may be killed at any moment and called again.

    `how` is passed to `imprint.study.run`: workers, engine, limit.
    """
    folder, start = Path(out), time.monotonic()
    make_folder(folder)
    before, planned = elapsed(folder), planned_batches(name, setting)
    total, ahead = Summary(0, 0, 0, 0.0, ()), sum(study.points for batch in planned for study in batch)

    def seconds() -> float:
        return time.monotonic() - start

    def record() -> None:
        """Record the setting and the elapsed time: a killed run loses the time since the last call, but no results."""
        note = {"format": FORMAT, "places": asdict(setting), "seconds": round(before + seconds(), 1)}
        write_json(folder / PAPER, note)

    def report(p: Progress) -> None:
        """Report the progress of all batches, given that of one; `ahead` counts later experiments, finished or not."""
        done, failed, left = total.computed + p.done, total.failed + p.failed, p.total - p.done - p.failed + ahead
        seconds_left = seconds() * left / done if done else inf
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
