"""Run studies of the paper, or what is missing of them."""

import os
import time
from collections.abc import Callable, Iterable
from math import inf
from pathlib import Path
from typing import Any

from imprint.core.files.atomic import make_folder
from imprint.paper import chosen
from imprint.paper.artefact import FORMAT, PAPER, Artefact, OnProgress, spent, write_json
from imprint.paper.setting import Setting
from imprint.paper.studies import PIECE, RoleStudy, in_pieces, merged
from imprint.study import Progress, Study, Summary
from imprint.study import run as run_study


def runnable(name: str, setting: Setting) -> list[Artefact]:
    """The artefacts of `paper/NAME` that can run on these packs."""
    return [artefact for artefact in chosen(name).values() if artefact.can_run(setting)]


def planned_studies(name: str, setting: Setting) -> list[RoleStudy]:
    """The studies behind `paper/NAME`; experiments that several artefacts need are named once."""
    every = (s for one in setting.by_aggregator for artefact in runnable(name, one) for s in artefact.studies(one))
    return in_pieces(merged(every))


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
    record = _RunRecord(Path(out), setting)
    done: list[Summary] = []
    groups = grouped(planned_studies(name, setting))
    ahead = sum(_size(study) for _, studies in groups for study in studies)
    for role, studies in groups:
        ahead -= sum(map(_size, studies))

        def report(p: Progress, ahead: int = ahead) -> None:
            progress(_overall(p, done, ahead, record.seconds))

        done.append(run_study(studies, record.folder / role, progress=report, **how))
        record.write()
    for artefact in runnable(name, setting):
        artefact.measure(setting, record.folder, measuring)
        record.write()
    return _sum(done, record.seconds)


def grouped(studies: Iterable[RoleStudy]) -> list[tuple[str, list[Study]]]:
    """Groups of studies with the same store and seeds, which share proxies and distances; up to `PIECE` tasks each."""
    groups: list[tuple[str, list[Study]]] = []
    for role, study in studies:
        last = groups[-1] if groups else ("", [])
        tasks = sum(len(s.tasks) for s in last[1]) + len(study.tasks)
        alike = last[0] == role and (last[1][0].seeds, last[1][0].shots) == (study.seeds, study.shots)
        if alike and tasks <= PIECE:
            last[1].append(study)
        else:
            groups.append((role, [study]))
    return groups


def _size(study: Study) -> int:
    return len(study.instances) * len(study.methods) * len(study.seeds)


def _overall(p: Progress, done: Iterable[Summary], ahead: int, seconds: float) -> Progress:
    """The progress of all studies, from that of one; `ahead` counts later experiments, finished or not."""
    finished = _sum(done, seconds)
    computed, failed = finished.computed + p.done, finished.failed + p.failed
    left = p.total - p.done - p.failed + ahead
    return Progress(computed, computed + failed + left, failed, seconds, seconds * left / computed if computed else inf)


class _RunRecord:
    """Records in a folder the setting of its studies, and their duration including earlier calls."""

    def __init__(self, folder: Path, setting: Setting):
        self.folder, self._setting, self._start = folder, setting, time.monotonic()
        make_folder(folder)
        self._before = spent(folder)
        self.write()

    @property
    def seconds(self) -> float:
        """The duration of this call."""
        return time.monotonic() - self._start

    def write(self) -> None:
        """Write the record; a killed run loses the time since the last call, but no results."""
        total = round(self._before + self.seconds, 1)
        write_json(self.folder / PAPER, {"format": FORMAT, "places": self._setting.to_json(), "seconds": total})


def _sum(done: Iterable[Summary], seconds: float) -> Summary:
    parts = list(done)
    failures = tuple(line for part in parts for line in part.failures)
    experiments, computed, failed = (
        sum(getattr(part, name) for part in parts) for name in ("experiments", "computed", "failed")
    )
    return Summary(experiments, computed, failed, seconds, failures)
