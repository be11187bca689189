"""Recordings that `predict` and `watch` cut into windows: timelines, and streams of
lines.
"""

import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from typer import Option

from imprint.active.drift import DriftMonitor
from imprint.cli import options, terminal
from imprint.cli.options import NONE_OF_THESE
from imprint.cli.terminal import percent
from imprint.core.arrays import Array
from imprint.core.errors import FileError, ParameterError, UnreadableInput
from imprint.core.files.atomic import expanded
from imprint.imprinter import Imprinter
from imprint.imprinter.predictor import predictions
from imprint.imprinter.timeline import Segment, Windows
from imprint.modalities import read_file

STANDARD_INPUT = "-"


@dataclass
class WindowOptions:
    """How long recordings are cut into windows."""

    window: str | None = Option(
        None,
        metavar="LENGTH",
        help="Cut recordings into windows: samples, such as 128, or seconds, as 2.56s.",
        rich_help_panel=options.WINDOW_SECTION,
    )
    step: str | None = Option(
        None,
        metavar="LENGTH",
        help="From one window to the next. [default: LENGTH]",
        rich_help_panel=options.WINDOW_SECTION,
    )
    rate: float | None = Option(
        None,
        metavar="HZ",
        help="Samples per second, for lengths in seconds.",
        rich_help_panel=options.WINDOW_SECTION,
    )

    def windows(self, model: Imprinter) -> Windows | None:
        """The windows that the options describe; None without `--window`."""
        for name in ("step", "rate"):
            if self.window is None and getattr(self, name) is not None:
                raise ParameterError(f"--{name} goes with --window.")
        if self.window is None:
            return None
        kind = model.embedder.kind
        if not kind.has_windows:
            raise ParameterError(
                f"--window: this model reads {kind.plural}, which are not cut into"
                " windows."
            )
        if model.state.head.tags:
            raise ParameterError(
                "--window: this is a model of tags; timelines have one label at a time."
            )
        return Windows.of(self.window, self.step, self.rate)


def predict_recordings(
    model: Imprinter,
    arguments: list[str],
    windows: Windows,
    *,
    unknown: float | None,
    as_json: bool,
) -> int:
    """Print the timeline of each recording; the exit code is 1 if one is unreadable."""
    documents: list[dict[str, Any]] = []
    failed = False
    for argument in arguments:
        try:
            answers = _answers(model, windows, _recording(model, argument), unknown)
        except UnreadableInput as e:
            terminal.note(f"Skipped {argument}: {e.reason}")
            failed = True
            continue
        segments = windows.segments(answers)
        documents += [{"path": argument} | segment._asdict() for segment in segments]
        if not as_json:
            _show(argument, segments, windows)
    if as_json:
        terminal.emit(documents)
    return 1 if failed else 0


def _recording(model: Imprinter, argument: str) -> Array:
    if argument == STANDARD_INPUT:
        raw = sys.stdin.buffer.read()
    else:
        path = expanded(argument)
        if not path.exists():
            raise FileError(f"There is no file {argument}.")
        raw = read_file(path)
    return np.asarray(model.embedder.kind.read(raw))


def _answers(
    model: Imprinter, windows: Windows, recording: Array, unknown: float | None
) -> list[dict[str, Any]]:
    """The answer for each window, with its probability."""
    embedded = model.look(windows.cut(recording))
    if embedded.skipped:
        raise UnreadableInput("a recording", embedded.skipped[0].reason)
    head = model.state.head
    answers = predictions(head, embedded, top=1, unknown=unknown)
    return [a | {"probability": a["top"][0]["probability"]} for a in answers]


def _show(name: str, segments: list[Segment], windows: Windows) -> None:
    """A table with one line per segment."""
    unit = "" if windows.rate is None else " s"
    rows = []
    for segment in segments:
        label = NONE_OF_THESE if segment.label is None else str(segment.label)
        known = "" if segment.known is None else f"{segment.known:.3f}"
        start = f"{segment.start:,.6g}{unit}"
        end = f"{segment.end:,.6g}{unit}"
        cells = [name, start, end, label, percent(segment.probability), known]
        rows.append(cells)
    columns = ["recording", "start", "end", "class", "probability", "known"]
    right = ["start", "end", "probability", "known"]
    terminal.table(columns, rows, right=right, names=True)


