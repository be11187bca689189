"""Classify new files in a folder, and report drift.

Each file is classified when it has stopped growing, and again when its content changes:
one line on standard output. An alarm on standard error states since when the inputs
look unlike the training data, how strong the evidence is, and which inputs provide it.
"""

import hashlib
import os
import stat
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from typer import Argument, Option

from imprint.active.drift import DriftMonitor, spoken_time
from imprint.calibration.estimates import SIGNIFICANCE_LEVEL, cannot_tell
from imprint.cli import options, recordings, terminal
from imprint.cli.files import quoted
from imprint.core.errors import FileError, ParameterError, UnreadableInput
from imprint.datasets.files import UNREADABLE, is_hidden
from imprint.datasets.tables import table_suffix
from imprint.imprinter import Imprinter
from imprint.imprinter.predictor import predictions
from imprint.modalities import of_file, read_file

BATCH_SIZE = 64
MAX_NAMED = 5
CANNOT_TELL = "cannot tell yet"  # in place of p-values that cannot be small


def command(
    file: Path = options.MODEL,
    source: str = Argument(
        metavar="SOURCE",
        help=(
            "A folder to which inputs are added; with --window, a CSV file to which"
            " samples are added, or - for standard input."
        ),
    ),
    every: float = Option(
        2.0,
        metavar="SECONDS",
        min=0.1,
        help="Pause between two scans.",
        rich_help_panel=options.WATCHING_SECTION,
    ),
    once: bool = Option(
        False,
        "--once",
        help="Classify the present files, then exit.",
        rich_help_panel=options.WATCHING_SECTION,
    ),
    json: bool = Option(
        False,
        "--json",
        help="One JSON object per line, for programs.",
        rich_help_panel=options.OUTPUT_SECTION,
    ),
    backbone: str | None = options.MOVED_BACKBONE,
    device: str = options.DEVICE,
    threads: int | None = options.THREADS,
    *,
    cut: recordings.WindowOptions,
) -> int:
    folder = Path(source)
    if cut.window is None and not folder.is_dir():
        raise FileError(f"{folder} is not a folder; name the one to watch.")
    is_stream = source == recordings.STANDARD_INPUT
    if cut.window is not None and not is_stream and not folder.is_file():
        raise FileError(f"{folder} is not a file; --window reads a CSV file.")
    model = Imprinter.load(
        file, backbone=backbone, device=device, threads=threads, cache=False
    )
    if model.state.head.tags:
        raise ParameterError(
            f"watch: {file} is a model of tags; drift is measured for one label per"
            " input only."
        )
    if not model.embedder.kind.needs_backbone:
        command = quoted("imprint", "predict", file, "TABLE")
        raise ParameterError(
            f"watch: {file} is a model of embeddings, which are rows of tables: use"
            f" {command}."
        )
    monitor = DriftMonitor.of(model.state.head)
    if monitor is None:
        raise ParameterError(
            f"watch: {file} is not calibrated; fit it without --no-calibrate."
        )
    plural = model.embedder.kind.plural
    remedy = "predict with --unknown"
    calibration = model.state.head.calibration
    terminal.note(cannot_tell(calibration, SIGNIFICANCE_LEVEL, plural, remedy))
    windows = cut.windows(model)
    if windows is not None:
        return recordings.watch_recording(
            model, source, windows, monitor, every=every, once=once, as_json=json
        )
    watcher = _Watcher(model, monitor, folder, json)
    watcher.classify(settled=not once)
    while not once:
        time.sleep(every)
        watcher.classify(settled=True)
    return 1 if watcher.unreadable else 0


class FileState(NamedTuple):
    """What changes when a file is written to or replaced."""

    modified: int  # nanoseconds
    size: int
    inode: int


