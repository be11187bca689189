"""Classify new files in a folder, and report drift.

Each file is classified when it has stopped growing: one line on standard output. An
alarm on standard error states since when the inputs look unlike the training data, how
strong the evidence is, and which inputs provide it.
"""

import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from typer import Argument, Option

from imprint.active.drift import DriftMonitor, spoken_time
from imprint.cli import options, terminal
from imprint.core.errors import FileError, ParameterError
from imprint.imprinter import Imprinter
from imprint.imprinter.predictor import predictions
from imprint.modalities import of_file

BATCH_SIZE = 64
MAX_NAMED = 5


def command(
    file: Path = options.MODEL,
    folder: Path = Argument(metavar="DIR", help="A folder to which inputs are added."),
    every: float = Option(
        2.0, metavar="SECONDS", min=0.1, help="Pause between two scans."
    ),
    once: bool = Option(False, "--once", help="Classify the present files, then exit."),
    json: bool = Option(
        False, "--json", help="One JSON object per line, for programs."
    ),
    backbone: str | None = options.MOVED_BACKBONE,
    device: str = options.DEVICE,
    threads: int | None = options.THREADS,
) -> int:
    if not folder.is_dir():
        raise FileError(f"{folder} is not a folder; name the one to watch.")
    model = Imprinter.load(
        file, backbone=backbone, device=device, threads=threads, cache=False
    )
    if model.state.head.tags:
        raise ParameterError(
            f"watch: {file} is a model of tags; drift is measured for one label per"
            " input only."
        )
    monitor = DriftMonitor.of(model.state.head)
    if monitor is None:
        raise ParameterError(
            f"watch: {file} is not calibrated; fit it without --no-calibrate."
        )
    watcher = _Watcher(model, monitor, folder, json)
    watcher.classify(settled=not once)
    while not once:
        time.sleep(every)
        watcher.classify(settled=True)
    return 1 if watcher.unreadable else 0


class _Watcher:
    """Classifies each file of a folder once."""

    def __init__(
        self, model: Imprinter, monitor: DriftMonitor, folder: Path, json: bool
    ):
        self.model, self.monitor, self.folder, self.json = model, monitor, folder, json
        self.unreadable = False
        self._done: set[Path] = set()
        # time of the last change, and size, of the files not yet done
        self._scan: dict[Path, tuple[float, int]] = {}

    def classify(self, settled: bool) -> None:
        """Classify new files, the oldest first; with `settled`, those that have not
        changed since the last scan.
        """
        last_scan, self._scan = self._scan, self._new_files()
        ready = [
            path
            for path, status in self._scan.items()
            if not settled or last_scan.get(path) == status
        ]
        ready.sort(key=lambda path: (self._scan[path], path))
        for first in range(0, len(ready), BATCH_SIZE):
            batch = ready[first : first + BATCH_SIZE]
            self._done.update(batch)
            embedded = self.model.look([str(path) for path in batch])
            self.unreadable |= bool(terminal.report_skipped(embedded.skipped))
            if len(embedded.X):
                for answer in predictions(self.model.state.head, embedded, top=1):
                    self._report(answer)

    def _new_files(self) -> dict[Path, tuple[float, int]]:
        files = {}
        for path in self.folder.rglob("*"):
            if (
                path not in self._done
                and of_file(path) == self.model.embedder.kind
                and path.is_file()
            ):
                with suppress(FileNotFoundError):  # it was moved away meanwhile
                    status = path.stat()
                    files[path] = status.st_mtime, status.st_size
        return files

    def _report(self, answer: dict[str, Any]) -> None:
        name, known = answer["path"], answer["known"]
        if self.json:
            terminal.emit(
                {key: answer[key] for key in ("path", "label", "probability", "known")},
                indent=None,
            )
        else:
            terminal.write(
                f"{name}\t{answer['label']}\t{terminal.percent(answer['probability'])}\t{known:.3f}\n"
            )
        sys.stdout.flush()
        if self.monitor.observe(known, name, spoken_time(self._scan[Path(name)][0])):
            _report_drift(self.monitor)


def _report_drift(monitor: DriftMonitor) -> None:
    """Print the alarm and the inputs that are its evidence to standard error."""
    names = ", ".join(item.name for item in monitor.unfamiliar[:MAX_NAMED])
    terminal.note(f"Drift: {monitor.alarm}. The least familiar: {names}.")


def monitor_stream(model: Imprinter, answers: list[dict[str, Any]]) -> None:
    """Report where a stream of inputs stops looking like the training data."""
    monitor = DriftMonitor.of(model.state.head)
    if monitor is not None:
        for answer in answers:
            monitor.observe(answer["known"], answer["path"])
        if monitor.alarm:
            _report_drift(monitor)
