"""Data to standard output, messages to standard error; colours and progress only where a person looks."""

import json
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from imprint.embeddings import EmbeddingProgress, Skipped

MOST_NAMED = 10
JOINERS = "\u200c\u200d"  # within words and pictograms: they only join
WIDE = 10_000  # columns of something that is no terminal: nothing is cut


def printable(text: object, keep: str = "") -> str:
    """Text without anything that a terminal would obey instead of showing it, such as colours and other directions.

    >>> printable("cat\\x1b[2J\\n")
    'cat\\\\x1b[2J\\\\n'
    """
    return "".join(c if c in keep or not _obeyed(c) else c.encode("unicode_escape").decode() for c in str(text))


def _obeyed(c: str) -> bool:
    return unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp") and c not in JOINERS


def write(text: str) -> None:
    """Text to standard output: to a program as it is, to a person without what a terminal would obey."""
    sys.stdout.write(printable(text, keep="\n\t") if sys.stdout.isatty() else text)


def emit(value: Any) -> None:
    """A value as JSON."""
    write(json.dumps(value, indent=2) + "\n")


def write_csv(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Rows as CSV under a line of columns; without columns, the rows alone."""
    import csv
    import io

    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([columns, *rows] if columns else rows)
    write(text.getvalue())


def note(text: str) -> None:
    """A line for people."""
    shown = printable(text, keep="\n")
    _console(sys.stderr).print(shown, soft_wrap=True, markup=False, emoji=False, highlight=False)


def fail(text: str) -> None:
    """The one sentence that says why a command failed."""
    from rich.text import Text

    _console(sys.stderr).print(Text.assemble(("Error: ", "bold red"), printable(text)), soft_wrap=True)


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, right: Sequence[str] = ()) -> None:
    """Rows to standard output; the columns named in `right` are numbers."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, collapse_padding=True)
    for name in columns:
        whole = name in right or name == "name"
        made.add_column(name, justify="right" if name in right else "left", no_wrap=whole, overflow="fold")
    for row in rows:
        made.add_row(*(cell if isinstance(cell, Text) else Text(printable(cell)) for cell in row))
    _console(sys.stdout).print(made)


def skipped(inputs: Sequence["Skipped"]) -> None:
    """Name what could not be read, the first few of many."""
    for one in inputs[:MOST_NAMED]:
        note(f"Skipped {one.name}: {one.reason}.")
    if len(inputs) > MOST_NAMED:
        note(f"Skipped {len(inputs) - MOST_NAMED:,} more that cannot be read.")


def end(failed: Iterable[object]) -> None:
    """Exit code 1 where some inputs failed; what could be done with the others is done."""
    import typer

    if list(failed):
        raise typer.Exit(1)


def count(n: int, noun: str) -> str:
    """`1 class`, `2,000 classes`, `1 picture`, ...

    >>> count(1, "class"), count(2000, "picture"), count(3, "proxy")
    ('1 class', '2,000 pictures', '3 proxies')
    """
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}{'es' if noun.endswith('s') else 's'}"
    return f"{n:,} {noun if n == 1 else plural}"


def bytes_of(path: "Path") -> str:
    """The size of a file as people say it: `732 bytes`, `12 kB`, `1.3 MB`."""
    size = path.stat().st_size
    return f"{size} bytes" if size < 1000 else f"{size / 1e3:.0f} kB" if size < 1e6 else f"{size / 1e6:.1f} MB"


class Bars:
    """Progress bars on standard error, or nothing at all where that is no terminal."""

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

    def embedding(self, title: str = "Embedding") -> Callable[["EmbeddingProgress"], None]:
        """What `extract` reports: a bar for each title."""

        def report(p: "EmbeddingProgress") -> None:
            self._update(title, "Waiting for another process" if p.waiting else title, p.done, p.total)

        return report

    def step(self, title: str, done: int, total: int) -> None:
        """Any other work: one bar, whose title may change."""
        self._update("step", title, done, total)


@contextmanager
def bars() -> Iterator[Bars]:
    """Progress bars while the block runs; they vanish afterwards."""
    if not sys.stderr.isatty():
        yield Bars(None)
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=_console(sys.stderr), transient=True) as show:
        yield Bars(show)


def _console(stream: Any) -> "Console":
    from rich.console import Console

    return Console(file=stream, width=None if stream.isatty() else WIDE)
