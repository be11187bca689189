"""`imprint suggest --ask`: asks for labels in the terminal, one suggested input at a time."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import typer

from imprint.active.suggestions import PreparedPool
from imprint.cli import _terminal as terminal
from imprint.cli._sorting import copy_files, folder_of
from imprint.datasets import Split
from imprint.imprinter import Embedded, Imprinter

UPDATE_EVERY = 10
"""The number of questions after which the model learns the answers and suggests again."""


def ask_for_labels(model: Imprinter, pool: Split, embedded: Embedded, n: int, folder: Path | None) -> None:
    """Ask for the class of n inputs and write each answer at once, as a line of CSV and as a copy in `folder`.

    The model in memory learns the answers, so that suggestions improve after every tenth one; its file does not change.
    An empty answer skips the input; the end of standard input, or Ctrl-C, ends the questions.
    """
    column = "text" if pool.kind.typed else "path"
    terminal.write_csv([column, "label", "row"], [])
    terminal.note("Type a class, or its number; Enter skips; Ctrl-C ends and keeps the answers.")
    session = _Session(model, embedded)
    try:
        while session.asked.sum() < n and (batch := session.suggest(min(UPDATE_EVERY, n - session.asked.sum()))):
            for row, reason in batch:
                number = session.readable[row]
                text = pool.inputs[number] if pool.kind.typed else pool.names[number]
                _show(session, text, reason, pool.kind.typed)
                label = _answer(session)
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


class _Session:
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


def _show(session: _Session, text: str, reason: str, typed: bool) -> None:
    terminal.note(f"\n{session.asked.sum() + 1}. {text}\n   {reason}")
    if not typed and sys.stdin.isatty():
        typer.launch(text)
    choices = "  ".join(f"{i} {label}" for i, label in enumerate(session.classes[:9], start=1))
    sys.stderr.write(f"   {terminal.printable(choices)}\n   class: ")
    sys.stderr.flush()


def _answer(session: _Session) -> str | None:
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
