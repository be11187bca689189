"""`imprint suggest`."""

import sys
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from imprint import datasets
from imprint.active import Suggestions, suggest
from imprint.active.suggestions import PreparedPool
from imprint.cli import _options as options
from imprint.cli import _terminal as terminal
from imprint.cli._files import check_csv, check_model, check_page, choose_backbone
from imprint.cli._inputs import relative_names
from imprint.cli._progress import progress_bars
from imprint.cli._sorting import copy_files, folder_of
from imprint.core.errors import ParameterError, UnreadableInput
from imprint.datasets import Split
from imprint.datasets.files import FileInputs
from imprint.evaluation.page import write_suggestions
from imprint.imprinter import Embedded, Imprinter

UPDATE_EVERY = 10
"""The number of questions after which the model learns the answers and suggests again."""


def command(
    arguments: Annotated[
        list[str],
        typer.Argument(
            metavar="[FILE] POOL",
            help="A model that `imprint fit` wrote, and the unlabelled inputs: a folder of pictures or sounds, a table "
            "of texts or embeddings, .npz or .npy. Without a model, the suggestions are for the first labels.",
            show_default=False,
        ),
    ],
    n: Annotated[int, typer.Option("-n", help="How many inputs to suggest.", min=1)] = 10,
    ask: Annotated[
        bool,
        typer.Option(
            "--ask", help="Ask for the class of each input and write the answers as CSV; Ctrl-C keeps those given."
        ),
    ] = False,
    copy_into: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Copy the files there (with --ask: into a sub-folder per class)."),
    ] = None,
    page: options.Page = None,
    csv: Annotated[bool, typer.Option("--csv", help="CSV on standard output, for spreadsheets.")] = False,
    json: options.Json = False,
    text_column: options.TextColumn = None,
    backbone: options.Backbone = None,
    device: options.Device = "cpu",
    threads: options.Threads = None,
    cache: options.Cache = True,
) -> None:
    """Choose which unlabelled inputs to label next.

    The inputs are listed with the most useful first, and a reason for each. Near-duplicates are suggested once. Inputs
    that cannot be read are named, and the exit code is 1.
    """
    if csv:
        check_csv("suggest", arguments)
    if len(arguments) > 2:
        raise ParameterError(f"suggest: {len(arguments)} arguments; give [FILE] POOL, a model and one pool.")
    check_page(page)
    network: dict[str, Any] = {"backbone": backbone, "device": device, "threads": threads, "cache": cache}
    if len(arguments) == 2:
        check_model(Path(arguments[0]))
        model = Imprinter.load(arguments[0], **network)
    else:
        model = Imprinter(**network)
    pool, embedded = _embed(model, arguments[-1], text_column)
    if not len(embedded.X):
        raise UnreadableInput(embedded.skipped[0].name, embedded.skipped[0].reason)
    if copy_into is not None and not isinstance(pool.inputs, FileInputs):
        raise ParameterError("suggest(--copy-into): the inputs of a table are not files that can be copied.")
    if ask:
        _ask_for_labels(model, pool, embedded, n, copy_into)
    else:
        suggestions = _suggest(model, embedded, n)
        _write(pool, suggestions, arguments[-1], json, csv)
        if page is not None:
            write_suggestions(page, f"Label these of {arguments[-1]} next", pool, suggestions)
        terminal.name_page(page)
        if copy_into is not None:
            copied = copy_files((pool.names[i], copy_into) for i in suggestions.tolist())
            terminal.note(f"{copy_into}: {terminal.count(copied, 'file')} copied.")
    terminal.finish(embedded.skipped)


def _suggest(model: Imprinter, embedded: Embedded, n: int) -> Suggestions:
    """The indices of inputs of a pool; without a fitted model, of those to label first."""
    head = model.state.head if model.fitted else None
    return suggest(embedded.X, n, head=head).among(len(embedded.X), embedded.skipped)


def label_next(model: Imprinter, folder: Path, n: int = 10) -> None:
    """The inputs of a pool that `imprint fit` suggests to label next."""
    pool, embedded = _embed(model, str(folder), None)
    if len(embedded.X):
        suggestions = _suggest(model, embedded, n)
        terminal.note("Label these next:")
        for i, reason in zip(suggestions.tolist(), suggestions.reasons):
            terminal.note(f"  {pool.names[i]}  ({reason})")


def _embed(model: Imprinter, path: str, text_column: str | None) -> tuple[Split, Embedded]:
    """The inputs of a pool, named as a user would open them, and their embeddings."""
    folder = Path(path).expanduser()
    if folder.is_dir() and not any(folder.glob("train.*")):
        pool = datasets.load_files([folder])
    else:
        pool = datasets.load(path, "train", labelled=False, text_column=text_column)
    with progress_bars() as bars:
        choose_backbone(model, pool.kind)
        return pool, model.look(pool, bars.embedding())