class _Watcher:
    """Classifies each file of a folder, and again if its content changes."""

    def __init__(
        self, model: Imprinter, monitor: DriftMonitor, folder: Path, json: bool
    ):
        self.model = model
        self.monitor = monitor
        self.folder = folder
        self.json = json
        missing = model.state.head.calibration.missing_rows(SIGNIFICANCE_LEVEL)
        self.is_told = not missing  # whether p-values can be small
        self._unreadable: set[Path] = set()
        self._ignored: set[str] = set()  # suffixes that were reported
        # the state and the content of each file when it was last read
        self._done: dict[Path, FileState] = {}
        self._digests: dict[Path, str] = {}
        # the state of the files whose state is not that of `_done`
        self._scan: dict[Path, FileState] = {}

    @property
    def unreadable(self) -> bool:
        """Whether there are files that could not be read when they last changed."""
        return bool(self._unreadable)

    def classify(self, settled: bool) -> None:
        """Classify new files, the oldest first; with `settled`, those that have not
        changed since the last scan.
        """
        last_scan = self._scan
        self._scan = self._new_files()
        ready = [
            path
            for path, state in self._scan.items()
            if not settled or last_scan.get(path) == state
        ]
        ready.sort(key=lambda path: (self._scan[path], path))
        changed = [path for path in ready if self._has_new_content(path)]
        for first in range(0, len(changed), BATCH_SIZE):
            self._classify(changed[first : first + BATCH_SIZE])

    def _classify(self, paths: list[Path]) -> None:
        # a path, not a text, for models of texts too
        embedded = self.model.look(paths)
        terminal.report_skipped(embedded.skipped)
        self._unreadable.difference_update(paths)
        self._unreadable.update(Path(skipped.name) for skipped in embedded.skipped)
        if len(embedded.X):
            for answer in predictions(self.model.state.head, embedded, top=1):
                self._report(answer)

    def _has_new_content(self, path: Path) -> bool:
        """Whether the content differs from that when the file was last read; a file
        with a new time only does not count as another input.
        """
        self._done[path] = self._scan[path]
        try:
            digest = hashlib.sha256(read_file(path)).hexdigest()
        except UnreadableInput:
            digest = UNREADABLE
        is_new = self._digests.get(path) != digest
        self._digests[path] = digest
        return is_new

    def _new_files(self) -> dict[Path, FileState]:
        files: dict[Path, FileState] = {}
        # folders that disappear during the scan have no files
        for parent, folders, names in os.walk(self.folder):
            folders[:] = [name for name in folders if not is_hidden(name)]
            for name in names:
                path = Path(parent, name)
                if of_file(path) != self.model.embedder.kind:
                    self._note_ignored(path)
                    continue
                with suppress(OSError):  # it was moved away meanwhile
                    status = path.stat()
                    state = FileState(status.st_mtime_ns, status.st_size, status.st_ino)
                    is_file = stat.S_ISREG(status.st_mode)
                    if is_file and self._done.get(path) != state:
                        files[path] = state
        return files

    def _note_ignored(self, path: Path) -> None:
        """Report files of another kind, once for each suffix."""
        suffix = path.suffix.lower()
        if is_hidden(path.name) or suffix in self._ignored:
            return
        self._ignored.add(suffix)
        kind = self.model.embedder.kind
        if kind.typed and table_suffix(path):
            command = quoted("imprint", "predict", "MODEL", path)
            terminal.note(f"{path} is a table, which watch does not read: {command}.")
        else:
            ending = f"end in {suffix}" if suffix else "have no suffix"
            terminal.note(
                f"Ignored files that {ending}; the model reads {kind.plural}."
            )

    def _report(self, answer: dict[str, Any]) -> None:
        name, known = answer["path"], answer["known"]
        if self.json:
            terminal.emit(
                {key: answer[key] for key in ("path", "label", "probability", "known")},
                indent=None,
            )
        else:
            shown = f"{known:.3f}" if self.is_told else CANNOT_TELL
            terminal.write(
                f"{name}\t{answer['label']}\t{terminal.percent(answer['probability'])}\t{shown}\n"
            )
        sys.stdout.flush()
        when = spoken_time(self._scan[Path(name)].modified / 1e9)
        if self.monitor.observe(known, name, when):
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
