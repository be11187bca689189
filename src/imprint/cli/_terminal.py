"""Data to standard output, messages to standard error; colours and progress bars only on a terminal."""

import json
import os
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console
    from rich.text import Text

    from imprint.embeddings import EmbeddingProgress, Skipped

MOST_NAMED = 10
JOINERS = "\u200c\u200d"  # part of words and emoji
UNLIMITED = 10_000  # columns of a pipe or file: nothing is cut
NARROW, BRIEF = 100, 16  # columns of a narrow terminal, and of a label in a list on it
NARROWEST, NAME, SHORT, GAP = 8, 12, 20, 2
"""Columns of a terminal: for a cut text, for a cut name, for a text that is cut last, and between two columns."""


def printable(text: object, keep: str = "") -> str:
    """Text in which control characters, such as colour codes and changes of direction, are escaped.

    >>> printable("cat\\x1b[2J\\n")
    'cat\\\\x1b[2J\\\\n'
    """
    return "".join(c if c in keep or not _control(c) else c.encode("unicode_escape").decode() for c in str(text))


def _control(c: str) -> bool:
    return unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp") and c not in JOINERS


def write(text: str) -> None:
    """Text to standard output: exact in a pipe, with control characters escaped on a terminal."""
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
    """A message to standard error."""
    shown = printable(text, keep="\n")
    _console(sys.stderr).print(shown, soft_wrap=True, markup=False, emoji=False, highlight=False)