def _write(pool: Split, suggestions: Suggestions, path: str, json: bool, csv: bool) -> None:
    numbers = suggestions.tolist()
    entries = [{"path": pool.names[i], "row": i, "reason": reason} for i, reason in zip(numbers, suggestions.reasons)]
    if json:
        terminal.emit(entries)
    elif csv:
        texts = {"text": [pool.inputs[i] for i in numbers], "label": [""] * len(numbers)}
        columns: dict[str, list[Any]] = {name: [e[name] for e in entries] for name in ("path", "row", "reason")}
        columns |= texts if pool.kind.typed else {}
        terminal.write_csv(list(columns), zip(*columns.values()))
    else:
        captions = pool.captions if pool.kind.typed else relative_names(pool.names, [path])
        terminal.table(["name", "reason"], [(captions[i], reason) for i, reason in zip(numbers, suggestions.reasons)])


def _ask_for_labels(model: Imprinter, pool: Split, embedded: Embedded, n: int, folder: Path | None) -> None:
    """Ask for the class of n inputs and write each answer at once, as a line of CSV and as a copy in `folder`.

    The model in memory learns the answers, so that suggestions improve after every tenth one; its file does not change.
    An empty answer skips the input; the end of standard input, or Ctrl-C, ends the questions.
    """
    column = "text" if pool.kind.typed else "path"
    terminal.write_csv([column, "label", "row"], [])
    terminal.note("Type a class, or its number; Enter skips; Ctrl-C ends and keeps the answers.")
    session = _LabellingSession(model, embedded)
    try:
        while session.asked.sum() < n and (batch := session.suggest(min(UPDATE_EVERY, n - session.asked.sum()))):
            for row, reason in batch:
                number = session.readable[row]
                text = pool.inputs[number] if pool.kind.typed else pool.names[number]
                _show_input(session, text, reason, pool.kind.typed)
                label = _read_label(session)
                session.asked[row] = True
                if label is not None:
                    session.labels[row] = label
                    terminal.write_csv([], [[text, label, number]])
                    sys.stdout.flush()
                    if folder is not None:
                        copy_files([(text, folder_of(folder, label))])
    except (EOFError, KeyboardInterrupt):
        terminal.note("")
    terminal.note(f"{terminal.count(len(session.labels), 'answer')} written.")


class _LabellingSession:
    """The answers so far and the model that learns them."""

    def __init__(self, model: Imprinter, embedded: Embedded):
        self.model, self.embedded = model, embedded
        self.pool, self.asked = PreparedPool(embedded.X), np.zeros(len(embedded.X), bool)
        self.readable = np.delete(
            np.arange(len(embedded.X) + len(embedded.skipped)), [s.index for s in embedded.skipped]
        ).tolist()
        self.labels: dict[int, Any] = {}
        self._learnt: set[int] = set()

    @property
    def classes(self) -> list[str]:
        """The classes of the model and of the answers; a user may type the number of a class, counted from 1."""
        known = map(str, self.model.classes_.tolist()) if self.model.fitted else ()
        return list(dict.fromkeys([*known, *self.labels.values()]))

    @property
    def numeric(self) -> bool:
        """Whether the labels of the model are integers."""
        return self.model.fitted and self.model.classes_.dtype.kind in "iu"

    def suggest(self, n: int) -> list[tuple[int, str]]:
        """The next rows to ask about, and the reasons; empty at the end of the pool."""
        self._learn()
        head = self.model.state.head if self.model.fitted else None
        suggestions = self.pool.suggest(n, head, self.asked)
        return list(zip(suggestions.tolist(), suggestions.reasons))

    def _learn(self) -> None:
        rows = [row for row in self.labels if row not in self._learnt]
        if rows:
            y = np.array([self.labels[row] for row in rows])
            y = y.astype(np.int64) if self.numeric else y
            labelled = Embedded(self.embedded.X[rows], [self.embedded.names[row] for row in rows], (), y)
            self.model.add(labelled) if self.model.fitted else self.model.fit(labelled)
            self._learnt.update(rows)


def _show_input(session: _LabellingSession, text: str, reason: str, typed: bool) -> None:
    terminal.note(f"\n{session.asked.sum() + 1}. {text}\n   {reason}")
    if not typed and sys.stdin.isatty():
        typer.launch(text)
    choices = "  ".join(f"{i} {label}" for i, label in enumerate(session.classes[:9], start=1))
    sys.stderr.write(f"   {terminal.printable(choices)}\n   class: ")
    sys.stderr.flush()


def _read_label(session: _LabellingSession) -> str | None:
    """The class that a line names, itself or by its number; None for an empty line."""
    while line := sys.stdin.readline():
        word = line.strip()
        if word.isdecimal() and word not in session.classes and 1 <= int(word) <= len(session.classes):
            return session.classes[int(word) - 1]
        if not session.numeric or not word or word.isdecimal():
            return word or None
        sys.stderr.write("   The classes of this model are integers; type one: ")
        sys.stderr.flush()
    raise EOFError
