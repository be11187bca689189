"""Data to standard output, messages and progress to standard error; colours only on a
terminal.
"""

import io
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
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

MAX_NAMED = 10  # inputs or sentences that are printed one by one
printable = partial(errors.printable, max_length=sys.maxsize)
"""Text of any length in which control characters, such as colour codes and changes of
direction, are escaped.
"""
# by which spreadsheets recognise a formula (OWASP, CSV injection)
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
NO_BREAK = "\u00a0"  # a space at which no line ends
ERROR = "Error: "
NEXT_COMMAND = "Next: "  # a line that is not broken, so that it can be copied
PIPE_COLUMNS = 10_000  # the width of a pipe or file: nothing is cut
# below the first width, labels in a list are cut to the second
NARROW_TERMINAL, BRIEF_WIDTH = 100, 16
MIN_TEXT_WIDTH, MIN_FIRST_WIDTH, SHORT_WIDTH, GAP_WIDTH = 8, 12, 20, 2
"""Widths in tables: minimum of a text, minimum of the first column, maximum of a short
text, and between columns.
"""
ROOMY_TERMINAL = 80  # below, file names are cut before the columns of texts
MAX_FILE_NAME = 24  # columns of a file name that other columns make room for


def write(text: str) -> None:
    """Text to standard output: exact in a pipe, with control characters escaped on a
    terminal.
    """
    sys.stdout.write(printable(text, keep="\n\t") if sys.stdout.isatty() else text)


def emit(value: Any, indent: int | None = 2) -> None:
    """A value as JSON; on one line if `indent` is None."""
    write(json.dumps(value, indent=indent) + "\n")


def write_csv(rows: Iterable[Sequence[object]]) -> None:
    """Rows as CSV; the first is the header."""
    import csv

    lines = []
    for row in rows:
        line = io.StringIO()
        # quotes cells that hold either of the two characters
        csv.writer(line, lineterminator="\r\n").writerow(row)
        lines.append(line.getvalue().removesuffix("\r\n") + "\n")
    write("".join(lines))


def write_spreadsheet(rows: Iterable[Sequence[object]]) -> None:
    """Rows as CSV in which no cell is a formula, and how many cells were changed: they
    have an apostrophe before them, as spreadsheets expect.
    """
    changed = 0
    lines: list[list[object]] = []
    for row in rows:
        line = list(row)
        for i, cell in enumerate(line):
            if isinstance(cell, str) and _is_formula(cell):
                line[i] = f"'{cell}"
                changed += 1
        lines.append(line)
    write_csv(lines)
    if changed:
        note(
            f"{count(changed, 'cell')} begin{'s' * (changed == 1)} like a formula of a"
            " spreadsheet: a leading ' makes it text."
        )


def _is_formula(cell: str) -> bool:
    """Whether a spreadsheet would compute the cell; a number is not a formula."""
    if not cell.startswith(FORMULA_STARTS):
        return False
    try:
        float(cell)
    except ValueError:
        return True
    return False


def note(text: str | None, end: str = "\n") -> None:
    """A message to standard error; nothing for None. On a terminal, lines end between
    words, except those of a command to copy.
    """
    if text is None:
        return
    screen = console(sys.stderr)
    lines = printable(text, keep="\n").split("\n")
    shown = [
        line if line.startswith(NEXT_COMMAND) else wrapped(line, screen.width)
        for line in lines
    ]
    screen.out("\n".join(shown), end=end, highlight=False)


def fail(text: str) -> None:
    """The sentence that says why a command failed."""
    from rich.text import Text

    screen = console(sys.stderr)
    sentence = wrapped(ERROR + printable(text), screen.width, fold=False)
    parts = (ERROR, "bold red"), sentence.removeprefix(ERROR)
    screen.print(Text.assemble(*parts), soft_wrap=True)


