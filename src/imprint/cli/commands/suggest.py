"""Choose which unlabelled inputs to label next.

The inputs are listed with the most useful first, and a reason for each. Near-duplicates
are suggested once. Inputs that cannot be read are named, and the exit code is 1.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import typer
from typer import Argument, Option

from imprint import datasets
from imprint.active import Suggestions, suggest
from imprint.active.suggestions import PreparedPool
from imprint.cli import files, models, options, terminal
from imprint.core.errors import ParameterError, UnreadableInput
from imprint.core.files.atomic import expanded
from imprint.core.files.copies import copy_files
from imprint.datasets import Split
from imprint.embeddings import Skipped
from imprint.evaluation.page import suggestion_page
from imprint.imprinter import Embedded, Imprinter

DEFAULT_COUNT = 10  # suggested inputs
# questions, after which the model learns the answers and suggests again
UPDATE_EVERY = 10
MAX_OFFERED = 9  # classes, so that one key names each
QUIT = "q"  # ends the questions, unless it is a class


def command(
    arguments: list[str] = Argument(
        metavar="[FILE] POOL",
        help=(
            "A model that `imprint fit` wrote, and the unlabelled inputs: a folder of"
            " images or sounds, a table of texts or embeddings, .npz or .npy. Without"
            " a model, the suggestions are for the first labels."
        ),
    ),
    n: int = Option(
        DEFAULT_COUNT,
        "-n",
        min=1,
        help="Number of inputs to suggest.",
        rich_help_panel=options.ANSWER_SECTION,
    ),
    ask: bool = Option(
        False,
        "--ask",
        help="Ask for the class of each input, and write each answer as CSV.",
        rich_help_panel=options.ANSWER_SECTION,
    ),
    copy_into: Path | None = Option(
        None,
        metavar="DIR",
        help="Copy the files there (with --ask: into a sub-folder per class).",
        rich_help_panel=options.OUTPUT_SECTION,
    ),
    page: Path | None = options.PAGE,
    csv: bool = Option(
        False,
        "--csv",
        help="CSV on standard output, for spreadsheets.",
        rich_help_panel=options.OUTPUT_SECTION,
    ),
    json: bool = options.JSON,
    *,
    table: options.UnlabelledColumns,
    network: options.CachedNetwork,
) -> int:
    if csv:
        files.check_csv("suggest", arguments)
    if len(arguments) > 2:
        raise ParameterError(
            f"suggest: {len(arguments)} arguments; give [FILE] POOL, a model and one"
            " pool."
        )
    path = arguments[-1]
    file = files.check_model(Path(arguments[0])) if len(arguments) == 2 else None
    model = (
        Imprinter.load(file, **vars(network)) if file else Imprinter(**vars(network))
    )
    pool, embedded = _embed(model, path, table)
    if not len(embedded.X):
        raise UnreadableInput(embedded.skipped[0].name, embedded.skipped[0].reason)
    if copy_into is not None and not os.path.isfile(pool.names[0]):
        raise ParameterError(
            "--copy-into: the inputs of a table or .zip are not files that can be"
            " copied."
        )
    if ask:
        _Questions(model, pool, embedded, copy_into).ask(n)
        return terminal.report_skipped(embedded.skipped)
    suggestions = _suggest(model, embedded, n)
    numbers, reasons = suggestions.tolist(), suggestions.reasons
    if json:
        terminal.emit(
            [
                {"path": pool.names[i], "row": i, "reason": reason}
                for i, reason in zip(numbers, reasons)
            ]
        )
    elif csv:
        columns = {
            "path": [pool.names[i] for i in numbers],
            "row": numbers,
            "reason": reasons,
        }
        if pool.kind.typed:
            columns |= {
                "text": [pool.inputs[i] for i in numbers],
                "label": [""] * len(numbers),
            }
        terminal.write_spreadsheet([list(columns), *zip(*columns.values())])
    else:
        captions = models.captions(pool, [path])
        rows = [(captions[i], reason) for i, reason in zip(numbers, reasons)]
        terminal.table(["name", "reason"], rows, names=not pool.kind.typed)
    if page is not None:
        title = f"Label next: {Path(path).absolute().name}"
        names = models.captions(pool, [path])
        models.write_page(
            page, suggestion_page(title, pool, suggestions, embedded, model, names)
        )
    if copy_into is not None:
        copied = copy_files(copy_into, ((pool.names[i], ()) for i in numbers))
        terminal.note(f"{copy_into}: {terminal.count(copied, 'file')} copied.")
    return terminal.report_skipped(embedded.skipped)


def _embed(
    model: Imprinter, path: str, table: options.UnlabelledColumns
) -> tuple[Split, Embedded]:
    """The inputs of a pool, named as a user would open them, and their embeddings."""
    folder = expanded(path)
    if folder.is_dir() and not any(folder.glob("train.*")):
        pool = datasets.load_files([folder])
    else:
        pool = datasets.load(
            path,
            "train",
            labelled=False,
            modality=model.embedder.requested,
            **vars(table),
        )
    models.note_ignored(pool)
    with terminal.progress_bars() as bars:
        models.choose_backbone(model, pool)
        return pool, model.look(pool, bars.embedding())


def _suggest(model: Imprinter, embedded: Embedded, n: int) -> Suggestions:
    """The indices of inputs of a pool; without a fitted model, of those to label
    first.
    """
    head = model.state.head if model.fitted else None
    rows = suggest(embedded.X, n, head=head, blocks=embedded.blocks)
    return Suggestions.of(embedded.readable[rows], rows.reasons, embedded.skipped)


def label_next(model: Imprinter, folder: Path) -> Sequence[Skipped]:
    """Print the inputs of a pool that `imprint fit` suggests to label next; return
    those that cannot be read.
    """
    pool, embedded = _embed(model, str(folder), options.UnlabelledColumns(None, None))
    if len(embedded.X):
        suggestions = _suggest(model, embedded, DEFAULT_COUNT)
        terminal.note("Label next:")
        for i, reason in zip(suggestions.tolist(), suggestions.reasons):
            terminal.note(f"  {pool.names[i]}  ({reason})")
    return embedded.skipped


class _Questions:
    """Asks for the class of one input after the other, and writes each answer at once:
    as CSV, and as a copy of a file.

    The model in memory learns the answers, so that suggestions improve after every
    tenth one. Its file does not change.
    """

    def __init__(
        self, model: Imprinter, pool: Split, embedded: Embedded, folder: Path | None
    ):
        self.model, self.pool, self.embedded, self.folder = (
            model,
            pool,
            embedded,
            folder,
        )
        self.prepared_pool = PreparedPool(embedded.X, blocks=embedded.blocks)
        self.asked = np.zeros(len(embedded.X), bool)  # which rows were asked about
        self.numbers = embedded.readable.tolist()
        self.classes = (
            [str(label) for label in model.classes_.tolist()] if model.fitted else []
        )
        self.integers = model.fitted and model.classes_.dtype.kind in "iu"
        self.answers = 0

    def ask(self, n: int) -> None:
        """Ask for the class of n inputs. The end of standard input, or Ctrl-C, ends the
        questions.
        """
        terminal.write_csv(
            [["text" if self.pool.kind.typed else "path", "label", "row"]]
        )
        ends = "Ctrl-C" if QUIT in self.classes else f"{QUIT} or Ctrl-C"
        terminal.note(
            f"Type a class, or its number; Enter skips; {ends} ends and keeps the"
            " answers."
        )
        labels: dict[int, str] = {}
        try:
            while (left := n - int(self.asked.sum())) and (
                rows := self._suggest(min(UPDATE_EVERY, left), labels)
            ):
                labels = {}
                for row, reason in rows:
                    if label := self._ask_for(row, reason):
                        labels[row] = label
        except (EOFError, KeyboardInterrupt):
            terminal.note("")
        terminal.note(f"{terminal.count(self.answers, 'answer')} written.")

    def _suggest(self, n: int, labels: dict[int, str]) -> list[tuple[int, str]]:
        """Learn `labels`, the last answers by row; return the next rows to ask about
        with reasons, empty at the end.
        """
        if labels:
            rows = list(labels)
            y = np.array(list(labels.values()), np.int64 if self.integers else None)
            names = [self.embedded.names[row] for row in rows]
            blocks = self.embedded.blocks
            labelled = Embedded(self.embedded.X[rows], names, (), y, blocks=blocks)
            self.model.add(labelled) if self.model.fitted else self.model.fit(labelled)
        head = self.model.state.head if self.model.fitted else None
        suggestions = self.prepared_pool.suggest(n, head, self.asked)
        return list(zip(suggestions.tolist(), suggestions.reasons))

    def _ask_for(self, row: int, reason: str) -> str:
        """Ask for the class of one input, and write the answer; empty if the input is
        skipped.
        """
        number, typed = self.numbers[row], self.pool.kind.typed
        text = self.pool.inputs[number] if typed else self.pool.names[number]
        offered = self._most_probable(row)
        choices = "  ".join(f"{i} {name}" for i, name in enumerate(offered, start=1))
        terminal.note(
            f"\n{self.asked.sum() + 1}. {text}\n   {reason}\n   {choices}\n   class: ",
            end="",
        )
        if os.path.isfile(text) and not typed and sys.stdin.isatty():
            typer.launch(text)
        label = self._read_label(offered)
        self.asked[row] = True
        if label:
            self.answers += 1
            if label not in self.classes:
                self.classes.append(label)
                terminal.note(f"   New class: {label}.")
            terminal.write_csv([[text, label, number]])
            sys.stdout.flush()
            if self.folder is not None:
                copy_files(self.folder, [(text, files.class_folder(label))])
        return label

    def _most_probable(self, row: int) -> list[str]:
        """The classes that are offered for an input: the most probable ones of the
        model, then those that it has not learnt yet.
        """
        learnt: list[str] = []
        if self.model.fitted:
            head = self.model.state.head
            scores = head.scores(self.embedded.X[[row]].astype(head.imprinted.dtype))
            by_score = np.argsort(-scores[0], kind="stable")
            learnt = [str(label) for label in head.classes[by_score].tolist()]
        new = [label for label in self.classes if label not in learnt]
        return [*learnt, *new][:MAX_OFFERED]

    def _read_label(self, offered: Sequence[str]) -> str:
        """The class that a line names, itself or by its number among those that are
        offered, counted from 1; empty for an empty line.
        """
        while line := sys.stdin.readline():
            word = line.strip()
            if word == QUIT and word not in self.classes:
                break
            is_number = word.isdecimal() and word not in self.classes
            if is_number and 1 <= int(word) <= len(offered):
                return offered[int(word) - 1]
            if not self.integers or not word or word.isdecimal():
                return word
            terminal.note(
                "   The classes of this model are integers; type one: ", end=""
            )
        raise EOFError
