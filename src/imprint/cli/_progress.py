"""Progress bars on standard error."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from imprint.cli._terminal import console, printable
from imprint.embeddings import EmbeddingProgress


class Bars:
    """Progress bars on standard error, or nothing if that is not a terminal."""

    def __init__(self, show: Any | None):
        self._show = show
        self._tasks: dict[str, Any] = {}

    def _update(self, key: str, title: str, done: int, total: int | None) -> None:
        if self._show is None:
            return
        if key not in self._tasks:
            self._tasks[key] = self._show.add_task(printable(title), total=total)
        self._show.update(self._tasks[key], description=printable(title), completed=done, total=total)

    def download(self, file: str, done: int, total: int | None) -> None:
        """What `datasets.load` reports: a bar for each file."""
        self._update(file, f"Downloading {file}", done, total)

    def embedding(self, title: str = "Embedding") -> Callable[[EmbeddingProgress], None]:
        """What `extract` reports: a bar for each title, which is there from the start."""
        self._update(title, title, 0, None)

        def report(p: EmbeddingProgress) -> None:
            self._update(title, "Waiting for another process" if p.waiting else title, p.done, p.total)

        return report

    def step(self, title: str, done: int, total: int) -> None:
        """Any other work: one bar, whose title may change."""
        self._update("step", title, done, total)


@contextmanager
def progress_bars() -> Iterator[Bars]:
    """Progress bars while the block runs; they are removed afterwards."""
    if not sys.stderr.isatty():
        yield Bars(None)
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console(sys.stderr), transient=True) as show:
        yield Bars(show)