def wrapped(text: str, width: int, *, fold: bool = False) -> str:
    """A text in lines of at most `width` terminal columns, which end between words.

    A number stays with its unit. Longer words, such as paths, stay whole, or are broken
    with `fold`. The result has plain spaces where the text has `NO_BREAK`.
    """
    from rich.cells import cell_len, chop_cells

    words = text.replace(" %", f"{NO_BREAK}%").split(" ")
    lines = [""]
    for i, word in enumerate(words):
        joined = f"{lines[-1]} {word}" if i else word
        if cell_len(joined) <= width or not lines[-1].strip():
            lines[-1] = joined
        else:
            lines.append(word)
        if fold and cell_len(lines[-1]) > width:
            lines[-1:] = chop_cells(lines[-1], width)
    return "\n".join(lines).replace(NO_BREAK, " ")


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    right: Sequence[str] = (),
    optional: Sequence[str] = (),
    names: bool = True,
) -> None:
    """Rows to standard output; the columns named in `right` are numbers and are never
    cut.

    On a narrow terminal, `optional` columns are left out, the last first, until the
    words of the others fit. Texts wrap between words, or within a word that is too
    long, but the first column, if it holds paths or other `names`, loses the folders
    that all of them are in, and then its middle instead.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    screen = console(sys.stdout)
    lines = [
        [
            cell if isinstance(cell, Text) else Text(printable(cell, keep=NO_BREAK))
            for cell in row
        ]
        for row in rows
    ]
    if names and screen.width < PIPE_COLUMNS:
        _drop_common_folder(lines, screen.width // 2)
    cells = {
        name: [Text(name), *(line[i] for line in lines)]
        for i, name in enumerate(columns)
    }
    widths = _column_widths(cells, right, optional, screen.width, names)
    grid = Table(
        box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, collapse_padding=True
    )
    for name, width in widths.items():
        no_wrap = name in right or (names and name == columns[0])
        grid.add_column(
            name,
            justify="right" if name in right else "left",
            no_wrap=no_wrap,
            # without "…", a part of a number is read as another number
            overflow="ellipsis" if no_wrap else "fold",
            width=width,
        )
    for first, *others in list(zip(*(cells[name] for name in widths)))[1:]:
        row = [
            Text(wrapped(cell.plain, width, fold=name not in right), style=cell.style)
            for cell, (name, width) in zip((first, *others), widths.items())
        ]
        if names:
            path = shortened_path(first.plain, widths[columns[0]])
            row[0] = Text(path, style=first.style)
        grid.add_row(*row)
    screen.print(grid)


def _drop_common_folder(lines: "list[list[Text]]", width: int) -> None:
    """Replace the folder that all paths of the first column are in by `…`, if a path
    is wider than `width`.
    """
    from rich.text import Text

    paths = [line[0].plain for line in lines]
    if len(set(paths)) < 2 or max(map(len, paths)) <= width:
        return
    folders = [path.split("/")[:-1] for path in paths]
    shared = 0
    for names in zip(*folders):
        if len(set(names)) > 1:
            break
        shared += 1
    if not any(folders[0][:shared]):
        return
    for line in lines:
        rest = line[0].plain.split("/")[shared:]
        line[0] = Text("/".join(["…", *rest]), style=line[0].style)


def _column_widths(
    cells: "dict[str, list[Text]]",
    right: Sequence[str],
    optional: Sequence[str],
    total: int,
    names: bool,
) -> dict[str, int]:
    """The widths of the columns, so that they fit into `total`; the widest text becomes
    narrower first.

    A text becomes no narrower than its longest word. Short texts between the first and
    the last column become narrower only if words do not fit either.
    """
    from rich.cells import cell_len

    widths = {
        name: max(cell.cell_len for cell in column) for name, column in cells.items()
    }
    words = {
        name: re.split(r"[ \n]+", " ".join(cell.plain for cell in column))
        for name, column in cells.items()
    }
    longest = {name: max(map(cell_len, words[name])) for name in cells}
    minimum = {
        name: width if width <= SHORT_WIDTH or name in right else longest[name]
        for name, width in widths.items()
    }
    texts = [name for name in cells if name not in right]
    minimum |= {
        texts[-1]: max(longest[texts[-1]], MIN_TEXT_WIDTH),
        texts[0]: MIN_FIRST_WIDTH,
    }
    if names and total >= ROOMY_TERMINAL:
        file_names = [cell.plain.rpartition("/")[2] for cell in cells[texts[0]]]
        longest_file = max(map(cell_len, file_names)) + len("…/")
        minimum[texts[0]] = max(MIN_FIRST_WIDTH, min(longest_file, MAX_FILE_NAME))
    minimum = {name: min(width, widths[name]) for name, width in minimum.items()}
    for name in reversed(optional):
        if sum(minimum.values()) + GAP_WIDTH * (len(minimum) - 1) > total:
            del widths[name], minimum[name]
    for lowest in (minimum, dict.fromkeys(widths, MIN_TEXT_WIDTH)):
        for limit in range(max(total, MIN_TEXT_WIDTH), MIN_TEXT_WIDTH - 1, -1):
            fitted = {
                name: w if name in right else min(w, max(limit, lowest[name]))
                for name, w in widths.items()
            }
            if sum(fitted.values()) + GAP_WIDTH * (len(fitted) - 1) <= total:
                return fitted
    return fitted


def shortened(text: str, width: int) -> str:
    """A text of at most `width` terminal columns, where wide characters take two; a
    longer one loses its middle.
    """
    from rich.cells import cell_len, set_cell_size

    if cell_len(text) <= width:
        return text
    end = text[-(width // 2) :]
    while cell_len(end) > width // 2:
        end = end[1:]
    return set_cell_size(text, width - 1 - cell_len(end)).rstrip() + "…" + end


def shortened_path(path: str, width: int) -> str:
    """A path of at most `width` terminal columns: its file name stays whole where it
    fits, and its start loses what does not.
    """
    from rich.cells import cell_len, set_cell_size

    file_name = path[path.rfind("/") :]
    room = width - cell_len(file_name) - 1
    if cell_len(path) <= width or not path.rpartition("/")[1] or room < 2:
        return shortened(path, width)
    return set_cell_size(path, room).rstrip() + "…" + file_name


def brief(label: object) -> str:
    """A label in a list of several; on a narrow terminal, a long one loses its
    middle.
    """
    return (
        shortened(str(label), BRIEF_WIDTH)
        if console(sys.stdout).width < NARROW_TERMINAL
        else str(label)
    )


def marked(value: object) -> "Text":
    """A cell of a table that is probably wrong, red on a terminal."""
    from rich.text import Text

    return Text(printable(value), style="red")


def refused(value: object) -> "Text":
    """A cell of a table that says that an input belongs to no class, yellow on a
    terminal.
    """
    from rich.text import Text

    return Text(printable(value), style="yellow")


def heading(text: str) -> None:
    """A line above a table, in bold on a terminal."""
    console(sys.stdout).out(f"\n{printable(text)}", style="bold", highlight=False)


def report_skipped(inputs: Sequence["Skipped"]) -> int:
    """Name the inputs that cannot be read, the first ten of them; return the exit code,
    1 if there are any.
    """
    for skipped in inputs[:MAX_NAMED]:
        note(f"Skipped {skipped.name}: {skipped.reason}.")
    if len(inputs) > MAX_NAMED:
        note(f"Skipped {len(inputs) - MAX_NAMED:,} more that cannot be read.")
    return 1 if inputs else 0


def file_size(path: Path) -> str:
    """The size of a file: `732 bytes`, `12 kB`, `1.3 MB`."""
    return byte_size(path.stat().st_size)


def byte_size(size: int) -> str:
    """A number of bytes: `732 bytes`, `12 kB`, `1.3 MB`."""
    return (
        f"{size} bytes"
        if size < 1000
        else f"{size / 1e3:.0f} kB"
        if size < 1e6
        else f"{size / 1e6:.1f} MB"
    )


def console(stream: Any) -> "Console":
    """A terminal, or a stream without colours and without a width."""
    from rich.console import Console

    colours: Any = {"color_system": None} if os.environ.get("NO_COLOR") else {}
    return Console(
        file=stream, width=None if stream.isatty() else PIPE_COLUMNS, **colours
    )


class Bars:
    """Progress bars, drawn by a `rich.progress.Progress`."""

    def __init__(self, progress: Any):
        self._progress = progress
        self._tasks: dict[str, Any] = {}

    def step(
        self,
        title: str,
        done: int,
        total: int | None,
        bar: str = "",
        seconds_left: float | None = None,
    ) -> None:
        """Show how much of some work is done, in a new bar or an earlier one; its title
        may change. Without `seconds_left`, the remaining time follows from the rate.
        """
        if bar not in self._tasks:
            self._tasks[bar] = self._progress.add_task(printable(title), total=total)
        self._progress.update(
            self._tasks[bar],
            description=printable(title),
            completed=done,
            total=total,
            seconds_left=seconds_left,
        )

    def download(self, file: str, done: int, total: int | None) -> None:
        """The callback for downloads by `datasets.load`: a bar for each file."""
        self.step(f"Downloading {file}", done, total, file)

    def embedding(
        self, title: str = "Embedding"
    ) -> "Callable[[EmbeddingProgress], None]":
        """A callback for the progress of embedding; its bar, one for each title, is
        shown from the start.
        """
        self.step(title, 0, None, title)
        return lambda p: self.step(
            "Waiting for another process" if p.waiting else title,
            p.done,
            p.total,
            title,
        )


@contextmanager
def progress_bars() -> Iterator[Bars]:
    """Progress bars on standard error while the block runs, if that is a terminal; they
    are removed afterwards.
    """
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        Task,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class Remaining(TimeRemainingColumn):
        """The remaining time, where it is known better than from the rate."""

        def render(self, task: Task) -> Text:
            left = task.fields.get("seconds_left")
            if left is None:
                return super().render(task)
            if left == float("inf"):
                return Text("-:--:--", style="progress.remaining")
            shown = timedelta(seconds=round(left))
            return Text(str(shown), style="progress.remaining")

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        Remaining(),
    )
    hidden = not sys.stderr.isatty()
    with Progress(
        *columns, console=console(sys.stderr), transient=True, disable=hidden
    ) as progress:
        yield Bars(progress)