def fail(text: str) -> None:
    """The sentence that says why a command failed."""
    from rich.text import Text

    _console(sys.stderr).print(Text.assemble(("Error: ", "bold red"), printable(text)), soft_wrap=True)


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, right: Sequence[str] = ()) -> None:
    """Rows to standard output; the columns named in `right` are numbers and are never cut.

    On a narrow terminal the first column, a name or path, loses its middle, and other texts wrap between words.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    console = _console(sys.stdout)
    cells = [[cell if isinstance(cell, Text) else Text(printable(cell)) for cell in row] for row in rows]
    widths = _column_widths(columns, cells, right, console.width)
    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, collapse_padding=True)
    for i, (name, width) in enumerate(zip(columns, widths)):
        number = name in right
        grid.add_column(
            name, justify="right" if number else "left", no_wrap=number or i == 0, overflow="ellipsis", width=width
        )
    for row in cells:
        grid.add_row(_cut(row[0], widths[0]), *row[1:])
    console.print(grid)


def _column_widths(columns: Sequence[str], cells: "list[list[Text]]", right: Sequence[str], room: int) -> list[int]:
    """Numbers get the width they need, then short texts such as classes, then the first column, then the others."""
    needed = [
        max(cell_width(name), *(row[i].cell_len for row in cells), 1) if cells else max(cell_width(name), 1)
        for i, name in enumerate(columns)
    ]
    widths = list(needed)
    texts = [i for i, name in enumerate(columns) if name not in right]
    texts.sort(key=lambda i: (needed[i] > SHORT, i if needed[i] > SHORT else needed[i]))
    free = room - GAP * (len(columns) - 1) - sum(needed[i] for i in range(len(columns)) if i not in texts)
    for done, i in enumerate(texts, start=1):
        reserved = sum(NAME if j == 0 else NARROWEST for j in texts[done:])
        widths[i] = min(needed[i], max(free // (len(texts) - done + 1), min(free - reserved, SHORT), NARROWEST))
        free -= widths[i]
    return widths


def cell_width(text: str) -> int:
    """Columns that a text takes in a terminal; wide characters take two."""
    from rich.cells import cell_len

    return cell_len(text)


def shortened(text: str, width: int) -> str:
    """A text of at most `width` terminal columns; a longer one loses its middle.

    >>> shortened("photos/holidays/2024/llama.jpg", 16)
    'photos/…lama.jpg'
    """
    from rich.cells import set_cell_size

    if cell_width(text) <= width:
        return text
    tail = width // 2
    end = text[-tail:]
    while cell_width(end) > tail:
        end = end[1:]
    return set_cell_size(text, width - 1 - cell_width(end)).rstrip() + "…" + end


def brief(label: object) -> str:
    """A label in a list of several; on a narrow terminal, a long one loses its middle."""
    return shortened(str(label), BRIEF) if _console(sys.stdout).width < NARROW else str(label)


def write_paths(paths: Iterable[str]) -> None:
    """Paths, one per line; on a terminal, long ones lose their middle."""
    width = _console(sys.stdout).width - 2
    write("".join(f"  {shortened(printable(path), width)}\n" for path in paths))


def _cut(cell: "Text", width: int) -> "Text":
    from rich.text import Text

    return Text(shortened(cell.plain, width), style=cell.style)


def marked(value: object) -> "Text":
    """A cell of a table that is probably wrong, red on a terminal."""
    from rich.text import Text

    return Text(printable(value), style="red")


def heading(text: str) -> None:
    """A line above a table, in bold on a terminal."""
    _console(sys.stdout).print(f"\n{printable(text)}", style="bold", markup=False, emoji=False, highlight=False)


def skipped(inputs: Sequence["Skipped"]) -> None:
    """Name the inputs that cannot be read, the first ten of them."""
    for one in inputs[:MOST_NAMED]:
        note(f"Skipped {one.name}: {one.reason}.")
    if len(inputs) > MOST_NAMED:
        note(f"Skipped {len(inputs) - MOST_NAMED:,} more that cannot be read.")


def end(failed: Sequence[object]) -> None:
    """Exit with code 1 if some inputs failed."""
    import typer

    if failed:
        raise typer.Exit(1)


def finish(inputs: Sequence["Skipped"]) -> None:
    """Name the inputs that cannot be read, and exit with code 1 if there are any."""
    skipped(inputs)
    end(inputs)


def name_page(path: "Path | None") -> None:
    """Name the page that was written, if any."""
    if path is not None:
        note(f"The page: {path}, {bytes_of(path)}.")


def percent(share: float | None) -> str:
    """`98.1 %`; empty for None."""
    return "" if share is None else f"{100 * share:.1f} %"


def count(n: int, noun: str) -> str:
    """`1 class`, `2,000 classes`, `1 picture`, ...

    >>> count(1, "class"), count(2000, "picture"), count(3, "proxy")
    ('1 class', '2,000 pictures', '3 proxies')
    """
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}{'es' if noun.endswith('s') else 's'}"
    return f"{n:,} {noun if n == 1 else plural}"


def bytes_of(path: "Path") -> str:
    """The size of a file: `732 bytes`, `12 kB`, `1.3 MB`."""
    size = path.stat().st_size
    return f"{size} bytes" if size < 1000 else f"{size / 1e3:.0f} kB" if size < 1e6 else f"{size / 1e6:.1f} MB"


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

    def embedding(self, title: str = "Embedding") -> Callable[["EmbeddingProgress"], None]:
        """What `extract` reports: a bar for each title, which is there from the start."""
        self._update(title, title, 0, None)

        def report(p: "EmbeddingProgress") -> None:
            self._update(title, "Waiting for another process" if p.waiting else title, p.done, p.total)

        return report

    def step(self, title: str, done: int, total: int) -> None:
        """Any other work: one bar, whose title may change."""
        self._update("step", title, done, total)


@contextmanager
def bars() -> Iterator[Bars]:
    """Progress bars while the block runs; they are removed afterwards."""
    if not sys.stderr.isatty():
        yield Bars(None)
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=_console(sys.stderr), transient=True) as show:
        yield Bars(show)


def _console(stream: Any) -> "Console":
    from rich.console import Console

    colours: Any = {"color_system": None} if os.environ.get("NO_COLOR") else {}
    return Console(file=stream, width=None if stream.isatty() else UNLIMITED, **colours)
