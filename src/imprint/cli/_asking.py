"""`imprint suggest --ask`: asks for labels in the terminal, one suggested input at a time."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import typer

from imprint.cli import _terminal as terminal
from imprint.cli._sorting import sort_into
from imprint.cli.suggest import ASK_EVERY, fitted_head, suggest_from
from imprint.datasets import Split
from imprint.imprinter import Embedded, Imprinter


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
        while session.asked < n and (batch := session.suggest(min(ASK_EVERY, n - session.asked))):
            for number, reason in batch:
                text = pool.inputs[number] if pool.kind.typed else pool.names[number]
                _show(session, text, reason, pool.kind.typed)
                label = _answer(session)
                session.record(number, label)
                if label is not None:
                    terminal.write_csv([], [[text, label, number]])
                    sys.stdout.flush()
                    if folder is not None:
                        sort_into(folder, [(text, label)], link=False)
    except (EOFError, KeyboardInterrupt):
        terminal.note("")
    terminal.note(f"{terminal.count(len(session.labels), 'answer')} written.")


class _Session:
    """The answers so far and the model that learns them."""

    def __init__(self, model: Imprinter, embedded: Embedded):
        self.model, self.embedded, self.asked = model, embedded, 0
        self.labels: dict[int, Any] = {}
        self.open = np.ones(len(embedded.X), bool)
        self._readable = np.delete(
            np.arange(len(embedded.X) + len(embedded.skipped)), [s.index for s in embedded.skipped]
        )
        self._added: set[int] = set()

    @property
    def classes(self) -> list[str]:
        """The classes of the model and of the answers, in the order of the numbers that stand for them."""
        head = fitted_head(self.model)
        return list(dict.fromkeys([*(map(str, head.classes.tolist()) if head else ()), *self.labels.values()]))

    @property
    def numeric(self) -> bool:
        """Whether the labels of the model are integers."""
        head = fitted_head(self.model)
        return head is not None and head.classes.dtype.kind in "iu"

    def suggest(self, n: int) -> list[tuple[int, str]]:
        """Numbers of the next inputs to ask about, and the reasons; empty at the end of the pool."""
        self._learn()
        rows = np.flatnonzero(self.open)
        if not len(rows):
            return []
        suggestions = suggest_from(self.model, Embedded(self.embedded.X[rows], [], ()), n)
        return list(zip(self._readable[rows[suggestions]].tolist(), suggestions.reasons))

    def record(self, number: int, label: str | None) -> None:
        """Keep an answer, or None for an input that was skipped."""
        self.open[np.searchsorted(self._readable, number)] = False
        self.asked += 1
        if label is not None:
            self.labels[number] = label

    def _learn(self) -> None:
        new = [number for number in self.labels if number not in self._added]
        if new:
            rows = np.searchsorted(self._readable, new)
            y = np.array([self.labels[number] for number in new])
            y = y.astype(np.int64) if self.numeric else y
            labelled = Embedded(self.embedded.X[rows], [self.embedded.names[i] for i in rows], (), y)
            self.model.add(labelled) if fitted_head(self.model) else self.model.fit(labelled)
            self._added.update(new)


def _show(session: _Session, text: str, reason: str, typed: bool) -> None:
    terminal.note(f"\n{session.asked + 1}. {text}\n   {reason}")
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
