"""Data to standard output, messages and progress to standard error; colours only on a terminal."""

import io
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from imprint.core import errors
from imprint.core.errors import count as count
from imprint.core.errors import percent as percent

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from imprint.embeddings import EmbeddingProgress, Skipped

MOST_NAMED = 10
printable = partial(errors.printable, max_length=sys.maxsize)
"""Text of any length in which control characters, such as colour codes and changes of direction, are escaped."""
UNLIMITED = 10_000  # columns of a pipe or file: nothing is cut
NARROW, BRIEF = 100, 16  # columns of a narrow terminal, and of a label in a list on it
NARROWEST, NAME, SHORT, GAP = 8, 12, 20, 2
"""Terminal columns: minimum for a text, minimum for the first column, maximum of a short text, and between columns."""


def write(text: str) -> None:
    """Text to standard output: exact in a pipe, with control characters escaped on a terminal."""
    sys.stdout.write(printable(text, keep="\n\t") if sys.stdout.isatty() else text)


def emit(value: Any, indent: int | None = 2) -> None:
    """A value as JSON; on one line if `indent` is None."""
    write(json.dumps(value, indent=indent) + "\n")


def write_csv(rows: Iterable[Sequence[object]]) -> None:
    """Rows as CSV; the first is the header."""
    import csv

    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    write(text.getvalue())


def note(text: str | None, end: str = "\n") -> None:
    """A message to standard error; nothing for None."""
    if text is not None:
        console(sys.stderr).out(printable(text, keep="\n"), end=end, highlight=False)


def fail(text: str) -> None:
    """The sentence that says why a command failed."""
    from rich.text import Text

    console(sys.stderr).print(Text.assemble(("Error: ", "bold red"), printable(text)), soft_wrap=True)


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    right: Sequence[str] = (),
    optional: Sequence[str] = (),
    names: bool = True,
) -> None:
    """Rows to standard output; the columns named in `right` are numbers and are never cut.

    On a narrow terminal, `optional` columns are left out, the last first, until the words of the others fit. Texts wrap
    between words, or within a word that is too long, but the first column, if it holds paths or other `names`, loses
    its middle instead.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    screen, lines = console(sys.stdout), [[c if isinstance(c, Text) else Text(printable(c)) for c in r] for r in rows]
    cells = {name: [Text(name), *(line[i] for line in lines)] for i, name in enumerate(columns)}
    widths = _column_widths(cells, right, optional, screen.width)
    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, collapse_padding=True)
    for name, width in widths.items():
        whole, justify = name in right or (names and name == columns[0]), "right" if name in right else "left"
        grid.add_column(name, justify=justify, no_wrap=whole, overflow="fold", width=width)  # type: ignore[arg-type]
    for first, *others in list(zip(*(cells[name] for name in widths)))[1:]:
        shown = shortened(first.plain, widths[columns[0]]) if names else first.plain
        grid.add_row(Text(shown, style=first.style), *others)
    screen.print(grid)


def _column_widths(
    cells: "dict[str, list[Text]]", right: Sequence[str], optional: Sequence[str], room: int
) -> dict[str, int]:
    """The widths of the columns that are shown. The widest text becomes narrower first, down to its longest word.

    Short texts between the first and the last column become narrower only if words do not fit either.
    """
    from rich.cells import cell_len

    widths = {name: max(cell.cell_len for cell in column) for name, column in cells.items()}
    words = {name: max(map(cell_len, " ".join(c.plain for c in column).split())) for name, column in cells.items()}
    least = {name: width if width <= SHORT or name in right else words[name] for name, width in widths.items()}
    texts = [name for name in cells if name not in right]
    least |= {texts[-1]: max(words[texts[-1]], NARROWEST), texts[0]: NAME}
    least = {name: min(width, widths[name]) for name, width in least.items()}
    for name in reversed(optional):
        if sum(least.values()) + GAP * (len(least) - 1) > room:
            del widths[name], least[name]
    for lowest in (least, dict.fromkeys(widths, NARROWEST)):
        for limit in range(room, NARROWEST - 1, -1):
            fitted = {name: w if name in right else min(w, max(limit, lowest[name])) for name, w in widths.items()}
            if sum(fitted.values()) + GAP * (len(fitted) - 1) <= room:
                return fitted
    return fitted


def shortened(text: str, width: int) -> str:
    """A text of at most `width` terminal columns, where wide characters take two; a longer one loses its middle.

    >>> shortened("photos/holidays/2024/llama.jpg", 16)
    'photos/…lama.jpg'
    """
    from rich.cells import cell_len, set_cell_size

    if cell_len(text) <= width:
        return text
    end = text[-(width // 2) :]
    while cell_len(end) > width // 2:
        end = end[1:]
    return set_cell_size(text, width - 1 - cell_len(end)).rstrip() + "…" + end


def brief(label: object) -> str:
    """A label in a list of several; on a narrow terminal, a long one loses its middle."""
    return shortened(str(label), BRIEF) if console(sys.stdout).width < NARROW else str(label)


def marked(value: object) -> "Text":
    """A cell of a table that is probably wrong, red on a terminal."""
    from rich.text import Text

    return Text(printable(value), style="red")


def heading(text: str) -> None:
    """A line above a table, in bold on a terminal."""
    console(sys.stdout).out(f"\n{printable(text)}", style="bold", highlight=False)


def skipped(inputs: Sequence["Skipped"]) -> int:
    """Name the inputs that cannot be read, the first ten of them; return the exit code, 1 if there are any."""
    for one in inputs[:MOST_NAMED]:
        note(f"Skipped {one.name}: {one.reason}.")
    if len(inputs) > MOST_NAMED:
        note(f"Skipped {len(inputs) - MOST_NAMED:,} more that cannot be read.")
    return 1 if inputs else 0


def bytes_of(path: Path) -> str:
    """The size of a file: `732 bytes`, `12 kB`, `1.3 MB`."""
    size = path.stat().st_size
    return f"{size} bytes" if size < 1000 else f"{size / 1e3:.0f} kB" if size < 1e6 else f"{size / 1e6:.1f} MB"


def console(stream: Any) -> "Console":
    """A terminal, or a stream without colours and without a width."""
    from rich.console import Console

    colours: Any = {"color_system": None} if os.environ.get("NO_COLOR") else {}
    return Console(file=stream, width=None if stream.isatty() else UNLIMITED, **colours)


class Bars:
    """Progress bars, of `rich.progress.Progress`."""

    def __init__(self, show: Any):
        self._show, self._tasks = show, dict[str, Any]()

    def step(self, title: str, done: int, total: int | None, bar: str = "") -> None:
        """Show how much of some work is done, in a new bar or an earlier one; its title may change."""
        if bar not in self._tasks:
            self._tasks[bar] = self._show.add_task(printable(title), total=total)
        self._show.update(self._tasks[bar], description=printable(title), completed=done, total=total)

    def download(self, file: str, done: int, total: int | None) -> None:
        """What `datasets.load` reports: a bar for each file."""
        self.step(f"Downloading {file}", done, total, file)

    def embedding(self, title: str = "Embedding") -> "Callable[[EmbeddingProgress], None]":
        """What embedding reports: a bar for each title, which is there from the start."""
        self.step(title, 0, None, title)
        return lambda p: self.step("Waiting for another process" if p.waiting else title, p.done, p.total, title)


@contextmanager
def progress_bars() -> Iterator[Bars]:
    """Progress bars on standard error while the block runs, if that is a terminal; they are removed afterwards."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    screen, hidden = console(sys.stderr), not sys.stderr.isatty()
    columns = TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=screen, transient=True, disable=hidden) as show:
        yield Bars(show)
