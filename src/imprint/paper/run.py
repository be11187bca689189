"""Run studies of the paper, or the rest of them."""

import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from imprint.core.errors import FileError
from imprint.paper import chosen
from imprint.paper.artefact import Report
from imprint.paper.places import Places
from imprint.paper.results import FORMAT, PAPER, write_json
from imprint.paper.work import Work, in_pieces, joined
from imprint.study import Progress, Summary
from imprint.study import run as run_study


def works(name: str, places: Places) -> list[Work]:
    """The studies behind `paper/NAME`, cells that several need named once."""
    return in_pieces(joined(w for artefact in chosen(name).values() for w in artefact.studies(places)))


def run(
    name: str,
    places: Places,
    out: str | os.PathLike[str],
    *,
    progress: Callable[[Progress], None] = lambda _: None,
    measuring: Report = lambda *_: None,
    **how: Any,
) -> Summary:
    """Compute what `out` does not hold yet. May be killed at any moment and called again.

    `how` goes to `imprint.study.run`: workers, engine, device.
    """
    folder, start = Path(out), time.monotonic()
    _open(folder, places)
    done = [run_study(w.study, folder / w.role, progress=progress, **how) for w in works(name, places)]
    for artefact in chosen(name).values():
        artefact.measure(places, folder, measuring)
    return _sum(done, time.monotonic() - start)


def _open(folder: Path, places: Places) -> None:
    """Say in the folder where the studies run; what ran there before stays."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise FileError(f"Cannot write {folder}: {e.strerror}.") from None
    write_json(folder / PAPER, {"format": FORMAT, "places": places.to_json()})


def _sum(done: Iterable[Summary], seconds: float) -> Summary:
    parts = list(done)
    failures = tuple(line for part in parts for line in part.failures)
    experiments, computed, failed = (
        sum(getattr(part, name) for part in parts) for name in ("experiments", "computed", "failed")
    )
    return Summary(experiments, computed, failed, seconds, failures)