def watch_recording(
    model: Imprinter,
    source: str,
    windows: Windows,
    monitor: DriftMonitor,
    *,
    every: float,
    once: bool,
    as_json: bool,
) -> int:
    """Classify the windows of a growing CSV file, or of lines of standard input.

    Lines that are not samples are reported, and the next window begins after them.
    """
    stream = _SampleStream(model, windows)
    for lines in _new_lines(source, every, once):
        for start, window in stream.windows_of(lines):
            answer = _answers(model, windows, window, None)[0]
            end = windows.time(start + windows.length)
            begin = windows.time(start)
            _report(answer, begin, end, as_json)
            moment = f"{begin:,.6g}"
            if monitor.observe(answer["known"], moment, moment):
                terminal.note(f"Drift: {monitor.alarm}.")
    return 1 if stream.has_gaps else 0


def _report(answer: dict[str, Any], begin: float, end: float, as_json: bool) -> None:
    label, probability, known = (answer[k] for k in ("label", "probability", "known"))
    if as_json:
        document = {"start": begin, "end": end, "label": label}
        document |= {"probability": probability, "known": known}
        terminal.emit(document, indent=None)
    else:
        times = f"{begin:,.6g}\t{end:,.6g}"
        terminal.write(f"{times}\t{label}\t{percent(probability)}\t{known:.3f}\n")
    sys.stdout.flush()


class _SampleStream:
    """Samples that arrive in lines, and the windows that they complete."""

    def __init__(self, model: Imprinter, windows: Windows):
        self.has_gaps = False
        self._kind = model.embedder.kind
        self._windows = windows
        self._header: bytes | None = None
        self._samples: Array | None = None  # those of the next windows
        self._first = 0  # the number of the first of these samples
        self._read = 0  # lines of samples

    def windows_of(self, lines: list[bytes]) -> Iterator[tuple[int, Array]]:
        """The windows that new lines complete, and where they begin."""
        if self._header is None and lines:
            # A first line of numbers is a sample, not the names of columns.
            text = lines[0].decode("utf-8", "replace")
            is_sample = not any(character.isalpha() for character in text)
            self._header = b"" if is_sample else lines[0]
            lines = lines if is_sample else lines[1:]
        for new in self._readable(lines):
            if new is None:
                self._samples = None
                continue
            if self._samples is None:
                self._first = self._read - new.shape[1]
                self._samples = new
            else:
                self._samples = np.concatenate([self._samples, new], axis=1)
            yield from self._complete()

    def _complete(self) -> Iterator[tuple[int, Array]]:
        """Take the windows from the samples."""
        length, step = self._windows.length, self._windows.step
        while self._samples is not None and self._samples.shape[1] >= length:
            yield self._first, self._samples[:, :length]
            self._samples = self._samples[:, step:]
            self._first += step

    def _readable(self, lines: list[bytes]) -> Iterator[Array | None]:
        """The samples in lines; None for a line that holds none, which is reported."""
        if not lines:
            return
        header = [self._header] if self._header else []
        try:
            samples = self._kind.read(b"\n".join([*header, *lines, b""]))
        except UnreadableInput as e:
            if len(lines) > 1:  # find the line
                for line in lines:
                    yield from self._readable([line])
                return
            self._read += 1
            self.has_gaps = True
            terminal.note(f"Skipped sample {self._read:,}: {e.reason}.")
            yield None
            return
        self._read += len(lines)
        yield np.asarray(samples)


def _new_lines(source: str, every: float, once: bool) -> Iterator[list[bytes]]:
    """The complete lines that are added to a file, or those of standard input."""
    if source == STANDARD_INPUT:
        for line in sys.stdin.buffer:
            yield [line.rstrip(b"\r\n")]
        return
    with open(Path(source), "rb") as f:
        rest = b""
        while True:
            content = f.read()
            if not content and os.fstat(f.fileno()).st_size < f.tell():
                raise FileError(f"{source} has become shorter; watch it again.")
            *lines, rest = (rest + content).split(b"\n")
            complete = [line.rstrip(b"\r") for line in lines]
            if complete:
                yield complete
            if once:
                if rest.strip():
                    yield [rest]
                return
            time.sleep(every)
